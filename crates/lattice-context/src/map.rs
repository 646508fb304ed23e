//! The repository in outline: files that others build on first, with what they define.

use std::collections::BTreeMap;

use crate::index::Index;
use crate::retrieve::files::FileKind;
use crate::retrieve::history::History;
use crate::retrieve::imports::ModuleMap;
use crate::workspace::{Workspace, WorkspaceError};

/// A drawn map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    pub content: String,
    pub tokens: usize,
    pub files: usize,
}

/// Names of one file that are listed.
const MOST_NAMES: usize = 24;

/// Draws as many files as the budget holds, best first.
pub fn map(workspace: &Workspace, budget: usize, threads: usize) -> Result<Map, WorkspaceError> {
    let index = Index::open(workspace, workspace.entries()?.to_vec(), threads);
    let history = workspace.reader().map(History::read).unwrap_or_default();
    let modules = ModuleMap::new(index.files.iter().map(|file| file.path.as_str()));
    let mut importers: BTreeMap<u32, f64> = BTreeMap::new();
    for (number, file) in index.files.iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let record = index.record(number).unwrap_or_default();
        let mut imported: Vec<u32> =
            record.imports.iter().flat_map(|import| modules.resolve(&file.path, import)).collect();
        imported.sort_unstable();
        imported.dedup();
        imported
            .into_iter()
            .filter(|other| *other != number)
            .for_each(|other| *importers.entry(other).or_default() += 1.0);
    }
    let recency = history.recency();
    let score = |number: usize, path: &str| {
        let used = importers.get(&u32::try_from(number).unwrap_or(u32::MAX)).copied().unwrap_or(0.0);
        used.ln_1p() + recency.get(path).copied().unwrap_or(0.0)
    };
    let is_source = |path: &str| FileKind::of(path) == FileKind::Source;
    let mut order: Vec<(usize, f64)> = (0..)
        .zip(&index.files)
        .filter(|(_, file)| is_source(&file.path))
        .map(|(number, file)| (number, score(number, &file.path)))
        .collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let counter = workspace.counter.as_ref();
    let (mut content, mut files, mut used) = (String::new(), 0, 0);
    for (number, _) in order {
        let block = block(&index, number);
        let price = counter.units(&block);
        if used + price > counter.most_units(budget) {
            continue;
        }
        used += price;
        files += 1;
        content.push_str(&block);
    }
    while counter.count(&content) > budget {
        // Counts of parts can add up to less than that of the whole.
        let shorter = content.trim_end().rfind('\n').map_or(0, |at| at + 1);
        content.truncate(shorter);
    }
    Ok(Map { tokens: counter.count(&content), content, files })
}

fn block(index: &Index, number: usize) -> String {
    let record = u32::try_from(number).ok().and_then(|number| index.record(number)).unwrap_or_default();
    let mut names: Vec<&str> = record.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let rest = if more > 0 { format!(" (+{more})") } else { String::new() };
    format!("{}: {}{rest}\n", index.files[number].path, names.join(" "))
}
