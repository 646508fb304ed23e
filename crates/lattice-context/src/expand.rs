//! From a handle in an outline back to the lines that were left out.

use crate::compress::split::lines_of;
use crate::index::blob_id;
use crate::language::language_of;
use crate::text::{Decoded, decode};
use crate::workspace::{FILE_LIMIT, Skip, Workspace};

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    pub path: String,
    /// Counted from 1, both included.
    pub first: usize,
    pub last: usize,
    pub content: String,
}

/// A handle that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("`{0}` is no handle")]
    Form(String),
    #[error("{path} no longer has the content {blob}, and Git does not know it either")]
    Gone { path: String, blob: String },
    #[error("{path} is left out: {skip}")]
    Skipped { path: String, skip: Skip },
    #[error("{path} has no body called `{name}`")]
    NoSuchName { path: String, name: String },
    #[error("{path} has {lines} lines")]
    NoSuchLines { path: String, lines: usize },
}

/// What `PATH@BLOB:FIRST-LAST` or `PATH@BLOB:NAME` stands for. The content is that of the blob, whatever the file is now.
pub fn expand(workspace: &Workspace, handle: &str) -> Result<Expanded, ExpandError> {
    let form = || ExpandError::Form(handle.to_owned());
    let (path, rest) = handle.rsplit_once('@').ok_or_else(form)?;
    let (blob, part) = rest.split_once(':').ok_or_else(form)?;
    let is_blob = blob.len() >= 6 && blob.chars().all(|c| c.is_ascii_hexdigit());
    if !is_blob || part.is_empty() {
        return Err(form());
    }
    let skipped = |skip| ExpandError::Skipped { path: path.to_owned(), skip };
    let path_inside = workspace.resolve(path).map_err(skipped)?;
    let text = content(workspace, &path_inside, blob)?;
    let range = match numbers(part) {
        Some((first, last)) => first.max(1) - 1..last,
        None => {
            let found = language_of(&path_inside).and_then(|language| workspace.outlines().of(language, &text));
            let bodies = found.map(|found| found.bodies.clone()).unwrap_or_default();
            let whole = bodies.iter().find(|body| body.name == part);
            let last = || bodies.iter().find(|body| body.name.rsplit('.').next() == Some(part));
            let missing = || ExpandError::NoSuchName { path: path_inside.clone(), name: part.to_owned() };
            whole.or_else(last).ok_or_else(missing)?.lines.clone()
        }
    };
    let lines = text.lines().count();
    if range.start >= range.end || range.start >= lines {
        return Err(ExpandError::NoSuchLines { path: path_inside, lines });
    }
    let content = lines_of(&text, &range);
    Ok(Expanded { path: path_inside, first: range.start + 1, last: range.end.min(lines), content })
}

fn numbers(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The content with this id: the file's own if it is the same, else what Git has kept.
fn content(workspace: &Workspace, path: &str, blob: &str) -> Result<String, ExpandError> {
    if let Ok(file) = workspace.read(path, FILE_LIMIT)
        && blob_id(file.text.as_bytes()).to_string().starts_with(blob)
    {
        return Ok(file.text);
    }
    let gone = || ExpandError::Gone { path: path.to_owned(), blob: blob.to_owned() };
    let reader = workspace.reader().ok_or_else(gone)?;
    let oid = reader.resolve_blob(blob).ok().flatten().ok_or_else(gone)?;
    let kept = reader.blob(oid, FILE_LIMIT).map_err(|_| gone())?;
    match decode(kept.bytes) {
        Decoded::Text(text) => Ok(text),
        Decoded::Binary => Err(ExpandError::Skipped { path: path.to_owned(), skip: Skip::Binary }),
    }
}
