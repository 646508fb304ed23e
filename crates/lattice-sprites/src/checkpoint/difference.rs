//! Compares what a sprite has with an earlier checkpoint, or with the checkout that it started from.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::CWD;

use super::content::Contents;
use super::manifest::{Body, Entry, Layer, Manifest, ManifestError};
use super::walk::{Walk, open_folder};

/// What a path is compared with before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Added,
    Changed,
    Removed,
}

/// The paths of the workspace in which two checkpoints differ; `None` as the first is what all began with.
///
/// `base` is the checkout below the layer, if there is one: what is in it and not in the layer was there all the time.
pub fn difference(
    folder: &Path,
    from: Option<&str>,
    to: &str,
    base: Option<&Path>,
) -> Result<BTreeMap<String, Difference>, ManifestError> {
    let old = from.map(|id| Manifest::read(folder, id)).transpose()?.unwrap_or_default();
    Ok(between(&Side::new(old, base), &Side::new(Manifest::read(folder, to)?, base))?)
}

/// The paths in which a layer that nothing writes to any more differs from the checkout below it.
pub fn difference_left(upper: &Path, base: &Path) -> io::Result<BTreeMap<String, Difference>> {
    let entries = walked(upper, |_, _, _| Body::File(Vec::new()))?;
    let left = Manifest { packs: Vec::new(), entries };
    between(&Side::new(Manifest::default(), Some(base)), &Side::new(left, Some(base)))
}

/// The paths in which a layer that nothing writes to any more differs from a checkpoint of it.
pub fn difference_since(
    folder: &Path,
    since: &str,
    (upper, base): (&Path, &Path),
) -> Result<BTreeMap<String, Difference>, ManifestError> {
    let old = Manifest::read(folder, since)?;
    let mut contents = Contents::new(folder, &old);
    let mut entries = walked(upper, |folder, name, entry| contents.of(folder, name, entry))?;
    contents.mark(&mut entries);
    let left = Manifest { packs: Vec::new(), entries };
    Ok(between(&Side::new(old, Some(base)), &Side::new(left, Some(base)))?)
}

/// Everything in a layer.
fn walked(upper: &Path, mut content: impl FnMut(BorrowedFd<'_>, &[u8], &Entry) -> Body) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut walk = Walk {
        layer: Layer::Workspace,
        entries: &mut entries,
        linked: HashMap::new(),
        content: |folder: BorrowedFd<'_>, name: &[u8], entry: &Entry| Ok(content(folder, name, entry)),
        known: &HashMap::new(),
    };
    walk.folder(open_folder(CWD, upper.as_os_str().as_bytes())?, Vec::new())?;
    Ok(entries)
}

/// A layer over a checkout, at one time.
struct Side<'a> {
    base: Option<&'a Path>,
    /// Everything of the layer but folders.
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Where nothing of the checkout is seen: what was deleted, and folders that were made anew.
    hidden: BTreeSet<Vec<u8>>,
}

/// What is seen at a path.
enum Seen<'a> {
    Nothing,
    /// The file of the checkout, as it was.
    Below,
    Own(&'a Entry),
}

impl<'a> Side<'a> {
    fn new(manifest: Manifest, base: Option<&'a Path>) -> Self {
        let (mut entries, mut hidden) = (BTreeMap::new(), BTreeSet::new());
        let inside_git = |path: &[u8]| path.starts_with(b".git/") || path == b".git";
        for entry in manifest.entries {
            if entry.layer != Layer::Workspace || inside_git(&entry.path) {
                continue;
            }
            let opaque = |(name, value): &(Vec<u8>, Vec<u8>)| name == b"user.overlay.opaque" && value == b"y";
            if entry.body == Body::Whiteout || entry.attributes.iter().any(opaque) {
                hidden.insert(entry.path.clone());
            }
            if entry.body != Body::Folder {
                entries.insert(entry.path.clone(), entry);
            }
        }
        Self { base, entries, hidden }
    }

    fn at(&self, path: &[u8]) -> Seen<'_> {
        let is_cut = self.hidden.contains(path) || parents(path).any(|parent| self.hidden.contains(parent));
        match self.entries.get(path) {
            Some(entry) if entry.body != Body::Whiteout => Seen::Own(entry),
            Some(_) | None if is_cut => Seen::Nothing,
            Some(_) | None => match self.base {
                Some(base) if is_file(&base.join(OsStr::from_bytes(path))) => Seen::Below,
                Some(_) | None => Seen::Nothing,
            },
        }
    }

    /// Every path at which something may be different from the checkout.
    fn paths(&self) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut paths: BTreeSet<_> = self.entries.keys().cloned().collect();
        if let Some(base) = self.base {
            for path in &self.hidden {
                add_files(base, path, &mut paths)?;
            }
        }
        Ok(paths)
    }
}

fn between(before: &Side<'_>, after: &Side<'_>) -> io::Result<BTreeMap<String, Difference>> {
    let mut found = BTreeMap::new();
    let mut paths = before.paths()?;
    paths.extend(after.paths()?);
    for path in paths {
        let is = match (before.at(&path), after.at(&path)) {
            (Seen::Nothing, Seen::Nothing) | (Seen::Below, Seen::Below) => continue,
            (Seen::Own(one), Seen::Own(other)) if same(one, other) => continue,
            (Seen::Nothing, Seen::Below | Seen::Own(_)) => Difference::Added,
            (Seen::Below | Seen::Own(_), Seen::Nothing) => Difference::Removed,
            (Seen::Below | Seen::Own(_), Seen::Below | Seen::Own(_)) => Difference::Changed,
        };
        found.insert(String::from_utf8_lossy(&path).into_owned(), is);
    }
    Ok(found)
}

fn same(one: &Entry, other: &Entry) -> bool {
    (one.inode, one.size, one.modified, one.changed, one.mode)
        == (other.inode, other.size, other.modified, other.changed, other.mode)
}

/// The folders that a path is in, inner ones first.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

/// Whether the checkout has something here that is no folder.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir())
}

/// Adds the files that the checkout has at a path and below it.
fn add_files(base: &Path, path: &[u8], found: &mut BTreeSet<Vec<u8>>) -> io::Result<()> {
    let mut folders = vec![path.to_vec()];
    while let Some(path) = folders.pop() {
        let place = base.join(OsStr::from_bytes(&path));
        match fs::symlink_metadata(&place) {
            Ok(is) if is.is_dir() => {
                for entry in fs::read_dir(&place)? {
                    folders.push([&path, b"/".as_slice(), entry?.file_name().as_bytes()].concat());
                }
            }
            Ok(_) => {
                found.insert(path);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
