//! A sandbox from outside: started, told what to do, heard.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout};

use super::group::Group;
use super::spec::{Isolation, Layer, Order, Report, Spec, Stage};
use super::{door, launcher};
use crate::process;

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox was refused ({}): {detail}", stage_name(*stage))]
    Refused { stage: Stage, detail: String, errno: i32 },
    #[error("the launcher of the sandbox failed")]
    Launcher(#[from] io::Error),
    #[error("the command in the sandbox failed: {0}")]
    Failed(String),
    #[error("the command in the sandbox printed more than {0} bytes")]
    TooMuch(u64),
}

/// A sandbox in which the command runs.
#[derive(Debug)]
pub struct Sandbox {
    child: Child,
    control: UnixStream,
    isolation: Isolation,
    /// Removed after everything in it is gone.
    group: Option<Group>,
}

/// What a new sandbox gives to its supervisor.
#[derive(Debug)]
pub struct Started {
    pub sandbox: Sandbox,
    pub reports: Reports,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// The listeners of its doors, in their order.
    pub doors: Vec<OwnedFd>,
}

/// What a sandbox says, one report after another.
#[derive(Debug)]
pub struct Reports(BufReader<io::Chain<io::Cursor<Vec<u8>>, UnixStream>>);

impl Sandbox {
    /// Makes a sandbox and waits until its command runs.
    pub fn start(program: &Path, spec: &Spec) -> Result<Started, SandboxError> {
        // A service of the host for a canary to look for.
        let service = TcpListener::bind(("127.0.0.1", 0))?;
        let mut spec = spec.clone();
        spec.probe.port = service.local_addr()?.port();
        let shown = if spec.omit.contains(&Layer::Arguments) { program } else { Path::new("lattice") };
        let launched = process::launch(program, shown)?;
        let mut child = launched.child;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the launcher has no output").into());
        };
        let wanted = spec.limits.memory_bytes.filter(|_| !spec.omit.contains(&Layer::Group));
        let group = wanted.and_then(|memory| Group::around(child.id(), memory, spec.limits.processes));
        spec.entrances = group.as_ref().map(Group::entrances).unwrap_or_default();
        let mut sandbox = Self { child, control: launched.control, isolation: spec.isolation, group };
        sandbox.send(&spec)?;
        let mut began = sandbox.give_ids(&spec)?;
        let mut doors = Vec::new();
        if began.is_empty() && !spec.doors.is_empty() {
            (doors, began) = door::receive(&sandbox.control)?;
        }
        let mut reports = Reports(BufReader::new(io::Cursor::new(began).chain(sandbox.control.try_clone()?)));
        match reports.next() {
            Some(Report::Started) => {
                let process = sandbox.process();
                sandbox.group = sandbox.group.take().filter(|group| group.holds(process));
                Ok(Started { sandbox, reports, stdout, stderr, doors })
            }
            Some(Report::Refused { stage, detail, errno }) => {
                sandbox.child.wait()?;
                Err(SandboxError::Refused { stage, detail, errno })
            }
            Some(Report::Checkpointed { .. } | Report::CheckpointFailed { .. } | Report::Exited { .. }) | None => {
                let mut said = String::new();
                let _ = io::Read::take(stderr, 4096).read_to_string(&mut said);
                Err(io::Error::other(format!("it ended without a word: {said}")).into())
            }
        }
    }

    /// Says who root is inside, once the launcher is where that can be said. Gives what it says instead of that.
    fn give_ids(&mut self, spec: &Spec) -> Result<Vec<u8>, SandboxError> {
        let Some(id) = spec.host_id.filter(|_| spec.isolation == Isolation::Strict) else { return Ok(Vec::new()) };
        let (_, began) = door::receive(&self.control)?;
        if began.is_empty() {
            let given = launcher::map_from_outside(self.process(), spec, id);
            let errno = given.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            // A launcher that is gone is noticed by whoever waits for its report.
            let _ = self.send(&errno);
        }
        Ok(began)
    }

    /// What limits it, as people are told.
    pub fn limited_by(&self) -> String {
        match (&self.group, self.isolation) {
            (Some(group), _) => format!("{}, and rlimits", group.name()),
            (None, Isolation::Strict) => "rlimits, and the supervisor's watch over the sum".to_owned(),
            (None, Isolation::None) => {
                "rlimits, but for the number of processes, and the supervisor's watch over the sum".to_owned()
            }
        }
    }

    /// Whether the kernel kept it from more memory than it may use; `None` where the kernel does not count.
    pub fn ran_out_of_memory(&self) -> Option<bool> {
        self.group.as_ref().map(Group::ran_out_of_memory)
    }

    /// The launcher, which everything inside is below of.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command to its end and returns what it printed.
    pub fn run(program: &Path, spec: &Spec, most: u64) -> Result<Vec<u8>, SandboxError> {
        let Started { mut sandbox, mut reports, stdout, stderr, .. } = Self::start(program, spec)?;
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            let _ = io::Read::take(stderr, 65536).read_to_string(&mut said);
            said
        });
        let mut bytes = Vec::new();
        stdout.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(SandboxError::TooMuch(most));
        }
        let exit = reports.next();
        sandbox.order(&Order::End)?;
        sandbox.child.wait()?;
        let said = said.join().unwrap_or_default();
        match exit {
            Some(Report::Exited { code: Some(0), .. }) => Ok(bytes),
            Some(
                Report::Exited { .. }
                | Report::Started
                | Report::Refused { .. }
                | Report::Checkpointed { .. }
                | Report::CheckpointFailed { .. },
            )
            | None => Err(SandboxError::Failed(said.trim().to_owned())),
        }
    }

    pub fn order(&mut self, order: &Order) -> io::Result<()> {
        self.send(order)
    }

    /// Waits until everything of the sandbox is gone.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    fn send(&mut self, message: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
        line.push(b'\n');
        self.control.write_all(&line)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The first process ends when nobody speaks to it, and all others with it.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

impl Iterator for Reports {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => serde_json::from_str(&line).ok(),
        }
    }
}

fn stage_name(stage: Stage) -> String {
    serde_json::to_value(stage).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

impl SandboxError {
    /// Whether this system does not give what a sandbox is made of.
    pub fn is_of_the_system(&self) -> bool {
        match self {
            Self::Refused { stage, .. } => match stage {
                Stage::Namespaces
                | Stage::Ids
                | Stage::Root
                | Stage::Overlay
                | Stage::Bind
                | Stage::Proc
                | Stage::Privileges
                | Stage::Landlock
                | Stage::Seccomp => true,
                Stage::Order | Stage::Doors | Stage::Folders | Stage::Limits | Stage::Canary | Stage::Command => false,
            },
            Self::Launcher(_) | Self::Failed(_) | Self::TooMuch(_) => false,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        let Self::Refused { stage, errno, .. } = self else { return None };
        Some(match (stage, *errno) {
            (Stage::Namespaces, libc::EPERM) => {
                "this system forbids user namespaces: sysctl kernel.unprivileged_userns_clone=1, or in Docker \
                 --security-opt seccomp=unconfined"
            }
            (Stage::Namespaces, libc::ENOSPC) => "sysctl user.max_user_namespaces is too small here",
            (Stage::Ids | Stage::Root, libc::EPERM | libc::EACCES) => {
                "this system restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or \
                 install an AppArmor profile for lattice"
            }
            (Stage::Proc, _) => {
                "in Docker: --security-opt systempaths=unconfined; in podman: --security-opt unmask=ALL"
            }
            (Stage::Overlay, libc::EINVAL) => {
                "sprites cannot lie on an overlay such as a container's root: put the repository on a volume, or name a \
                 folder of one: lattice config set sprite.dir FOLDER"
            }
            (Stage::Overlay, _) => "an overlay as an ordinary user needs Linux 5.11 or later",
            (Stage::Landlock, _) => "Landlock must be among the kernel's security modules (boot parameter lsm=)",
            (Stage::Folders, libc::EACCES) => "give others the right to enter the folders on the way to it (chmod o+x)",
            (Stage::Command, libc::ENOENT) => {
                "the sandbox sees /usr and the program itself; is it installed, and is all it needs named in its `mounts`?"
            }
            (
                Stage::Namespaces
                | Stage::Doors
                | Stage::Ids
                | Stage::Root
                | Stage::Order
                | Stage::Folders
                | Stage::Bind
                | Stage::Privileges
                | Stage::Limits
                | Stage::Seccomp
                | Stage::Canary
                | Stage::Command,
                _,
            ) => return None,
        })
    }
}
