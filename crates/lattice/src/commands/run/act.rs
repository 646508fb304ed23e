//! Actions of sprites: decided, carried out, and turned into the answer that the agent goes on with.

use std::sync::mpsc::Receiver;

use lattice_engine::WorkingCopyNeed;
use lattice_model::name::BranchName;
use lattice_sprites::action::{Decision, Hands, HostValues, Retry, carry_out, credential, decide, read_action};
use lattice_sprites::run::{Collect, LandError, PlaceError, SpritePlace, supervisor};
use lattice_sprites::store::{ActionRow, ActionState, Sprite, Store};
use serde_json::{Map, Value, json};

use super::follow::{Begin, land_work, recorded};
use super::leak;
use crate::app::{App, Format, Interaction, Noise};
use crate::commands::sprite::resume;
use crate::error::Failure;
use crate::output::{err, printable};
use crate::prompt;

/// Which actions can be carried out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// The agent is at work: nothing that needs its commits, or that it waits for.
    WhileItRuns,
    AtRest,
}

/// What meets somebody in the middle of something is tried again after so long, and for as long as for the lock.
const PAUSE_MS: u64 = 50;

/// Decides on what is new, and carries out what may be carried out.
pub(crate) fn settle(app: &App, store: &mut Store, sprite: &Sprite, when: When) -> Result<(), Failure> {
    for row in store.actions(Some(sprite.key))? {
        let later = when == When::WhileItRuns && (row.blocking || needs_commits(&row));
        if row.state.is_settled() || later {
            continue;
        }
        let row = if row.state == ActionState::New { decided(app, store, sprite, &row)? } else { row };
        if row.state == ActionState::Approved {
            perform(app, store, sprite, &row)?;
        }
    }
    Ok(())
}

/// Settles actions while an agent runs, each time it is woken.
pub(super) fn while_it_runs(app: &App, sprite: &Sprite, asked: Receiver<()>) {
    while asked.recv().is_ok() {
        // What fails here is tried again when the agent has ended, and told then.
        let _ = store(app).and_then(|mut store| settle(&app.later(), &mut store, sprite, When::WhileItRuns));
    }
}

fn store(app: &App) -> Result<Store, Failure> {
    let common = app.engine()?.repository().common_dir.clone();
    Ok(Store::open(&lattice_sprites::store_path(&common))?)
}

fn needs_commits(row: &ActionRow) -> bool {
    read_action(&row.action, &row.parameters).is_ok_and(|action| action.needs_commits())
}

/// Decides on a request that nobody has looked at.
fn decided(app: &App, store: &Store, sprite: &Sprite, row: &ActionRow) -> Result<ActionRow, Failure> {
    let engine = app.engine()?;
    let snapshot = engine.observe("run", WorkingCopyNeed::No)?.snapshot;
    let run = recorded(&store.sprite(&sprite.name)?);
    let allowed = run["allow"].as_array().cloned().unwrap_or_default();
    let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let is_own = |branch: &BranchName| run["landed"].get(branch.as_str()).is_some();
    let is_foreign = |branch: &BranchName| snapshot.tip(branch).is_some() && !is_own(branch);
    let settings = engine.settings().sprites;
    let (to, reason) = match decide(row, sprite, (&settings, &allowed), is_foreign) {
        Decision::CarryOut => (ActionState::Approved, None),
        Decision::AskAPerson => (ActionState::Asked, None),
        Decision::Deny(reason) => (ActionState::Denied, Some(reason)),
    };
    store.move_action(row.id, (ActionState::New, to), reason.as_deref())?;
    step(app, "decided");
    Ok(store.action(row.id)?)
}

/// Carries out an action that was approved. It stays approved, with the reason, where it has to wait.
pub(crate) fn perform(app: &App, store: &mut Store, sprite: &Sprite, row: &ActionRow) -> Result<ActionRow, Failure> {
    let patience = app.engine()?.settings().lock_timeout_ms / PAUSE_MS;
    let mut tries = 0..patience;
    let now = loop {
        let (now, retry) = attempted(app, store, sprite, row)?;
        if retry != Retry::Soon || tries.next().is_none() {
            break now;
        }
        if tries.start == 1 && heard(app) {
            let reason = now.reason.as_deref().unwrap_or_default();
            err(&format!("{} of {} waits: {}\n", now.action, sprite.name, printable(reason)));
        }
        app.pause();
    };
    if now.state == ActionState::Done && now.action == "NOTIFY_USER" && heard(app) {
        let message = now.parameters.get("message").and_then(Value::as_str).unwrap_or_default();
        err(&format!("{} says: {}\n", sprite.name, printable(message)));
    }
    Ok(now)
}

fn heard(app: &App) -> bool {
    app.noise == Noise::Normal && app.format == Format::Human
}

fn attempted(app: &App, store: &mut Store, sprite: &Sprite, row: &ActionRow) -> Result<(ActionRow, Retry), Failure> {
    let app = app.later();
    let engine = app.engine()?.for_sprite(&sprite.name);
    let place = super::prepare::place(&app, sprite)?;
    let settings = engine.settings().sprites;
    let hands = Hands {
        engine: &engine,
        settings: &settings,
        host: &values(&app),
        land: &|| landed(&app, &place, sprite, row),
        now: &|| app.clock().to_string(),
        step: &|name| step(&app, name),
    };
    Ok(carry_out(store, sprite, row.id, &hands)?)
}

/// What credentials and notices are made with.
pub(crate) fn values(app: &App) -> HostValues {
    HostValues { variables: app.variables().to_vec(), directory: app.directory.clone() }
}

/// Lands a sprite's commits as they were at the checkpoint that it waits at, or as it left them.
fn landed(
    app: &App,
    place: &SpritePlace,
    sprite: &Sprite,
    row: &ActionRow,
) -> Result<Vec<(String, BranchName)>, LandError> {
    let failed = |failure: Failure| LandError::Other(failure.message);
    let store = store(app).map_err(failed)?;
    if place.own.exists() && supervisor(sprite).is_none() {
        if let Some(checkpoint) = &row.checkpoint {
            place.restore(checkpoint).map_err(PlaceError::from)?;
        }
        land_work(app, &store, (place, sprite), Collect::Commits)?;
    }
    if let [branch, ..] = leak::leaked(app, &store, sprite).map_err(failed)?.as_slice() {
        return Err(LandError::Other(format!("a credential that it was given is in the commits of `{branch}`")));
    }
    let run = recorded(&store.sprite(&sprite.name).map_err(|error| LandError::Other(error.to_string()))?);
    let names = run["names"].as_object().cloned().unwrap_or_default();
    let pair = |(inside, here): (String, Value)| Some((inside, BranchName::new(here.as_str()?).ok()?));
    Ok(names.into_iter().filter_map(pair).collect())
}

/// In the foreground on a terminal, what asks is asked here.
pub(super) fn ask_here(app: &App, store: &mut Store, sprite: &Sprite) -> Result<(), Failure> {
    if app.interaction == Interaction::Never {
        return Ok(());
    }
    for row in store.actions(Some(sprite.key))? {
        if row.state != ActionState::Asked {
            continue;
        }
        err(&format!("{} asks for {}:\n", sprite.name, row.action));
        preview(&row, sprite).iter().for_each(|line| err(&format!("  {}\n", printable(line))));
        match prompt::decide("Do it?") {
            Some(true) => drop(approve(app, store, sprite, &row)?),
            Some(false) => drop(deny(store, &row, "a person said no")?),
            None => err(&format!("it waits: lattice approve {0}, or lattice deny {0}\n", row.id)),
        }
    }
    Ok(())
}

/// What an action would do, in lines.
pub(crate) fn preview(row: &ActionRow, sprite: &Sprite) -> Vec<String> {
    read_action(&row.action, &row.parameters)
        .map_or_else(|problem| vec![problem], |action| action.preview(&sprite.work_item_id))
}

/// Approves an action and carries it out, unless the agent has to end first.
pub(crate) fn approve(app: &App, store: &mut Store, sprite: &Sprite, row: &ActionRow) -> Result<ActionRow, Failure> {
    store.move_action(row.id, (ActionState::Asked, ActionState::Approved), None)?;
    step(app, "approved");
    let row = store.action(row.id)?;
    if row.state != ActionState::Approved || (supervisor(sprite).is_some() && needs_commits(&row)) {
        return Ok(row);
    }
    perform(app, store, sprite, &row)
}

pub(crate) fn deny(store: &Store, row: &ActionRow, reason: &str) -> Result<ActionRow, Failure> {
    for from in [ActionState::Asked, ActionState::Approved] {
        store.move_action(row.id, (from, ActionState::Denied), Some(reason))?;
    }
    Ok(store.action(row.id)?)
}

/// If what a sprite waits for is settled: what it goes on with.
pub(crate) fn answered(
    app: &App,
    store: &mut Store,
    (place, sprite): (&SpritePlace, &Sprite),
) -> Result<Option<Begin>, Failure> {
    let waiting = store.last_waiting(sprite.key)?.and_then(|event| event.waiting());
    let Some(checkpoint) = waiting.map(|waiting| waiting.checkpoint_id) else { return Ok(None) };
    let Some(row) = store.awaited(sprite.key, &checkpoint)?.filter(|row| row.state.is_settled()) else {
        return Ok(None);
    };
    let (mut inputs, mut status, mut reason) = match row.state {
        ActionState::Done => (row.result.clone().unwrap_or_default(), "done", row.reason.clone()),
        ActionState::Denied => (Map::new(), "denied", row.reason.clone()),
        ActionState::Failed | ActionState::New | ActionState::Asked | ActionState::Approved => {
            (Map::new(), "failed", row.reason.clone())
        }
    };
    if status == "done" && row.action == "FETCH_CREDENTIAL" {
        match value_of(app, &row) {
            Ok(value) => drop(inputs.insert("value".to_owned(), json!(value))),
            Err(problem) => (status, reason) = ("failed", Some(problem)),
        }
    }
    let context = json!({ "action": { "action": row.action, "status": status, "reason": reason } });
    let answer = resume::payload(sprite, &checkpoint, inputs, context);
    let begin = resume::prepared(app, store, (place, sprite), (&checkpoint, &answer))?;
    step(app, "delivered");
    Ok(begin)
}

/// The value of the credential that was asked for.
fn value_of(app: &App, row: &ActionRow) -> Result<String, String> {
    let name = row.parameters.get("name").and_then(Value::as_str).unwrap_or_default();
    let settings = app.engine().map_err(|error| error.to_string())?.settings().sprites;
    let source = settings.credentials.get(name).ok_or_else(|| format!("there is no credential `{name}` for agents"))?;
    credential(source, &values(app))
}

/// Every value that a sprite was given, so that it is masked in all that is recorded.
pub(super) fn given_out(app: &App, store: &Store, sprite: &Sprite) -> Result<Vec<String>, Failure> {
    let actions = store.actions(Some(sprite.key))?;
    let given = actions.iter().filter(|row| row.state == ActionState::Done && row.action == "FETCH_CREDENTIAL");
    Ok(given.filter_map(|row| value_of(app, row).ok()).collect())
}

/// A test ends the program after a step, to see that what was begun is finished once.
fn step(app: &App, name: &str) {
    if cfg!(debug_assertions) && app.variable("LATTICE_KILL_AFTER").as_deref() == Some(name) {
        std::process::abort();
    }
}
