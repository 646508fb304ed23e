//! Applies commits elsewhere without git, wherever comparing the entries of trees decides everything.
//!
//! Git's own merge agrees with a merge entry by entry as long as no file was changed on both sides
//! and no rename can matter. A rename matters only if its source was changed, or removed, on the
//! other side too, or if the other side added to a folder that is gone; in each of these cases an
//! entry differs on both sides, and git is asked.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lattice_model::id::Oid;

use super::commits::RawCommit;
use super::discover::hex_len;
use super::error::GitError;
use super::objects::ObjectReader;
use super::pack::Pack;
use super::process::Git;

/// How many commits are read ahead at once; each comes with its top tree.
pub(crate) const AHEAD: usize = 128;

/// How many bytes are made before they are written.
const WRITE_FROM: usize = 32 << 20;

/// Commits made so far, and what was read to make them.
pub(crate) struct Picker {
    pack: Pack,
    hex_len: usize,
    common_dir: PathBuf,
    commits: HashMap<Oid, Rc<RawCommit>>,
    read: HashMap<Oid, Rc<[u8]>>,
    /// Trees that git cannot know yet.
    made: HashMap<Oid, Rc<[u8]>>,
    /// The trees that commits are to have instead of their own.
    amended: HashMap<Oid, Oid>,
    /// The trees of commits, whether read or made.
    tree_of: HashMap<Oid, Oid>,
}

/// A commit that is to be applied elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pick<'a> {
    pub(crate) commit: Oid,
    pub(crate) onto: Oid,
    pub(crate) committer: &'a str,
}

/// Three trees to be merged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    pub(crate) base: Oid,
    pub(crate) ours: Oid,
    pub(crate) theirs: Oid,
}

/// One entry of a tree, in the bytes of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry<'t> {
    mode: &'t [u8],
    name: &'t [u8],
    id: &'t [u8],
}

/// The same name in the three trees of a merge.
#[derive(Debug, Clone, Copy)]
struct Triple<'t> {
    base: Option<Entry<'t>>,
    ours: Option<Entry<'t>>,
    theirs: Option<Entry<'t>>,
}

/// What becomes of a name.
enum Resolved<'t> {
    Take(Option<Entry<'t>>),
    Descend { base: Option<Oid>, ours: Oid, theirs: Oid },
    AskGit,
}

impl Picker {
    /// For the repository with this common directory.
    pub(crate) fn new(common_dir: &Path) -> Self {
        let hex_len = hex_len(common_dir);
        let (commits, read, made, amended, tree_of) = Default::default();
        let common_dir = common_dir.to_owned();
        Self { pack: Pack::new(hex_len), hex_len, common_dir, commits, read, made, amended, tree_of }
    }

    /// What was made and not yet written. It has to be written before git sees any of it.
    pub(crate) fn take(&mut self) -> Pack {
        self.made.clear();
        std::mem::replace(&mut self.pack, Pack::new(self.hex_len))
    }

    /// Whether what was made should be written before more is made.
    pub(crate) fn is_large(&self) -> bool {
        self.pack.size() > WRITE_FROM
    }

    /// Writes what was made.
    pub(crate) fn flush(&mut self, git: &Git) -> Result<(), GitError> {
        if self.pack.is_empty() { Ok(()) } else { self.take().write(git, &self.common_dir) }
    }

    /// Reads commits and their top trees in few rounds, and lets go of what was read before.
    pub(crate) fn read_ahead(&mut self, objects: &mut ObjectReader, commits: &[Oid]) -> Result<(), GitError> {
        self.commits.clear();
        self.read.clear();
        let mut names = Vec::new();
        for commit in commits.iter().take(AHEAD) {
            names.extend([commit.to_string(), format!("{commit}^{{tree}}")]);
        }
        let mut found = objects.contents(&names)?.into_iter();
        for commit in commits.iter().take(AHEAD) {
            let (raw, tree) = (found.next().flatten(), found.next().flatten());
            let Some(raw) = raw.as_deref().and_then(RawCommit::parse) else { continue };
            if let Some(tree) = tree {
                self.read.insert(raw.tree, tree.into());
            }
            self.tree_of.insert(*commit, raw.tree);
            self.commits.insert(*commit, Rc::new(raw));
        }
        Ok(())
    }

    /// Applies a commit onto another; `None` if git has to look at it.
    pub(crate) fn pick(&mut self, objects: &mut ObjectReader, pick: Pick<'_>) -> Result<Option<Oid>, GitError> {
        let merge = self.merge_of(objects, pick)?;
        match self.merge(objects, merge)? {
            Some(tree) => self.commit_onto(objects, pick, merge, tree).map(Some),
            None => Ok(None),
        }
    }

    /// The trees whose merge a commit has in its new place.
    pub(crate) fn merge_of(&mut self, objects: &mut ObjectReader, pick: Pick<'_>) -> Result<Merge, GitError> {
        let original = self.commit(objects, pick.commit)?;
        let [parent] = original.parents[..] else {
            return Err(GitError::unexpected("cat-file", format!("{} has not exactly one parent", pick.commit)));
        };
        let (base, ours) = (self.tree_of(objects, parent)?, self.tree_of(objects, pick.onto)?);
        let theirs = self.amended.get(&pick.commit).copied().unwrap_or(original.tree);
        Ok(Merge { base, ours, theirs })
    }

    /// Makes the commit in its new place, with the merged tree. Like git, it drops a commit whose change is there
    /// already: then the new place itself is what comes of it. A commit that never changed anything is kept.
    pub(crate) fn commit_onto(
        &mut self,
        objects: &mut ObjectReader,
        pick: Pick<'_>,
        merge: Merge,
        tree: Oid,
    ) -> Result<Oid, GitError> {
        if tree == merge.ours && merge.theirs != merge.base {
            return Ok(pick.onto);
        }
        let original = self.commit(objects, pick.commit)?;
        let made = self.pack.raw_commit(original.moved(tree, pick.onto, pick.committer));
        self.tree_of.insert(made, tree);
        Ok(made)
    }

    /// Whether some commit is to have another tree.
    pub(crate) fn amends(&self) -> bool {
        !self.amended.is_empty()
    }

    /// Gives a commit another content of one file wherever it is applied; `None` if it has no such file.
    pub(crate) fn amend(
        &mut self,
        objects: &mut ObjectReader,
        commit: Oid,
        path: &str,
        content: &[u8],
    ) -> Result<Option<Oid>, GitError> {
        let tree = match self.amended.get(&commit) {
            Some(tree) => *tree,
            None => self.commit(objects, commit)?.tree,
        };
        let Some(tree) = self.replace(objects, tree, path, content)? else { return Ok(None) };
        self.amended.insert(commit, tree);
        Ok(Some(tree))
    }

    /// A tree with another content of one of its files; `None` if it has no such file.
    pub(crate) fn replace(
        &mut self,
        objects: &mut ObjectReader,
        tree: Oid,
        path: &str,
        content: &[u8],
    ) -> Result<Option<Oid>, GitError> {
        let blob = self.pack.blob(content);
        self.with_file(objects, tree, path, blob)
    }

    /// A tree with another blob in the place of one of its files.
    fn with_file(
        &mut self,
        objects: &mut ObjectReader,
        tree: Oid,
        path: &str,
        blob: Oid,
    ) -> Result<Option<Oid>, GitError> {
        let (name, below) = path.split_once('/').map_or((path, None), |(name, below)| (name, Some(below)));
        let bytes = self.tree(objects, tree)?;
        let mut content = Vec::with_capacity(bytes.len());
        let (mut rest, mut found) = (&bytes[..], false);
        while let Some(Some(entry)) = next_entry(&mut rest, self.hex_len / 2) {
            if entry.name != name.as_bytes() || entry.is_folder() != below.is_some() {
                entry.append(&mut content);
                continue;
            }
            let id = match (below, entry.oid()) {
                (None, _) => blob,
                (Some(below), Some(folder)) => match self.with_file(objects, folder, below, blob)? {
                    Some(folder) => folder,
                    None => return Ok(None),
                },
                (Some(_), None) => return Ok(None),
            };
            Entry { id: id.as_bytes(), ..entry }.append(&mut content);
            found = true;
        }
        Ok(found.then(|| self.keep(content)))
    }

    /// The blob at a path of a tree.
    pub(crate) fn file(&mut self, objects: &mut ObjectReader, tree: Oid, path: &str) -> Result<Option<Oid>, GitError> {
        let mut at = Some(tree);
        for name in path.split('/') {
            let Some(tree) = at else { return Ok(None) };
            let bytes = self.tree(objects, tree)?;
            let mut rest = &bytes[..];
            at = None;
            while let Some(Some(entry)) = next_entry(&mut rest, self.hex_len / 2) {
                if entry.name == name.as_bytes() {
                    at = entry.oid();
                }
            }
        }
        Ok(at)
    }

    fn commit(&mut self, objects: &mut ObjectReader, commit: Oid) -> Result<Rc<RawCommit>, GitError> {
        if !self.commits.contains_key(&commit) {
            let raw = objects.commit(commit)?;
            self.tree_of.insert(commit, raw.tree);
            self.commits.insert(commit, Rc::new(raw));
        }
        Ok(Rc::clone(&self.commits[&commit]))
    }

    /// The tree of a commit, which may not be written yet.
    pub(crate) fn tree_of(&mut self, objects: &mut ObjectReader, commit: Oid) -> Result<Oid, GitError> {
        match self.tree_of.get(&commit) {
            Some(tree) => Ok(*tree),
            None => objects.tree_of(commit),
        }
    }

    /// The merge of three trees; `None` if git has to look at it.
    pub(crate) fn merge(&mut self, objects: &mut ObjectReader, merge: Merge) -> Result<Option<Oid>, GitError> {
        if merge.ours == merge.base {
            return Ok(Some(merge.theirs));
        }
        if merge.theirs == merge.base {
            return Ok(Some(merge.ours));
        }
        let content = self.descend(objects, Some(merge.base), merge.ours, merge.theirs)?;
        Ok(content.map(|content| self.keep(content)))
    }

    /// The content of the merged tree.
    fn descend(
        &mut self,
        objects: &mut ObjectReader,
        base: Option<Oid>,
        ours: Oid,
        theirs: Oid,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let base = base.map_or_else(|| Ok(Rc::from([])), |base| self.tree(objects, base))?;
        let (ours, theirs) = (self.tree(objects, ours)?, self.tree(objects, theirs)?);
        let mut content = Vec::with_capacity(ours.len().max(theirs.len()) + 64);
        for triple in Triples::new([&base, &ours, &theirs], self.hex_len / 2) {
            let Some(triple) = triple else { return Ok(None) };
            match triple.resolve(&ours, &theirs, self.hex_len / 2) {
                Resolved::Take(Some(entry)) => entry.append(&mut content),
                Resolved::Take(None) => {}
                Resolved::AskGit => return Ok(None),
                Resolved::Descend { base, ours, theirs } => {
                    let Some(below) = self.descend(objects, base, ours, theirs)? else { return Ok(None) };
                    // A folder that lost its last file is gone.
                    if !below.is_empty() {
                        let name = triple.name();
                        let id = self.keep(below);
                        Entry { mode: FOLDER, name, id: id.as_bytes() }.append(&mut content);
                    }
                }
            }
        }
        Ok(Some(content))
    }

    fn tree(&mut self, objects: &mut ObjectReader, tree: Oid) -> Result<Rc<[u8]>, GitError> {
        if let Some(content) = self.read.get(&tree).or_else(|| self.made.get(&tree)) {
            return Ok(Rc::clone(content));
        }
        let found = objects.contents(&[tree.to_string()])?.pop().flatten();
        let content: Rc<[u8]> =
            found.ok_or_else(|| GitError::unexpected("cat-file", format!("no tree {tree}")))?.into();
        self.read.insert(tree, Rc::clone(&content));
        Ok(content)
    }

    /// The id of a tree, which is written unless it was read.
    fn keep(&mut self, content: Vec<u8>) -> Oid {
        let content: Rc<[u8]> = content.into();
        let id = self.pack.tree_id(&content);
        if !self.read.contains_key(&id) && !self.made.contains_key(&id) {
            self.pack.raw_tree(id, Rc::clone(&content));
            self.made.insert(id, content);
        }
        id
    }
}

const FOLDER: &[u8] = b"40000";

impl<'t> Entry<'t> {
    fn is_folder(&self) -> bool {
        self.mode == FOLDER
    }

    fn oid(&self) -> Option<Oid> {
        Oid::from_bytes(self.id)
    }

    fn append(&self, content: &mut Vec<u8>) {
        content.extend_from_slice(self.mode);
        content.push(b' ');
        content.extend_from_slice(self.name);
        content.push(0);
        content.extend_from_slice(self.id);
    }

    /// The order of entries in a tree: folders as if their names ended in a slash.
    fn order(&self, other: &Self) -> Ordering {
        let end = |entry: &Self| if entry.is_folder() { Some(b'/') } else { None };
        let (this, that) = (self.name.iter().copied().chain(end(self)), other.name.iter().copied().chain(end(other)));
        this.cmp(that)
    }
}

impl<'t> Triple<'t> {
    fn name(&self) -> &'t [u8] {
        self.base.or(self.ours).or(self.theirs).map(|entry| entry.name).unwrap_or_default()
    }

    fn resolve(&self, ours: &[u8], theirs: &[u8], id_len: usize) -> Resolved<'t> {
        let taken = |by: Option<Entry<'t>>, other: &[u8]| match by {
            // A file and a folder of one name come from two sides; git finds names for both.
            Some(entry) if self.base.is_none() && has_other_kind(other, &entry, id_len) => Resolved::AskGit,
            by => Resolved::Take(by),
        };
        if self.base == self.ours {
            return taken(self.theirs, ours);
        }
        if self.base == self.theirs {
            return taken(self.ours, theirs);
        }
        let (Some(a), Some(b)) = (self.ours, self.theirs) else { return Resolved::AskGit };
        match (a.is_folder(), self.base.map(|entry| entry.oid())) {
            (true, base) => match (base, a.oid(), b.oid()) {
                (Some(None), _, _) | (_, None, _) | (_, _, None) => Resolved::AskGit,
                (base, Some(ours), Some(theirs)) => Resolved::Descend { base: base.flatten(), ours, theirs },
            },
            (false, _) if a == b => Resolved::Take(Some(a)),
            (false, _) => Resolved::AskGit,
        }
    }
}

/// Whether a tree has the same name for something of the other kind.
fn has_other_kind(tree: &[u8], entry: &Entry<'_>, id_len: usize) -> bool {
    let mut rest = tree;
    while let Some(Some(other)) = next_entry(&mut rest, id_len) {
        if other.name == entry.name && other.is_folder() != entry.is_folder() {
            return true;
        }
    }
    false
}

/// Walks three trees side by side.
struct Triples<'t> {
    rest: [&'t [u8]; 3],
    heads: [Option<Entry<'t>>; 3],
    id_len: usize,
    damaged: bool,
}

impl<'t> Triples<'t> {
    fn new(trees: [&'t [u8]; 3], id_len: usize) -> Self {
        let mut triples = Self { rest: trees, heads: [None; 3], id_len, damaged: false };
        (0..3).for_each(|side| triples.advance(side));
        triples
    }

    fn advance(&mut self, side: usize) {
        let before = self.heads[side];
        let next = next_entry(&mut self.rest[side], self.id_len);
        self.heads[side] = next.flatten();
        let unreadable = next == Some(None);
        let unsorted =
            self.heads[side].is_some_and(|next| before.is_some_and(|before| before.order(&next) != Ordering::Less));
        self.damaged |= unreadable || unsorted;
    }
}

impl<'t> Iterator for Triples<'t> {
    /// `None` in the place of a triple: a tree is not as git writes it.
    type Item = Option<Triple<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.damaged {
            self.damaged = false;
            self.heads = [None; 3];
            return Some(None);
        }
        let first = self.heads.iter().flatten().copied().min_by(|a, b| a.order(b))?;
        let mut found = [None; 3];
        for (side, slot) in found.iter_mut().enumerate() {
            if self.heads[side].is_some_and(|head| head.order(&first) == Ordering::Equal) {
                *slot = self.heads[side];
                self.advance(side);
            }
        }
        let [base, ours, theirs] = found;
        Some(Some(Triple { base, ours, theirs }))
    }
}

/// The next entry; `Some(None)` where the bytes make no sense.
fn next_entry<'t>(rest: &mut &'t [u8], id_len: usize) -> Option<Option<Entry<'t>>> {
    if rest.is_empty() {
        return None;
    }
    let bytes = std::mem::take(rest);
    let parsed = || {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let end = space + 1 + bytes[space + 1..].iter().position(|byte| *byte == 0)?;
        let id = bytes.get(end + 1..end + 1 + id_len)?;
        if bytes[0] == b'0' {
            // Written by something else than git, which fills up with zeros.
            return None;
        }
        Some((Entry { mode: &bytes[..space], name: &bytes[space + 1..end], id }, end + 1 + id_len))
    };
    let Some((entry, length)) = parsed() else { return Some(None) };
    *rest = &bytes[length..];
    Some(Some(entry))
}

#[cfg(test)]
mod tests;
