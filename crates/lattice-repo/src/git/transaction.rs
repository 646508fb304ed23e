//! Moves refs: several transactions, each all or nothing, through one process.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use lattice_model::id::Oid;
use lattice_model::name::RefName;
use lattice_model::plan::Expected;

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
}

impl Git {
    pub(crate) fn ref_session(&self, reason: &str, hex_len: usize) -> Result<RefSession, GitError> {
        let call = self.call(COMMAND).args(["--no-deref", "-m", reason, "--stdin", "-z"]);
        let mut conversation = call.converse()?;
        let stdin = conversation.child.stdin.take();
        let stdout = conversation.child.stdout.take().expect("bug: stdout is piped");
        Ok(RefSession { conversation: Some(conversation), stdin, stdout: BufReader::new(stdout), hex_len })
    }

    /// One transaction in a process of its own.
    pub(crate) fn update_refs(&self, edits: &[RefEdit], reason: &str, hex_len: usize) -> Result<(), GitError> {
        let mut session = self.ref_session(reason, hex_len)?;
        session.commit(edits)?;
        session.end()
    }
}

impl RefSession {
    /// Applies all edits or none. An error means that git refused before it changed anything, or died.
    pub(crate) fn commit(&mut self, edits: &[RefEdit]) -> Result<(), GitError> {
        self.say(b"start\0", "start: ok")?;
        let mut commands = Vec::new();
        for edit in edits {
            commands.extend(command(edit, self.hex_len));
        }
        commands.extend(b"prepare\0");
        self.say(&commands, "prepare: ok")?;
        self.say(b"commit\0", "commit: ok")
    }

    fn say(&mut self, request: &[u8], answer: &str) -> Result<(), GitError> {
        let gone = || GitError::unexpected(COMMAND, "an end before its time");
        let stdin = self.stdin.as_mut().ok_or_else(gone)?;
        let mut line = String::new();
        let sent = stdin.write_all(request).and_then(|()| stdin.flush());
        let received = sent.and_then(|()| self.stdout.read_line(&mut line));
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

fn command(edit: &RefEdit, hex_len: usize) -> Vec<u8> {
    let nothing = || "0".repeat(hex_len);
    let old = edit.expected.value().map_or_else(nothing, |oid| oid.to_string());
    let name = &edit.name;
    let text = match edit.to {
        Target::Set(new) => format!("update {name}\0{new}\0{old}\0"),
        Target::Delete => format!("delete {name}\0{old}\0"),
        Target::Keep => format!("verify {name}\0{old}\0"),
    };
    text.into_bytes()
}
