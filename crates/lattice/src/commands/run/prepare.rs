//! Before an agent starts: where it starts from, where it lives, what it is given.

use std::path::{Path, PathBuf};

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_sprites::run::{LandError, SpritePlace};
use lattice_sprites::sandbox::{Bind, Spec};
use lattice_sprites::store::Sprite;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::Failure;

pub(crate) fn place(app: &App, common: &Path, name: &str) -> Result<SpritePlace, Failure> {
    let program =
        app.program().map_err(|error| Failure::new("io", format!("this program cannot be found: {error}")))?;
    let mut place = SpritePlace::new(common, &program, name);
    if cfg!(debug_assertions) {
        // Tests leave layers out, to see that a refusal or a failure comes from that layer and nothing else.
        let omitted = app.variable("LATTICE_SANDBOX_OMIT").unwrap_or_default();
        let layers = omitted.split(',').filter(|name| !name.is_empty());
        place.omit = layers.filter_map(|name| serde_json::from_value(json!(name)).ok()).collect();
    }
    Ok(place)
}

/// Makes the place of a new sprite and puts into it what it gets to read.
pub(super) fn prepare(app: &App, place: &SpritePlace, own: &BranchName, base: Oid, task: &str) -> Result<(), Failure> {
    let failed = |error: lattice_sprites::run::PlaceError| Failure::from(LandError::from(error));
    place.create(own, base).map_err(failed)?;
    place.file(&place.mail().join("context/task.md"), &format!("{task}\n")).map_err(failed)?;
    place.file(&place.mail().join("prompt.md"), &prompt(task)).map_err(failed)?;
    let skill = place.mail().join("skills/protocol");
    place.folder(&skill).map_err(failed)?;
    place.file(&skill.join("SKILL.md"), lattice_sprites::PROTOCOL_SKILL).map_err(failed)?;
    let (name, email) = app.engine()?.identity();
    let quoted = |text: Option<String>, other: &str| json!(text.unwrap_or_else(|| other.to_owned())).to_string();
    let identity = format!(
        "[user]\n\tname = {}\n\temail = {}\n",
        quoted(name, "Lattice sprite"),
        quoted(email, "sprite@localhost")
    );
    place.file(&place.own.join("home/.gitconfig"), &identity).map_err(failed)
}

/// The sandbox of the agent, to be started as it was recorded.
pub(crate) fn spec(app: &App, (place, sprite): (&SpritePlace, &Sprite)) -> Result<Spec, Failure> {
    let recorded = super::recorded(sprite);
    let words = recorded["command"].as_array().cloned().unwrap_or_default();
    let command = words.iter().filter_map(Value::as_str).map(|word| filled(word, &sprite.task)).collect();
    agent_spec(app, place, sprite, command)
}

/// The sandbox of the agent, with what it is to know in its environment.
fn agent_spec(app: &App, place: &SpritePlace, sprite: &Sprite, command: Vec<String>) -> Result<Spec, Failure> {
    let base = Oid::new(&sprite.base).map_err(|error| Failure::new("store", error.to_string()))?;
    let mut spec = place.agent(base, command).map_err(|error| Failure::from(LandError::from(error)))?;
    if let Some(folder) = spec.command.first().and_then(|program| installation(app, program)) {
        let path = spec.environment.iter_mut().find(|(name, _)| name == "PATH");
        path.into_iter().for_each(|(_, path)| path.push_str(&format!(":{}/bin", folder.display())));
        spec.binds.push(Bind { from: folder.clone(), to: folder });
    }
    let more = [
        ("LATTICE_SPRITE_ID", sprite.name.as_str()),
        ("LATTICE_WORK_ITEM_ID", sprite.work_item_id.as_str()),
        ("LATTICE_TASK", sprite.task.as_str()),
    ];
    spec.environment.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(spec)
}

/// Where a program is installed, if that is no folder that every sandbox sees.
fn installation(app: &App, program: &str) -> Option<PathBuf> {
    let found = app.which(Path::new(program)).canonicalize().ok()?;
    if ["/usr", "/bin", "/sbin", "/lib"].iter().any(|known| found.starts_with(known)) {
        return None;
    }
    let folder = found.parent()?;
    let is_bin = folder.file_name().is_some_and(|name| name == "bin");
    Some(if is_bin { folder.parent()?.to_owned() } else { folder.to_owned() })
}

/// A word of the command with the task in its place.
fn filled(word: &str, task: &str) -> String {
    let word = word.replace("{prompt_file}", "/workspace/.lattice/prompt.md");
    word.replace("{context_dir}", "/workspace/.lattice/context").replace("{prompt}", &prompt(task))
}

/// What an agent is told first: the task, where the context lies, and how to speak with Lattice.
fn prompt(task: &str) -> String {
    format!(
        "{task}\n\nYour workspace is /workspace, a Git repository on a branch of your own; commit there. Context for the \
         task is in /workspace/.lattice/context.\nHow to report progress, ask for actions outside of the sandbox and say \
         that you are done: /workspace/.lattice/skills/protocol/SKILL.md\n"
    )
}
