//! Runs the built program in a sandbox.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::guard::Guarded;
use crate::output::Output;
use crate::pty::Terminal;
use crate::repo::TestRepo;
use crate::wrapper::GitWrapper;

/// A run longer than this hangs.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// How long output may stay open after the program ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(20);

/// One run of the program, in the directory of a repository unless told otherwise.
#[derive(Clone, Debug)]
#[must_use]
pub struct Lattice {
    program: PathBuf,
    repo: TestRepo,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
}

/// A program that was started and not yet waited for.
#[derive(Debug)]
pub struct Running {
    guarded: Guarded,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    repo: TestRepo,
    described: String,
}

impl Lattice {
    /// Prepares a run of `bin`, which is `env!("CARGO_BIN_EXE_lattice")` of the calling test.
    pub fn new(bin: &str, repo: &TestRepo) -> Self {
        Self {
            program: bin.into(),
            repo: repo.clone(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: repo.dir().to_owned(),
            stdin: None,
            timeout: TIMEOUT,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable on top of the hermetic environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Makes the program start git through a wrapper.
    pub fn wrapper(self, wrapper: &GitWrapper) -> Self {
        self.env("LATTICE_GIT", wrapper.path())
    }

    /// Starts the program in another directory; relative ones count from the repository.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = self.repo.dir().join(dir);
        self
    }

    /// Gives the program this input instead of none.
    pub fn stdin(mut self, input: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(input.as_ref().to_owned());
        self
    }

    /// Allows another time than [`TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs on a pseudo-terminal instead, for prompts.
    pub fn terminal(self) -> Terminal {
        Terminal::new(self)
    }

    /// Runs to the end; panics if that takes too long.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Runs with `--json` and returns the one document it printed, whether it succeeded or not.
    #[track_caller]
    pub fn json(mut self) -> Value {
        self.args.insert(0, "--json".into());
        self.run().json()
    }

    /// Runs and demands exit code 0.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.fails(0)
    }

    /// Runs and demands this exit code.
    #[track_caller]
    pub fn fails(self, code: i32) -> Output {
        let described = self.described();
        let output = self.run();
        assert!(output.code == Some(code), "{described} should end with {code}:\n{}", output.snapshot());
        output
    }

    /// Starts the program without waiting.
    #[track_caller]
    pub fn spawn(self) -> Running {
        let mut command = self.command(None);
        command.process_group(0);
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{} does not start: {error}", self.described()));
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.stdin.clone()) {
            // A program that does not read its input to the end is not an error of the test.
            thread::spawn(move || pipe.write_all(&input).ok());
        }
        let stdout = collect(child.stdout.take().expect("stdout is piped"));
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        Running {
            guarded: Guarded::new(child, self.timeout),
            stdout,
            stderr,
            described: self.described(),
            repo: self.repo,
        }
    }

    /// The command to start, with `launcher` and its arguments before the program if there is one.
    pub(crate) fn command(&self, launcher: Option<&[&str]>) -> Command {
        let sandbox = self.repo.sandbox();
        sandbox.tick_run();
        let mut command = match launcher {
            None => Command::new(&self.program),
            Some(launcher) => {
                let mut command = Command::new(launcher[0]);
                command.args(&launcher[1..]).arg(&self.program);
                command
            }
        };
        sandbox.apply(&mut command);
        command.args(&self.args).envs(self.env.iter().cloned()).current_dir(&self.cwd);
        command
    }

    pub(crate) fn repo(&self) -> &TestRepo {
        &self.repo
    }

    pub(crate) fn time(&self) -> Duration {
        self.timeout
    }

    /// The run as a person would type it.
    pub(crate) fn described(&self) -> String {
        let args = self.args.iter().map(|arg| arg.to_string_lossy());
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
    }
}

impl Running {
    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.guarded.pid()
    }

    /// Kills the program alone, as `kill -9` does; git processes that it started go on.
    pub fn kill(&self) {
        self.guarded.signal(Signal::KILL);
    }

    /// Interrupts the program and what it started, as Ctrl-C on a terminal does.
    pub fn interrupt(&self) {
        self.guarded.signal_group(Signal::INT);
    }

    /// Waits for the end; panics with the output so far if that takes too long.
    #[track_caller]
    pub fn wait(self) -> Output {
        let status = self.guarded.wait();
        let output = Output::new(
            self.repo,
            status.and_then(|status| status.code()),
            status.and_then(|status| status.signal()),
            text(&self.stdout),
            text(&self.stderr),
        );
        assert!(status.is_some(), "{} took too long:\n{}", self.described, output.snapshot());
        output
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        sender.send(bytes).ok();
    });
    receiver
}

#[track_caller]
fn text(pipe: &Receiver<Vec<u8>>) -> String {
    let bytes = pipe.recv_timeout(OUTPUT_GRACE);
    let bytes = bytes.expect("a process that outlived the program holds its output open");
    String::from_utf8_lossy(&bytes).into_owned()
}
