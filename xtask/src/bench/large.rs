//! Context of what is too large: the program's own memory stays small, and Git's is shown beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;

use super::context::{Line, mebibytes};
use super::fixture::{Fixture, Size, write as write_file};
use super::measure::shown;
use super::program;
use super::report::Section;

const DIFF_BYTES: usize = 300_000_000;
const LINE_BYTES: usize = 200_000_000;

/// What every builder may take in its own process.
const MOST_KIB: u64 = 100 << 10;

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let lattice = program(root).display().to_string();
    Ok(vec![contents(scratch.path(), &lattice)?])
}

fn section(title: &str, about: &str) -> Section {
    Section::new(title, about, &["what", "time", "peak memory of its own process"])
}

fn measured(section: &mut Section, line: &Line) -> Result<(Duration, u64), Failure> {
    let start = Instant::now();
    let peak = line.peak_kib()?;
    section.row(vec![line.name.clone(), shown(start.elapsed()), mebibytes(peak)]);
    Ok((start.elapsed(), peak))
}

/// Measures a command of ours, which has to stay below the limit.
fn bounded(section: &mut Section, line: &Line) -> Result<(), Failure> {
    let (_, peak) = measured(section, line)?;
    if peak > MOST_KIB {
        return Err(Failure::Problems(vec![format!("`{}` took {}", line.name, mebibytes(peak))]));
    }
    Ok(())
}

fn contents(scratch: &Path, lattice: &str) -> Result<Section, Failure> {
    let fixture = Fixture::new(scratch, "contents", Size { branches: 1, commits: 1, files: 100 })?;
    let line = format!("{}\n", "0123456789abcdef".repeat(62));
    write_file(&fixture.path.join("lines.txt"), &line.repeat(DIFF_BYTES / line.len()))?;
    write_file(&fixture.path.join("line.txt"), &"x".repeat(LINE_BYTES))?;
    write_file(&fixture.path.join("errors.txt"), "lines.txt:7: something is wrong here\nline.txt:1: and here\n")?;
    fixture.git(&["add", "lines.txt", "line.txt"])?;
    fixture.git(&["commit", "-qm", "large"])?;
    let at = fixture.path.display().to_string();
    let mut section = section(
        "large contents",
        "A branch that adds 300 MB in lines and one line of 200 MB. Own processes may take 100 MiB.",
    );
    let own = |words: &[&str]| Line::new(words[1], lattice, &[&["-C", &at], words].concat());
    bounded(&mut section, &own(&["context", "review", "--base", "main"]))?;
    bounded(&mut section, &own(&["context", "fix", "--errors", "errors.txt"]))?;
    bounded(&mut section, &own(&["context", "implement", "--task-file", "lines.txt"]))?;
    bounded(&mut section, &own(&["context", "pack", "lines.txt is wrong", "--budget", "27000"]))?;
    measured(&mut section, &Line::new("git diff", "git", &["-C", &at, "diff", "main..."]))?;
    Ok(section)
}
