//! Starts the programs that a task needs: cargo, installers and probes.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::Failure;

/// One program with its arguments and what its environment has in addition.
pub(crate) struct Call<'a> {
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [&'a str],
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Call<'_> {
    /// Runs in `root` with the caller's terminal and says first what it runs.
    pub(crate) fn run(&self, root: &Path) -> Result<(), Failure> {
        let shown = self.shown();
        eprintln!("\n==> {shown}");
        let status = self.command().current_dir(root).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Step { command: shown, code: code_of(status) }),
            Err(cause) => Err(Failure::Start { command: shown, cause }),
        }
    }

    /// What the program prints on stdout, if it can be started and succeeds.
    pub(crate) fn answer(&self) -> Option<String> {
        let output = self.command().stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn command(&self) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "tasks start programs for developers; no task is part of the product"
        )]
        let mut command = Command::new(self.program);
        // What `cargo run` tells a task about itself makes build scripts of dependencies run again, and all above them.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_task(name)) {
            command.env_remove(name);
        }
        command.args(self.arguments).envs(self.environment.iter().copied());
        command
    }

    fn shown(&self) -> String {
        let mut words: Vec<String> = self.environment.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
        words.push(self.program.to_owned());
        words.extend(self.arguments.iter().map(|word| (*word).to_owned()));
        words.join(" ")
    }
}

fn is_of_this_task(variable: &OsStr) -> bool {
    variable.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}

/// A program ended by a signal has no code; it counts as a plain failure.
fn code_of(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
