//! Reads for context: files, changes and recent history. What git prints is streamed and cut, never held.

use std::io::{BufRead, BufReader, Read};

use lattice_model::id::Oid;

use super::error::GitError;
use super::process::{Call, Git};

/// A file of the working tree as Git sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFile {
    /// Relative to the top of the working tree, as bytes.
    pub path: Vec<u8>,
    /// The blob in the index, if the file is the same as that.
    pub blob: Option<Oid>,
}

/// A commit as logs show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    pub short: String,
    pub subject: String,
    pub author: String,
    /// The author's date with its zone, ISO 8601.
    pub date: String,
}

/// When a commit was made and what it touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPaths {
    /// Seconds since the start of 1970.
    pub committed: i64,
    pub paths: Vec<Vec<u8>>,
}

/// Two states to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffRange {
    /// A commit and what is in the working tree.
    ToWorkTree(Oid),
    Between(Oid, Oid),
}

/// One file of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: Vec<u8>,
    pub change: Change,
    /// The blob after the change, where Git knows it.
    pub blob: Option<Oid>,
    /// Lines added and removed; `None` for binary files.
    pub lines: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Written,
    Deleted,
    /// A link or a submodule: there is no text to show.
    NoFile,
}

/// A stream of which the beginning was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beginning {
    pub bytes: Vec<u8>,
    /// Lines of the whole stream; a last line without its newline counts.
    pub lines: u64,
    pub total_bytes: u64,
}

/// How much of a log of paths is read at most.
const LOG_LIMIT: u64 = 16 << 20;

/// A line is looked at only this far: what says which line it is stands at its beginning.
const LINE_HEAD: usize = 512;

/// User settings for diffs are for terminals; these options are Git's own defaults.
const PLAIN_DIFF: [&str; 10] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--find-renames",
    "--diff-algorithm=myers",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
    "--submodule=short",
];

impl Git {
    /// All files that are tracked, or neither tracked nor ignored, and exist; sorted by path.
    pub(crate) fn work_files(&self) -> Result<Vec<WorkFile>, GitError> {
        let arguments =
            ["-z", "-t", "--stage", "--cached", "--others", "--modified", "--deleted", "--exclude-standard"];
        let stdout = self.call("ls-files").args(arguments).run()?;
        let mut files: Vec<(WorkFile, u8)> = stdout.split(|byte| *byte == 0).filter_map(listed).collect();
        files.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        let mut merged: Vec<(WorkFile, u8)> = Vec::with_capacity(files.len());
        for (file, tag) in files {
            match merged.last_mut() {
                Some((last, last_tag)) if last.path == file.path => {
                    // A changed file is listed once more; what the index has is not what is there.
                    last.blob = None;
                    if tag == b'R' {
                        *last_tag = tag;
                    }
                }
                Some(_) | None => merged.push((file, tag)),
            }
        }
        Ok(merged.into_iter().filter(|(_, tag)| *tag != b'R').map(|(file, _)| file).collect())
    }

    /// The newest commits of HEAD; none if there is no commit yet.
    pub(crate) fn recent_log(&self, count: usize) -> Result<Vec<LoggedCommit>, GitError> {
        let format = "--format=tformat:%h%n%s%n%an%n%aI";
        let count = format!("--max-count={count}");
        let arguments = ["-z", "--no-show-signature", "--encoding=UTF-8", format, &count, "HEAD", "--"];
        let stdout = self.call("log").args(arguments).run()?;
        let commit = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            let mut fields = text.split('\n').map(str::to_owned);
            let short = fields.next().filter(|short| !short.is_empty())?;
            Some(LoggedCommit { short, subject: fields.next()?, author: fields.next()?, date: fields.next()? })
        };
        Ok(stdout.split(|byte| *byte == 0).filter_map(commit).collect())
    }

    /// The paths that the newest commits touched, merges left out.
    pub(crate) fn recent_paths(&self, count: usize) -> Result<Vec<CommitPaths>, GitError> {
        let count = format!("--max-count={count}");
        let arguments = ["-z", "--no-merges", "--no-renames", "--no-show-signature", "--name-only", "--format=%x01%ct"];
        let call = self.call("log").args(arguments).args([count.as_str(), "HEAD", "--"]);
        let mut commits: Vec<CommitPaths> = Vec::new();
        let kept = call.beginning(LOG_LIMIT, |_| {})?;
        for record in kept.bytes.split(|byte| *byte == 0) {
            let record = record.strip_prefix(b"\n").unwrap_or(record);
            match record.strip_prefix(b"\x01") {
                Some(time) => {
                    let committed = std::str::from_utf8(time).ok().and_then(|time| time.trim().parse().ok());
                    commits.push(CommitPaths { committed: committed.unwrap_or(0), paths: Vec::new() });
                }
                None if record.is_empty() => {}
                None => {
                    if let Some(commit) = commits.last_mut() {
                        commit.paths.push(record.to_vec());
                    }
                }
            }
        }
        Ok(commits)
    }

    /// What differs, without the lines themselves.
    pub(crate) fn differing_files(&self, range: DiffRange) -> Result<Vec<ChangedFile>, GitError> {
        let call = self.call("diff").args(PLAIN_DIFF).args(["--raw", "--numstat", "--no-abbrev", "-z"]);
        let stdout = range_of(call, range).run()?;
        Ok(changed(&stdout))
    }

    /// The difference as Git prints it, the first `limit` bytes of it; `seen` hears of every line's beginning.
    pub(crate) fn diff_beginning(
        &self,
        range: DiffRange,
        limit: u64,
        seen: impl FnMut(&[u8]),
    ) -> Result<Beginning, GitError> {
        range_of(self.call("diff").args(PLAIN_DIFF).args(["--patch", "--unified=3"]), range).beginning(limit, seen)
    }

    /// The first `limit` bytes of a blob.
    pub(crate) fn blob_beginning(&self, blob: Oid, limit: u64) -> Result<Beginning, GitError> {
        self.call("cat-file").args(["blob".to_owned(), blob.to_string()]).beginning(limit, |_| {})
    }

    /// The commit that a branch, tag or other name of the user's stands for.
    pub(crate) fn resolve_commit(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.resolve_as(name, "commit")
    }

    /// The blob whose id begins with these digits.
    pub(crate) fn resolve_blob(&self, prefix: &str) -> Result<Option<Oid>, GitError> {
        self.resolve_as(prefix, "blob")
    }

    fn resolve_as(&self, name: &str, kind: &str) -> Result<Option<Oid>, GitError> {
        let arguments = ["--verify", "--quiet", "--end-of-options"];
        let finished = self.call("rev-parse").args(arguments).arg(format!("{name}^{{{kind}}}")).finish()?;
        Ok(Oid::from_hex(finished.stdout.trim_ascii_end()).filter(|_| finished.code == 0))
    }

    /// The branch that HEAD is on.
    pub(crate) fn head_branch(&self) -> Result<Option<String>, GitError> {
        let finished = self.call("branch").arg("--show-current").finish()?;
        let name = String::from_utf8_lossy(&finished.stdout).trim_end().to_owned();
        Ok(Some(name).filter(|name| finished.code == 0 && !name.is_empty()))
    }
}

fn range_of(call: Call<'_>, range: DiffRange) -> Call<'_> {
    match range {
        DiffRange::ToWorkTree(from) => call.args([from.to_string(), "--".to_owned()]),
        DiffRange::Between(from, to) => call.args([from.to_string(), to.to_string(), "--".to_owned()]),
    }
}

/// `H 100644 <blob> 0<tab><path>`, or `? <path>` for what is not tracked.
fn listed(record: &[u8]) -> Option<(WorkFile, u8)> {
    let (tag, rest) = (*record.first()?, record.get(2..)?);
    if tag == b'?' {
        // What ends like a folder is another repository.
        return (!rest.ends_with(b"/")).then(|| (WorkFile { path: rest.to_vec(), blob: None }, tag));
    }
    let tab = rest.iter().position(|byte| *byte == b'\t')?;
    let mut words = rest[..tab].split(|byte| *byte == b' ');
    let mode = words.next()?;
    // Links are not followed and submodules are other repositories.
    if !mode.starts_with(b"100") {
        return None;
    }
    let blob = words.next().and_then(Oid::from_hex);
    Some((WorkFile { path: rest[tab + 1..].to_vec(), blob }, tag))
}

/// Records of `--raw -z`, followed by those of `--numstat -z`, in the same order of files.
fn changed(stdout: &[u8]) -> Vec<ChangedFile> {
    let mut records = stdout.split(|byte| *byte == 0).peekable();
    let mut files = Vec::new();
    while let Some(head) = records.next_if(|record| record.starts_with(b":")) {
        let words: Vec<_> = head.split(|byte| *byte == b' ').collect();
        let [_, mode, _, blob, status] = words[..] else { continue };
        let mut path = records.next().unwrap_or_default();
        if matches!(status.first(), Some(b'R' | b'C')) {
            path = records.next().unwrap_or_default();
        }
        let change = match (status.first(), mode.starts_with(b"100")) {
            (Some(b'D'), _) => Change::Deleted,
            (_, true) => Change::Written,
            (_, false) => Change::NoFile,
        };
        let blob = Oid::from_hex(blob).filter(|_| blob.iter().any(|byte| *byte != b'0'));
        files.push(ChangedFile { path: path.to_vec(), change, blob, lines: None });
    }
    for file in &mut files {
        let Some(record) = records.next() else { break };
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        let number = |field: Option<&[u8]>| std::str::from_utf8(field?).ok()?.parse().ok();
        file.lines = number(fields.next()).zip(number(fields.next()));
        if fields.next().is_some_and(<[u8]>::is_empty) {
            // A rename has its two names in records of their own.
            records.next();
            records.next();
        }
    }
    files
}

impl Call<'_> {
    /// Runs to the end and keeps the first `limit` bytes; `seen` gets the beginning of every line.
    fn beginning(self, limit: u64, mut seen: impl FnMut(&[u8])) -> Result<Beginning, GitError> {
        let command = self.command_name();
        let failed = |source| GitError::Pipe { command: command.to_owned(), source };
        let mut conversation = self.converse()?;
        drop(conversation.child.stdin.take());
        let stdout = conversation.child.stdout.take().expect("bug: stdout is piped");
        let kept = keep_beginning(stdout, limit, &mut seen).map_err(failed)?;
        let finished = conversation.end()?;
        finished.check(command)?;
        Ok(kept)
    }
}

/// Reads to the end and keeps the first `limit` bytes.
pub(crate) fn keep_beginning(
    stream: impl Read,
    limit: u64,
    seen: &mut impl FnMut(&[u8]),
) -> std::io::Result<Beginning> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut kept = Beginning::default();
    let mut line = Vec::new();
    let mut ended = true;
    loop {
        let block = stream.fill_buf()?;
        if block.is_empty() {
            break;
        }
        let room = usize::try_from(limit.saturating_sub(kept.total_bytes)).unwrap_or(usize::MAX);
        kept.bytes.extend_from_slice(&block[..room.min(block.len())]);
        let mut rest = block;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(end);
            rest = after;
            let head = part.len().min(LINE_HEAD.saturating_sub(line.len()));
            line.extend_from_slice(&part[..head]);
            ended = part.ends_with(b"\n");
            if ended {
                kept.lines += 1;
                seen(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
        }
        let size = block.len();
        kept.total_bytes += u64::try_from(size).unwrap_or(u64::MAX);
        stream.consume(size);
    }
    if !ended {
        kept.lines += 1;
        seen(&line);
    }
    Ok(kept)
}
