//! Runs the program under a tracer that counts the system calls of it and of every git it starts, and that can kill
//! or fail one of them. For x86-64 alone: that is where the numbers of the calls come from.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

pub use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::cli::Lattice;
use crate::output::Output;

/// A call that changes a file, waits for the disk, or starts a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The system call.
    pub name: &'static str,
    /// Whether the program made it itself.
    pub by: Caller,
}

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The program under test.
    Program,
    /// A git, or whatever git started.
    Git,
}

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The program; git goes on.
    Program,
    /// The process that made the call.
    Caller,
    /// All of them, as when the machine stops.
    All,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing; the calls are only counted.
    None,
    /// SIGKILL before the call with this number, from 0.
    Kill(usize, Victim),
    /// The call of this name with this number, from 0, does nothing and fails with this error.
    Fail(&'static str, usize, Errno),
}

/// A run that was traced.
#[derive(Debug)]
pub struct Traced {
    /// How it ended.
    pub output: Output,
    /// The calls that were made, in order.
    pub points: Vec<Point>,
    /// Whether the fault came to pass.
    pub struck: bool,
}

/// Stops itself, so that the tracer can take over before the program begins.
const LAUNCHER: [&str; 3] = ["sh", "-c", "kill -STOP $$; exec \"$0\" \"$@\""];

/// Calls that are counted, by number: those that concern a descriptor only where it is a file.
const CALLS: [(u64, &str); 24] = [
    (1, "write"),
    (2, "open"),
    (18, "pwrite64"),
    (59, "execve"),
    (73, "flock"),
    (74, "fsync"),
    (75, "fdatasync"),
    (76, "truncate"),
    (77, "ftruncate"),
    (82, "rename"),
    (83, "mkdir"),
    (84, "rmdir"),
    (86, "link"),
    (87, "unlink"),
    (88, "symlink"),
    (257, "openat"),
    (258, "mkdirat"),
    (263, "unlinkat"),
    (264, "renameat"),
    (265, "linkat"),
    (266, "symlinkat"),
    (277, "sync_file_range"),
    (306, "syncfs"),
    (316, "renameat2"),
];

const CREATES: u64 = 0o100 | 0o1000;

impl Lattice {
    /// Runs to the end under the tracer.
    #[track_caller]
    pub fn traced(self, fault: Fault) -> Traced {
        let folder = tempfile::Builder::new().prefix("traced-").tempdir_in(self.repo().sandbox().root());
        let folder = folder.expect("the sandbox can be written");
        let file = |name: &str| fs::File::create(folder.path().join(name)).expect("the sandbox can be written");
        let mut command = self.command(Some(&LAUNCHER));
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let mut child = command.spawn().expect("the launcher starts");
        let root = Pid::from_raw(i32::try_from(child.id()).expect("ids of processes are small"));
        let stopped = waitpid(root, Some(WaitPidFlag::WUNTRACED)).expect("the launcher can be waited for");
        assert_eq!(stopped, WaitStatus::Stopped(root, Signal::SIGSTOP), "the launcher stops itself");
        let mut tracer = Tracer::new(root, fault);
        tracer.follow();
        // The tracer has taken its end already.
        let _ = child.wait();
        let text = |name: &str| fs::read(folder.path().join(name)).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&text(name)).into_owned();
        let output = Output::new(self.repo().clone(), tracer.code, tracer.signal, text("stdout"), text("stderr"));
        Traced { output, points: tracer.points, struck: tracer.struck }
    }
}

struct Tracer {
    root: Pid,
    fault: Fault,
    points: Vec<Point>,
    struck: bool,
    code: Option<i32>,
    signal: Option<i32>,
    /// Processes and threads, with what a call that they are in is to fail with.
    inside: BTreeMap<Pid, Inside>,
}

/// Where a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    Call,
    FailingCall(Errno),
}

impl Tracer {
    fn new(root: Pid, fault: Fault) -> Self {
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(root, options).expect("the launcher can be traced");
        kill(root, Signal::SIGCONT).expect("the launcher is ours");
        let inside = BTreeMap::from([(root, Inside::Nothing)]);
        Self { root, fault, points: Vec::new(), struck: false, code: None, signal: None, inside }
    }

    /// Lets everything run until nothing is left of it.
    fn follow(&mut self) {
        loop {
            let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
            let status = match waitpid(Pid::from_raw(-1), Some(flags)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(_) => return,
            };
            match status {
                WaitStatus::Exited(pid, code) => self.ended(pid, (Some(code), None)),
                WaitStatus::Signaled(pid, signal, _) => self.ended(pid, (None, Some(signal as i32))),
                WaitStatus::PtraceSyscall(pid) => {
                    self.call(pid);
                    go_on(pid, None);
                }
                WaitStatus::Stopped(pid, signal) => go_on(pid, Some(signal)),
                // A trap of the tracer itself; the signals that go with it are none of the program's.
                WaitStatus::PtraceEvent(pid, _, _) => go_on(pid, None),
                WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
            }
        }
    }

    fn ended(&mut self, pid: Pid, (code, signal): (Option<i32>, Option<i32>)) {
        self.inside.remove(&pid);
        if pid == self.root {
            (self.code, self.signal) = (code, signal);
        }
    }

    /// A process stands before a call or behind one.
    fn call(&mut self, pid: Pid) {
        let state = self.inside.entry(pid).or_insert(Inside::Nothing);
        match *state {
            Inside::Nothing => *state = Inside::Call,
            Inside::Call => {
                *state = Inside::Nothing;
                return;
            }
            Inside::FailingCall(error) => {
                *state = Inside::Nothing;
                if let Ok(mut registers) = ptrace::getregs(pid) {
                    registers.rax = i64::from(-(error as i32)).cast_unsigned();
                    let _ = ptrace::setregs(pid, registers);
                }
                return;
            }
        }
        let Ok(registers) = ptrace::getregs(pid) else { return };
        let Some(name) = counted(pid, &registers) else { return };
        let by = if group(pid) == self.root { Caller::Program } else { Caller::Git };
        let number = self.points.len();
        let same = self.points.iter().filter(|point| point.name == name).count();
        self.points.push(Point { name, by });
        match self.fault {
            Fault::Kill(at, victim) if at == number && !self.struck => self.kill(pid, victim),
            Fault::Fail(which, at, error) if which == name && at == same && !self.struck => {
                let mut registers = registers;
                registers.orig_rax = u64::MAX;
                if ptrace::setregs(pid, registers).is_ok() {
                    self.inside.insert(pid, Inside::FailingCall(error));
                    self.struck = true;
                }
            }
            Fault::None | Fault::Kill(..) | Fault::Fail(..) => {}
        }
    }

    fn kill(&mut self, caller: Pid, victim: Victim) {
        self.struck = true;
        let victims = match victim {
            Victim::Program => vec![self.root],
            Victim::Caller => vec![group(caller)],
            Victim::All => self.inside.keys().copied().collect(),
        };
        for victim in victims {
            // Too late is not an error: it may have ended by itself.
            let _ = kill(victim, Signal::SIGKILL);
        }
    }
}

fn go_on(pid: Pid, signal: Option<Signal>) {
    // A process that was killed meanwhile says so at the next wait.
    let _ = ptrace::syscall(pid, signal);
}

/// The process that a thread belongs to.
fn group(thread: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|id| id.trim().parse().ok()).map_or(thread, Pid::from_raw)
}

/// The name of a call that counts.
fn counted(pid: Pid, registers: &libc::user_regs_struct) -> Option<&'static str> {
    let (_, name) = CALLS.iter().find(|(number, _)| *number == registers.orig_rax)?;
    let counts = match *name {
        "open" => registers.rsi & CREATES != 0,
        "openat" => registers.rdx & CREATES != 0,
        "write" | "pwrite64" => is_file(pid, registers.rdi),
        _ => true,
    };
    counts.then_some(*name)
}

fn is_file(pid: Pid, descriptor: u64) -> bool {
    let target = fs::read_link(format!("/proc/{pid}/fd/{descriptor}"));
    target.is_ok_and(|target| target.starts_with("/") && !target.starts_with("/dev"))
}
