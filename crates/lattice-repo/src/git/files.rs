//! Brings the files of a worktree from one tree to another, also after a move that was cut off.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lattice_model::id::Oid;

use super::error::GitError;
use super::pack::blob_id;
use super::process::Git;
use super::worktree::objects;

/// One path that differs between two trees; the id of what is absent is `None`.
struct Change {
    path: PathBuf,
    old: Option<Oid>,
    new: Option<Oid>,
}

/// What the two sides of a conflict have: where a commit goes, and what is to go there.
#[derive(Default)]
struct Sides {
    below: Option<Oid>,
    own: Option<Oid>,
    is_link: bool,
    is_submodule: bool,
}

/// What is at a path now.
enum Found {
    Nothing,
    /// A file without content, as a power cut leaves it. Nothing is lost with it.
    Empty,
    /// A file or link that Git would store under this id.
    Blob(Oid),
    /// A folder, or something in the place of a folder. Never ours to remove.
    Other,
}

impl Git {
    /// Whether `move_files` would find something in its way. Touches nothing.
    pub(crate) fn try_move_files(&self, index: &Path, from: Oid, to: Oid) -> Result<(), GitError> {
        let attempt = || {
            let call = self.call("read-tree").args(["-n", "-m", "-u"]).args(objects(&[from, to]));
            call.index(index).beside_the_user().run().map(drop)
        };
        match attempt() {
            Err(GitError::Failed { .. }) => {
                wait_for_index(index)?;
                self.refresh_index(index).and_then(|()| attempt())
            }
            // Who was killed has left its lock; a second attempt would only stumble over that.
            tried => tried,
        }
    }

    /// Brings index and files from one tree to another. Changes of the user that are not in the
    /// way are carried along; if one is in the way, nothing is touched.
    pub(crate) fn move_files(&self, from: Oid, to: Oid) -> Result<(), GitError> {
        self.call("read-tree").args(["-m", "-u"]).args(objects(&[from, to])).beside_the_user().run().map(drop)
    }

    /// Completes a move of files that may have been cut off: the index is brought to `to` first,
    /// then each file that still has the content of `from`. Anything else is the user's own.
    pub(crate) fn complete_move(&self, from: Oid, to: Oid, hex_len: usize) -> Result<(), GitError> {
        self.complete(from, to, |top, change| self.is_untouched(top, change, hex_len))
    }

    /// As `complete_move`, where edits of files that both trees have go, as they do when git gives a rebase up: what they
    /// stand in the place of may have been the user's, too.
    pub(crate) fn complete_return(&self, from: Oid, to: Oid, hex_len: usize) -> Result<(), GitError> {
        self.complete(from, to, |top, change| {
            let is_folder = matches!(self.found(top, &change.path, hex_len)?, Found::Other);
            let in_both = change.old.is_some() && change.new.is_some();
            Ok((in_both && !is_folder) || self.is_untouched(top, change, hex_len)?)
        })
    }

    fn complete(
        &self,
        from: Oid,
        to: Oid,
        may_change: impl Fn(&Path, &Change) -> Result<bool, GitError>,
    ) -> Result<(), GitError> {
        let Some(top) = self.work_dir().map(Path::to_owned) else { return Ok(()) };
        // Git looks at no file whose entry in the index is at `to` already, as it is where the move
        // was cut off on its way from there.
        if self.move_files(from, to).is_err() {
            self.call("read-tree").args(["-i", "-m"]).args(objects(&[from, to])).run()?;
        }
        let changes = self.changes(from, to)?;
        // What goes, goes first: a folder may have to make room for a file.
        for change in changes.iter().filter(|change| change.new.is_none()) {
            if may_change(&top, change)? {
                remove(&top, &change.path);
            }
        }
        let mut write = Vec::new();
        for change in changes.iter().filter(|change| change.new.is_some()) {
            if may_change(&top, change)? {
                write.extend_from_slice(change.path.as_os_str().as_bytes());
                write.push(0);
            }
        }
        self.call("checkout-index").args(["-f", "-u", "-z", "--stdin"]).stdin(write).run()?;
        // Exit code 1 says that files differ from the index: those that are the user's.
        self.call("update-index").args(["-q", "--refresh"]).finish().map(drop)
    }

    /// Files in conflict that still are what they were below, where Git writes no markers: binary ones, links, submodules,
    /// and those that the commit deletes. Its change would be gone without a word.
    pub(crate) fn left_without_markers(&self, hex_len: usize) -> Result<Vec<String>, GitError> {
        let Some(top) = self.work_dir().map(Path::to_owned) else { return Ok(Vec::new()) };
        let mut files: BTreeMap<PathBuf, Sides> = BTreeMap::new();
        let listed = self.call("ls-files").args(["--unmerged", "-z", "--full-name", "--", ":/"]).run()?;
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let split = entry.iter().position(|byte| *byte == b'\t').unwrap_or(entry.len());
            let mut fields = entry[..split].split(|byte| *byte == b' ');
            let (mode, id, stage) = (fields.next(), fields.next().and_then(Oid::from_hex), fields.next());
            let path = super::refs::path(entry.get(split + 1..).unwrap_or_default());
            if let (Some(id), Some(path)) = (id, path) {
                let sides = files.entry(path).or_default();
                sides.is_link |= mode == Some(b"120000");
                sides.is_submodule |= mode == Some(b"160000");
                match stage {
                    Some(b"2") => sides.below = Some(id),
                    Some(b"3") => sides.own = Some(id),
                    Some(_) | None => {}
                }
            }
        }
        let mut left = Vec::new();
        for (path, sides) in files {
            let is_left = match (self.found(&top, &path, hex_len)?, sides.below) {
                (Found::Blob(found), Some(below)) => found == below && !self.has_markers(&sides),
                // Nobody can see whether a submodule was looked at.
                _ => sides.is_submodule,
            };
            if is_left {
                left.push(path.display().to_string());
            }
        }
        Ok(left)
    }

    /// Whether Git writes both sides of a conflict into the file.
    fn has_markers(&self, sides: &Sides) -> bool {
        match (sides.below, sides.own) {
            (Some(below), Some(own)) => !sides.is_link && !self.is_binary(below) && !self.is_binary(own),
            (None, _) | (_, None) => false,
        }
    }

    /// Whether Git would take this for something else than text.
    fn is_binary(&self, blob: Oid) -> bool {
        const LOOKED_AT: usize = 8000;
        let content = self.call("cat-file").args(["blob", &blob.to_string()]).run().unwrap_or_default();
        content.iter().take(LOOKED_AT).any(|byte| *byte == 0)
    }

    /// Brings files and their entries in the index to what a commit has, whatever they are.
    pub(crate) fn restore(&self, commit: Oid, paths: &[String]) -> Result<(), GitError> {
        let source = format!("--source={commit}");
        let call = self.call("restore").args([source.as_str(), "--staged", "--worktree", "--pathspec-file-nul"]);
        let call = call.arg("--pathspec-from-file=-").env("GIT_LITERAL_PATHSPECS", "1");
        call.stdin(paths.join("\0").into_bytes()).run().map(drop)
    }

    fn changes(&self, from: Oid, to: Oid) -> Result<Vec<Change>, GitError> {
        let listed = self.call("diff-tree").args(["-r", "-z", "--no-renames"]).args(objects(&[from, to])).run()?;
        let present = |id: &[u8]| Oid::from_hex(id).filter(|oid| oid.to_string().bytes().any(|digit| digit != b'0'));
        let mut fields = listed.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(header), Some(path)) = (fields.next(), fields.next()) {
            let mut ids = header.split(|byte| *byte == b' ').skip(2);
            let (old, new) = (ids.next().and_then(present), ids.next().and_then(present));
            changes.extend(super::refs::path(path).map(|path| Change { path, old, new }));
        }
        Ok(changes)
    }

    fn is_untouched(&self, top: &Path, change: &Change, hex_len: usize) -> Result<bool, GitError> {
        Ok(match self.found(top, &change.path, hex_len)? {
            // Git removes a file before it writes the new one.
            Found::Nothing | Found::Empty => true,
            Found::Blob(found) => Some(found) == change.old,
            Found::Other => false,
        })
    }

    fn found(&self, top: &Path, path: &Path, hex_len: usize) -> Result<Found, GitError> {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        for folder in folders {
            match top.join(folder).symlink_metadata() {
                Ok(found) if !found.is_dir() => return Ok(Found::Other),
                Ok(_) | Err(_) => {}
            }
        }
        let full = top.join(path);
        let found = match full.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(source) => return Err(GitError::Read { path: full, source }),
        };
        if found.is_symlink() {
            let target = fs::read_link(&full).map_err(|source| GitError::Read { path: full, source })?;
            return Ok(Found::Blob(blob_id(target.as_os_str().as_bytes(), hex_len)));
        }
        if !found.is_file() {
            return Ok(Found::Other);
        }
        if found.len() == 0 {
            return Ok(Found::Empty);
        }
        // Git applies the filters of the path, such as those for line ends.
        let hashed = self.call("hash-object").arg("--").arg(path).run()?;
        Oid::from_hex(hashed.trim_ascii_end())
            .map(Found::Blob)
            .ok_or_else(|| GitError::unexpected("hash-object", "no id"))
    }
}

/// Waits a moment for whoever is changing an index: editors look at a repository all the time.
pub(crate) fn wait_for_index(index: &Path) -> Result<(), GitError> {
    const PAUSE: Duration = Duration::from_millis(50);
    const ATTEMPTS: usize = 40;
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    for _ in 0..ATTEMPTS {
        if !lock.exists() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(GitError::IndexLocked { lock })
}

/// Removes a file, and the folders that are empty without it.
fn remove(top: &Path, path: &Path) {
    // What cannot be removed stays and is shown as untracked; nothing is lost by that.
    let _ = fs::remove_file(top.join(path));
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        if fs::remove_dir(top.join(folder)).is_err() {
            return;
        }
    }
}
