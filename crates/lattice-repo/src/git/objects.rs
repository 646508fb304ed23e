//! Reads objects through one process that answers many requests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::thread;

use lattice_model::id::Oid;

use super::error::GitError;
use super::process::{Conversation, Git, OBJECT_DIRECTORY};

const COMMAND: &str = "cat-file";

/// What every pipe takes without a reader.
const PIPE: usize = 4096;

/// A running `git cat-file`.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    conversation: Option<Conversation>,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// What git knows of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectInfo {
    pub(crate) oid: Oid,
    pub(crate) kind: String,
    pub(crate) size: u64,
}

/// What stands under a name that is to be a small blob.
#[derive(Debug)]
pub(crate) enum Blob<'a> {
    Missing,
    Content(&'a [u8]),
    /// No blob, or one that is too large.
    Other(&'a ObjectInfo),
}

impl Git {
    pub(crate) fn object_reader(&self) -> Result<ObjectReader, GitError> {
        let mut conversation = self.call(COMMAND).args(["--batch-command", "--buffer"]).converse()?;
        let stdin = conversation.child.stdin.take();
        let stdout = conversation.child.stdout.take().expect("bug: stdout is piped");
        Ok(ObjectReader { conversation: Some(conversation), stdin, stdout: BufReader::with_capacity(1 << 16, stdout) })
    }
}

impl Git {
    /// Changes whenever an object comes or goes, or history begins elsewhere; `None` if objects lie in other repositories
    /// too, which this cannot tell of.
    pub(crate) fn store_stamp(&self, common_dir: &Path) -> Option<Vec<u8>> {
        let objects = self.objects_dir(common_dir);
        if self.variable(OBJECT_DIRECTORY).is_some() || objects.join("info/alternates").exists() {
            return None;
        }
        let mut folders = Vec::new();
        for entry in fs::read_dir(&objects).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            if name.len() == 2 || name == "pack" {
                let found = entry.metadata().ok()?;
                folders.push(format!("{} {}.{}\n", name.display(), found.mtime(), found.mtime_nsec()));
            }
        }
        folders.sort_unstable();
        let mut stamp = folders.concat().into_bytes();
        for name in ["shallow", "info/grafts"] {
            stamp.push(0);
            stamp.extend(fs::read(common_dir.join(name)).unwrap_or_default());
        }
        Some(stamp)
    }
}

impl ObjectReader {
    /// Type and size of each object, `None` for what does not exist.
    pub(crate) fn info<S: AsRef<str>>(&mut self, names: &[S]) -> Result<Vec<Option<ObjectInfo>>, GitError> {
        self.ask("info", names, |reader| Ok(reader.header()?.into_info()))
    }

    /// The content of each object, `None` for what does not exist.
    pub(crate) fn contents<S: AsRef<str>>(&mut self, names: &[S]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        self.ask("contents", names, |reader| match reader.header()? {
            Header::Missing => Ok(None),
            Header::Found(info) => {
                let mut bytes = Vec::new();
                reader.content(&info, &mut bytes)?;
                Ok(Some(bytes))
            }
        })
    }

    /// Hands over each blob of at most `limit` bytes as it comes, with its place in the list. Anything else is passed
    /// over unread, so that nothing is held that nobody asked for.
    pub(crate) fn each_blob<S: AsRef<str>>(
        &mut self,
        names: &[S],
        limit: u64,
        mut take: impl FnMut(usize, Blob<'_>),
    ) -> Result<(), GitError> {
        let mut at = 0;
        let mut bytes = Vec::new();
        self.ask("contents", names, |reader| {
            match reader.header()? {
                Header::Missing => take(at, Blob::Missing),
                Header::Found(info) if info.kind == "blob" && info.size <= limit => {
                    reader.content(&info, &mut bytes)?;
                    take(at, Blob::Content(&bytes));
                }
                Header::Found(info) => {
                    let rest = &mut reader.stdout.by_ref().take(info.size.saturating_add(1));
                    std::io::copy(rest, &mut std::io::sink()).map_err(pipe)?;
                    take(at, Blob::Other(&info));
                }
            }
            at += 1;
            Ok(())
        })
        .map(drop)
    }

    fn content(&mut self, info: &ObjectInfo, bytes: &mut Vec<u8>) -> Result<(), GitError> {
        bytes.resize(usize::try_from(info.size).unwrap_or(usize::MAX), 0);
        self.stdout.read_exact(bytes).map_err(pipe)?;
        let mut newline = [0];
        self.stdout.read_exact(&mut newline).map_err(pipe)
    }

    /// Sends all requests while the answers are read, so that neither pipe can fill up and block. What fits into a
    /// pipe needs no thread of its own: git has read everything that was sent before.
    fn ask<S: AsRef<str>, T>(
        &mut self,
        verb: &str,
        names: &[S],
        mut read: impl FnMut(&mut Self) -> Result<T, GitError>,
    ) -> Result<Vec<T>, GitError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut request = String::new();
        for name in names {
            request.push_str(&format!("{verb} {}\n", name.as_ref()));
        }
        request.push_str("flush\n");
        let mut stdin = self.stdin.take().ok_or_else(|| GitError::unexpected(COMMAND, "an early end"))?;
        if request.len() <= PIPE {
            let sent = stdin.write_all(request.as_bytes());
            self.stdin = Some(stdin);
            sent.map_err(pipe)?;
            return names.iter().map(|_| read(self)).collect();
        }
        let writer = thread::spawn(move || {
            let sent = stdin.write_all(request.as_bytes()).and_then(|()| stdin.flush());
            (sent, stdin)
        });
        let answers: Result<Vec<_>, _> = names.iter().map(|_| read(self)).collect();
        let (sent, stdin) = writer.join().map_err(|_| GitError::unexpected(COMMAND, "a writer that ended"))?;
        self.stdin = Some(stdin);
        sent.map_err(pipe)?;
        answers
    }

    fn header(&mut self) -> Result<Header, GitError> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(pipe)?;
        let unexpected = || GitError::unexpected(COMMAND, format!("`{}`", line.trim_end()));
        if line.is_empty() {
            return Err(unexpected());
        }
        if line.trim_end().ends_with(" missing") || line.trim_end().ends_with(" ambiguous") {
            return Ok(Header::Missing);
        }
        let words: Vec<_> = line.trim_end().split(' ').collect();
        let [oid, kind, size] = words[..] else { return Err(unexpected()) };
        let oid = Oid::from_hex(oid.as_bytes()).ok_or_else(unexpected)?;
        let size = size.parse().map_err(|_| unexpected())?;
        Ok(Header::Found(ObjectInfo { oid, kind: kind.to_owned(), size }))
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Some(conversation) = self.conversation.take() {
            // Every answer was read; nothing is left to learn from the exit code.
            let _ = conversation.end();
        }
    }
}

enum Header {
    Missing,
    Found(ObjectInfo),
}

impl Header {
    fn into_info(self) -> Option<ObjectInfo> {
        match self {
            Self::Missing => None,
            Self::Found(info) => Some(info),
        }
    }
}

fn pipe(source: std::io::Error) -> GitError {
    GitError::Pipe { command: COMMAND.to_owned(), source }
}
