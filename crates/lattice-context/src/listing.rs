//! The list of files of an earlier run, used again as long as nothing that decides it has changed.
//!
//! Kept are the states of all files, of the folders that they could be in, and of everything else that the list
//! depends on: the index, ignore rules, configuration. A state that is too young to tell a later change from an
//! earlier one is not believed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lattice_model::id::Oid;
use lattice_repo::{publish_cache_file, read_own_file};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

use crate::bytes::{Reading, Writing};
use crate::index::segment::checksum;
use crate::parallel::parallel;
use crate::workspace::{Entry, real_path};

const MAGIC: u64 = 0x3130_5453_494c_544c;

/// Larger lists are made anew each time.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FOLDERS: usize = 200_000;

/// Files that changed are read each time; with more of them the list is made anew, with a new idea of what is young.
const MOST_CHANGED: usize = 64;

/// States are asked for in blocks of so many.
const BLOCK: usize = 256;

/// How far times of a file system may lag behind, in nanoseconds: its clock ticks, or it keeps whole seconds.
const TICK: i64 = 100_000_000;
const WHOLE_SECONDS: i64 = 2_000_000_000;

/// What changes when a file is written, replaced or given other times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    kind: u64,
    inode: u64,
    size: u64,
    modified: i64,
    changed: i64,
}

/// A list with all that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The environment that it was made in.
    key: u64,
    /// States from this time on are too young.
    young: i64,
    inputs: Vec<(PathBuf, Option<State>)>,
    folders: Vec<Folder>,
    files: Vec<File>,
    /// Whether it was made in this run.
    is_new: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    path: Vec<u8>,
    state: State,
    /// Over the names in it and their kinds.
    names: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    entry: Entry,
    state: Option<State>,
}

/// How a list is made.
pub(crate) struct Sources<'a> {
    pub(crate) root: &'a Path,
    /// What of the environment decides about the list.
    pub(crate) key: u64,
    pub(crate) threads: usize,
}

impl Sources<'_> {
    /// The list that was kept, if it still holds. Files that changed since have no blob.
    pub(crate) fn kept(&self, path: &Path) -> Option<(Listing, Vec<Entry>)> {
        let bytes = read_own_file(path, MOST_BYTES).ok()??;
        let listing = Listing::parsed(&bytes).filter(|listing| listing.key == self.key)?;
        let holds = |(path, state): &(PathBuf, Option<State>)| {
            let now = state_of(CWD, path.as_os_str().as_bytes());
            now == *state && now.is_none_or(|now| !listing.is_young(&now))
        };
        let root = open_folder(self.root)?;
        let has_same_names = |folder: &Folder| {
            let now = state_in(&root, &folder.path);
            let is_same = now == Some(folder.state) && !listing.is_young(&folder.state);
            is_same
                || names(&self.root.join(OsStr::from_bytes(&folder.path))).is_some_and(|now| now.hash == folder.names)
        };
        let folders: Vec<&[Folder]> = listing.folders.chunks(BLOCK).collect();
        let all_hold = |block: &&[Folder]| block.iter().all(has_same_names);
        if !listing.inputs.iter().all(holds) || !parallel(self.threads, &folders, all_hold).into_iter().all(|same| same)
        {
            return None;
        }
        let states = self.states(&root, &listing.files, |file| &file.entry.path);
        let mut entries = Vec::with_capacity(listing.files.len());
        let mut listing = listing;
        let (young, mut changed) = (listing.young, 0);
        for (file, state) in listing.files.iter_mut().zip(states) {
            let state = state.filter(State::is_file)?;
            if file.state != Some(state) || state.is_young(young) {
                *file = File { entry: Entry { blob: None, ..file.entry.clone() }, state: Some(state) };
                changed += 1;
            }
            entries.push(file.entry.clone());
        }
        (changed <= MOST_CHANGED).then_some((listing, entries))
    }

    /// Notes what a fresh list depends on; `None` if it cannot be kept.
    ///
    /// `not_listed` says which folders without any listed file may get one: those that are not ignored.
    pub(crate) fn note(
        &self,
        young: i64,
        inputs: Vec<PathBuf>,
        entries: &[Entry],
        not_listed: impl Fn(&[Vec<u8>]) -> Option<Vec<Vec<u8>>>,
    ) -> Option<Listing> {
        let mut folders = HashSet::new();
        for entry in entries {
            let path = real_path(&entry.path);
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            folders.extend(slashes.map(|(at, _)| path[..at].to_vec()));
        }
        let root = open_folder(self.root)?;
        let folders = self.watched(&root, &folders, not_listed)?;
        let ignore_files = folders.iter().map(|folder| {
            let folder = self.root.join(OsStr::from_bytes(&folder.path));
            folder.join(".gitignore")
        });
        let all: Vec<PathBuf> = inputs.into_iter().chain(ignore_files).collect();
        let state = |path: PathBuf| {
            let state = state_of(CWD, path.as_os_str().as_bytes());
            (path, state)
        };
        // A missing file among the rules shows up as another name in its folder.
        let is_rule = |path: &Path| path.file_name() == Some(OsStr::new(".gitignore"));
        let inputs = all.into_iter().map(state).filter(|(path, state)| state.is_some() || !is_rule(path)).collect();
        let states = self.states(&root, entries, |entry| &entry.path);
        let file = |(entry, state): (&Entry, Option<State>)| File { entry: entry.clone(), state };
        let files = entries.iter().zip(states).map(file).collect();
        Some(Listing { key: self.key, young, inputs, folders, files, is_new: true })
    }

    fn states<T: Sync>(&self, root: &OwnedFd, items: &[T], path: impl Fn(&T) -> &String + Sync) -> Vec<Option<State>> {
        let blocks: Vec<&[T]> = items.chunks(BLOCK).collect();
        let of_block = |block: &&[T]| -> Vec<Option<State>> {
            block.iter().map(|item| state_in(root, &real_path(path(item)))).collect()
        };
        parallel(self.threads, &blocks, of_block).into_iter().flatten().collect()
    }

    /// All folders that a file of the list could be in.
    fn watched(
        &self,
        root: &OwnedFd,
        holding: &HashSet<Vec<u8>>,
        not_listed: impl Fn(&[Vec<u8>]) -> Option<Vec<Vec<u8>>>,
    ) -> Option<Vec<Folder>> {
        let mut found = Vec::new();
        let mut queue = vec![Vec::new()];
        while !queue.is_empty() {
            let mut doubtful: Vec<Vec<u8>> = Vec::new();
            while let Some(path) = queue.pop() {
                let state = state_in(root, &path)?;
                let names = names(&self.root.join(OsStr::from_bytes(&path)))?;
                // Another repository inside of this one lists its own files.
                let is_foreign = !path.is_empty() && names.has_repository;
                for name in names.folders.into_iter().filter(|_| !is_foreign) {
                    let below = if path.is_empty() { name } else { [path.as_slice(), b"/", &name].concat() };
                    if holding.contains(&below) { queue.push(below) } else { doubtful.push(below) }
                }
                found.push(Folder { path, state, names: names.hash });
                if found.len() > MOST_FOLDERS {
                    return None;
                }
            }
            if !doubtful.is_empty() {
                queue = not_listed(&doubtful)?;
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Some(found)
    }
}

impl Listing {
    /// Sets what was found out about contents since, and keeps all of it for the next run.
    pub(crate) fn keep(mut self, path: &Path, blobs: &[(String, Oid)]) {
        let known: HashMap<&str, Oid> = blobs.iter().map(|(path, blob)| (path.as_str(), *blob)).collect();
        for file in &mut self.files {
            file.entry.blob = file.entry.blob.or_else(|| known.get(file.entry.path.as_str()).copied());
        }
        if self.is_new || !blobs.is_empty() {
            // A file that cannot be written only costs time.
            let _ = publish_cache_file(path, &self.written());
        }
    }

    fn is_young(&self, state: &State) -> bool {
        state.is_young(self.young)
    }

    fn written(&self) -> Vec<u8> {
        let mut writing = Writing::default();
        writing.number(self.key);
        writing.number(self.young as u64);
        writing.list(&self.inputs, |writing, (path, state)| {
            writing.bytes(path.as_os_str().as_bytes());
            writing.list(state.as_slice(), |writing, state| state.write(writing));
        });
        writing.list(&self.folders, |writing, folder| {
            writing.bytes(&folder.path);
            folder.state.write(writing);
            writing.number(folder.names);
        });
        writing.list(&self.files, |writing, file| {
            writing.text(&file.entry.path);
            writing.bytes(file.entry.blob.as_ref().map_or(&[], Oid::as_bytes));
            writing.list(file.state.as_slice(), |writing, state| state.write(writing));
        });
        let mut bytes = Writing::default();
        bytes.number(MAGIC);
        bytes.number(checksum(&writing.0));
        bytes.0.extend(writing.0);
        bytes.0
    }

    fn parsed(bytes: &[u8]) -> Option<Self> {
        let mut reading = Reading(bytes);
        let (magic, sum) = (reading.number()?, reading.number()?);
        if magic != MAGIC || checksum(reading.0) != sum {
            return None;
        }
        let (key, young) = (reading.number()?, reading.number()? as i64);
        let inputs = reading.list(|reading| {
            let path = PathBuf::from(OsStr::from_bytes(reading.bytes()?));
            Some((path, reading.list(State::read)?.pop()))
        })?;
        let folders = reading.list(|reading| {
            let path = reading.bytes()?.to_vec();
            Some(Folder { path, state: State::read(reading)?, names: reading.number()? })
        })?;
        let files = reading.list(|reading| {
            let path = reading.text()?;
            let blob = Oid::from_bytes(reading.bytes()?);
            Some(File { entry: Entry { path, blob }, state: reading.list(State::read)?.pop() })
        })?;
        Some(Self { key, young, inputs, folders, files, is_new: false })
    }
}

impl State {
    fn is_file(&self) -> bool {
        self.kind == u64::from(FileType::RegularFile.as_raw_mode())
    }

    fn is_young(&self, young: i64) -> bool {
        self.modified >= young || self.changed >= young
    }

    fn write(&self, writing: &mut Writing) {
        [self.kind, self.inode, self.size, self.modified as u64, self.changed as u64]
            .iter()
            .for_each(|number| writing.number(*number));
    }

    fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let (kind, inode, size) = (reading.number()?, reading.number()?, reading.number()?);
        Some(Self { kind, inode, size, modified: reading.number()? as i64, changed: reading.number()? as i64 })
    }
}

/// From when on a state that is read now is too young, by the clock of the file system that `folder` is on.
pub(crate) fn youth(folder: &Path) -> Option<i64> {
    let probe = folder.join("clock");
    publish_cache_file(&probe, b"").ok()?;
    let now = state_of(CWD, probe.as_os_str().as_bytes())?.modified;
    let lag = if now % 1_000_000_000 == 0 { WHOLE_SECONDS } else { TICK };
    Some(now - lag)
}

fn open_folder(path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn state_in(root: &OwnedFd, path: &[u8]) -> Option<State> {
    state_of(root, if path.is_empty() { b"." } else { path })
}

fn state_of(folder: impl std::os::fd::AsFd, path: &[u8]) -> Option<State> {
    let found = rustix::fs::statat(folder, OsStr::from_bytes(path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let time = |seconds: i64, nanoseconds: u64| {
        seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(nanoseconds).unwrap_or(0))
    };
    Some(State {
        kind: u64::from(FileType::from_raw_mode(found.st_mode).as_raw_mode()),
        inode: found.st_ino,
        size: found.st_size as u64,
        modified: time(found.st_mtime, found.st_mtime_nsec),
        changed: time(found.st_ctime, found.st_ctime_nsec),
    })
}

struct Names {
    hash: u64,
    folders: Vec<Vec<u8>>,
    has_repository: bool,
}

/// What is in a folder, whatever its order.
fn names(folder: &Path) -> Option<Names> {
    let mut found = Names { hash: 0, folders: Vec::new(), has_repository: false };
    for entry in std::fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        let kind = entry.file_type().ok()?;
        let name = entry.file_name().as_bytes().to_vec();
        let sort = u8::from(kind.is_dir()) + 2 * u8::from(kind.is_file());
        found.hash = found.hash.wrapping_add(checksum(&[&[sort], name.as_slice()].concat()));
        if name == b".git" {
            found.has_repository = true;
        } else if kind.is_dir() {
            found.folders.push(name);
        }
    }
    Some(found)
}
