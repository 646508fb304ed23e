//! Lattice's own files: written so that after a power cut each is the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A file of ours that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it has {size} bytes; the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Replaces `path` by a file with this content.
#[expect(clippy::disallowed_methods, reason = "the place where own files are renamed")]
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)?;
    let temporary = temporary(path);
    let mut file = File::create(&temporary)?;
    share(&file, folder);
    let written = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // A full disk must not also be littered; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

/// Replaces `path` by a file with this content that nobody writes to any more, as Git's packs are.
#[expect(clippy::disallowed_methods, reason = "the place where own files are renamed")]
pub(crate) fn write_read_only(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Git removes what a crash leaves under such a name.
    let temporary = path.with_file_name(format!("tmp_{name}_{}", std::process::id()));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o444).open(&temporary)?;
    share(&file, path.parent().unwrap_or(Path::new(".")));
    let written = file.write_all(content).and_then(|()| file.sync_data()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Replaces a file of Git's by its own protocol: the new content is written to `<path>.lock`,
/// which must not exist, and renamed.
#[expect(clippy::disallowed_methods, reason = "the place where own files are renamed")]
pub(crate) fn write_locked(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let mut file = File::options().write(true).create_new(true).open(&lock)?;
    share(&file, path.parent().unwrap_or(Path::new(".")));
    let written = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&lock, path));
    if written.is_err() {
        let _ = fs::remove_file(&lock);
    }
    written
}

/// What a folder lets its group and others do, if it belongs to several users: those who may write to it besides its owner.
fn shared_bits(folder: &Path) -> u32 {
    let mode = fs::metadata(folder).map_or(0, |found| found.mode());
    if mode & 0o020 == 0 { 0 } else { mode & 0o077 }
}

/// Lets everybody use a file who may use its folder, whatever the mask of this user is: Git does so with its own files in
/// a repository that is shared. A file of another user stays as it is.
pub(crate) fn share(file: &File, folder: &Path) {
    let Ok(found) = file.metadata() else { return };
    let mode = found.mode() & 0o7777;
    let usual = if mode & 0o200 == 0 { 0o044 } else { 0o066 };
    let wanted = mode | (shared_bits(folder) & usual);
    if wanted != mode {
        let _ = file.set_permissions(fs::Permissions::from_mode(wanted));
    }
}

/// Makes a folder and those above it, each for everybody who may use the one that it is in.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(Path::new("."));
    create_folder(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mode = fs::metadata(path)?.mode() & 0o7777;
    let wanted = mode | shared_bits(above);
    if wanted != mode {
        // Somebody else who made it in the same moment has done the same.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(wanted));
    }
    Ok(())
}

/// Removes `path`, which may be gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Moves a file to another name in the same folder.
#[expect(clippy::disallowed_methods, reason = "the place where own files are renamed")]
pub(crate) fn set_aside(path: &Path, new_name: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::rename(path, folder.join(new_name))?;
    File::open(folder)?.sync_all()
}

/// Reads a regular file of at most `limit` bytes; `None` if it does not exist. Links are not followed.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ReadError> {
    // Without O_NONBLOCK the open of a FIFO that someone put here would wait for ever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => return Err(ReadError::NotAFile),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(ReadError::NotAFile);
    }
    if found.len() > limit {
        return Err(ReadError::TooLarge { size: found.len(), limit });
    }
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Removes the empty files that a power cut leaves in the place of objects that were not flushed.
///
/// Git takes such a file for the object and would not write it again.
pub(crate) fn remove_empty_objects(objects: &Path) -> io::Result<()> {
    for folder in fs::read_dir(objects)? {
        let folder = folder?;
        if folder.file_name().len() != 2 {
            continue;
        }
        for object in fs::read_dir(folder.path())? {
            let object = object?;
            let found = object.metadata()?;
            if found.is_file() && found.len() == 0 {
                fs::remove_file(object.path())?;
            }
        }
    }
    Ok(())
}

/// Flushes everything that was written to the file system of `folder`, Git's objects and refs included.
pub(crate) fn sync_file_system(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder)?;
    #[cfg(not(target_os = "linux"))]
    folder.sync_all()?;
    Ok(())
}

/// Flushes one file, which may be gone already.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_data(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn temporary(path: &Path) -> std::path::PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}
