//! `resume`: answer a sprite that waits, and let it go on from its checkpoint.

use std::path::PathBuf;

use clap::Args;
use lattice_model::id::{ContentDigest, Oid};
use lattice_sprites::protocol::{InputType, check_inputs};
use lattice_sprites::run::{Happening, SpritePlace, next, unlock};
use lattice_sprites::store::{ActionRow, Answer, Sprite, SpriteState, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::look::find;
use super::manage::{check_owned, place, refuse_running};
use crate::app::App;
use crate::commands::emit::pair;
use crate::commands::run;
use crate::error::Failure;
use crate::output::{Document, Reply};

/// Answer a sprite that waits, from its checkpoint, or go on with one that was interrupted
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The sprite
    id: String,
    /// An input that it asked for; text as it is, anything else as JSON
    #[arg(long = "input", value_name = "K=V", value_parser = pair)]
    inputs: Vec<(String, String)>,
    /// Inputs as a JSON object in a file
    #[arg(long = "inputs", value_name = "FILE", conflicts_with = "inputs")]
    file: Option<PathBuf>,
}

/// A resume that had been given already.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResumeDocument {
    sprite: String,
    checkpoint: String,
    /// Always true: another resume prints the document of `run`.
    replay: bool,
}

/// Whether an answer was processed before.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResumeCheckDocument {
    checkpoint: String,
    /// `new` or `duplicate`.
    answer: &'static str,
}

impl Document for ResumeCheckDocument {
    const COMMAND: &'static str = "sprite-resume-check";
}

impl Document for ResumeDocument {
    const COMMAND: &'static str = "resume";
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let id = &arguments.id;
    let (mut store, sprite) = find(app, id)?;
    refuse_running(&sprite)?;
    let place = place(app, &sprite)?;
    let _held = run::hold(&place)?;
    let unasked = arguments.inputs.is_empty() && arguments.file.is_none();
    if sprite.state == SpriteState::Interrupted && unasked {
        let begin = go_on(app, &store, (&place, &sprite))?;
        return run::follow_to_end(app, &mut store, (&place, &sprite), begin);
    }
    let waiting = store.last_waiting(sprite.key)?.and_then(|event| event.waiting()).ok_or_else(|| {
        Failure::new("not-waiting", format!("`{id}` is {} and asked for nothing", sprite.state.as_str()))
    })?;
    let checkpoint = waiting.checkpoint_id;
    check_owned(&store, &sprite, &checkpoint)?;
    if let Some(row) = store.awaited(sprite.key, &checkpoint)? {
        return after_action(app, &mut store, (&place, &sprite), &row);
    }
    let expected = waiting.expected_inputs.unwrap_or_default();
    let inputs = inputs(arguments, &expected)?;
    let problems = check_inputs(&expected, &inputs);
    if !problems.is_empty() {
        let mut failure = Failure::new("bad-inputs", format!("this is no answer for `{id}`: {}", problems.join("; ")));
        for (name, kind) in &expected {
            failure = failure.hint(format!("--input {name}=<{kind}>"));
        }
        return Err(failure);
    }
    let answer = payload(&sprite, &checkpoint, inputs, json!({}));
    match prepared(app, &store, (&place, &sprite), (&checkpoint, &answer))? {
        Some(begin) => run::follow_to_end(app, &mut store, (&place, &sprite), begin),
        None => {
            let text = format!("{id} has had this answer already; nothing was done\n");
            Ok(Reply::new(ResumeDocument { sprite: id.clone(), checkpoint, replay: true }, text).story())
        }
    }
}

/// A sprite that waits for an action goes on when that is settled, with its result and nothing else.
fn after_action(
    app: &App,
    store: &mut Store,
    (place, sprite): (&SpritePlace, &Sprite),
    row: &ActionRow,
) -> Result<Reply, Failure> {
    if !row.state.is_settled() {
        let failure = Failure::new("waits-for-action", format!("`{}` waits for {}", sprite.name, row.action));
        return Err(failure.hint(format!("lattice approve {}", row.id)).hint(format!("lattice deny {}", row.id)));
    }
    match run::act::answered(app, store, (place, sprite))? {
        Some(begin) => run::follow_to_end(app, store, (place, sprite), begin),
        None => {
            let text = format!("{} has had the result of {} already; nothing was done\n", sprite.name, row.action);
            let checkpoint = row.checkpoint.clone().unwrap_or_default();
            Ok(Reply::new(ResumeDocument { sprite: sprite.name.clone(), checkpoint, replay: true }, text).story())
        }
    }
}

/// Starts an interrupted sprite again from what is there. A checkpoint may be older than its last commits, so only a person
/// goes back to one.
fn go_on(app: &App, store: &Store, (place, sprite): (&SpritePlace, &Sprite)) -> Result<run::Begin, Failure> {
    let base = Oid::new(&sprite.base).map_err(|error| Failure::new("store", error.to_string()))?;
    unlock(place, base)?;
    // An answer that it was given before is still in its mailbox.
    let answered = store.last_answered(sprite.key)?;
    let answer = answered.map(|checkpoint| Answer { checkpoint, digest: None });
    Ok(run::Begin { spec: run::spec(app, (place, sprite), run::Going::Again)?, answer })
}

/// What the agent finds in `resume.json`.
pub(crate) fn payload(sprite: &Sprite, checkpoint: &str, inputs: Map<String, Value>, context: Value) -> Value {
    json!({
        "work_item_id": sprite.work_item_id, "checkpoint_id": checkpoint, "inputs": inputs, "context": context,
    })
}

/// Names an answer. The value of a credential is no part of it: a digest would give it away.
pub(super) fn digest(answer: &Value) -> ContentDigest {
    let mut answer = answer.clone();
    if answer["context"]["action"]["action"] == "FETCH_CREDENTIAL" {
        answer["inputs"] = json!({});
    }
    ContentDigest::of(format!("{answer:#}\n").as_bytes())
}

/// Puts a sprite back to its checkpoint with this answer; `None` if it has had that already.
pub(crate) fn prepared(
    app: &App,
    store: &Store,
    (place, sprite): (&SpritePlace, &Sprite),
    (checkpoint, answer): (&str, &Value),
) -> Result<Option<run::Begin>, Failure> {
    let digest = digest(answer);
    if store.is_replay(sprite.key, checkpoint, digest.as_str())? {
        return Ok(None);
    }
    let sprite = store.sprite(&sprite.name)?;
    if next(sprite.state, Happening::Started).is_none() {
        return Err(Failure::new("not-waiting", format!("`{}` is {}", sprite.name, sprite.state.as_str())));
    }
    place.restore(checkpoint)?;
    place.secret_file(&place.mail().join("resume.json"), &format!("{answer:#}\n")).map_err(not_written)?;
    mark_known(place, store, &sprite)?;
    let answer = Answer { checkpoint: checkpoint.to_owned(), digest: Some(digest.to_string()) };
    let spec = run::spec(app, (place, &sprite), run::Going::Again)?;
    Ok(Some(run::Begin { spec, answer: Some(answer) }))
}

/// Tells the agent which answers it has had.
fn mark_known(place: &SpritePlace, store: &Store, sprite: &Sprite) -> Result<(), Failure> {
    let known = store.resumes(sprite.key)?;
    let marker: String = known.iter().map(|(checkpoint, digest)| format!("{checkpoint} {digest}\n")).collect();
    place.file(&place.mail().join("resumed"), &marker).map_err(not_written)
}

/// The agent has ended after an answer: that is marked, and a credential in it is removed.
pub(crate) fn mark_processed(place: &SpritePlace, store: &Store, sprite: &Sprite) -> Result<(), Failure> {
    mark_known(place, store, sprite)?;
    let given = store.actions(Some(sprite.key))?.into_iter().any(|row| row.action == "FETCH_CREDENTIAL");
    if given { place.remove(&place.mail().join("resume.json")).map_err(not_written) } else { Ok(()) }
}

fn not_written(error: lattice_sprites::run::PlaceError) -> Failure {
    Failure::from(lattice_sprites::run::LandError::from(error))
}

/// Inside a sprite: says whether the answer in `resume.json` was processed before.
pub(super) fn check(app: &App) -> Result<Reply, Failure> {
    let mail = app.workspace().join(".lattice");
    let read = |name: &str| std::fs::read_to_string(mail.join(name));
    let text = read("resume.json").map_err(|error| {
        Failure::new("no-answer", format!("there is no answer: {error}"))
            .hint("this works inside a sprite that was resumed")
    })?;
    let answer: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new("no-answer", format!("resume.json cannot be read: {error}")))?;
    let checkpoint = answer["checkpoint_id"].as_str().unwrap_or_default().to_owned();
    let line = format!("{checkpoint} {}", digest(&answer));
    let known = read("resumed").unwrap_or_default().lines().any(|known| known == line);
    let word = if known { "duplicate" } else { "new" };
    Ok(Reply::new(ResumeCheckDocument { checkpoint, answer: word }, format!("{word}\n")))
}

fn inputs(arguments: &Arguments, expected: &[(String, InputType)]) -> Result<Map<String, Value>, Failure> {
    if let Some(path) = &arguments.file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::new("io", format!("{} cannot be read: {error}", path.display())))?;
        return serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format!("{} is no JSON object: {error}", path.display())));
    }
    let typed = |(name, text): &(String, String)| {
        let wanted = expected.iter().find(|(known, _)| known == name).map(|(_, wanted)| wanted);
        // What does not fit its type stays text, and the check says what is wrong with it.
        let value = wanted.and_then(|wanted| wanted.parse(text)).unwrap_or_else(|| json!(text));
        (name.clone(), value)
    };
    Ok(arguments.inputs.iter().map(typed).collect())
}
