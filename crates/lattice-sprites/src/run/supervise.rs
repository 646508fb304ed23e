//! The supervisor: one process that watches one sprite while its agent runs.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use lattice_model::id::OpId;
use lattice_model::time::Timestamp;

use super::place::SpritePlace;
use super::session::{self, RecordError};
use super::state::{Ending, Verdict, verdict};
use super::usage::{self, Usage};
use crate::merge::Identity;
use crate::network::{self, Network, Refusals};
use crate::protocol::{Event, EventType, Finding, Happening, Rule};
use crate::sandbox::{Isolation, Order, Report, Sandbox, SandboxError, Spec, Started};
use crate::store::{Answer, CheckpointCost, CheckpointRow, Effect, Recorder, SessionKey, Sprite, Store, StoreError};

/// The socket in the mailbox that a sprite asks for checkpoints through.
pub const CONTROL_SOCKET: &str = "control.sock";

/// Why a sprite could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("the sprite's files could not be used")]
    Io(#[from] io::Error),
    #[error("the session could not be recorded")]
    Record(#[from] RecordError),
    #[error("this answer was given already")]
    Replayed,
}

/// A sprite whose agent is to run now.
#[derive(Debug)]
pub struct Job<'a> {
    pub place: &'a SpritePlace,
    pub sprite: &'a Sprite,
    pub spec: Spec,
    /// The answer that the agent gets, if it is started again.
    pub answer: Option<Answer>,
    pub limits: Usage,
    pub network: Network,
    /// Values that must not be shown.
    pub secrets: Vec<String>,
    /// Makes ids differ between runs.
    pub seed: String,
    /// Set when a person wants the sprite to stop.
    pub stop: Arc<AtomicBool>,
}

/// Hears what happens, and knows the time.
pub trait Watcher {
    fn effect(&mut self, effect: &Effect);
    /// What the agent printed that is no event.
    fn output(&mut self, bytes: &[u8]);
    fn now(&self) -> String;
}

/// After WAITING an agent has so long to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How often memory is measured.
const MEASURE: Duration = Duration::from_millis(250);
/// How often the outbox is looked at.
const TICK: Duration = Duration::from_millis(20);

enum Heard {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// One of the two has nothing more to say.
    OutputEnded,
    Report(Report),
    ReportsEnded,
    /// Someone inside asks for a checkpoint.
    Asked(UnixStream),
}

struct Watch<'a, 'w> {
    job: &'a Job<'a>,
    store: &'a mut Store,
    recorder: Recorder,
    session: SessionKey,
    sandbox: Sandbox,
    watcher: &'w mut dyn Watcher,
    log: File,
    ending: Ending,
    previous: Option<String>,
    asked: Vec<UnixStream>,
    checkpoints: u64,
    pending: Option<String>,
    waiting_since: Option<Instant>,
    began: Instant,
    measured: Instant,
    printed: u64,
    killed: bool,
    refusals: Refusals,
}

/// Runs the agent to its end and stores everything that it says.
pub fn supervise(job: &Job<'_>, store: &mut Store, watcher: &mut dyn Watcher) -> Result<(Verdict, String), RunError> {
    let key = job.sprite.key;
    let session = store.begin_session(key, job.answer.as_ref(), &watcher.now())?.ok_or(RunError::Replayed)?;
    let identity = Identity { sprite_id: job.sprite.name.clone(), work_item_id: job.sprite.work_item_id.clone() };
    let (mut recorder, effects) = Recorder::open(store, key, session, identity, &job.place.outbox())?;
    let known = store.checkpoints(key)?;
    for row in &known {
        recorder.merger.rules.observe(Happening::Checkpoint(&row.id));
    }
    job.secrets.iter().for_each(|value| recorder.merger.secrets.add(value));
    if job.answer.is_some() {
        recorder.merger.rules.observe(Happening::Resumed);
    }
    let listener = listen(job.place)?;
    let spec = match job.spec.isolation {
        Isolation::Strict => job.network.with_doors(&job.spec),
        Isolation::None => job.spec.clone(),
    };
    let Started { sandbox, reports, stdout, stderr, doors } = Sandbox::start(&job.place.program, &spec)?;
    record_limits(store, job.sprite, &sandbox.limited_by())?;
    let refusals = Refusals::default();
    let _serving =
        network::serve(doors.into_iter().zip(job.network.behind()).collect(), &job.network.hosts, refusals.clone())?;
    store.set_supervisor(key, &process_mark(std::process::id()).unwrap_or_default())?;
    let (sender, heard) = sync_channel(64);
    read_pipe(stdout, sender.clone(), Heard::Stdout);
    read_pipe(stderr, sender.clone(), Heard::Stderr);
    let reports_sender = sender.clone();
    thread::spawn(move || {
        reports.map(Heard::Report).chain([Heard::ReportsEnded]).try_for_each(|said| reports_sender.send(said))
    });
    thread::spawn(move || listener.incoming().flatten().try_for_each(|asked| sender.send(Heard::Asked(asked))));
    let mut log = File::options().append(true).create(true).open(job.place.log())?;
    if spec.isolation == Isolation::None {
        log.write_all(b"[lattice] what follows ran without a sandbox\n")?;
    }
    let mut watch = Watch {
        job,
        store,
        recorder,
        session,
        sandbox,
        watcher,
        log,
        ending: Ending::default(),
        // A restored layer has other inodes, so that nothing in it would be found unchanged.
        previous: None,
        asked: Vec::new(),
        checkpoints: known.len() as u64,
        pending: None,
        waiting_since: None,
        began: Instant::now(),
        measured: Instant::now(),
        printed: 0,
        killed: false,
        refusals,
    };
    watch.hear(effects);
    watch.follow(&heard)?;
    watch.finish()
}

impl Watch<'_, '_> {
    fn follow(&mut self, heard: &Receiver<Heard>) -> Result<(), RunError> {
        let (mut open, mut exited) = (2, false);
        while open > 0 || !exited {
            match heard.recv_timeout(TICK) {
                Ok(Heard::Stdout(bytes)) => self.stdout(&bytes)?,
                Ok(Heard::Stderr(bytes)) => self.output(&bytes)?,
                Ok(Heard::OutputEnded) => open -= 1,
                Ok(Heard::Report(Report::Exited { code, signal })) => {
                    (self.ending.code, self.ending.signal) = (code, signal);
                    exited = true;
                }
                Ok(Heard::Report(report)) => self.report(report)?,
                Ok(Heard::ReportsEnded) => exited = true,
                Ok(Heard::Asked(asked)) => {
                    self.asked.push(asked);
                    self.checkpoint()?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let effects = self.recorder.outbox(self.store, &self.watcher.now())?;
            self.hear(effects);
            self.note_refusals()?;
            self.end_what_should_end(exited)?;
        }
        Ok(())
    }

    /// Each try to get where the agent may not get is written down.
    fn note_refusals(&mut self) -> Result<(), RunError> {
        for refused in self.refusals.take() {
            let finding = Finding::new(Rule::NetworkRefused, refused);
            self.store.add_finding(self.job.sprite.key, finding, &self.watcher.now())?;
        }
        Ok(())
    }

    fn end_what_should_end(&mut self, exited: bool) -> Result<(), RunError> {
        let stopped = self.job.stop.load(Ordering::Relaxed);
        let overdue = self.waiting_since.is_some_and(|since| since.elapsed() > GRACE);
        self.ending.stopped |= stopped;
        if self.ending.limit.is_none() && !exited {
            self.ending.limit = self.too_much();
        }
        if !exited && !self.killed && (stopped || overdue || self.ending.limit.is_some()) {
            // Once is enough; an order at each look would fill the way to a sandbox that is busy ending.
            self.killed = true;
            self.sandbox.order(&Order::Kill)?;
        }
        Ok(())
    }

    /// What the sprite uses more of than it may.
    fn too_much(&mut self) -> Option<String> {
        let Usage { memory_bytes, output_bytes, time } = self.job.limits;
        if self.printed > output_bytes {
            return Some(format!("{} MB of output", output_bytes >> 20));
        }
        if self.began.elapsed() > time {
            return Some(format!("{} minutes", time.as_secs() / 60));
        }
        if self.measured.elapsed() < MEASURE {
            return None;
        }
        self.measured = Instant::now();
        let is_too_much = match self.sandbox.ran_out_of_memory() {
            Some(ran_out) => ran_out,
            None => usage::memory(self.sandbox.process()) > memory_bytes,
        };
        is_too_much.then(|| memory_limit(memory_bytes))
    }

    fn stdout(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        if self.ending.limit.is_some() {
            // What an agent still prints while it is ended for printing too much is too much.
            return Ok(());
        }
        let effects = self.recorder.stdout(self.store, bytes, &self.watcher.now())?;
        self.hear(effects);
        self.output(bytes)
    }

    fn output(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        self.printed += bytes.len() as u64;
        let text = String::from_utf8_lossy(bytes);
        let masked = self.recorder.merger.secrets.mask(&text);
        if masked != text {
            let finding = Finding::new(Rule::SecretShown, "something like a token stood in the agent's output");
            self.store.add_finding(self.job.sprite.key, finding, &self.watcher.now())?;
        }
        self.log.write_all(masked.as_bytes())?;
        self.watcher.output(masked.as_bytes());
        Ok(())
    }

    fn hear(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match &effect {
                Effect::Counts { event, .. } => self.counts(event),
                Effect::Seen { event, .. } if event.kind == EventType::Error => {
                    self.ending.error = Some(event.text("message").to_owned());
                }
                Effect::Seen { .. } | Effect::Found(_) => {}
            }
            self.watcher.effect(&effect);
        }
    }

    fn counts(&mut self, event: &Event) {
        match event.kind {
            EventType::Completed => {
                let success = event.text("status") == "success";
                self.ending.completed = Some((success, event.text("summary").to_owned()));
            }
            EventType::Waiting => {
                let named = event.text("checkpoint_id");
                let known = self.store.checkpoints(self.job.sprite.key).unwrap_or_default();
                if known.iter().any(|row| row.id == named) && self.ending.waiting.is_none() {
                    self.ending.waiting = Some(event.text("reason").to_owned());
                    self.waiting_since = Some(Instant::now());
                }
            }
            EventType::Info
            | EventType::PhaseStarted
            | EventType::PhaseFinished
            | EventType::ActionRequest
            | EventType::Artifact
            | EventType::Error
            | EventType::EnvironmentProposal => {}
        }
    }

    /// Asks for a checkpoint unless one is on its way, which serves everyone who asks.
    fn checkpoint(&mut self) -> Result<(), RunError> {
        if self.pending.is_some() {
            return Ok(());
        }
        self.checkpoints += 1;
        let place = format!("{}\0{}\0{}", self.job.seed, self.job.sprite.name, self.checkpoints);
        let id = format!("chk_{}", OpId::of(place.as_bytes()));
        self.pending = Some(id.clone());
        Ok(self.sandbox.order(&Order::Checkpoint { id, previous: self.previous.clone() })?)
    }

    fn report(&mut self, report: Report) -> Result<(), RunError> {
        let answer = match report {
            Report::Checkpointed { id, files, bytes, pause_us } => {
                let made_at = self.watcher.now();
                let now = Timestamp::new(made_at.clone()).map_err(io::Error::other)?;
                session::record(self.job.place, self.store, self.job.sprite, (&id, now))?;
                let row = CheckpointRow {
                    id: id.clone(),
                    session: self.session.0,
                    previous: self.previous.clone(),
                    made_at,
                    cost: Some(CheckpointCost { files, bytes, pause_us }),
                };
                self.store.add_checkpoint(self.job.sprite.key, &row)?;
                self.recorder.merger.rules.observe(Happening::Checkpoint(&id));
                self.previous = Some(id.clone());
                format!("{id}\n")
            }
            Report::CheckpointFailed { detail, .. } => format!("error {detail}\n"),
            Report::Started | Report::Refused { .. } | Report::Exited { .. } => return Ok(()),
        };
        self.pending = None;
        for mut asked in self.asked.drain(..) {
            // One that did not wait for the answer does not need it.
            let _ = asked.write_all(answer.as_bytes());
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Verdict, String), RunError> {
        let now = self.watcher.now();
        let effects = self.recorder.finish(self.store, crate::store::Ending::ReadToItsEnd, &now)?;
        self.hear(effects);
        self.note_refusals()?;
        if self.ending.limit.is_none() && self.sandbox.ran_out_of_memory() == Some(true) {
            self.ending.limit = Some(memory_limit(self.job.limits.memory_bytes));
        }
        self.sandbox.order(&Order::End)?;
        self.sandbox.wait()?;
        self.log.sync_data()?;
        let (verdict, said) = verdict(&self.ending);
        let exit = self.ending.code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        self.store.end_session(self.session, &exit, &now)?;
        Ok((verdict, said))
    }
}

fn memory_limit(bytes: u64) -> String {
    format!("{} MB of memory", bytes >> 20)
}

/// Remembers what limits a sprite, which is known once it runs.
fn record_limits(store: &Store, sprite: &Sprite, by: &str) -> Result<(), RunError> {
    let mut run: serde_json::Value = serde_json::from_str(&store.sprite(&sprite.name)?.run).unwrap_or_default();
    run["limits"]["by"] = serde_json::Value::from(by);
    Ok(store.set_run(sprite.key, &run.to_string())?)
}

/// A process by its number and the time it began, since numbers are used again.
fn process_mark(process: u32) -> Option<String> {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let began = state.rsplit(") ").next()?.split(' ').nth(19)?;
    Some(format!("{process}:{began}"))
}

/// Who this process is to the host.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Leaves the session of the terminal.
pub fn own_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Whether the process that watches a sprite is there; its number if so.
pub fn supervisor(sprite: &Sprite) -> Option<u32> {
    let mark = sprite.supervisor.as_deref()?;
    let process = mark.split(':').next()?.parse().ok()?;
    (process_mark(process).as_deref() == Some(mark)).then_some(process)
}

/// Takes over what a sprite said that its lost supervisor did not store.
pub fn recover(place: &SpritePlace, sprite: &Sprite, store: &mut Store, now: &str) -> Result<(), RunError> {
    let Some(session) = store.last_session(sprite.key)? else { return Ok(()) };
    let identity = Identity { sprite_id: sprite.name.clone(), work_item_id: sprite.work_item_id.clone() };
    let (mut recorder, _) = Recorder::open(store, sprite.key, session, identity, &place.outbox())?;
    for row in store.checkpoints(sprite.key)? {
        recorder.merger.rules.observe(Happening::Checkpoint(&row.id));
    }
    recorder.finish(store, crate::store::Ending::CutOff, now)?;
    Ok(store.end_session(session, "lost", now)?)
}

/// Ends the process that watches a sprite, and with it everything in the sandbox.
pub fn stop(sprite: &Sprite) -> io::Result<()> {
    let Some(process) = supervisor(sprite).and_then(|process| rustix::process::Pid::from_raw(process.cast_signed()))
    else {
        return Ok(());
    };
    rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
    while supervisor(sprite).is_some() {
        thread::sleep(TICK);
    }
    Ok(())
}

fn read_pipe(mut pipe: impl Read + Send + 'static, sender: SyncSender<Heard>, wrap: fn(Vec<u8>) -> Heard) {
    thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(count) = pipe.read(&mut piece) {
            if count == 0 || sender.send(wrap(piece[..count].to_vec())).is_err() {
                break;
            }
        }
        sender.send(Heard::OutputEnded)
    });
}

/// Listens in the mailbox. Paths of sockets are short, so the folder is named by its descriptor.
fn listen(place: &SpritePlace) -> io::Result<UnixListener> {
    let mail = place.mail();
    crate::tree::remove_all(&mail.join(CONTROL_SOCKET))?;
    let folder = File::open(&mail)?;
    let path = format!("/proc/self/fd/{}/{CONTROL_SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    let listener = UnixListener::bind(&path)?;
    if let Some(owner) = place.owner {
        std::os::unix::fs::lchown(mail.join(CONTROL_SOCKET), Some(owner), Some(owner))?;
    }
    Ok(listener)
}

/// Asks the supervisor for a checkpoint, from inside or outside.
pub fn ask_for_checkpoint(mail: &Path) -> io::Result<String> {
    let folder = File::open(mail)?;
    let path = format!("/proc/self/fd/{}/{CONTROL_SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    let stream = UnixStream::connect(path)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    match answer.trim_end().strip_prefix("error ") {
        Some(problem) => Err(io::Error::other(problem.to_owned())),
        None if answer.trim_end().is_empty() => Err(io::Error::other("the supervisor gave no answer")),
        None => Ok(answer.trim_end().to_owned()),
    }
}
