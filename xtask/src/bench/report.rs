//! Tables on stdout and in `docs/benchmarks.md`, or a file of their own for what is no race against Git.

use std::path::Path;

use crate::Failure;
use crate::process::Call;

use super::fixture::write as write_file;

/// One table.
pub(crate) struct Section {
    title: String,
    about: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Section {
    pub(crate) fn new(title: &str, about: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|cell| (*cell).to_owned()).collect();
        Self { title: title.to_owned(), about: about.to_owned(), header, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn text(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<_> = self.header.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("## {}\n\n{}\n\n{}{}{rows}", self.title, self.about, line(&self.header), line(&rule))
    }
}

/// Writes tables to a file of the repository, with the task that made them.
pub(crate) fn write(root: &Path, (file, task): (&str, &str), sections: &[Section]) -> Result<(), Failure> {
    let tables: Vec<_> = sections.iter().map(Section::text).collect();
    let text = format!(
        "# Benchmarks\n\nWritten by `cargo xtask {task}`. Contestants run in turns in one process, so the ratios hold on a noisy machine; \
         the times are only as good as the machine was idle. Peers appear where they are installed.\n\n{}\n{}",
        machine(),
        tables.join("\n"),
    );
    eprintln!("\n{text}");
    write_file(&root.join(file), &text)
}

fn machine() -> String {
    let answer = |program: &str, arguments: &[&str]| {
        Call { program, arguments, environment: &[] }.answer().unwrap_or_else(|| "not known".to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "| | |\n|---|---|\n| date | {} |\n| commit | {} |\n| machine | {cores} cores, {} |\n| git | {} |\n| rustc | {} |\n",
        answer("date", &["-u", "+%Y-%m-%d"]),
        answer("git", &["rev-parse", "--short=12", "HEAD"]),
        answer("uname", &["-sr"]),
        answer("git", &["version"]),
        answer("rustc", &["--version"]),
    )
}
