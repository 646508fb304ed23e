//! Before an agent starts: where it starts from, where it lives, what it is given.

use std::path::{Path, PathBuf};

use lattice_context::deliver::{FileWriter, HostFolder};
use lattice_engine::WorkingCopyNeed;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::snapshot::WorkingCopy;
use lattice_sprites::run::{LandError, SpritePlace};
use lattice_sprites::sandbox::{Bind, Isolation, Spec};
use lattice_sprites::store::{Sprite, Store};
use serde_json::{Value, json};

use super::install;
use super::task::Work;
use crate::app::App;
use crate::commands::context::{delivery_failure, pack};
use crate::error::Failure;
use crate::output::{err, printable};

/// The file of the mailbox with the code that the task seems to need.
const PACK: &str = "pack.md";

/// Where a sprite lives, as it was recorded.
pub(crate) fn place(app: &App, sprite: &Sprite) -> Result<SpritePlace, Failure> {
    let program =
        app.program().map_err(|error| Failure::new("io", format!("this program cannot be found: {error}")))?;
    let engine = app.engine()?;
    let mut place = SpritePlace::new(&engine.repository().common_dir, &program, &sprite.name);
    place.isolation = super::bare::isolation(sprite);
    if let Some(folder) = super::recorded(sprite)["dir"].as_str() {
        place = place.below(Path::new(folder));
    }
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
    place.file(&place.mail().join("prompt.md"), &prompt(task, &place.workspace())).map_err(failed)?;
    teach(place)?;
    let (name, email) = app.engine()?.identity();
    let quoted = |text: Option<String>, other: &str| json!(text.unwrap_or_else(|| other.to_owned())).to_string();
    let identity = format!(
        "[user]\n\tname = {}\n\temail = {}\n",
        quoted(name, "Lattice sprite"),
        quoted(email, "sprite@localhost")
    );
    place.file(&place.own.join("home/.gitconfig"), &identity).map_err(failed)
}

/// Puts the code that the task seems to need beside it. What is checked out here is packed, so it has to be what the agent
/// gets, without what the user has not committed; and an agent that finds its way alone is better than none.
pub(super) fn pack_code(app: &App, place: &SpritePlace, work: &Work) -> Result<(), Failure> {
    let snapshot = app.engine()?.observe("run", WorkingCopyNeed::Yes)?.snapshot;
    let here = snapshot.head.branch().and_then(|branch| snapshot.tip(branch));
    if here != Some(work.base) {
        return Ok(());
    }
    let Some(uncommitted) = uncommitted(&snapshot.working_copy) else { return Ok(()) };
    let packed = match pack::for_task(app, &work.text, &uncommitted) {
        Ok(packed) => packed,
        Err(failure) => {
            err(&format!("note: the agent gets no pack of the code: {}\n", printable(&failure.message)));
            return Ok(());
        }
    };
    let written = place.file(&place.mail().join(PACK), &packed.prompt);
    let kept = written.and_then(|()| place.remember_context(&packed.envelope.context));
    kept.map_err(|error| Failure::from(LandError::from(error)))
}

/// Every path that is not as the commit has it, if that is known.
fn uncommitted(working_copy: &WorkingCopy) -> Option<Vec<String>> {
    match working_copy {
        WorkingCopy::None | WorkingCopy::NotRead | WorkingCopy::Unknown { .. } => None,
        WorkingCopy::Known { staged, unstaged, unmerged, untracked } => {
            Some([staged, unstaged, unmerged, untracked].into_iter().flatten().cloned().collect())
        }
    }
}

/// Tells the agent which proposals a person accepted.
pub(super) fn tell_environment(place: &SpritePlace, store: &Store) -> Result<(), Failure> {
    let accepted = store.proposals()?.into_iter().filter(|row| row.state == "accepted");
    let told: Vec<_> =
        accepted.map(|row| json!({ "adjustment": row.payload["suggested_adjustment"], "step": row.step })).collect();
    let text = format!("{:#}\n", json!(told));
    let written = place.file(&place.mail().join("environment.json"), &text);
    written.map_err(|error| Failure::from(LandError::from(error)))
}

/// Gives a sprite the documents that it works by.
fn teach(place: &SpritePlace) -> Result<(), Failure> {
    let mail = place.mail();
    let folder = HostFolder::at(&mail, Path::new("skills"), place.owner).map_err(|error| {
        Failure::new("io", format!("{} cannot be written to: {error}", mail.join("skills").display()))
    });
    let workspace = place.workspace().display().to_string();
    lattice_sprites::skills::sync(&workspace, &mut FileWriter::new(&mut folder?))
        .map_err(|error| delivery_failure(&mail.join("skills"), error))
}

/// Whether an agent begins, or goes on after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    First,
    Again,
}

/// The sandbox of the agent, to be started as it was recorded, with what it is to know in its environment.
pub(crate) fn spec(app: &App, (place, sprite): (&SpritePlace, &Sprite), going: Going) -> Result<Spec, Failure> {
    let recorded = super::recorded(sprite);
    let words = |name: &str| -> Vec<String> {
        let words = recorded[name].as_array().cloned().unwrap_or_default();
        words.iter().filter_map(Value::as_str).map(|word| filled(word, &sprite.task, &place.workspace())).collect()
    };
    let again = words("resume");
    let command = if going == Going::Again && !again.is_empty() { again } else { words("command") };
    let base = Oid::new(&sprite.base).map_err(|error| Failure::new("store", error.to_string()))?;
    let mut spec = place.agent(base, command).map_err(|error| Failure::from(LandError::from(error)))?;
    let engine = app.engine()?;
    let settings = engine.settings().sprites;
    spec.limits.processes = settings.limits.processes;
    spec.limits.memory_bytes = Some(settings.limits.memory_mb << 20);
    let mounts: Vec<_> = words("mounts").into_iter().map(PathBuf::from).collect();
    let found = spec.command.first_mut().map(|program| install::find(app, program, &mounts));
    let installed = found.transpose()?.unwrap_or_default();
    if place.isolation == Isolation::Strict {
        let mounts = installed.iter().cloned().chain(mounts);
        spec.binds.extend(mounts.map(|folder| Bind { from: folder.clone(), to: folder }));
    }
    let path = spec.environment.iter_mut().find(|(name, _)| name == "PATH");
    if let Some((_, path)) = path {
        installed
            .iter()
            .filter(|place| place.is_dir())
            .for_each(|folder| path.push_str(&format!(":{}/bin", folder.display())));
    }
    let checkout = engine.repository().work_dir.clone().unwrap_or_default();
    for layer in settings.layers.iter().filter(|layer| checkout.join(layer).is_dir()) {
        spec.binds.push(Bind { from: checkout.join(layer), to: Path::new("/workspace").join(layer) });
    }
    let more = [
        ("LATTICE_SPRITE_ID", sprite.name.as_str()),
        ("LATTICE_WORK_ITEM_ID", sprite.work_item_id.as_str()),
        ("LATTICE_TASK", sprite.task.as_str()),
    ];
    spec.environment.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let own = recorded["env"].as_object().cloned().unwrap_or_default();
    let own = own.into_iter().filter_map(|(name, value)| Some((name, with_key(value.as_str()?))));
    if place.isolation == Isolation::Strict {
        spec.environment.extend(lattice_sprites::network::Network::environment());
    }
    spec.environment.extend(own);
    if going == Going::First {
        after_steps(&mut spec, &recorded);
    }
    Ok(spec)
}

/// Has the agent start after the steps that were accepted for its environment.
fn after_steps(spec: &mut Spec, recorded: &Value) {
    let steps = recorded["steps"].as_array().cloned().unwrap_or_default();
    let steps: Vec<_> = steps.iter().filter_map(Value::as_str).collect();
    if !steps.is_empty() {
        let script = format!("set -e\n{}\nexec \"$@\"", steps.join("\n"));
        let before = ["sh".to_owned(), "-c".to_owned(), script, "agent".to_owned()];
        spec.command.splice(0..0, before);
    }
}

/// A text with where requests get the key, and what stands for it.
fn with_key(text: &str) -> String {
    text.replace("{base_url}", &lattice_sprites::network::Network::base_url())
        .replace("{key}", lattice_sprites::network::PLACEHOLDER)
}

/// A word of the command with the task in its place. Presets name the workspace as a sandbox has it.
fn filled(word: &str, task: &str, workspace: &Path) -> String {
    let (named, here) = ("/workspace/", format!("{}/", workspace.display()));
    let word = with_key(word).replace("{prompt_file}", "/workspace/.lattice/prompt.md");
    let word = word.replace("{context_dir}", "/workspace/.lattice/context").replace(named, &here);
    word.replace("{task}", task).replace("{prompt}", &prompt(task, workspace))
}

/// What an agent is told first: the task, where the context lies, and how to speak with Lattice.
fn prompt(task: &str, workspace: &Path) -> String {
    let workspace = workspace.display();
    format!(
        "{task}\n\nYour workspace is {workspace}, a Git repository on a branch of your own; commit there. Context for the \
         task is in {workspace}/.lattice/context; how to read it: {workspace}/.lattice/skills/context/SKILL.md\nIf there is \
         {workspace}/.lattice/{PACK}, it has the code that seems to matter.\nHow to report progress, ask for actions outside of the sandbox and say \
         that you are done: {workspace}/.lattice/skills/protocol/SKILL.md\n"
    )
}
