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
const OTHER_BYTES: usize = 100_000_000;
const FILES: usize = 1_000_000;

/// An issue that names files of both repositories.
const ISSUE: &str = r#"{"number":1,"title":"it is large","body":"see lines.txt, line.txt and d007/f7000.py","labels":[],
    "state":"open","assignees":[],"url":""}"#;

/// What every builder may take in its own process.
const MOST_KIB: u64 = 100 << 10;

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let lattice = program(root).display().to_string();
    Ok(vec![contents(scratch.path(), &lattice)?, files(scratch.path(), &lattice)?])
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
    let mut errors = String::from("lines.txt:7: something is wrong here\nline.txt:1: and here\n");
    fixture.git(&["add", "lines.txt", "line.txt"])?;
    fixture.git(&["commit", "-qm", "large"])?;
    for (name, unit) in
        [("invalid.txt", &b"ab\xff\xfe\xc3\n"[..]), ("utf16.txt", b"a\0\n\0"), ("binary", b"\0\x01\x02\n")]
    {
        let start: &[u8] = if name == "utf16.txt" { b"\xff\xfe" } else { b"" };
        write_bytes(&fixture.path.join(name), &[start, &unit.repeat(OTHER_BYTES / unit.len())].concat())?;
        errors.push_str(&format!("{name}:9: and here\n"));
    }
    write_file(&fixture.path.join("errors.txt"), &errors)?;
    write_file(&fixture.path.join("issue.json"), ISSUE)?;
    let at = fixture.path.display().to_string();
    let mut section = section(
        "large contents",
        "A branch that adds 300 MB in lines and one line of 200 MB; beside them, untracked, 100 MB each of invalid UTF-8, \
         of UTF-16 and of bytes that are no text. Own processes may take 100 MiB.",
    );
    let own = |words: &[&str]| Line::new(words[1], lattice, &[&["-C", &at], words].concat());
    bounded(&mut section, &own(&["context", "review", "--base", "main"]))?;
    bounded(&mut section, &own(&["context", "fix", "--errors", "errors.txt"]))?;
    bounded(&mut section, &own(&["context", "implement", "--task-file", "lines.txt"]))?;
    bounded(&mut section, &own(&["context", "issue", "--from", "issue.json"]))?;
    bounded(&mut section, &own(&["context", "truncate", "lines.txt", "--max-lines", "100", "--around", "200000"]))?;
    bounded(&mut section, &own(&["context", "pack", "lines.txt is wrong", "--budget", "27000"]))?;
    measured(&mut section, &Line::new("git diff", "git", &["-C", &at, "diff", "main..."]))?;
    Ok(section)
}

fn files(scratch: &Path, lattice: &str) -> Result<Section, Failure> {
    let fixture = Fixture::new(scratch, "files", Size { branches: 1, commits: 1, files: 1 })?;
    let text = "def value():\n    return 1\n";
    let mut stream = format!("blob\nmark :1\ndata {}\n{text}\n", text.len());
    stream.push_str("commit refs/heads/many\ncommitter Bench <b@example.invalid> 1720000000 +0000\ndata 4\nmany\n");
    stream.push_str("from refs/heads/main^0\n");
    for file in 0..FILES {
        stream.push_str(&format!("M 100644 :1 d{:03}/f{file}.py\n", file / 1000));
    }
    fixture.feed(&["fast-import", "--quiet"], &stream)?;
    fixture.git(&["checkout", "-q", "-b", "change", "many"])?;
    write_file(&fixture.path.join("d007/f7000.py"), "def value():\n    return 2\n")?;
    fixture.git(&["commit", "-qam", "change"])?;
    write_file(&fixture.path.join("errors.txt"), "d007/f7000.py:2: this is wrong\n")?;
    write_file(&fixture.path.join("issue.json"), ISSUE)?;
    let at = fixture.path.display().to_string();
    let about = "A repository with 1,000,000 files in a thousand folders, and a branch that changes one of them. \
        Builders may take 100 MiB; what packs has read all of them, and is shown without a limit.";
    let mut section = section("many files", about);
    let own = |words: &[&str]| Line::new(words[1], lattice, &[&["-C", &at], words].concat());
    bounded(&mut section, &own(&["context", "review", "--base", "many"]))?;
    bounded(&mut section, &own(&["context", "fix", "--errors", "errors.txt"]))?;
    bounded(&mut section, &own(&["context", "implement", "--task-file", "d007/f7000.py"]))?;
    bounded(&mut section, &own(&["context", "issue", "--from", "issue.json"]))?;
    measured(&mut section, &own(&["context", "pack", "the value of f7000 is wrong", "--budget", "27000"]))?;
    measured(&mut section, &Line::new("git status", "git", &["-C", &at, "status", "--short"]))?;
    Ok(section)
}

#[expect(clippy::disallowed_methods, reason = "scratch files of a benchmark")]
fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|cause| Failure::File { path: path.to_owned(), cause })
}
