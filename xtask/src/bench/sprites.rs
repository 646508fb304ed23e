//! Sprites: what a sandbox, a checkpoint and a restore take, and what the same takes elsewhere.

use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::process::Call;
use crate::tools;

use super::measure::{ratio, shown};
use super::report::Section;

/// One figure of the library's benchmark.
struct Figure {
    name: String,
    median: Duration,
    high: Duration,
    rounds: String,
}

/// What one figure may be at most.
struct Limit {
    figure: &'static str,
    about: &'static str,
    most: Duration,
}

const LIMITS: [Limit; 6] = [
    limit("sandbox", "a sandbox until its command speaks, canaries included", 12),
    limit("checkpoint, 100 changed", "a checkpoint of 50,000 files with 100 changed, taken live, durable", 15),
    limit("checkpoint, 20,000 new", "the same with 20,000 new files", 600),
    limit("checkpoint, 100 on top of 20,000", "100 changed on top of those", 150),
    limit("restore", "a restore until the command speaks", 40),
    limit("first git status", "the first `git status` in a sprite of 50,000 files, its sandbox included", 600),
];

const fn limit(figure: &'static str, about: &'static str, most_ms: u64) -> Limit {
    Limit { figure, about, most: Duration::from_millis(most_ms) }
}

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    tools::install_one(root, "bwrap", "bubblewrap");
    let figures = figures(root)?;
    Ok(vec![limits(&figures)?, beside(&figures)?, sizes(&figures)?])
}

fn figures(root: &Path) -> Result<Vec<Figure>, Failure> {
    let manifest = root.join("Cargo.toml").display().to_string();
    let program = super::program(root).display().to_string();
    let words = ["bench", "--package", "lattice-sprites", "--bench", "sprites", "--manifest-path", &manifest];
    let call = Call { program: "cargo", arguments: &words, environment: &[("LATTICE_PROGRAM", &program)] };
    let text =
        call.answer().ok_or_else(|| Failure::Problems(vec!["the benchmark of the library failed".to_owned()]))?;
    let figure = |line: &str| {
        let parts: Vec<_> = line.split('\t').collect();
        let [name, median, high, rounds] = parts.as_slice() else { return None };
        let time = |micros: &str| micros.parse().ok().map(Duration::from_micros);
        Some(Figure {
            name: (*name).to_owned(),
            median: time(median)?,
            high: time(high)?,
            rounds: (*rounds).to_owned(),
        })
    };
    Ok(text.lines().filter_map(figure).collect())
}

fn find<'a>(figures: &'a [Figure], name: &str) -> Result<&'a Figure, Failure> {
    let found = figures.iter().find(|figure| figure.name == name);
    found.ok_or_else(|| Failure::Problems(vec![format!("the benchmark says nothing of `{name}`")]))
}

fn limits(figures: &[Figure]) -> Result<Section, Failure> {
    let about = "Times from the order to the moment at which it is done: a checkpoint is on disk and has its id.";
    let mut section = Section::new("times", about, &["what", "median", "of ten, the slowest", "goal", "rounds"]);
    for limit in &LIMITS {
        let figure = find(figures, limit.figure)?;
        section.row(vec![
            limit.about.to_owned(),
            shown(figure.median),
            shown(figure.high),
            shown(limit.most),
            figure.rounds.clone(),
        ]);
    }
    let pause = find(figures, "pause, 100 changed")?;
    let about = "for so long the agent stands still in that checkpoint".to_owned();
    section.row(vec![about, shown(pause.median), shown(pause.high), String::new(), pause.rounds.clone()]);
    Ok(section)
}

fn beside(figures: &[Figure]) -> Result<Section, Failure> {
    let about = "The same state of 50,000 files kept in other ways, and a sandbox of bubblewrap with namespaces alone: no \
        overlay, no Landlock, no filter of system calls, no canaries.";
    let mut section = Section::new("beside others", about, &["what", "median", "by ours", "rounds"]);
    for (ours, theirs) in [
        ("checkpoint, 100 changed", "cp -a"),
        ("checkpoint, 100 changed", "cp -al"),
        ("checkpoint, 100 changed", "git add and commit"),
        ("sandbox", "bwrap"),
    ] {
        let (ours, theirs) = (find(figures, ours)?, find(figures, theirs)?);
        let times = format!("{:.2}", ratio(theirs.median, ours.median));
        section.row(vec![theirs.name.clone(), shown(theirs.median), times, theirs.rounds.clone()]);
    }
    Ok(section)
}

fn sizes(figures: &[Figure]) -> Result<Section, Failure> {
    let about = "A second sprite from the same commit, from nothing to the first word of its command, in turns.";
    let mut section = Section::new("size of the repository", about, &["files", "median", "by the smaller", "rounds"]);
    let small = find(figures, "second sprite, 1,000 files")?;
    for (files, figure) in [("1,000", small), ("50,000", find(figures, "second sprite, 50,000 files")?)] {
        let times = format!("{:.2}", ratio(figure.median, small.median));
        section.row(vec![files.to_owned(), shown(figure.median), times, figure.rounds.clone()]);
    }
    Ok(section)
}
