//! A started process that cannot outlive its time or its test.

use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A child that leads a process group of its own.
#[derive(Debug)]
pub(crate) struct Guarded {
    pid: Pid,
    status: Receiver<ExitStatus>,
    deadline: Instant,
}

impl Guarded {
    /// Takes over a child that was started as the leader of its group.
    pub(crate) fn new(mut child: Child, timeout: Duration) -> Self {
        let pid = Pid::from_child(&child);
        let (sender, status) = channel();
        thread::spawn(move || {
            let status = child.wait().expect("a child can be waited for");
            // Nobody listens any more when the test has already failed.
            sender.send(status).ok();
        });
        Self { pid, status, deadline: Instant::now() + timeout }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// What is left of the time the process was given.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits for the end; none when the time is over, and then everything in the group is killed.
    pub(crate) fn wait(&self) -> Option<ExitStatus> {
        match self.status.recv_timeout(self.remaining()) {
            Ok(status) => Some(status),
            Err(RecvTimeoutError::Timeout) => {
                self.kill_group();
                None
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the thread that waits for the program ended"),
        }
    }

    /// Signals the process alone; whatever it started goes on.
    pub(crate) fn signal(&self, signal: Signal) {
        // Too late is not an error: the process may have ended by itself.
        kill_process(self.pid, signal).ok();
    }

    /// Signals the process and what it started, as a terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal).ok();
    }

    fn kill_group(&self) {
        self.signal_group(Signal::KILL);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // What a program that has ended left running is none of our business: a git process that
        // outlives a killed program is part of what tests look at.
        if matches!(self.status.try_recv(), Err(TryRecvError::Empty)) {
            self.kill_group();
        }
    }
}
