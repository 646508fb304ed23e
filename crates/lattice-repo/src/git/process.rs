//! Starts git: the one place in this crate where a process begins.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use lattice_model::id::OpId;
use lattice_model::plan::Hooks;
use lattice_model::settings::Settings;

use super::error::GitError;
use super::remains;

/// Which git to run, and the environment that the program was started in.
#[derive(Debug, Clone)]
pub struct GitProgram {
    pub program: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

/// Where git writes objects, if not to the repository.
pub(super) const OBJECT_DIRECTORY: &str = "GIT_OBJECT_DIRECTORY";

/// Git, bound to one repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    place: Place,
    hooks: Hooks,
    /// How long a hook may take; as long as it likes if absent.
    patience: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Place {
    /// Let Git find the repository, with its own checks of who owns it.
    Search(PathBuf),
    Known {
        git_dir: PathBuf,
        work_dir: Option<PathBuf>,
    },
}

/// What a finished process left.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Variables of Git that a user sets on purpose. All others, such as `GIT_DIR` from a hook that
/// runs us, would point git at another repository, index or program.
const KEPT: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
];

/// Tells hooks, and a Lattice that a hook starts, that an operation is running.
pub const INSIDE_OPERATION: &str = "LATTICE_OPERATION";

impl GitProgram {
    pub(crate) fn searching_from(&self, directory: &Path) -> Git {
        self.at(Place::Search(directory.to_owned()))
    }

    pub(crate) fn in_repository(&self, git_dir: &Path, work_dir: Option<&Path>) -> Git {
        self.at(Place::Known { git_dir: git_dir.to_owned(), work_dir: work_dir.map(Path::to_owned) })
    }

    fn at(&self, place: Place) -> Git {
        let environment = self.environment.iter().filter(|(name, _)| keeps(name)).cloned().collect();
        Git { program: self.program.clone(), environment, place, hooks: Hooks::Run, patience: None }
    }
}

fn keeps(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let steers_git = name.starts_with("GIT_") && !KEPT.contains(&name);
    let steers_loader = name.starts_with("LD_");
    let steers_text = name == "LANGUAGE" || name.starts_with("LC_") || name == "LANG";
    !(steers_git || steers_loader || steers_text)
}

impl Git {
    /// The same repository with this policy for hooks.
    pub(crate) fn with_hooks(&self, hooks: Hooks) -> Self {
        Self { hooks, ..self.clone() }
    }

    /// The same repository, with hooks told which operation they run in and stopped if they do not end in time.
    pub(crate) fn inside(&self, op: &OpId, settings: &Settings) -> Self {
        let mut git = self.clone();
        git.patience = settings.hook_timeout();
        git.environment.push((INSIDE_OPERATION.into(), op.as_str().into()));
        git
    }

    /// The same repository, with new objects going to a folder of their own.
    pub(crate) fn with_objects_in(&self, folder: &Path, objects: &Path) -> Self {
        let mut git = self.clone();
        git.environment.push((OBJECT_DIRECTORY.into(), folder.into()));
        git.environment.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), objects.into()));
        git
    }

    /// Where new objects go.
    pub(crate) fn objects_dir(&self, common_dir: &Path) -> PathBuf {
        self.variable(OBJECT_DIRECTORY).map_or_else(|| common_dir.join("objects"), PathBuf::from)
    }

    /// A variable of the environment that the program was started in.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// The same repository in another of its worktrees.
    pub(crate) fn in_worktree(&self, git_dir: &Path, work_dir: &Path) -> Self {
        let place = Place::Known { git_dir: git_dir.to_owned(), work_dir: Some(work_dir.to_owned()) };
        Self { place, ..self.clone() }
    }

    /// The top of the working tree, which is where git runs.
    pub(super) fn work_dir(&self) -> Option<&Path> {
        match &self.place {
            Place::Search(_) => None,
            Place::Known { work_dir, .. } => work_dir.as_deref(),
        }
    }

    /// For this folder alone: everyone else gets values, not what git printed.
    pub(super) fn call(&self, command: &'static str) -> Call<'_> {
        Call { git: self, command, arguments: Vec::new(), variables: Vec::new(), stdin: None, directory: None }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where git starts")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            // Output goes to a pipe that we read to the end; flushing each line only costs time.
            .env("GIT_FLUSH", "0")
            .env("GIT_EDITOR", "true")
            .env("GIT_SEQUENCE_EDITOR", "true")
            // Decisions about ancestry must not depend on replacement refs or grafts.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            // A read must not go to the network for objects of a partial clone.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ADVICE", "0");
        match &self.place {
            Place::Search(directory) => {
                command.current_dir(directory);
            }
            Place::Known { git_dir, work_dir } => {
                command.current_dir(work_dir.as_ref().unwrap_or(git_dir));
                command.arg("--git-dir").arg(git_dir);
                if let Some(work_dir) = work_dir {
                    command.arg("--work-tree").arg(work_dir);
                }
            }
        }
        // A repack in the middle of an operation would only slow it down.
        command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.quotePath=false"]);
        if self.hooks == Hooks::Skip {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command
    }
}

/// One run of git in the making.
pub(crate) struct Call<'a> {
    git: &'a Git,
    command: &'static str,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    stdin: Option<Vec<u8>>,
    directory: Option<PathBuf>,
}

impl Call<'_> {
    /// Runs where the user stands, if that is below the top of the working tree: Git then does not remove that folder.
    pub(crate) fn beside_the_user(mut self) -> Self {
        let stands = self.git.variable("PWD").map(PathBuf::from);
        let is_below = |stands: &PathBuf| self.git.work_dir().is_some_and(|top| stands.starts_with(top));
        self.directory = stands.filter(|stands| is_below(stands) && stands.is_dir());
        self
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Uses another index than the worktree's own.
    pub(crate) fn index(self, path: &Path) -> Self {
        self.env("GIT_INDEX_FILE", path)
    }

    /// Has git flush what it writes of this kind, whatever the user's configuration says.
    pub(crate) fn flushing(self, component: &str) -> Self {
        let call = self.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.fsync");
        call.env("GIT_CONFIG_VALUE_0", component)
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    fn prepare(&self) -> Command {
        let mut command = self.git.command();
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        // Options of git itself come before the subcommand.
        if self.command == "replay" {
            // Newer versions move the refs themselves unless they are told to print.
            command.args(["-c", "replay.refAction=print"]);
        }
        if self.command == "symbolic-ref" {
            // Else a power cut leaves an empty file in the place of HEAD. Its content only has to be
            // on its way before its name is; what was done is flushed as a whole at the end.
            command.args(["-c", "core.fsync=reference", "-c", "core.fsyncMethod=writeout-only"]);
        }
        if self.command == "unpack-objects" {
            // One flush for all of them.
            command.args(["-c", "core.fsync=loose-object", "-c", "core.fsyncMethod=batch"]);
        }
        command.arg(self.command).args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to the end, whatever the exit code.
    pub(crate) fn finish(mut self) -> Result<Finished, GitError> {
        let stdin = self.stdin.take();
        let pipe = if stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        self.start_with(pipe)?.finish(stdin)
    }

    /// Starts a git that needs no input, or gets it with the question how it ended.
    pub(crate) fn start(self) -> Result<Started, GitError> {
        self.start_with(Stdio::piped())
    }

    fn start_with(&self, stdin: Stdio) -> Result<Started, GitError> {
        let mut command = self.prepare();
        let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Started { child: child.map_err(|source| self.start_error(source))?, command: self.command })
    }

    /// Runs to the end and returns what it printed; any exit code but 0 is an error.
    pub(crate) fn run(self) -> Result<Vec<u8>, GitError> {
        let command = self.command;
        let finished = self.finish()?;
        finished.check(command)
    }

    /// As `run`, for output of one line.
    pub(crate) fn line(self) -> Result<String, GitError> {
        let command = self.command;
        let text =
            String::from_utf8(self.run()?).map_err(|_| GitError::unexpected(command, "bytes that are no text"))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Runs as `hook`, with its complaints going where those of this program go. Any exit code but 0 is a refusal; a
    /// hook that does not end in time is stopped, with all that it started.
    pub(super) fn run_as_hook(self, hook: &'static str) -> Result<(), GitError> {
        let mut command = self.prepare();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
        let mut child = child.map_err(|source| self.start_error(source))?;
        let (sender, ended) = mpsc::channel();
        // Nobody listens any more if it hung.
        thread::spawn(move || sender.send(child.wait()));
        let status = match self.git.patience {
            None => ended.recv().ok(),
            Some(limit) => match ended.recv_timeout(limit) {
                Err(RecvTimeoutError::Timeout) => {
                    remains::stop(self.git.variable(INSIDE_OPERATION).unwrap_or_default());
                    return Err(GitError::HookHangs { hook, limit });
                }
                status => status.ok(),
            },
        };
        let status = status.expect("bug: a thread that waits for a process answers");
        let status = status.map_err(|source| GitError::Pipe { command: self.command.to_owned(), source })?;
        if self.exit_code(status)? == 0 { Ok(()) } else { Err(GitError::Hook { hook }) }
    }

    /// Runs on the user's terminal.
    pub(crate) fn on_terminal(self) -> Result<(), GitError> {
        let mut command = self.prepare();
        let status = command.status().map_err(|source| self.start_error(source))?;
        let code = self.exit_code(status)?;
        Finished { code, stdout: Vec::new(), stderr: String::new() }.check(self.command).map(drop)
    }

    /// Starts a process that is talked to.
    pub(crate) fn converse(self) -> Result<Conversation, GitError> {
        let mut command = self.prepare();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|source| self.start_error(source))?;
        let stderr = child.stderr.take().expect("bug: stderr is piped");
        Ok(Conversation { child, command: self.command, stderr: Some(thread::spawn(move || read_all(stderr))) })
    }

    /// The subcommand, for messages.
    pub(super) fn command_name(&self) -> &'static str {
        self.command
    }

    fn start_error(&self, source: std::io::Error) -> GitError {
        if source.kind() == std::io::ErrorKind::NotFound && !self.git.program.exists() {
            return GitError::NotInstalled(self.git.program.clone());
        }
        GitError::Start { command: self.command.to_owned(), source }
    }

    fn exit_code(&self, status: ExitStatus) -> Result<i32, GitError> {
        exit_code(self.command, status)
    }
}

/// A git that makes itself ready while we do something else.
pub(crate) struct Started {
    child: Child,
    command: &'static str,
}

impl Started {
    /// Lets it have its input and waits for its end, whatever the exit code.
    pub(crate) fn finish(mut self, input: Option<Vec<u8>>) -> Result<Finished, GitError> {
        let pipe = self.child.stdin.take();
        let writer = pipe.zip(input).map(|(mut pipe, bytes)| {
            // Git may answer before it has read everything; a second thread keeps both pipes moving.
            thread::spawn(move || pipe.write_all(&bytes))
        });
        let output = self.child.wait_with_output();
        let output = output.map_err(|source| GitError::Pipe { command: self.command.to_owned(), source })?;
        if let Some(writer) = writer {
            // A git that stops early closes the pipe; its exit code says why.
            let _ = writer.join();
        }
        let code = exit_code(self.command, output.status)?;
        Ok(Finished { code, stdout: output.stdout, stderr: String::from_utf8_lossy(&output.stderr).into_owned() })
    }
}

impl Finished {
    pub(crate) fn check(self, command: &str) -> Result<Vec<u8>, GitError> {
        if self.code == 0 {
            return Ok(self.stdout);
        }
        Err(GitError::Failed { command: command.to_owned(), code: self.code, stderr: self.stderr })
    }
}

/// A process of git that answers requests until its input ends.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) child: Child,
    command: &'static str,
    stderr: Option<thread::JoinHandle<String>>,
}

impl Conversation {
    /// Ends the input and waits.
    pub(crate) fn end(mut self) -> Result<Finished, GitError> {
        drop(self.child.stdin.take());
        let status = self.child.wait();
        let status = status.map_err(|source| GitError::Pipe { command: self.command.to_owned(), source })?;
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(Finished { code: exit_code(self.command, status)?, stdout: Vec::new(), stderr })
    }
}

fn exit_code(command: &str, status: ExitStatus) -> Result<i32, GitError> {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(code),
        (None, signal) => Err(GitError::Killed { command: command.to_owned(), signal: signal.unwrap_or(0) }),
    }
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What could be read before an error is still worth showing.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
