//! Changes hunk by hunk: what is staged, with the commits that last touched its lines, and what a branch changed.

use std::collections::{BTreeMap, HashMap};

use lattice_model::command::absorb::{Home, Hunk};
use lattice_model::command::squash::BranchHunk;
use lattice_model::id::Oid;
use lattice_model::plan::{Fixup, LineChange};

use super::error::GitError;
use super::process::Git;

/// A hunk as the difference shows it.
struct Raw {
    path: Option<String>,
    /// Lines before the first one that is removed, or before the place of an insertion.
    before: usize,
    removed: Vec<Vec<u8>>,
    added: Vec<Vec<u8>>,
    trouble: Option<&'static str>,
}

/// Who last touched a line, and which line of that commit's file it is, from 0.
#[derive(Clone, Copy)]
struct Touched {
    commit: Oid,
    line: usize,
    below: bool,
}

impl Git {
    /// The staged hunks with their homes among the commits that `head` has and `floor` has not.
    pub(crate) fn staged_hunks(&self, head: Oid, floor: Oid) -> Result<Vec<Hunk>, GitError> {
        let options = ["--cached", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
        let prefixes = ["--src-prefix=a/", "--dst-prefix=b/"];
        let head_id = head.to_string();
        let shown = self.call("diff-index").args(options).args(prefixes).args([head_id.as_str(), "--"]).run()?;
        let mut by_path: BTreeMap<String, Vec<Raw>> = BTreeMap::new();
        for raw in parse(&shown) {
            if let Some(path) = raw.path.clone() {
                by_path.entry(path).or_default().push(raw);
            }
        }
        let listed = self.call("diff-index").args(["--cached", "-z", "--no-renames", head_id.as_str(), "--"]).run()?;
        let mut hunks = Vec::new();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(header), Some(path)) = (fields.next(), fields.next()) {
            let path = String::from_utf8_lossy(path).into_owned();
            let raws = by_path.remove(&path).unwrap_or_default();
            if let Some(reason) = stays(header, &path, &raws) {
                hunks.push(Hunk { path: path.clone(), line: 1, home: Home::Nowhere(reason) });
            }
            if is_text(header) && !raws.is_empty() {
                let lines = self.touched(&path, head, floor)?;
                hunks.extend(raws.iter().map(|raw| {
                    let line = raw.before + usize::from(!raw.removed.is_empty() || raw.before == 0);
                    Hunk { path: path.clone(), line, home: home(raw, &path, &lines) }
                }));
            }
        }
        Ok(hunks)
    }

    /// What `to` changed since `from`, in the smallest parts that can go elsewhere by themselves.
    pub(crate) fn hunks_between(&self, from: Oid, to: Oid) -> Result<Vec<BranchHunk>, GitError> {
        let options = ["-r", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
        let prefixes = ["--src-prefix=a/", "--dst-prefix=b/"];
        let range = [from.to_string(), to.to_string()];
        let shown = self.call("diff-tree").args(options).args(prefixes).args(range.clone()).arg("--").run()?;
        let text = |lines: &[Vec<u8>]| -> Option<Vec<String>> {
            lines.iter().map(|line| String::from_utf8(line.clone()).ok()).collect()
        };
        let mut by_path: BTreeMap<String, Vec<Option<LineChange>>> = BTreeMap::new();
        for raw in parse(&shown) {
            let Some(path) = raw.path else { continue };
            let whole = raw.trouble.is_some();
            let lines = (!whole).then(|| Some((text(&raw.removed)?, text(&raw.added)?))).flatten();
            let change =
                lines.map(|(removed, added)| LineChange { path: path.clone(), at: raw.before, removed, added });
            by_path.entry(path).or_default().push(change);
        }
        let listed = self.call("diff-tree").args(["-r", "-z", "--no-renames"]).args(range).arg("--").run()?;
        let mut hunks = Vec::new();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(header), Some(path)) = (fields.next(), fields.next()) {
            let Ok(path) = String::from_utf8(path.to_vec()) else { continue };
            let changes = by_path.remove(&path).unwrap_or_default();
            match (what(header), changes.into_iter().collect::<Option<Vec<_>>>()) {
                (None, Some(changes)) if !changes.is_empty() => {
                    hunks.extend(changes.into_iter().map(BranchHunk::Lines))
                }
                (what, _) => hunks.push(BranchHunk::Whole { path, what: what.unwrap_or("no text") }),
            }
        }
        Ok(hunks)
    }

    /// For each line of a file of `head`: who touched it last.
    fn touched(&self, path: &str, head: Oid, floor: Oid) -> Result<Vec<Option<Touched>>, GitError> {
        const COMMAND: &str = "blame";
        let range = [head.to_string(), format!("^{floor}")];
        let said = self.call(COMMAND).arg("--porcelain").args(range).arg("--").arg(path).run()?;
        let unexpected = || GitError::unexpected(COMMAND, "a line that is not in the format asked for");
        let mut below: HashMap<Oid, bool> = HashMap::new();
        let mut renamed: HashMap<Oid, bool> = HashMap::new();
        let mut touched: Vec<Touched> = Vec::new();
        for line in said.split(|byte| *byte == b'\n') {
            if line.starts_with(b"\t") || line.is_empty() {
                continue;
            }
            let Some(current) = touched.last().map(|touched| touched.commit) else {
                touched.push(header(line).ok_or_else(unexpected)?);
                continue;
            };
            if line == b"boundary" {
                below.insert(current, true);
            } else if let Some(name) = line.strip_prefix(b"filename ") {
                renamed.insert(current, name != path.as_bytes());
            } else if let Some(next) = header(line) {
                touched.push(next);
            }
        }
        let known = |touched: Touched| {
            let below = below.get(&touched.commit).copied().unwrap_or(false);
            let renamed = renamed.get(&touched.commit).copied().unwrap_or(false);
            (!renamed).then_some(Touched { below, ..touched })
        };
        Ok(touched.into_iter().map(known).collect())
    }
}

const OTHER_KIND: &str = "other kind of file";

/// What happened to a file besides a change of its lines, from `:<mode> <mode> <id> <id> <letter>`.
fn what(header: &[u8]) -> Option<&'static str> {
    let words: Vec<_> = header.split(|byte| *byte == b' ').collect();
    match words[..] {
        [.., b"A"] => Some("new file"),
        [.., b"D"] => Some("removed file"),
        [_, b"160000", ..] => Some("submodule"),
        [_, b"120000", ..] => Some("symbolic link"),
        [old, new, ..] if old.strip_prefix(b":") != Some(new) => Some(OTHER_KIND),
        _ => None,
    }
}

/// Whether the lines of a file can go to the commits that they are from.
fn is_text(header: &[u8]) -> bool {
    matches!(what(header), None | Some(OTHER_KIND))
}

/// Why a staged change has no home besides those of its lines.
fn stays(header: &[u8], path: &str, raws: &[Raw]) -> Option<&'static str> {
    match what(header) {
        Some("new file") => Some("it is a new file"),
        Some("removed file") => Some("it removes a file"),
        Some("submodule") => Some("it is a submodule"),
        Some("symbolic link") => Some("it is a symbolic link"),
        Some(_) => Some("the kind of its file changes"),
        None if !raws.is_empty() => None,
        // Git writes such names in a way of its own between the lines of a difference.
        None if path.contains(['"', '\\', '\u{fffd}']) || path.contains(char::is_control) => {
            Some("its name is unusual")
        }
        None => Some("it is not text"),
    }
}

/// `<id> <line there> <line here> [<lines>]`.
fn header(line: &[u8]) -> Option<Touched> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split(' ');
    let commit = Oid::new(words.next()?).ok()?;
    let line = words.next()?.parse::<usize>().ok()?.checked_sub(1)?;
    words.next()?.parse::<usize>().ok()?;
    Some(Touched { commit, line, below: false })
}

fn home(raw: &Raw, path: &str, lines: &[Option<Touched>]) -> Home {
    let place = if raw.removed.is_empty() { insertion(raw, lines) } else { replacement(raw, lines) };
    let text = |lines: &[Vec<u8>]| -> Option<Vec<String>> {
        lines.iter().map(|line| String::from_utf8(line.clone()).ok()).collect()
    };
    match (place, text(&raw.removed), text(&raw.added)) {
        (Err(reason), _, _) => Home::Nowhere(reason),
        (Ok((commit, at)), Some(removed), Some(added)) => {
            Home::Commit(Fixup { commit, path: path.to_owned(), at, here: raw.before, removed, added })
        }
        (Ok(_), _, _) => Home::Nowhere("it is not text"),
    }
}

const BELOW: &str = "its lines come from below the stack";
const SEVERAL: &str = "its lines come from several commits";

/// All lines must come from one commit, where they follow each other.
fn replacement(raw: &Raw, lines: &[Option<Touched>]) -> Result<(Oid, usize), &'static str> {
    let touched = lines.get(raw.before..raw.before + raw.removed.len()).ok_or("its lines are not found")?;
    let mut place: Option<(Oid, usize)> = None;
    for (offset, line) in touched.iter().enumerate() {
        let line = line.ok_or("its file had another name")?;
        if line.below {
            return Err(BELOW);
        }
        match place {
            None => place = Some((line.commit, line.line)),
            Some((commit, first)) if commit == line.commit && first + offset == line.line => {}
            Some(_) => return Err(SEVERAL),
        }
    }
    place.ok_or(SEVERAL)
}

/// New lines go to the commit of the lines around them.
fn insertion(raw: &Raw, lines: &[Option<Touched>]) -> Result<(Oid, usize), &'static str> {
    let own = |line: Option<&Option<Touched>>| line.copied().flatten().filter(|touched| !touched.below);
    let above = raw.before.checked_sub(1).and_then(|at| own(lines.get(at)));
    let below = own(lines.get(raw.before));
    match (above, below) {
        (Some(above), Some(below)) if above.commit == below.commit && above.line + 1 == below.line => {
            Ok((below.commit, below.line))
        }
        (Some(_), Some(_)) => Err(SEVERAL),
        (Some(above), None) => Ok((above.commit, above.line + 1)),
        (None, Some(below)) => Ok((below.commit, below.line)),
        (None, None) => Err(BELOW),
    }
}

/// Takes a difference without context apart.
fn parse(shown: &[u8]) -> Vec<Raw> {
    let mut hunks: Vec<Raw> = Vec::new();
    let (mut path, mut trouble): (Option<String>, Option<&'static str>) = (None, None);
    let mut in_hunk = false;
    for line in shown.split_inclusive(|byte| *byte == b'\n') {
        match line {
            _ if line.starts_with(b"diff --git ") => (path, trouble, in_hunk) = (None, None, false),
            _ if line.starts_with(b"@@ ") => {
                in_hunk = true;
                let before = before(line).unwrap_or(0);
                let (removed, added) = (Vec::new(), Vec::new());
                hunks.push(Raw { path: path.clone(), before, removed, added, trouble });
            }
            [b'-', rest @ ..] if in_hunk => {
                hunks.iter_mut().last().into_iter().for_each(|h| h.removed.push(rest.to_vec()))
            }
            [b'+', rest @ ..] if in_hunk => {
                hunks.iter_mut().last().into_iter().for_each(|h| h.added.push(rest.to_vec()))
            }
            [b'\\', ..] if in_hunk => hunks.iter_mut().last().into_iter().for_each(without_newline),
            _ if line == b"--- /dev/null\n" => trouble = Some("it is a new file"),
            _ if line == b"+++ /dev/null\n" => trouble = Some("it removes a file"),
            _ if line.starts_with(b"Binary files ") => {
                let trouble = Some("it is not text");
                hunks.push(Raw { path: path.clone(), before: 0, removed: vec![], added: vec![], trouble });
            }
            _ => {
                let name = line.strip_prefix(b"--- a/").or_else(|| line.strip_prefix(b"+++ b/"));
                if let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) {
                    path = Some(name.trim_end_matches('\n').trim_end_matches('\t').to_owned());
                }
            }
        }
    }
    hunks
}

/// The line above was the last one of its file and has no end.
fn without_newline(hunk: &mut Raw) {
    let last = if hunk.added.is_empty() { hunk.removed.last_mut() } else { hunk.added.last_mut() };
    if let Some(last) = last {
        last.pop_if(|byte| *byte == b'\n');
    }
}

/// How many lines come before the hunk, from `@@ -first[,count] ...`.
fn before(line: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(line).ok()?;
    let range = text.split(' ').nth(1)?.strip_prefix('-')?;
    let (first, count) = range.split_once(',').unwrap_or((range, "1"));
    let first: usize = first.parse().ok()?;
    // An insertion names the line before it.
    if count == "0" { Some(first) } else { first.checked_sub(1) }
}
