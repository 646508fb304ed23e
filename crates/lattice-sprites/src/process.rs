//! Starts processes: launchers of sandboxes, and inside of them the agent's program. The only place that does.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::action::HostValues;
use crate::sandbox;

/// A launcher that was started, with the way to it.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) control: UnixStream,
}

/// Starts this program again as a launcher. Its output is the agent's, who can read its arguments and so gets to see this
/// name in the place of the program's.
#[expect(clippy::disallowed_methods, reason = "the place where launchers start")]
pub(crate) fn launch(program: &Path, shown: &Path) -> io::Result<Launched> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command.arg0(shown).arg(sandbox::LAUNCHER).env_clear();
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A signal for the terminal's group is for the supervisor, which decides what it means.
    command.process_group(0);
    let child = command.spawn()?;
    Ok(Launched { child, control: ours })
}

/// Turns this process into a command; comes back only with the reason why not.
#[expect(clippy::disallowed_methods, reason = "the place where the agent's program begins")]
pub(crate) fn become_command(words: &[String], environment: &[(String, String)]) -> io::Error {
    let Some((program, arguments)) = words.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "there is no command");
    };
    let environment = environment.iter().map(|(name, value)| (name, value));
    Command::new(program).args(arguments).env_clear().envs(environment).exec()
}

/// Asks a program of the user's, and gives what it printed.
#[expect(clippy::disallowed_methods, reason = "the user's own programs: where a credential is, who is to be told")]
pub(crate) fn ask_program(words: &[String], host: &HostValues, more: &[(&str, &str)]) -> io::Result<String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(host.variables.iter().map(|(name, value)| (name, value)));
    command.envs(more.iter().copied()).current_dir(&host.directory).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|_| io::Error::other("it printed something that is no text"))
}

/// A descriptor that can be read when a child of this process changed.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    sandbox::child_signals()
}
