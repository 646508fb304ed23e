//! The folder that context comes from: which files there are, and reading them without ever leaving it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use lattice_model::id::Oid;
use lattice_model::time::Timestamp;
use lattice_repo::{Beginning, GitError, GitProgram, Reader, file_beginning};

use crate::compress::outlines::Outlines;
use crate::index::segment::checksum;
use crate::listing::{self, Listing, Sources};
use crate::retrieve::terms::hash;
use crate::text::{Decoded, decode};
use crate::tokens::TokenCounter;

/// The most that is read of one file.
pub const FILE_LIMIT: u64 = 8 << 20;

/// Gatherers and builders work in one of these.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    reader: Option<Reader>,
    cache: Option<PathBuf>,
    /// Listed once: everything that one run decides is about the same files.
    listing: OnceLock<Listed>,
    outlines: Arc<Outlines>,
    pub counter: Arc<dyn TokenCounter>,
    watcher: Option<Watcher>,
    /// Files and folders that are not part of it, if that was said.
    withheld: Option<BTreeSet<String>>,
}

/// Is told how many files of how many have been read.
pub type Watcher = fn(usize, usize);

/// The files, and what is to be kept of the list.
#[derive(Debug)]
struct Listed {
    entries: Vec<Entry>,
    note: Mutex<Option<Listing>>,
}

/// A file that may become context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root, with `/`; bytes that are no text are written as Git writes them.
    pub path: String,
    /// Known if the file is unchanged since it was staged, or since it was last read.
    pub blob: Option<Oid>,
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Skip {
    #[error("there is no such file")]
    Missing,
    #[error("it leads out of the folder")]
    Outside,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is binary")]
    Binary,
    #[error("it has {size} bytes; the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    pub text: String,
    /// Lines of the whole file, also of what was not kept.
    pub lines: u64,
    pub modified: Timestamp,
    /// Whether the end is missing, because the file is larger than the limit.
    pub cut: Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Whole,
    Beginning,
}

/// A folder that cannot be worked in.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("a bare repository has no files to gather")]
    Bare,
    #[error("{path} could not be read")]
    Folder { path: PathBuf, source: io::Error },
}

impl Workspace {
    /// The repository around `directory`, or the folder itself where there is none.
    pub fn open(
        program: &GitProgram,
        directory: &Path,
        user_cache: Option<PathBuf>,
        counter: Arc<dyn TokenCounter>,
    ) -> Result<Self, WorkspaceError> {
        match Reader::open(program, directory) {
            Ok(reader) => {
                let root = reader.paths().work_dir.clone().ok_or(WorkspaceError::Bare)?;
                let cache = Some(reader.cache_dir());
                Ok(Self::new(root, Some(reader), cache, counter))
            }
            Err(GitError::NotARepository(_) | GitError::NotInstalled(_)) => {
                let failed = |source| WorkspaceError::Folder { path: directory.to_owned(), source };
                let root = std::fs::canonicalize(directory).map_err(failed)?;
                let name = root.as_os_str().as_bytes();
                let own = format!("{:016x}", hash(&String::from_utf8_lossy(name)));
                let cache = user_cache.map(|cache| cache.join("lattice").join("context").join(own));
                Ok(Self::new(root, None, cache, counter))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn new(root: PathBuf, reader: Option<Reader>, cache: Option<PathBuf>, counter: Arc<dyn TokenCounter>) -> Self {
        let outlines = Arc::new(Outlines::in_folder(cache.as_deref()));
        Self { root, reader, cache, listing: OnceLock::new(), outlines, counter, watcher: None, withheld: None }
    }

    /// The same, with somebody who is told how far long work is.
    #[must_use]
    pub fn watched_by(self, watcher: Option<Watcher>) -> Self {
        Self { watcher, ..self }
    }

    /// The same without these files and folders: neither their contents nor their names are in any list. Names that are no
    /// text are left out too, since they cannot be compared.
    #[must_use]
    pub fn without(self, paths: &[String]) -> Self {
        let withheld = paths.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
        Self { withheld: Some(withheld), ..self }
    }

    fn is_withheld(&self, path: &str) -> bool {
        let above = || path.match_indices('/').map(|(at, _)| &path[..at]);
        let fits = |withheld: &BTreeSet<String>| {
            path.starts_with('"') || withheld.contains(path) || above().any(|folder| withheld.contains(folder))
        };
        self.withheld.as_ref().is_some_and(fits)
    }

    pub(crate) fn tell(&self, done: usize, total: usize) {
        if let Some(watcher) = self.watcher {
            watcher(done, total);
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Git's view, if this is a repository.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    pub fn cache_dir(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// The same folder with nothing kept between runs.
    #[must_use]
    pub fn without_cache(mut self) -> Self {
        self.cache = None;
        self.outlines = Arc::default();
        self
    }

    /// The outlines of texts of this folder.
    pub fn outlines(&self) -> &Outlines {
        &self.outlines
    }

    /// All files that Git does not ignore, sorted by path.
    pub fn entries(&self) -> Result<&[Entry], WorkspaceError> {
        if let Some(listed) = self.listing.get() {
            return Ok(&listed.entries);
        }
        let mut listed = self.list()?;
        listed.entries.retain(|entry| !self.is_withheld(&entry.path));
        Ok(&self.listing.get_or_init(|| listed).entries)
    }

    /// Leaves the list of files for the next run, with what is known about their contents now.
    pub(crate) fn keep_listing(&self, blobs: &[(String, Oid)]) {
        let listed = self.listing.get().and_then(|listed| listed.note.lock().ok()?.take());
        if let (Some(listing), Some(path)) = (listed, self.listing_path()) {
            listing.keep(&path, blobs);
        }
    }

    fn list(&self) -> Result<Listed, WorkspaceError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let sources = Sources { root: &self.root, key: self.listing_key(), threads };
        let path = self.listing_path();
        if let Some((note, entries)) = path.as_deref().and_then(|path| sources.kept(path)) {
            return Ok(Listed { entries, note: Mutex::new(Some(note)) });
        }
        // The clock is read before any file is looked at.
        let young = self.cache.as_deref().and_then(listing::youth);
        let (entries, note) = match &self.reader {
            Some(reader) => {
                // What Git does not know by its content may be a link, which is not followed, or no file at all.
                let is_file = |path: &[u8]| {
                    let found = std::fs::symlink_metadata(self.root.join(OsStr::from_bytes(path)));
                    found.is_ok_and(|found| found.is_file())
                };
                let files = reader.files()?.into_iter().filter(|file| file.blob.is_some() || is_file(&file.path));
                let entries: Vec<Entry> =
                    files.map(|file| Entry { path: shown_path(&file.path), blob: file.blob }).collect();
                let not_ignored = |folders: &[Vec<u8>]| {
                    let ignored = reader.ignored_folders(folders).ok()?;
                    Some(folders.iter().filter(|folder| !ignored.contains(folder)).cloned().collect())
                };
                let note =
                    young.and_then(|young| sources.note(young, reader.listing_inputs().ok()??, &entries, not_ignored));
                (entries, note)
            }
            None => {
                let (entries, folders) = self.walk();
                let visited = |wanted: &[Vec<u8>]| {
                    Some(wanted.iter().filter(|folder| folders.contains(*folder)).cloned().collect())
                };
                let note = young.and_then(|young| sources.note(young, Vec::new(), &entries, visited));
                (entries, note)
            }
        };
        Ok(Listed { entries, note: Mutex::new(note) })
    }

    /// Where the list of this folder's files is kept: one per worktree.
    fn listing_path(&self) -> Option<PathBuf> {
        let own = hash(&String::from_utf8_lossy(self.root.as_os_str().as_bytes()));
        Some(self.cache.as_ref()?.join(format!("listing-1-{own:016x}")))
    }

    fn listing_key(&self) -> u64 {
        let variables = self.reader.as_ref().map(Reader::configuration_variables).unwrap_or_default();
        checksum(&[self.root.as_os_str().as_bytes(), &[0], &variables].concat())
    }

    /// Files and folders that no ignore file excludes.
    fn walk(&self) -> (Vec<Entry>, BTreeSet<Vec<u8>>) {
        let mut builder = ignore::WalkBuilder::new(&self.root);
        builder.hidden(false).ignore(false).require_git(false).git_global(false).parents(false).follow_links(false);
        builder.filter_entry(|entry| entry.file_name() != ".git");
        let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
        for found in builder.build().flatten() {
            let Ok(path) = found.path().strip_prefix(&self.root) else { continue };
            let path = path.as_os_str().as_bytes().to_vec();
            match found.file_type() {
                Some(kind) if kind.is_file() => files.insert(path),
                Some(kind) if kind.is_dir() => folders.insert(path),
                Some(_) | None => false,
            };
        }
        (files.iter().map(|path| Entry { path: shown_path(path), blob: None }).collect(), folders)
    }

    /// A path from outside, such as one in a request, as a path of this folder.
    ///
    /// What leads out of the folder or into Git's own files is refused.
    pub fn resolve(&self, path: &str) -> Result<String, Skip> {
        let path = Path::new(path);
        let inside = match path.strip_prefix(&self.root) {
            Ok(inside) => inside,
            Err(_) if path.is_absolute() => return Err(Skip::Outside),
            Err(_) => path,
        };
        let mut parts: Vec<&OsStr> = Vec::new();
        for component in inside.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    parts.pop().ok_or(Skip::Outside)?;
                }
                Component::Normal(part) if part.eq_ignore_ascii_case(".git") => return Err(Skip::Outside),
                Component::Normal(part) => parts.push(part),
                Component::RootDir | Component::Prefix(_) => return Err(Skip::Outside),
            }
        }
        let joined: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
        if joined.is_empty() { Err(Skip::NotAFile) } else { Ok(joined.join("/")) }
    }

    /// Opens a regular file that lies beneath the root, links resolved.
    pub fn open_file(&self, path: &str) -> Result<File, Skip> {
        let path = self.resolve(path)?;
        let bytes = real_path(&path);
        let relative = Path::new(OsStr::from_bytes(&bytes));
        let file = open_beneath(&self.root, relative)?;
        match file.metadata() {
            Ok(found) if found.is_file() => Ok(file),
            Ok(_) => Err(Skip::NotAFile),
            Err(error) => Err(Skip::Unreadable(error.to_string())),
        }
    }

    /// The beginning of a file as bytes, and how long it is.
    pub fn read_bytes(&self, path: &str, limit: u64) -> Result<(Beginning, Timestamp), Skip> {
        let file = self.open_file(path)?;
        let modified = file.metadata().ok().and_then(|found| found.modified().ok());
        let since_1970 = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
        let modified = Timestamp::from_unix(i64::try_from(since_1970.as_secs()).unwrap_or(0));
        let beginning = file_beginning(file, limit).map_err(|error| Skip::Unreadable(error.to_string()))?;
        Ok((beginning, modified))
    }

    /// The text of a file, of a file above `limit` bytes its beginning.
    pub fn read(&self, path: &str, limit: u64) -> Result<FileText, Skip> {
        let (beginning, modified) = self.read_bytes(path, limit)?;
        let cut = if beginning.total_bytes > limit { Cut::Beginning } else { Cut::Whole };
        match decode(beginning.bytes) {
            Decoded::Text(text) => Ok(FileText { text, lines: beginning.lines, modified, cut }),
            Decoded::Binary => Err(Skip::Binary),
        }
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(root: &Path, relative: &Path) -> Result<File, Skip> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;
    let folder = rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(|error| Skip::Unreadable(error.to_string()))?;
    // Without O_NONBLOCK the open of a FIFO would wait for ever; devices are refused by their kind.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&folder, relative, flags, Mode::empty(), resolve) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::NOENT | Errno::NOTDIR) => Err(Skip::Missing),
        Err(Errno::XDEV) => Err(Skip::Outside),
        Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => Err(Skip::NotAFile),
        Err(error) => Err(Skip::Unreadable(io::Error::from(error).to_string())),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(root: &Path, relative: &Path) -> Result<File, Skip> {
    let found = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Skip::Missing,
        _ => Skip::Unreadable(error.to_string()),
    };
    let real = std::fs::canonicalize(root.join(relative)).map_err(found)?;
    if !real.starts_with(root) {
        return Err(Skip::Outside);
    }
    if !std::fs::metadata(&real).map_err(found)?.is_file() {
        return Err(Skip::NotAFile);
    }
    File::open(real).map_err(found)
}

/// A path as text: as it is, or in Git's quotes if it is no text.
fn shown_path(bytes: &[u8]) -> String {
    if let Ok(path) = std::str::from_utf8(bytes) {
        return path.to_owned();
    }
    let quoted: String = bytes
        .iter()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            0x20..=0x7e => char::from(*byte).to_string(),
            _ => format!("\\{byte:03o}"),
        })
        .collect();
    format!("\"{quoted}\"")
}

/// The bytes of a path that `shown_path` made.
pub(crate) fn real_path(shown: &str) -> Vec<u8> {
    let Some(quoted) = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return std::ffi::OsString::from(shown).into_vec();
    };
    let mut bytes = Vec::new();
    let mut rest = quoted.as_bytes();
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(*escaped);
                rest = after;
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    bytes
}
