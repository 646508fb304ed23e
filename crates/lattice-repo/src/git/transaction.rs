//! Moves refs: several transactions, each all or nothing, through one process.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};

use lattice_model::id::Oid;
use lattice_model::name::RefName;
use lattice_model::plan::Expected;
use lattice_model::snapshot::Repository;

use crate::defect::Defect;
use crate::durable;

use super::discover::hex_len;
use super::error::GitError;
use super::process::{Conversation, Git};

const COMMAND: &str = "update-ref";

/// A change of one ref with the value it must have before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefEdit {
    pub(crate) name: RefName,
    pub(crate) expected: Expected,
    pub(crate) to: Target,
}

/// What becomes of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Set(Oid),
    Delete,
    /// Stays as it is; the transaction depends on its value.
    Keep,
}

/// A running `git update-ref --stdin`.
pub(crate) struct RefSession {
    conversation: Option<Conversation>,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    hex_len: usize,
    /// Below this folder git writes new values, each beside its ref. In a reftable repository it does not.
    beside: Option<PathBuf>,
    old_values: OldValues,
}

/// Whether git is told what it has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OldValues {
    Checked,
    Ignored,
}

impl Git {
    pub(crate) fn ref_session(&self, reason: &str, paths: &Repository) -> Result<RefSession, GitError> {
        let call = self.call(COMMAND).args(["--no-deref", "-m", reason, "--stdin", "-z"]);
        let reftable = paths.common_dir.join("reftable").exists();
        let call = if reftable { call.flushing("reference") } else { call };
        let mut conversation = call.converse()?;
        let stdin = conversation.child.stdin.take();
        let stdout = BufReader::new(conversation.child.stdout.take().expect("bug: stdout is piped"));
        let hex_len = hex_len(&paths.common_dir);
        let beside = (!reftable).then(|| paths.common_dir.clone());
        let ignored = self.has(Defect::ExpectedValuesIgnored);
        let old_values = if ignored { OldValues::Ignored } else { OldValues::Checked };
        Ok(RefSession { conversation: Some(conversation), stdin, stdout, hex_len, beside, old_values })
    }

    /// One transaction in a process of its own.
    pub(crate) fn update_refs(&self, edits: &[RefEdit], reason: &str, paths: &Repository) -> Result<(), GitError> {
        let mut session = self.ref_session(reason, paths)?;
        session.apply(edits)?;
        session.end()
    }
}

impl RefSession {
    /// Applies all edits or none. An error means that git refused before it changed anything, or died.
    pub(crate) fn apply(&mut self, edits: &[RefEdit]) -> Result<(), GitError> {
        self.begin(edits)?;
        self.prepared()?;
        self.flush(edits)?;
        self.commit()
    }

    /// Makes the new values durable before their files get the names of refs: else a power cut leaves empty files in
    /// the place of refs.
    fn flush(&self, edits: &[RefEdit]) -> Result<(), GitError> {
        let Some(folder) = &self.beside else { return Ok(()) };
        let mut written = edits.iter().map(|edit| match edit.to {
            Target::Set(_) => format!("{}.lock", edit.name),
            Target::Delete | Target::Keep => "packed-refs.new".to_owned(),
        });
        written.try_for_each(|name| {
            let path = folder.join(name);
            durable::sync_file(&path).map_err(|source| GitError::Write { path, source })
        })
    }

    /// Has git check the old values, take the locks and write the new values beside the refs. It goes on while we
    /// do something else; what is written is for us to flush, and ending the session takes it back.
    pub(crate) fn begin(&mut self, edits: &[RefEdit]) -> Result<(), GitError> {
        self.say(b"start\0", "start: ok")?;
        let mut commands = Vec::new();
        for edit in edits {
            commands.extend(command(edit, self.hex_len, self.old_values));
        }
        commands.extend(b"prepare\0");
        // A git that refuses reads no further; its answer says why.
        let _ = self.send(&commands);
        Ok(())
    }

    /// Waits until everything is ready to move.
    pub(crate) fn prepared(&mut self) -> Result<(), GitError> {
        self.hear("prepare: ok")
    }

    /// Moves what was prepared.
    pub(crate) fn commit(&mut self) -> Result<(), GitError> {
        self.say(b"commit\0", "commit: ok")
    }

    fn say(&mut self, request: &[u8], answer: &str) -> Result<(), GitError> {
        let _ = self.send(request);
        self.hear(answer)
    }

    fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(request).and_then(|()| stdin.flush()))
    }

    fn hear(&mut self, answer: &str) -> Result<(), GitError> {
        let gone = || GitError::unexpected(COMMAND, "an end before its time");
        let mut line = String::new();
        let received = self.stdout.read_line(&mut line);
        if received.is_ok() && line.trim_end() == answer {
            return Ok(());
        }
        drop(self.stdin.take());
        let finished = self.conversation.take().ok_or_else(gone)?.end()?;
        if finished.code == 0 {
            return Err(GitError::unexpected(COMMAND, format!("`{}` instead of `{answer}`", line.trim_end())));
        }
        finished.check(COMMAND).map(drop)
    }

    /// Ends the process.
    pub(crate) fn end(mut self) -> Result<(), GitError> {
        let Some(conversation) = self.conversation.take() else { return Ok(()) };
        drop(self.stdin.take());
        conversation.end()?.check(COMMAND).map(drop)
    }
}

fn command(edit: &RefEdit, hex_len: usize, old_values: OldValues) -> Vec<u8> {
    let nothing = || "0".repeat(hex_len);
    let old = match old_values {
        OldValues::Checked => edit.expected.value().map_or_else(nothing, |oid| oid.to_string()),
        OldValues::Ignored => String::new(),
    };
    let name = &edit.name;
    let text = match edit.to {
        Target::Set(new) => format!("update {name}\0{new}\0{old}\0"),
        Target::Delete => format!("delete {name}\0{old}\0"),
        Target::Keep => format!("verify {name}\0{old}\0"),
    };
    text.into_bytes()
}
