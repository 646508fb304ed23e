//! Tells whether files of a layer have the content that a checkpoint has of them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::manifest::{Body, Entry, Layer, Manifest, Piece};
use super::restore::Source;
use super::walk::index;

/// Content that no checkpoint has: there is no such pack.
const OTHER: Piece = Piece { pack: u32::MAX, pack_at: 0, file_at: 0, length: 0 };

/// What a checkpoint has, to compare files with.
pub(super) struct Contents<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
    known: HashMap<(Layer, &'a [u8]), &'a Entry>,
    source: Source,
}

impl<'a> Contents<'a> {
    pub(super) fn new(folder: &'a Path, manifest: &'a Manifest) -> Self {
        Self { folder, manifest, known: index(manifest), source: Source::new() }
    }

    /// The checkpoint's own pieces for a file that has their content.
    pub(super) fn of(&mut self, folder: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> Body {
        let other = Body::File(vec![OTHER]);
        let Some(before) = self.known.get(&(entry.layer, entry.path.as_slice())) else { return other };
        let Body::File(pieces) = body(&self.manifest.entries, before) else { return other };
        // What cannot be read cannot be told to be the same.
        let is_same = before.size == entry.size && self.is_same(folder, name, (entry.size, pieces)).unwrap_or(false);
        if is_same { Body::File(pieces.clone()) } else { other }
    }

    /// Gives entries of a layer that are what they were the marks that tell so, which a restore does not bring back.
    pub(super) fn mark(&self, entries: &mut [Entry]) {
        for number in 0..entries.len() {
            let entry = &entries[number];
            let Some(before) = self.known.get(&(entry.layer, entry.path.as_slice())) else { continue };
            let is_same = (entry.mode, entry.size) == (before.mode, before.size)
                && body(entries, entry) == body(&self.manifest.entries, before);
            let marks = (before.inode, before.modified, before.changed);
            if is_same {
                let entry = &mut entries[number];
                (entry.inode, entry.modified, entry.changed) = marks;
            }
        }
    }

    fn is_same(&mut self, folder: BorrowedFd<'_>, name: &[u8], (size, pieces): (u64, &[Piece])) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
        let mut there = vec![0; 1 << 17];
        let mut end = 0;
        for piece in pieces {
            let mut is_same = is_hole(&file, (end, piece.file_at), &mut there)?;
            self.source.read((self.folder, self.manifest), piece, |bytes, at| {
                let there = &mut there[..bytes.len()];
                is_same = is_same && file.read_exact_at(there, at).map(|()| there == bytes)?;
                Ok(is_same)
            })?;
            if !is_same {
                return Ok(false);
            }
            end = piece.file_at + piece.length;
        }
        is_hole(&file, (end, size), &mut there)
    }
}

/// Whether there is nothing but zeros between two places of a file.
fn is_hole(file: &File, (from, to): (u64, u64), there: &mut [u8]) -> io::Result<bool> {
    let mut at = from;
    while at < to {
        let most = usize::try_from(to - at).unwrap_or(usize::MAX).min(there.len());
        file.read_exact_at(&mut there[..most], at)?;
        if there[..most].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += most as u64;
    }
    Ok(true)
}

/// What an entry is; another name of a file is that file.
fn body<'a>(entries: &'a [Entry], entry: &'a Entry) -> &'a Body {
    match &entry.body {
        Body::Link(first) => entries.get(*first as usize).map_or(&entry.body, |first| &first.body),
        Body::Folder | Body::File(_) | Body::Symlink(_) | Body::Fifo | Body::Whiteout => &entry.body,
    }
}
