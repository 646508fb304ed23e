//! Follows a sprite: its agent runs, its actions are settled, it goes on with their results, its work lands.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, shell_word};
use lattice_model::plan::count;
use lattice_sprites::protocol::{Event, EventType, Finding, InputType, PREFIX, Rule};
use lattice_sprites::run::{
    Collect, Happening, Job, LandError, Landing, SpritePlace, Usage, Verdict, Watcher, Work, land, next, supervise,
};
use lattice_sprites::sandbox::Spec;
use lattice_sprites::store::{ActionRow, ActionState, Answer, Effect, Sprite, SpriteState, Store};
use serde_json::{Value, json};

use super::interrupt::Interruptible;
use super::{LandedDocument, RunDocument, act, leak, left};
use crate::app::{App, Format, Noise};
use crate::commands::sprite;
use crate::error::{Code, Failure};
use crate::output::status::{Status, StatusLine};
use crate::output::{Reply, err, printable};

/// An agent that is to be started.
pub(crate) struct Begin {
    pub(crate) spec: Spec,
    /// What it is told, if it goes on.
    pub(crate) answer: Option<Answer>,
}

/// A sprite goes on by itself so often; then it waits for a person.
const MOST_ROUNDS: usize = 100;

/// Runs the agent, carries out what it asks for, lands what it made, and says how it ended.
pub(crate) fn follow_to_end(
    app: &App,
    store: &mut Store,
    (place, sprite): (&SpritePlace, &Sprite),
    begin: Begin,
) -> Result<Reply, Failure> {
    // Nobody who starts it may miss it, so it is said also where little is to be said.
    if let Some(warning) = super::bare::warning(sprite) {
        err(&warning);
    }
    let mut begin = begin;
    for round in 1.. {
        let (verdict, outcome) = one_session(app, store, (place, sprite), begin)?;
        let landing = match verdict {
            // The work of a sprite that waits is not done; it lands when it ends.
            Verdict::Waiting => Landing::none(),
            Verdict::Completed | Verdict::Failed | Verdict::Stopped => {
                // Whoever sees that it is over finds its branches.
                let landing = land_work(app, store, (place, sprite), collect(sprite));
                end(app, store, sprite, (verdict, &outcome))?;
                landing?
            }
        };
        // What cannot be removed now is removed after the next session, or with the sprite.
        let _ = place.tidy();
        note_remotes(app, store, sprite, &landing)?;
        if verdict != Verdict::Waiting {
            leak::note(app, store, sprite)?;
        }
        act::settle(app, store, sprite, act::When::AtRest)?;
        act::ask_here(app, store, sprite)?;
        let goes_on = match verdict {
            Verdict::Waiting if round < MOST_ROUNDS => act::answered(app, store, (place, sprite))?,
            Verdict::Waiting | Verdict::Completed | Verdict::Failed | Verdict::Stopped => None,
        };
        match goes_on {
            Some(next) => begin = next,
            None => return told(store, &sprite.name, outcome, landing),
        }
    }
    unreachable!("bug: the last round ends with a reply")
}

/// One run of the agent's process.
fn one_session(
    app: &App,
    store: &mut Store,
    (place, sprite): (&SpritePlace, &Sprite),
    begin: Begin,
) -> Result<(Verdict, String), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (network, keys) = super::network::network(app, sprite)?;
    let mut secrets = act::given_out(app, store, sprite)?;
    secrets.extend(keys);
    let Begin { spec, answer } = begin;
    let answered = answer.is_some();
    let limits = app.engine()?.settings().sprites.limits;
    let limits = Usage {
        memory_bytes: limits.memory_mb << 20,
        output_bytes: limits.output_mb << 20,
        time: std::time::Duration::from_secs(limits.minutes * 60),
    };
    let job = Job { place, sprite, spec, answer, limits, network, secrets, seed: app.seed(), stop };
    let (asks, asked) = std::sync::mpsc::channel();
    let ended = std::thread::scope(|scope| {
        // What needs no commits is done while the agent goes on, beside the thread that listens to it.
        scope.spawn(|| act::while_it_runs(app, sprite, asked));
        let (line, status) = (StatusLine::new(app), Status::default());
        let mut watcher = Follower { app, asks, line, status, printed: Vec::new() };
        let _interruptible = Interruptible::begin(app, &sprite.name);
        let ended = supervise(&job, store, &mut watcher);
        watcher.show_rest();
        ended
    });
    let (verdict, outcome) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let failure = Failure::from(error);
            store.set_state(sprite.key, SpriteState::Failed, Some(&failure.message), app.clock().as_str())?;
            return Err(failure);
        }
    };
    if answered {
        sprite::resume::mark_processed(place, store, sprite)?;
    }
    if verdict == Verdict::Waiting {
        end(app, store, sprite, (verdict, &outcome))?;
    }
    Ok((verdict, outcome))
}

fn end(app: &App, store: &Store, sprite: &Sprite, (verdict, outcome): (Verdict, &str)) -> Result<(), Failure> {
    let state = next(SpriteState::Running, Happening::Ended(verdict)).unwrap_or(SpriteState::Failed);
    Ok(store.set_state(sprite.key, state, Some(outcome), app.clock().as_str())?)
}

fn note_remotes(app: &App, store: &mut Store, sprite: &Sprite, landing: &Landing) -> Result<(), Failure> {
    for remote in &landing.remotes {
        let detail = format!("the agent made the remote `{remote}`; nothing uses it");
        store.add_finding(sprite.key, Finding::new(Rule::RemoteEdited, detail), app.clock().as_str())?;
    }
    Ok(())
}

/// How a sprite ended, as it stands in the store now.
fn told(store: &Store, name: &str, outcome: String, landing: Landing) -> Result<Reply, Failure> {
    let sprite = store.sprite(name)?;
    let violations = store.violations(sprite.key)?.len();
    let document = |landed: &lattice_engine::Landed| LandedDocument {
        branch: landed.branch.to_string(),
        tip: landed.tip.to_string(),
        parent: landed.parent.to_string(),
    };
    let mut text = format!("{} {}", sprite.name, sprite.state.as_str());
    text.push_str(&if outcome.is_empty() { "\n".to_owned() } else { format!(": {}\n", printable(&outcome)) });
    for landed in &landing.branches {
        text.push_str(&format!("  {} on {}\n", landed.branch, landed.parent));
    }
    let code = match sprite.state {
        SpriteState::Completed => Code::Done,
        SpriteState::Waiting => Code::Paused,
        SpriteState::Failed
        | SpriteState::Stopped
        | SpriteState::Interrupted
        | SpriteState::Queued
        | SpriteState::Running => Code::Failed,
    };
    let actions = store.actions(Some(sprite.key))?;
    let open: Vec<_> = actions.iter().filter(|row| !row.state.is_settled()).collect();
    let mut reply = Reply::new(
        RunDocument {
            outcome,
            branches: landing.branches.iter().map(document).collect(),
            violations,
            ..super::document(&sprite, open.iter().map(|row| row.id.to_string()).collect())
        },
        text,
    )
    .code(code);
    reply = left::noted(reply, &sprite.name, &landing.uncommitted);
    if violations > 0 {
        let remarks = count(violations, "remark");
        reply = reply.note(format!("{remarks} on the protocol: lattice sprite show {}", sprite.name));
    }
    for line in actions.iter().filter_map(action_line) {
        reply = reply.note(line);
    }
    if sprite.state == SpriteState::Failed {
        reply = reply.note(format!("what it printed: lattice sprite logs {}", sprite.name));
    }
    if sprite.state == SpriteState::Waiting && open.is_empty() {
        reply = reply.note(format!("answer it: lattice resume {}{}", sprite.name, asked_inputs(store, &sprite)?));
    }
    Ok(reply)
}

/// What became of an action, as far as somebody wants to know.
pub(crate) fn action_line(row: &ActionRow) -> Option<String> {
    let why = row.reason.as_deref().map(|reason| format!(" ({})", printable(reason))).unwrap_or_default();
    let (action, id) = (printable(&row.action), row.id);
    match row.state {
        ActionState::New | ActionState::Asked => {
            Some(format!("it asks for {action}: lattice approve {id}, or lattice deny {id}"))
        }
        ActionState::Approved => Some(format!("{action} is not done yet{why}; try again: lattice approve {id}")),
        ActionState::Denied => Some(format!("{action} was denied{why}")),
        ActionState::Failed => Some(format!("{action} failed{why}")),
        ActionState::Done => {
            let result = row.result.as_ref()?;
            let number = result.get("pr_number")?.as_u64()?;
            let url = result.get("pr_url").and_then(Value::as_str).unwrap_or_default();
            Some(format!("{action} is done: #{number} {}", printable(url)).trim_end().to_owned())
        }
    }
}

/// The options that answer what a sprite asked for, with names and types where it said them.
fn asked_inputs(store: &Store, sprite: &Sprite) -> Result<String, Failure> {
    let waiting = store.last_waiting(sprite.key)?.and_then(|event| event.waiting());
    let Some(expected) = waiting.and_then(|waiting| waiting.expected_inputs).filter(|expected| !expected.is_empty())
    else {
        return Ok(" --input NAME=VALUE".to_owned());
    };
    let option = |(name, kind): &(String, InputType)| format!(" --input {}=<{kind}>", shell_word(&printable(name)));
    Ok(expected.iter().map(option).collect())
}

/// Whether what the agent leaves uncommitted is taken too.
fn collect(sprite: &Sprite) -> Collect {
    match recorded(sprite)["collect"].as_bool() {
        Some(false) => Collect::Commits,
        Some(true) | None => Collect::Everything,
    }
}

/// How a sprite is run, as it was recorded.
pub(crate) fn recorded(sprite: &Sprite) -> Value {
    serde_json::from_str(&sprite.run).unwrap_or_default()
}

/// Lands what a sprite made, and remembers where it left its branches.
pub(crate) fn land_work(
    app: &App,
    store: &Store,
    (place, sprite): (&SpritePlace, &Sprite),
    collect: Collect,
) -> Result<Landing, LandError> {
    let broken = |what: &str| LandError::Other(format!("the sprite's {what} cannot be read"));
    let unstored = |error: lattice_sprites::store::StoreError| LandError::Other(error.to_string());
    let engine = app.later().engine()?.for_sprite(&sprite.name);
    let subject = sprite.task.lines().next().unwrap_or_default();
    let mut run = recorded(&store.sprite(&sprite.name).map_err(unstored)?);
    let tips = run["landed"].as_object().cloned().unwrap_or_default();
    let tip = |(name, tip): (&String, &Value)| Some((name.clone(), Oid::new(tip.as_str()?).ok()?));
    let work = Work {
        place,
        sprite: &sprite.name,
        branch: BranchName::new(&sprite.branch).map_err(|_| broken("branch"))?,
        parent: BranchName::new(&sprite.parent).map_err(|_| broken("parent"))?,
        base: Oid::new(&sprite.base).map_err(|_| broken("base"))?,
        collect,
        message: format!("{subject}\n\nChanges that {} left uncommitted.\n", sprite.name),
        landed: tips.iter().filter_map(tip).collect(),
    };
    let landing = land(&engine, &work)?;
    for landed in &landing.branches {
        run["landed"][landed.branch.as_str()] = json!(landed.tip.to_string());
    }
    for (inside, here) in &landing.names {
        run["names"][inside] = json!(here.as_str());
    }
    store.set_run(sprite.key, &run.to_string()).map_err(unstored)?;
    Ok(landing)
}

/// Shows events as they come.
struct Follower<'a> {
    app: &'a App,
    /// Wakes whoever carries actions out.
    asks: Sender<()>,
    line: Option<StatusLine>,
    status: Status,
    /// What the agent printed of a line that has not ended.
    printed: Vec<u8>,
}

/// A line that does not end is shown in pieces of this size.
const LONGEST_LINE: usize = 4096;

impl Follower<'_> {
    fn is_silent(&self) -> bool {
        self.app.noise == Noise::Quiet || self.app.format == Format::Json
    }

    /// Shows a line that the agent printed. Events are shown as what they say.
    fn show_line(&self, line: &[u8]) {
        if !line.starts_with(PREFIX) {
            let line = String::from_utf8_lossy(line);
            self.write(&self.app.style.dim(&format!("| {}\n", printable(line.trim_end()))));
        }
    }

    /// Shows what the agent printed without ending the line.
    fn show_rest(&mut self) {
        if !self.printed.is_empty() {
            let printed = std::mem::take(&mut self.printed);
            self.show_line(&printed);
        }
    }

    /// Writes above the line that says how far the agent is, and then that line anew.
    fn write(&self, text: &str) {
        err(text);
        self.line.iter().for_each(|line| line.show(&self.status));
    }
}

/// Takes note of how far an agent says that it is.
fn note(status: &mut Status, event: &Event) {
    match event.kind {
        EventType::PhaseStarted => *status = Status { phase: event.text("phase").to_owned(), ..Status::default() },
        EventType::PhaseFinished => *status = Status::default(),
        EventType::Info => {
            event.text("message").clone_into(&mut status.said);
            let percent = event.to_value()["payload"]["metadata"]["percent"].as_f64();
            status.percent = percent.map(|percent| percent.clamp(0.0, 100.0) as u8).or(status.percent);
        }
        EventType::ActionRequest
        | EventType::Artifact
        | EventType::Waiting
        | EventType::Completed
        | EventType::Error
        | EventType::EnvironmentProposal => {}
    }
}

impl Watcher for Follower<'_> {
    fn effect(&mut self, effect: &Effect) {
        if let Effect::Counts { event, .. } = effect
            && event.action_request().is_some_and(|request| !request.blocking)
        {
            // Nobody hears it only when the sprite ends, and then all actions are looked at.
            let _ = self.asks.send(());
        }
        if self.is_silent() {
            return;
        }
        match effect {
            Effect::Seen { event, .. } => {
                let document = sprite::document(0, "stdout", event.to_value());
                note(&mut self.status, event);
                self.write(sprite::event_line(&document).trim_start_matches([' ', '0']));
            }
            Effect::Found(placed) => {
                let finding = &placed.finding;
                let weight = finding.rule.weight().as_str();
                self.write(&format!("{weight} {}: {}\n", finding.rule.as_str(), finding.detail));
            }
            Effect::Counts { .. } => {}
        }
    }

    fn output(&mut self, bytes: &[u8]) {
        if self.is_silent() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.printed.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.show_rest();
            } else if self.printed.len() > LONGEST_LINE && self.printed.starts_with(PREFIX) {
                self.printed.truncate(PREFIX.len());
            } else if self.printed.len() > LONGEST_LINE {
                self.show_rest();
            }
        }
    }

    fn now(&self) -> String {
        self.app.clock().to_string()
    }
}
