//! `resume`: answer a sprite that waits, and let it go on from its checkpoint.

use std::path::PathBuf;

use clap::Args;
use lattice_model::id::ContentDigest;
use lattice_sprites::protocol::{InputType, check_inputs};
use lattice_sprites::run::{Collect, Happening, next};
use lattice_sprites::store::{Sprite, SpriteState, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::look::find;
use super::manage::{check_owned, not_restored, place, refuse_running};
use crate::app::App;
use crate::commands::emit::pair;
use crate::commands::run;
use crate::error::Failure;
use crate::output::{Document, Reply};

/// Answer a sprite that waits; it goes on from its checkpoint
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

impl Document for ResumeDocument {
    const COMMAND: &'static str = "resume";
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let id = &arguments.id;
    let (mut store, sprite) = find(app, id)?;
    refuse_running(&sprite)?;
    if sprite.state == SpriteState::Interrupted && arguments.inputs.is_empty() && arguments.file.is_none() {
        return go_on(app, &mut store, &sprite);
    }
    let waiting = store.last_waiting(sprite.key)?.and_then(|event| event.waiting()).ok_or_else(|| {
        Failure::new("not-waiting", format!("`{id}` is {} and asked for nothing", sprite.state.as_str()))
    })?;
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
    let checkpoint = waiting.checkpoint_id;
    check_owned(&store, &sprite, &checkpoint)?;
    let answer = json!({
        "work_item_id": sprite.work_item_id, "checkpoint_id": checkpoint, "inputs": inputs, "context": {},
    });
    let answer = format!("{answer:#}\n");
    let digest = ContentDigest::of(answer.as_bytes());
    if store.is_replay(sprite.key, &checkpoint, digest.as_str())? {
        let text = format!("{id} has had this answer already; nothing was done\n");
        return Ok(Reply::new(ResumeDocument { sprite: id.clone(), checkpoint, replay: true }, text).story());
    }
    if next(sprite.state, Happening::Started).is_none() {
        return Err(Failure::new("not-waiting", format!("`{id}` is {}", sprite.state.as_str())));
    }
    let place = place(app, &sprite)?;
    place.restore(&checkpoint).map_err(not_restored)?;
    store.add_resume(sprite.key, &checkpoint, digest.as_str(), app.clock().as_str())?;
    deliver(&place, &store, &sprite, &answer)?;
    start(app, &mut store, &sprite, Some(checkpoint))
}

/// Starts an interrupted sprite again: from its last checkpoint, or from what is left if it has none.
fn go_on(app: &App, store: &mut Store, sprite: &Sprite) -> Result<Reply, Failure> {
    if let Some(checkpoint) = &sprite.checkpoint {
        place(app, sprite)?.restore(checkpoint).map_err(not_restored)?;
    }
    start(app, store, sprite, None)
}

fn start(app: &App, store: &mut Store, sprite: &Sprite, resumed_from: Option<String>) -> Result<Reply, Failure> {
    let recorded: Value = serde_json::from_str(&sprite.run).unwrap_or_default();
    let words = recorded["command"].as_array().cloned().unwrap_or_default();
    let command = words.iter().filter_map(Value::as_str).map(|word| run::filled(word, &sprite.task)).collect();
    let place = place(app, sprite)?;
    let spec = run::agent_spec(app, &place, sprite, command)?;
    run::follow_to_end(app, store, (&place, sprite), (spec, resumed_from), Collect::Everything)
}

/// Writes the answer, and the list of answers so far, where the agent finds them.
fn deliver(
    place: &lattice_sprites::run::SpritePlace,
    store: &Store,
    sprite: &Sprite,
    answer: &str,
) -> Result<(), Failure> {
    let failed = |error: lattice_sprites::run::PlaceError| Failure::from(lattice_sprites::run::LandError::from(error));
    place.secret_file(&place.mail().join("resume.json"), answer).map_err(failed)?;
    let known = store.resumes(sprite.key)?;
    let marker: String = known.iter().map(|(checkpoint, digest)| format!("{checkpoint} {digest}\n")).collect();
    place.file(&place.mail().join("resumed"), &marker).map_err(failed)
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
