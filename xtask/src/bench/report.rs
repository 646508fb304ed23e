//! Tables on stdout and in `docs/benchmarks.md`, which has one part for each task that measures.

use std::path::Path;

use crate::process::Call;
use crate::{Failure, read};

use super::curves::Curve;
use super::fixture::write as write_file;

const FILE: &str = "docs/benchmarks.md";

const OPENING: &str = "# Benchmarks

Each part is written by the task that it names; `cargo xtask bench` measures them all. Contestants run in turns in one process, so \
the ratios hold on a noisy machine; the times are only as good as the machine was idle. Peers appear where they are installed.
";

/// What stands before a part, with its name.
const MARK: &str = "<!-- part: ";

/// One table, and a picture of it if it shows growth.
pub(crate) struct Section {
    title: String,
    about: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    picture: Option<(String, Vec<Curve>)>,
}

impl Section {
    pub(crate) fn new(title: &str, about: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|cell| (*cell).to_owned()).collect();
        Self { title: title.to_owned(), about: about.to_owned(), header, rows: Vec::new(), picture: None }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Times over sizes, drawn below the table.
    pub(super) fn draw(&mut self, sizes: &str, curves: Vec<Curve>) {
        self.picture = Some((sizes.to_owned(), curves));
    }

    fn text(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<_> = self.header.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let picture = self.picture.as_ref().map(|_| format!("\n![{0}](benchmarks/{0}.svg)\n", self.title));
        let picture = picture.unwrap_or_default();
        format!("### {}\n\n{}\n\n{}{}{rows}{picture}", self.title, self.about, line(&self.header), line(&rule))
    }
}

/// Writes the part `name` with the task that made it; the other parts stay as they are.
pub(crate) fn write(root: &Path, (name, task): (&str, &str), sections: &[Section]) -> Result<(), Failure> {
    let tables: Vec<_> = sections.iter().map(Section::text).collect();
    let part = format!("## {name}\n\n{}\n{}", circumstances(task), tables.join("\n"));
    eprintln!("\n{part}");
    for section in sections {
        if let Some((sizes, curves)) = &section.picture {
            let folder = root.join("docs/benchmarks");
            std::fs::create_dir_all(&folder).map_err(|cause| Failure::File { path: folder.clone(), cause })?;
            let path = folder.join(format!("{}.svg", section.title));
            write_file(&path, &super::curves::svg(&section.title, sizes, curves))?;
        }
    }
    let path = root.join(FILE);
    write_file(&path, &with_part(&read(&path)?, name, &part))
}

/// The document with this part in the place of the earlier one, or at the end.
fn with_part(text: &str, name: &str, part: &str) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for block in text.split(MARK).skip(1) {
        if let Some((name, body)) = block.split_once(" -->\n") {
            parts.push((name.to_owned(), body.trim().to_owned()));
        }
    }
    match parts.iter_mut().find(|(known, _)| known == name) {
        Some((_, body)) => part.trim().clone_into(body),
        None => parts.push((name.to_owned(), part.trim().to_owned())),
    }
    let parts = parts.iter().map(|(name, body)| format!("\n{MARK}{name} -->\n{body}\n"));
    format!("{OPENING}{}", parts.collect::<String>())
}

fn circumstances(task: &str) -> String {
    let answer = |program: &str, arguments: &[&str]| {
        Call { program, arguments, environment: &[] }.answer().unwrap_or_else(|| "not known".to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "| task | `cargo xtask {task}` |\n|---|---|\n| date | {} |\n| commit | {} |\n| machine | {cores} cores, {} |\n| git | {} |\n| rustc | {} |\n",
        answer("date", &["-u", "+%Y-%m-%d"]),
        answer("git", &["rev-parse", "--short=12", "HEAD"]),
        answer("uname", &["-sr"]),
        answer("git", &["version"]),
        answer("rustc", &["--version"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_replaces_its_earlier_self_and_no_other() {
        let first = with_part("", "stack", "## stack\n\nold");
        let both = with_part(&first, "forge", "## forge");
        let newer = with_part(&both, "stack", "## stack\n\nnew\n");
        let expected = format!("{OPENING}\n<!-- part: stack -->\n## stack\n\nnew\n\n<!-- part: forge -->\n## forge\n");
        assert_eq!(newer, expected);
    }
}
