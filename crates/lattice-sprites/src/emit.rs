//! Writes an event as the protocol wants it: to the outbox and to stdout, one line each.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::protocol::{Event, PREFIX};

/// Where the outbox of a workspace is.
pub fn outbox_path(workspace: &Path) -> PathBuf {
    workspace.join(".lattice").join("outbox.jsonl")
}

/// Appends the event to the outbox of `workspace` and prints it.
///
/// The outbox comes first, since it alone suffices. Its lock is held for both, so that emitters
/// that run at once neither mix their lines nor differ in order between the two sides.
pub fn emit(workspace: &Path, event: &Event, stdout: &mut dyn Write) -> io::Result<()> {
    let path = outbox_path(workspace);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut outbox = File::from(rustix::fs::open(&path, flags, Mode::from_raw_mode(0o644))?);
    rustix::fs::flock(&outbox, FlockOperation::LockExclusive)?;
    let json = event.to_line();
    let mut line = Vec::with_capacity(json.len() + 2);
    if ends_in_half_a_line(&mut outbox)? {
        // Someone was killed while writing; their half must not swallow this line.
        line.push(b'\n');
    }
    line.extend_from_slice(json.as_bytes());
    line.push(b'\n');
    outbox.write_all(&line)?;
    if event.kind.is_last_word() {
        outbox.sync_data()?;
    }
    let mut line = Vec::with_capacity(json.len() + PREFIX.len() + 1);
    line.extend_from_slice(PREFIX);
    line.extend_from_slice(json.as_bytes());
    line.push(b'\n');
    match stdout.write_all(&line).and_then(|()| stdout.flush()) {
        // Nobody listens any more; the outbox has it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn ends_in_half_a_line(outbox: &mut File) -> io::Result<bool> {
    let length = outbox.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(false);
    }
    outbox.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    outbox.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
