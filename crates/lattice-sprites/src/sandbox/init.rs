//! The first process of a sandbox: starts the agent, collects what ends, and takes orders.

use std::io::{BufRead as _, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::family::Family;
use super::filter::Renaming;
use super::launcher::{At as _, Control, Refusal, let_go_of_output};
use super::rename::Renames;
use super::root::Layers;
use super::spec::{Isolation, Order, Report, Spec, Stage, Tree};
use super::sys::{self, Change, Fork, Patience};
use super::{bare, canary, confine, door, freeze};
use crate::checkpoint::{self, Roots};
use crate::process;

/// The agent, as its first process knows it.
pub(super) struct Agent {
    process: libc::pid_t,
    renames: Renames,
}

/// Starts the command in the finished sandbox.
pub(super) fn start(spec: &Spec, control: &mut Control) -> Result<Agent, Refusal> {
    let (mut verdict, told) = UnixStream::pair().at(Stage::Command, "a socket")?;
    match sys::fork().at(Stage::Command, "the agent's process")? {
        Fork::Child => {
            drop(verdict);
            let refused = become_agent(spec, &told);
            let report = Report::Refused { stage: refused.stage, detail: refused.detail, errno: refused.errno };
            let _ = rustix::io::write(&told, &serde_json::to_vec(&report).unwrap_or_default());
            std::process::exit(125)
        }
        Fork::Parent(process) => {
            drop(told);
            // The socket closes when the agent's program begins; until then only a listener and a refusal go through it.
            let (mut listeners, mut said) = door::receive(&verdict).at(Stage::Command, "the agent's process")?;
            verdict.read_to_end(&mut said).at(Stage::Command, "the agent's process")?;
            match serde_json::from_slice(&said) {
                Ok(Report::Refused { stage, detail, errno }) => Err(Refusal { stage, detail, errno }),
                Ok(_) | Err(_) => {
                    let_go_of_output().at(Stage::Command, "/dev/null")?;
                    control.tell(&Report::Started);
                    Ok(Agent { process, renames: Renames::new(listeners.pop()) })
                }
            }
        }
    }
}

/// Becomes the agent; comes back only with the reason why not.
fn become_agent(spec: &Spec, told: &UnixStream) -> Refusal {
    let _ = rustix::process::setsid();
    let ready = match spec.isolation {
        Isolation::Strict => confined(spec, told),
        Isolation::None => bare::enter(spec),
    };
    if let Err(refused) = ready {
        return refused;
    }
    let error = process::become_command(&spec.command, &spec.environment);
    let errno = error.raw_os_error().unwrap_or(0);
    let program = spec.command.first().cloned().unwrap_or_default();
    Refusal { stage: Stage::Command, detail: format!("{program}: {error}"), errno }
}

/// Gives up everything that the agent is not to have, and sees that it is gone.
fn confined(spec: &Spec, told: &UnixStream) -> Result<(), Refusal> {
    rustix::process::chdir("/workspace").at(Stage::Command, "/workspace")?;
    if let Some(listener) = confine::confine(spec, renaming(spec))? {
        door::send(told, &[listener]).at(Stage::Seccomp, "the filter of system calls")?;
    }
    canary::sing(spec)
}

/// Only an overlay has folders that it cannot rename.
fn renaming(spec: &Spec) -> Renaming {
    match spec.workspace {
        Tree::Overlay { .. } => Renaming::Asked,
        Tree::Plain(_) | Tree::View { .. } => Renaming::Direct,
    }
}

/// What the first process watches over.
struct Watch<'a> {
    spec: &'a Spec,
    agent: libc::pid_t,
    family: Family,
    renames: Renames,
    roots: Option<Roots>,
    control: &'a mut Control,
    signals: OwnedFd,
    running: bool,
    /// What was heard of processes while something else was waited for.
    missed: Vec<(libc::pid_t, Change)>,
}

/// Watches over the sandbox until the supervisor wants no more of it; the kernel then ends what is left.
pub(super) fn watch(spec: &Spec, agent: Agent, layers: Layers, control: &mut Control) -> i32 {
    let Ok(signals) = process::child_signals() else { return 125 };
    let (renames, agent) = (agent.renames, agent.process);
    let roots = roots(layers);
    let family = match spec.isolation {
        Isolation::Strict => Family::Namespace,
        Isolation::None => Family::Descendants,
    };
    let mut watch = Watch { spec, agent, family, renames, roots, control, signals, running: true, missed: Vec::new() };
    loop {
        watch.look();
        match watch.next() {
            Next::Look => {}
            Next::Rename => watch.renames.hear(spec),
            Next::Gone | Next::Order(Order::End) => {
                watch.leave();
                return 0;
            }
            Next::Order(Order::Kill) => watch.end_all(),
            Next::Order(Order::Checkpoint { id, previous }) => {
                let report = watch.take(&id, previous.as_deref());
                watch.control.tell(&report);
            }
        }
    }
}

fn roots(layers: Layers) -> Option<Roots> {
    Some(Roots { workspace: layers.workspace?, home: layers.home?, checkpoints: layers.checkpoints? })
}

impl Watch<'_> {
    /// Collects what ended, and ends everything with the agent.
    fn look(&mut self) {
        if self.running
            && let Some((code, signal)) = self.collect()
        {
            self.running = false;
            self.end_all();
            self.control.tell(&Report::Exited { code, signal });
        }
    }

    /// Freezes everything, writes a checkpoint, and lets everything go on.
    fn take(&mut self, id: &str, previous: Option<&str>) -> Report {
        let failed = |detail: String| Report::CheckpointFailed { id: id.to_owned(), detail };
        // A folder that is moved piece by piece is seen before or after that, and nothing waits for what is frozen.
        self.look();
        while self.renames.are_open() {
            if !self.await_child() {
                return failed("nobody waits for it".to_owned());
            }
            self.look();
        }
        let Some(roots) = &self.roots else { return failed("this sandbox has no layer of its own".to_owned()) };
        let began = Instant::now();
        let mut frozen = freeze::freeze(self.family);
        self.missed.append(&mut frozen.ended);
        let dirty = match self.spec.isolation {
            Isolation::Strict => frozen.mapped_files(),
            Isolation::None => bare::as_inside(self.spec, frozen.mapped_files()),
        };
        let packed = checkpoint::pack(roots, id, previous, &dirty);
        drop(frozen);
        let pause_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        match packed.and_then(checkpoint::Packed::publish) {
            Ok(made) => Report::Checkpointed { id: id.to_owned(), files: made.files, bytes: made.bytes, pause_us },
            Err(error) => failed(error.to_string()),
        }
    }

    /// Collects processes that ended; how the agent did, once it has.
    fn collect(&mut self) -> Option<(Option<i32>, Option<i32>)> {
        let mut ended = None;
        while let Some((process, change)) = self.missed.pop().or_else(|| sys::wait(-1, Patience::JustLook)) {
            match change {
                Change::Exited(code) if process == self.agent => ended = Some((Some(code), None)),
                Change::Killed(signal) if process == self.agent => ended = Some((None, Some(signal))),
                Change::Exited(_) | Change::Killed(_) => self.renames.ended(process, change),
                // A task that could not be stopped in time stops when the freeze is long over.
                Change::Stopped(signal) => drop(sys::release(process, signal)),
            }
        }
        ended
    }

    /// Ends every process but this one, waits until they are gone, and notes how each ended.
    fn end_all(&mut self) {
        loop {
            // Whoever was started while the others were looked for is seen after its parent's end.
            match self.family {
                Family::Namespace => drop(sys::kill(-1, libc::SIGKILL)),
                Family::Descendants => {
                    self.family.members().into_iter().for_each(|process| drop(sys::kill(process, libc::SIGKILL)));
                }
            }
            match sys::wait(-1, Patience::Wait) {
                Some(ended) => self.missed.push(ended),
                None => return,
            }
        }
    }

    /// Leaves nothing behind: a namespace ends with its first process, and nothing else does.
    fn leave(&mut self) {
        match self.family {
            Family::Namespace => {}
            Family::Descendants => self.end_all(),
        }
    }

    /// Waits until a child changed; false if the supervisor is gone.
    fn await_child(&mut self) -> bool {
        let stream = self.control.reader.get_ref();
        let mut polled =
            [PollFd::new(&self.signals, PollFlags::IN), PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::empty())];
        let waited = rustix::event::poll(&mut polled, None);
        let is_gone = !polled[1].revents().is_empty();
        drain(&self.signals);
        !is_gone && matches!(waited, Ok(_) | Err(rustix::io::Errno::INTR))
    }

    fn next(&mut self) -> Next {
        if self.control.reader.buffer().is_empty() {
            let stream = self.control.reader.get_ref();
            let mut polled = vec![
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN),
            ];
            polled.extend(self.renames.listener().map(|listener| PollFd::from_borrowed_fd(listener, PollFlags::IN)));
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Next::Gone,
            }
            let order = polled[1].revents();
            let rename = polled.get(2).map_or(PollFlags::empty(), PollFd::revents);
            drop(polled);
            drain(&self.signals);
            if order.is_empty() {
                if rename.contains(PollFlags::IN) {
                    return Next::Rename;
                }
                if !rename.is_empty() {
                    self.renames.close();
                }
                return Next::Look;
            }
        }
        let mut line = String::new();
        match self.control.reader.read_line(&mut line) {
            Ok(0) | Err(_) => Next::Gone,
            Ok(_) => serde_json::from_str(&line).map_or(Next::Gone, Next::Order),
        }
    }
}

enum Next {
    /// A child changed.
    Look,
    /// Somebody renames something.
    Rename,
    Order(Order),
    /// The supervisor is gone.
    Gone,
}

/// Takes note of all signals that came; what they were about is looked up.
fn drain(signals: &OwnedFd) {
    let mut drained = [0; 1024];
    while rustix::io::read(signals, &mut drained).is_ok_and(|count| count > 0) {}
}
