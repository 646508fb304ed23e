//! `run` and `checkpoint`: an agent in a sandbox, followed to its end, and its work on the stack.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use lattice_engine::{Outcome, WorkingCopyNeed};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;
use lattice_sprites::run::{
    Collect, Happening, Job, LandError, Landing, RunError, SpritePlace, Uncommitted, Verdict, Watcher, Work,
    ask_for_checkpoint, land, next, supervise,
};
use lattice_sprites::sandbox::{Bind, Spec};
use lattice_sprites::store::{Effect, NewSprite, Sprite, SpriteState, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::app::{App, Format, Noise};
use crate::commands::branch;
use crate::error::{Code, Failure};
use crate::output::{Document, Reply, err, printable};

/// Run an agent in a sandbox and land its commits as a branch of the stack
///
/// The agent is the command after `--`. It sees a checkout of its own in /workspace, the system's programs, and
/// nothing else: no network, no credentials, no other file of yours. Its branch is `sprite/<id>`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What the agent is to do; it finds the text in LATTICE_TASK and in .lattice/context/task.md
    task: String,
    /// The branch to start from and to stand on; the current one if absent
    #[arg(long, value_parser = branch)]
    parent: Option<BranchName>,
    /// The name of the sprite
    #[arg(long, value_name = "ID", value_parser = sprite_name)]
    name: Option<String>,
    /// Leave changes that the agent did not commit in the sprite
    #[arg(long)]
    no_collect: bool,
    /// The agent: a program and its arguments; `{prompt}` and `{prompt_file}` stand for the task
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Inside a sprite: freeze the files and print the id of the checkpoint
#[derive(Debug, Args)]
pub(crate) struct CheckpointArguments {}

/// How a run ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunDocument {
    pub(crate) sprite: String,
    /// `completed`, `failed`, `waiting` or `stopped`.
    pub(crate) state: &'static str,
    pub(crate) outcome: String,
    /// Branches that are on the stack now, with their parents.
    pub(crate) branches: Vec<LandedDocument>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) violations: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LandedDocument {
    branch: String,
    tip: String,
    parent: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckpointDocument {
    checkpoint: String,
}

impl Document for RunDocument {
    const COMMAND: &'static str = "run";
}

impl Document for CheckpointDocument {
    const COMMAND: &'static str = "checkpoint";
}

/// Where a sprite starts.
struct Start {
    parent: BranchName,
    base: Oid,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let snapshot = engine.observe("run", WorkingCopyNeed::No)?.snapshot;
    let start = start(&snapshot, arguments.parent.as_ref())?;
    let common = engine.repository().common_dir.clone();
    let mut store = Store::open(&lattice_sprites::store_path(&common))?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => format!("s{}", store.sprites()?.len() + 1),
    };
    let own = BranchName::new(format!("sprite/{name}")).map_err(|error| Failure::usage(error.to_string()))?;
    let task = &arguments.task;
    let run = json!({ "command": arguments.command, "network": "none", "sandbox": "strict" });
    store.add_sprite(&NewSprite {
        name: name.clone(),
        work_item_id: format!("task-{name}"),
        agent: arguments.command.first().cloned().unwrap_or_default(),
        task: task.clone(),
        branch: own.to_string(),
        parent: start.parent.to_string(),
        base: start.base.to_string(),
        run: run.to_string(),
        started_at: app.now.to_string(),
    })?;
    let sprite = store.sprite(&name)?;
    let place = place(app, &common, &name)?;
    let failed = |failure: Failure, store: &Store| {
        let _ = store.set_state(sprite.key, SpriteState::Failed, Some(&failure.message), app.now.as_str());
        failure
    };
    match engine.for_sprite(&name).keep_base(&name, start.base)? {
        Outcome::Gated(bundle) => return Err(failed(bundle.into(), &store)),
        Outcome::Done { .. }
        | Outcome::Nothing { .. }
        | Outcome::Planned { .. }
        | Outcome::Differs { .. }
        | Outcome::Paused(_) => {}
    }
    prepare(app, &place, &own, start.base, task).map_err(|failure| failed(failure, &store))?;
    let command = arguments.command.iter().map(|word| filled(word, task)).collect();
    let spec = agent_spec(app, &place, &sprite, command).map_err(|failure| failed(failure, &store))?;
    let collect = if arguments.no_collect { Collect::Commits } else { Collect::Everything };
    follow_to_end(app, &mut store, (&place, &sprite), (spec, None), collect)
}

/// Runs the agent, lands what it made, and says how it ended.
pub(crate) fn follow_to_end(
    app: &App,
    store: &mut Store,
    (place, sprite): (&SpritePlace, &Sprite),
    (spec, resumed_from): (Spec, Option<String>),
    collect: Collect,
) -> Result<Reply, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let job = Job { place, sprite, spec, resumed_from, seed: app.seed(), stop };
    let mut watcher = Follower { app, blocking: None };
    let ended = supervise(&job, store, &mut watcher);
    let now = app.clock();
    let (verdict, outcome) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let failure = Failure::from(error);
            store.set_state(sprite.key, SpriteState::Failed, Some(&failure.message), now.as_str())?;
            return Err(failure);
        }
    };
    let state = next(SpriteState::Running, Happening::Ended(verdict)).unwrap_or(SpriteState::Failed);
    store.set_state(sprite.key, state, Some(&outcome), now.as_str())?;
    let landing = match verdict {
        // The work of a sprite that waits is not done; it lands when it ends.
        Verdict::Waiting => Landing { branches: Vec::new(), uncommitted: Uncommitted::None, remotes: Vec::new() },
        Verdict::Completed | Verdict::Failed | Verdict::Stopped => land_work(app, store, (place, sprite), collect)?,
    };
    for remote in &landing.remotes {
        let detail = format!("the agent made the remote `{remote}`; nothing uses it");
        let finding = lattice_sprites::protocol::Finding::new(lattice_sprites::protocol::Rule::RemoteEdited, detail);
        store.add_finding(sprite.key, finding, now.as_str())?;
    }
    let sprite = store.sprite(&sprite.name)?;
    let violations = store.violations(sprite.key)?.len();
    Ok(told(&sprite, outcome, landing, (violations, watcher.blocking)))
}

fn told(sprite: &Sprite, outcome: String, landing: Landing, (violations, asked_for): (usize, Option<String>)) -> Reply {
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
    let mut reply = Reply::new(
        RunDocument {
            sprite: sprite.name.clone(),
            state: sprite.state.as_str(),
            outcome,
            branches: landing.branches.iter().map(document).collect(),
            checkpoint: sprite.checkpoint.clone(),
            violations,
        },
        text,
    )
    .code(code);
    match landing.uncommitted {
        Uncommitted::None => {}
        Uncommitted::Collected => reply = reply.note("changes that the agent did not commit are in a last commit"),
        Uncommitted::Left => {
            reply = reply.note("the agent was in the middle of a merge or rebase; its open changes stay in the sprite");
        }
    }
    if violations > 0 {
        reply = reply.note(format!("{violations} remarks on the protocol: lattice sprite show {}", sprite.name));
    }
    if let Some(action) = &asked_for {
        reply = reply.note(format!("it asks for {action}, which a person has to do; then answer with its result"));
    }
    if sprite.state == SpriteState::Waiting {
        reply = reply.note(format!("answer it: lattice resume {} --input NAME=VALUE", sprite.name));
    }
    reply
}

/// Lands what a sprite made, and remembers where it left its branches.
pub(crate) fn land_work(
    app: &App,
    store: &Store,
    (place, sprite): (&SpritePlace, &Sprite),
    collect: Collect,
) -> Result<Landing, Failure> {
    let broken = |what: &str| Failure::new("store", format!("the sprite's {what} cannot be read"));
    let engine = app.later().engine()?.for_sprite(&sprite.name);
    let subject = sprite.task.lines().next().unwrap_or_default();
    let mut run: serde_json::Value = serde_json::from_str(&sprite.run).map_err(|_| broken("run"))?;
    let tips = run["landed"].as_object().cloned().unwrap_or_default();
    let tip = |(name, tip): (&String, &serde_json::Value)| Some((name.clone(), Oid::new(tip.as_str()?).ok()?));
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
    store.set_run(sprite.key, &run.to_string())?;
    Ok(landing)
}

fn start(snapshot: &Snapshot, named: Option<&BranchName>) -> Result<Start, Failure> {
    let parent = named.or_else(|| snapshot.head.branch()).cloned().ok_or_else(|| {
        Failure::new("no-parent", "HEAD is on no branch").hint("say where to start: --parent <branch>")
    })?;
    let is_trunk = snapshot.settings.trunk.as_ref() == Some(&parent);
    if !is_trunk && !snapshot.is_tracked(&parent) {
        return Err(Failure::new("untracked-parent", format!("`{parent}` is neither the trunk nor tracked"))
            .hint(format!("lattice track {} --parent <branch>", parent.word()))
            .hint("or, in a new repository: lattice init"));
    }
    let base = snapshot.tip(&parent).ok_or_else(|| Failure::new("no-commit", format!("`{parent}` has no commit")))?;
    Ok(Start { parent, base })
}

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
fn prepare(app: &App, place: &SpritePlace, own: &BranchName, base: Oid, task: &str) -> Result<(), Failure> {
    let failed = |error: lattice_sprites::run::PlaceError| Failure::from(LandError::from(error));
    place.create(own, base).map_err(failed)?;
    place.file(&place.mail().join("context/task.md"), &format!("{task}\n")).map_err(failed)?;
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

/// The sandbox of the agent, with what it is to know in its environment.
pub(crate) fn agent_spec(
    app: &App,
    place: &SpritePlace,
    sprite: &Sprite,
    command: Vec<String>,
) -> Result<Spec, Failure> {
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
pub(crate) fn filled(word: &str, task: &str) -> String {
    let word = word.replace("{prompt_file}", "/workspace/.lattice/context/task.md");
    word.replace("{context_dir}", "/workspace/.lattice/context").replace("{prompt}", task)
}

fn sprite_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.len() > 40 || !text.bytes().all(fits) || text.starts_with('-') || text == "base" {
        return Err("a name has up to 40 lower-case letters, digits and dashes".to_owned());
    }
    Ok(text.to_owned())
}

/// Shows events as they come.
struct Follower<'a> {
    app: &'a App,
    /// The action that the agent cannot go on without.
    blocking: Option<String>,
}

impl Watcher for Follower<'_> {
    fn effect(&mut self, effect: &Effect) {
        if let Effect::Counts { event, .. } = effect
            && let Some(request) = event.action_request()
        {
            self.blocking = request.blocking.then_some(request.action);
        }
        if self.app.noise == Noise::Quiet || self.app.format == Format::Json {
            return;
        }
        match effect {
            Effect::Seen { event, .. } => {
                let document = super::sprite::document(0, "stdout", event.to_value());
                err(super::sprite::event_line(&document).trim_start_matches([' ', '0']));
            }
            Effect::Found(placed) => {
                let finding = &placed.finding;
                err(&format!("{} {}: {}\n", finding.rule.weight().as_str(), finding.rule.as_str(), finding.detail));
            }
            Effect::Counts { .. } => {}
        }
    }

    fn output(&mut self, _: &[u8]) {}

    fn now(&self) -> String {
        self.app.clock().to_string()
    }
}

pub(crate) fn run_checkpoint(app: &App, _: &CheckpointArguments) -> Result<Reply, Failure> {
    let workspace = app.variable("LATTICE_WORKSPACE").filter(|path| !path.is_empty());
    let workspace = workspace.map_or_else(|| PathBuf::from("/workspace"), PathBuf::from);
    asked(&workspace.join(".lattice"))
}

/// Asks the supervisor of a sprite for a checkpoint.
pub(crate) fn asked(mail: &Path) -> Result<Reply, Failure> {
    let checkpoint = ask_for_checkpoint(mail).map_err(|error| {
        Failure::new("no-checkpoint", format!("there is no checkpoint: {error}"))
            .hint("this works inside a sprite that runs; outside: lattice sprite checkpoint ID")
    })?;
    let text = format!("{checkpoint}\n");
    Ok(Reply::new(CheckpointDocument { checkpoint }, text))
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            RunError::Sandbox(error) => error.into(),
            RunError::Io(source) => Self::new("io", format!("the sprite's files could not be used: {source}")),
        }
    }
}

impl From<lattice_sprites::sandbox::SandboxError> for Failure {
    fn from(error: lattice_sprites::sandbox::SandboxError) -> Self {
        let hint = error.hint();
        let failure = Self::new("sandbox-refused", error.to_string());
        hint.into_iter().fold(failure, Self::hint)
    }
}

impl From<LandError> for Failure {
    fn from(error: LandError) -> Self {
        let text = error.to_string();
        match error {
            LandError::Engine(error) => error.into(),
            LandError::Gated(bundle) => bundle.into(),
            LandError::Sandbox(error) => error.into(),
            LandError::Place(lattice_sprites::run::PlaceError::Base { source, .. }) => source.into(),
            LandError::Place(lattice_sprites::run::PlaceError::Io { source, .. }) => {
                Self::new("io", format!("{text}: {source}"))
            }
            LandError::Refused(source) => {
                let mut causes = Vec::new();
                let mut cause: Option<&dyn std::error::Error> = Some(&source);
                while let Some(inner) = cause {
                    causes.push(printable(&inner.to_string()));
                    cause = inner.source();
                }
                Self { causes, ..Self::new("commits-refused", text) }
            }
            LandError::NotAList => Self::new("commits-refused", text),
        }
    }
}
