//! `split --by-hunk` and `--by-file`: the user says which changes of the branch go below.

use lattice_engine::{Engine, WorkingCopyNeed};
use lattice_model::command::squash::{BranchHunk, Split, SplitBy};
use lattice_model::gate::Refusal;
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::change;
use crate::error::Failure;
use crate::output::{Reply, err, printable};
use crate::prompt;

pub(super) fn split(app: &App, preview: Preview, numbers: &[usize]) -> Result<Reply, Failure> {
    let numbers = match numbers {
        [] => asked(app)?,
        given => given.to_vec(),
    };
    let build = |engine: &Engine, snapshot: &Snapshot| {
        let hunks = engine
            .branch_hunks(snapshot)
            .map_err(|error| Refusal::new("git-failed", format!("the changes cannot be read: {error}")))?;
        let picked = picked(&hunks, &numbers)?;
        Ok(Split { by: SplitBy::Hunk(picked), hooks: app.hooks })
    };
    change(app, ("split", preview), WorkingCopyNeed::No, build)
}

pub(super) fn split_files(app: &App, preview: Preview, paths: &[String]) -> Result<Reply, Failure> {
    let build = |engine: &Engine, snapshot: &Snapshot| {
        // What keeps them from being read keeps the command from its work, and is told by it.
        let hunks = engine.branch_hunks(snapshot).unwrap_or_default();
        let mut changed: Vec<_> = hunks.iter().map(|hunk| hunk.path().to_owned()).collect();
        changed.dedup();
        Ok(Split { by: SplitBy::File { paths: paths.to_vec(), changed }, hooks: app.hooks })
    };
    change(app, ("split", preview), WorkingCopyNeed::No, build)
}

/// The hunks with these numbers, in their own order.
fn picked(hunks: &[BranchHunk], numbers: &[usize]) -> Result<Vec<BranchHunk>, Refusal> {
    let known = |number: &usize| (1..=hunks.len()).contains(number);
    if let Some(unknown) = numbers.iter().find(|number| !known(number)) {
        let refusal = Refusal::new("no-such-hunk", format!("there is no hunk {unknown}"));
        return Err(listed(hunks).into_iter().fold(refusal, Refusal::hint));
    }
    let picked = hunks.iter().enumerate().filter(|(at, _)| numbers.contains(&(at + 1)));
    Ok(picked.map(|(_, hunk)| hunk.clone()).collect())
}

/// Asks for each hunk; where nobody can be asked, they are listed.
fn asked(app: &App) -> Result<Vec<usize>, Failure> {
    let engine = app.engine()?;
    let snapshot = engine.observe("split", WorkingCopyNeed::No)?.snapshot;
    let hunks = engine.branch_hunks(&snapshot)?;
    if app.interaction == Interaction::Never {
        let failure = Failure::usage("which changes go below is needed").hint("say their numbers: --by-hunk 1,3");
        return Err(listed(&hunks).into_iter().fold(failure, Failure::hint));
    }
    let mut numbers = Vec::new();
    for (number, hunk) in (1..).zip(&hunks) {
        err(&format!("{}{}", line(number, hunk), body(hunk)));
        match prompt::ask("To the branch below? [y, n, q: no more] ").as_deref() {
            Some("y" | "yes") => numbers.push(number),
            Some("q") => break,
            Some(_) | None => {}
        }
    }
    if numbers.is_empty() {
        return Err(Failure::new("nothing-picked", "no change was picked; nothing was changed"));
    }
    Ok(numbers)
}

fn listed(hunks: &[BranchHunk]) -> Vec<String> {
    (1..).zip(hunks).map(|(number, hunk)| line(number, hunk).trim_end().to_owned()).collect()
}

/// `3  src/main.rs:12 (+2 -1)`.
fn line(number: usize, hunk: &BranchHunk) -> String {
    match hunk {
        BranchHunk::Lines(change) => {
            let first = change.at + usize::from(!change.removed.is_empty() || change.at == 0);
            let (added, removed) = (change.added.len(), change.removed.len());
            format!("{number}  {}:{first} (+{added} -{removed})\n", printable(&change.path))
        }
        BranchHunk::Whole { path, what } => format!("{number}  {} ({what})\n", printable(path)),
    }
}

fn body(hunk: &BranchHunk) -> String {
    let BranchHunk::Lines(change) = hunk else { return String::new() };
    let shown = |sign: char, text: &String| format!("{sign}{}\n", printable(text.trim_end_matches('\n')));
    let removed = change.removed.iter().map(|text| shown('-', text));
    removed.chain(change.added.iter().map(|text| shown('+', text))).collect()
}
