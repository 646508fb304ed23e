//! Follows an outbox that the agent can write: reads what is new, and notices what was changed.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

/// How far an outbox was read, so that reading goes on after a crash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Bytes of whole lines.
    pub offset: u64,
    pub lines: u64,
    /// SHA-256 of those bytes.
    pub digest: Vec<u8>,
}

/// What an outbox has to say.
#[derive(Debug)]
pub enum Reading {
    /// Whole lines that are new; possibly none.
    More(Vec<u8>),
    /// What was read before is no longer there. Reading starts over.
    Changed(&'static str),
}

/// An outbox and how far it was read.
#[derive(Debug)]
pub struct Outbox {
    path: PathBuf,
    offset: u64,
    lines: u64,
    hash: Sha256,
    /// The last bytes that were read, to see an edit without reading everything again.
    tail: Vec<u8>,
    /// What was wrong at the last look, so that it is said once.
    said: Option<&'static str>,
}

/// Nothing beyond this is read; it would be no history but an attack.
const LARGEST: u64 = 4 * 1024 * 1024 * 1024;

/// At most this much is taken at once.
const PIECE: u64 = 4 * 1024 * 1024;
const TAIL: usize = 4096;

impl Outbox {
    /// An outbox that was read up to `cursor`, with the check that what was read is still there.
    pub fn open(path: &Path, cursor: &Cursor) -> io::Result<(Self, Option<&'static str>)> {
        let mut outbox = Self::at_start(path);
        if cursor.offset == 0 {
            return Ok((outbox, None));
        }
        let Ok(file) = open(path) else { return Ok((outbox, Some("the outbox is gone"))) };
        let mut file = file.take(cursor.offset);
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut piece)?;
            if count == 0 {
                break;
            }
            outbox.advance(&piece[..count]);
        }
        let same = outbox.offset == cursor.offset && outbox.hash.clone().finalize()[..] == cursor.digest[..];
        if same {
            return Ok((outbox, None));
        }
        Ok((Self::at_start(path), Some("the outbox is not the one that was read")))
    }

    fn at_start(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, lines: 0, hash: Sha256::new(), tail: Vec::new(), said: None }
    }

    /// Reads whole lines that are new. A line without an end waits for it.
    pub fn read(&mut self) -> io::Result<Reading> {
        let mut file = match open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.offset == 0 => {
                return Ok(Reading::More(Vec::new()));
            }
            Err(_) => return Ok(self.start_over("the outbox is gone or is no regular file")),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(self.start_over("the outbox is no regular file"));
        }
        if found.len() > LARGEST {
            return Ok(self.start_over("the outbox is larger than any history"));
        }
        if found.len() < self.offset {
            return Ok(self.start_over("the outbox was shortened"));
        }
        file.seek(SeekFrom::Start(self.offset - self.tail.len() as u64))?;
        let mut tail = vec![0; self.tail.len()];
        file.read_exact(&mut tail)?;
        if tail != self.tail {
            return Ok(self.start_over("lines of the outbox were rewritten"));
        }
        let mut bytes = Vec::new();
        file.take(PIECE).read_to_end(&mut bytes)?;
        match memchr::memrchr(b'\n', &bytes) {
            Some(end) => bytes.truncate(end + 1),
            // A piece without an end of a line is a line that is too long, and passes on as it is.
            None if bytes.len() as u64 == PIECE => {}
            None => bytes.clear(),
        }
        self.advance(&bytes);
        Ok(Reading::More(bytes))
    }

    /// The last line although it has no end: nobody will write one any more.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Ok(mut file) = open(&self.path) {
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(PIECE).read_to_end(&mut bytes)?;
        }
        self.advance(&bytes);
        Ok(bytes)
    }

    /// Compares everything that was read with what is there now.
    pub fn verify(&mut self) -> io::Result<Option<&'static str>> {
        let (again, changed) = Self::open(&self.path, &self.cursor())?;
        if changed.is_some() {
            *self = again;
        }
        Ok(changed)
    }

    pub fn cursor(&self) -> Cursor {
        Cursor { offset: self.offset, lines: self.lines, digest: self.hash.clone().finalize().to_vec() }
    }

    fn start_over(&mut self, why: &'static str) -> Reading {
        let is_new = self.said != Some(why) || self.offset > 0;
        *self = Self { said: Some(why), ..Self::at_start(&self.path) };
        if is_new { Reading::Changed(why) } else { Reading::More(Vec::new()) }
    }

    fn advance(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.hash.update(bytes);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
    }
}

/// A regular file; links are not followed and a FIFO does not block.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}
