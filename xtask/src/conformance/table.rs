//! Renders requirements and proofs as a Markdown document.

use std::fmt::Write as _;

use super::{Extent, Proof, Requirement};

const INTRODUCTION: &str = "\
# Conformance

What Lattice promises, one row for each requirement, and the tests that prove it. This page is written by
`cargo xtask conformance` from `docs/requirements.txt` and from the comments beside the tests, and a test
fails when it is not up to date.

- **proved**: the named tests show the whole of it.
- **partly**: the named tests show it but for what stands in brackets.
- **open**: no test names it yet.
";

/// The subjects of the requirements by the letters that their ids begin with.
const SUBJECTS: [(&str, &str); 5] = [
    ("ST", "stacks"),
    ("CE", "context engine"),
    ("BU", "context builders"),
    ("CB", "context bundle"),
    ("SP", "sprite protocol"),
];

/// What is known of one requirement.
enum State {
    Proved,
    Partly { missing: Vec<String> },
    Open,
}

#[derive(Default)]
struct Counts {
    proved: usize,
    partly: usize,
    open: usize,
}

/// The whole document.
pub(super) fn render(requirements: &[Requirement], proofs: &[Proof]) -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n| subject | ids | proved | partly | open | all |\n|---|---|---|---|---|---|\n");
    for (letters, subject) in SUBJECTS {
        let prefix = format!("{letters}-");
        let rows = requirements.iter().filter(|one| one.id.starts_with(&prefix));
        page.push_str(&count_row(subject, letters, &count(rows, proofs)));
    }
    page.push_str(&count_row("together", "", &count(requirements.iter(), proofs)));
    page.push_str("\n| id | requirement | tests | state |\n|---|---|---|---|\n");
    for requirement in requirements {
        page.push_str(&requirement_row(requirement, proofs));
    }
    page
}

fn count<'a>(requirements: impl Iterator<Item = &'a Requirement>, proofs: &[Proof]) -> Counts {
    let mut counts = Counts::default();
    for requirement in requirements {
        match state(requirement, proofs) {
            State::Proved => counts.proved += 1,
            State::Partly { .. } => counts.partly += 1,
            State::Open => counts.open += 1,
        }
    }
    counts
}

fn count_row(subject: &str, letters: &str, counts: &Counts) -> String {
    let Counts { proved, partly, open } = counts;
    let all = proved + partly + open;
    format!("| {subject} | {letters} | {proved} | {partly} | {open} | {all} |\n")
}

fn requirement_row(requirement: &Requirement, proofs: &[Proof]) -> String {
    let tests: Vec<String> = of(requirement, proofs).map(|proof| format!("`{}`", proof.test)).collect();
    let state = match state(requirement, proofs) {
        State::Proved => String::from("proved"),
        State::Partly { missing } => format!("partly ({})", missing.join("; ")),
        State::Open => String::from("open"),
    };
    let mut row = String::from("|");
    let cells = [&requirement.id, &requirement.sentence, &tests.join(", "), &state];
    for cell in cells {
        let cell = cell.replace('|', "\\|");
        write!(row, " {cell} |").expect("a string takes any text");
    }
    row.push('\n');
    row
}

/// One whole proof is enough, whatever other tests leave out.
fn state(requirement: &Requirement, proofs: &[Proof]) -> State {
    let mut missing = Vec::new();
    for proof in of(requirement, proofs) {
        match &proof.extent {
            Extent::Whole => return State::Proved,
            Extent::Part { missing: what } => missing.push(what.clone()),
        }
    }
    if missing.is_empty() { State::Open } else { State::Partly { missing } }
}

fn of<'a>(requirement: &Requirement, proofs: &'a [Proof]) -> impl Iterator<Item = &'a Proof> {
    let id = requirement.id.clone();
    proofs.iter().filter(move |proof| proof.id == id)
}
