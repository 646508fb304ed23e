//! The first process of a sandbox: starts the agent, collects what ends, and takes orders.

use std::io::{BufRead as _, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::launcher::{At as _, Control, Refusal, let_go_of_output};
use super::root::Layers;
use super::spec::{Order, Report, Spec, Stage};
use super::sys::{self, Change, Fork, Patience};
use super::{canary, confine, freeze};
use crate::checkpoint::{self, Roots};
use crate::process;

/// Starts the command in the finished sandbox.
pub(super) fn start(spec: &Spec, control: &mut Control) -> Result<libc::pid_t, Refusal> {
    let (verdict, verdict_write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at(Stage::Command, "a pipe")?;
    match sys::fork().at(Stage::Command, "the agent's process")? {
        Fork::Child => {
            drop(verdict);
            let refused = become_agent(spec);
            let report = Report::Refused { stage: refused.stage, detail: refused.detail, errno: refused.errno };
            let _ = rustix::io::write(&verdict_write, &serde_json::to_vec(&report).unwrap_or_default());
            std::process::exit(125)
        }
        Fork::Parent(agent) => {
            drop(verdict_write);
            // The pipe closes when the agent's program begins; until then only a refusal goes through it.
            let mut said = Vec::new();
            std::fs::File::from(verdict).read_to_end(&mut said).at(Stage::Command, "the agent's process")?;
            match serde_json::from_slice(&said) {
                Ok(Report::Refused { stage, detail, errno }) => Err(Refusal { stage, detail, errno }),
                Ok(_) | Err(_) => {
                    let_go_of_output().at(Stage::Command, "/dev/null")?;
                    control.tell(&Report::Started);
                    Ok(agent)
                }
            }
        }
    }
}

/// Becomes the agent; comes back only with the reason why not.
fn become_agent(spec: &Spec) -> Refusal {
    let _ = rustix::process::setsid();
    let confined = rustix::process::chdir("/workspace").at(Stage::Command, "/workspace");
    let confined = confined.and_then(|()| confine::confine(spec)).and_then(|()| canary::sing(spec));
    if let Err(refused) = confined {
        return refused;
    }
    let error = process::become_command(&spec.command, &spec.environment);
    let errno = error.raw_os_error().unwrap_or(0);
    let program = spec.command.first().cloned().unwrap_or_default();
    Refusal { stage: Stage::Command, detail: format!("{program}: {error}"), errno }
}

/// Watches over the sandbox until the supervisor wants no more of it; the kernel then ends what is left.
pub(super) fn watch(agent: libc::pid_t, layers: Layers, control: &mut Control) -> i32 {
    let Ok(signals) = process::child_signals() else { return 125 };
    let roots = roots(layers);
    let mut running = true;
    let mut missed = Vec::new();
    loop {
        if running && let Some((code, signal)) = collect(agent, &mut missed) {
            running = false;
            end_all(&mut missed);
            control.tell(&Report::Exited { code, signal });
        }
        match next(&signals, control) {
            Next::Look => {}
            Next::Gone | Next::Order(Order::End) => return 0,
            Next::Order(Order::Kill) => end_all(&mut missed),
            Next::Order(Order::Checkpoint { id, previous }) => {
                let report = take(&roots, &id, previous.as_deref(), &mut missed);
                control.tell(&report);
            }
        }
    }
}

fn roots(layers: Layers) -> Option<Roots> {
    Some(Roots { workspace: layers.workspace?, home: layers.home?, checkpoints: layers.checkpoints? })
}

/// Freezes everything, writes a checkpoint, and lets everything go on.
fn take(roots: &Option<Roots>, id: &str, previous: Option<&str>, missed: &mut Vec<(libc::pid_t, Change)>) -> Report {
    let failed = |detail: String| Report::CheckpointFailed { id: id.to_owned(), detail };
    let Some(roots) = roots else { return failed("this sandbox has no layer of its own".to_owned()) };
    let began = Instant::now();
    let mut frozen = freeze::freeze();
    missed.append(&mut frozen.ended);
    let dirty = frozen.mapped_files();
    let packed = checkpoint::pack(roots, id, previous, &dirty);
    drop(frozen);
    let pause_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    match packed.and_then(checkpoint::Packed::publish) {
        Ok(made) => Report::Checkpointed { id: id.to_owned(), files: made.files, bytes: made.bytes, pause_us },
        Err(error) => failed(error.to_string()),
    }
}

/// Collects processes that ended; how the agent did, once it has.
fn collect(agent: libc::pid_t, missed: &mut Vec<(libc::pid_t, Change)>) -> Option<(Option<i32>, Option<i32>)> {
    let mut ended = None;
    while let Some((process, change)) = missed.pop().or_else(|| sys::wait(-1, Patience::JustLook)) {
        match change {
            Change::Exited(code) if process == agent => ended = Some((Some(code), None)),
            Change::Killed(signal) if process == agent => ended = Some((None, Some(signal))),
            Change::Exited(_) | Change::Killed(_) => {}
            // A task that could not be stopped in time stops when the freeze is long over.
            Change::Stopped(signal) => drop(sys::release(process, signal)),
        }
    }
    ended
}

/// Ends every process but this one, waits until they are gone, and notes how each ended.
fn end_all(missed: &mut Vec<(libc::pid_t, Change)>) {
    let _ = sys::kill(-1, libc::SIGKILL);
    while let Some(ended) = sys::wait(-1, Patience::Wait) {
        missed.push(ended);
    }
}

enum Next {
    /// A child changed.
    Look,
    Order(Order),
    /// The supervisor is gone.
    Gone,
}

fn next(signals: &OwnedFd, control: &mut Control) -> Next {
    if control.reader.buffer().is_empty() {
        let stream = control.reader.get_ref();
        let mut polled = [PollFd::new(signals, PollFlags::IN), PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Next::Gone,
        }
        let (child, order) = (polled[0].revents(), polled[1].revents());
        if !child.is_empty() {
            let mut drained = [0; 1024];
            let _ = rustix::io::read(signals, &mut drained);
        }
        if order.is_empty() {
            return Next::Look;
        }
    }
    let mut line = String::new();
    match control.reader.read_line(&mut line) {
        Ok(0) | Err(_) => Next::Gone,
        Ok(_) => serde_json::from_str(&line).map_or(Next::Gone, Next::Order),
    }
}
