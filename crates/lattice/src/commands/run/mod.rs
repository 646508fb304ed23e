//! `run` and `checkpoint`: an agent in a sandbox, followed to its end, and its work on the stack.

pub(crate) mod act;
pub(crate) mod bare;
mod folder;
mod follow;
mod install;
mod interrupt;
mod leak;
pub(crate) mod left;
mod network;
mod prepare;
mod shim;
mod task;

use std::path::Path;

use clap::Args;
use lattice_engine::Outcome;
use lattice_model::name::BranchName;
use lattice_model::settings::{AgentSettings, NetworkHost, SpriteLimits, SpriteSettings};
use lattice_sprites::checkpoint::RestoreError;
use lattice_sprites::run::{LandError, RunError, SpritePlace, ask_for_checkpoint};
use lattice_sprites::sandbox::Isolation;
use lattice_sprites::store::{NewSprite, Sprite, SpriteState, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::branch;
use crate::commands::context::gather_into;
use crate::error::Failure;
use crate::output::{Document, Reply, err, printable};
use crate::prompt;

use bare::SandboxChoice;
pub(crate) use follow::{Begin, action_line, follow_to_end, land_work, recorded};
pub(crate) use prepare::{Going, place, spec};
use task::{Task, Work};

/// Run an agent in a sandbox and land its commits as a branch of the stack
///
/// The agent is the command after `--`, or one by name. It sees a checkout of its own in /workspace, the system's programs, and
/// nothing else: no network but what --network names, no credentials, no other file of yours. Its branch is `sprite/<id>`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// `issue N`, `pr N`, or a text; the agent finds it in LATTICE_TASK and in .lattice/prompt.md
    #[arg(required = true, num_args = 1..=2, value_name = "TASK")]
    task: Vec<String>,
    /// The branch to start from and to stand on; the current one if absent
    #[arg(long, value_parser = branch)]
    parent: Option<BranchName>,
    /// The name of the sprite
    #[arg(long, value_name = "ID", value_parser = sprite_name)]
    name: Option<String>,
    /// Leave changes that the agent did not commit in the sprite
    #[arg(long)]
    no_collect: bool,
    /// An action that is carried out without asking, such as OPEN_PR
    #[arg(long, value_name = "ACTION", value_parser = action_name)]
    allow: Vec<String>,
    /// Hosts that the agent may reach, such as api.example.com,*.example.org,localhost:8080; `none` for none
    #[arg(long, value_name = "HOST,...", value_parser = reach)]
    network: Option<Reach>,
    /// How the agent is kept apart from this machine; `none` is not at all, and every output says so
    #[arg(long, value_enum, default_value = "strict")]
    sandbox: SandboxChoice,
    /// The agent by name: claude, codex, aider, opencode, gemini, shell, or one of your configuration
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    agent: Option<String>,
    /// Come back once the agent runs, and let it run on
    #[arg(long)]
    detach: bool,
    /// The agent as a program and its arguments; `{prompt}` and `{prompt_file}` stand for what it is told
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// What a run may reach, as it was typed.
#[derive(Debug, Clone)]
enum Reach {
    None,
    Hosts(Vec<NetworkHost>),
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
    /// Actions that wait for a person.
    pub(crate) approvals: Vec<String>,
    /// `strict`, or `none`.
    pub(crate) sandbox: &'static str,
    /// Hard rules of the protocol that nothing enforces, for want of a sandbox.
    pub(crate) not_enforced: &'static [&'static str],
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

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let task = Task::new(&arguments.task)?;
    let common = app.engine()?.repository().common_dir.clone();
    let mut store = Store::open(&lattice_sprites::store_path(&common))?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => format!("s{}", store.sprites()?.len() + 1),
    };
    let (agent, command) = agent(app, arguments)?;
    let steps = steps(&store)?;
    if arguments.sandbox == SandboxChoice::None {
        bare::check(arguments.network.is_some(), &command, &steps, &app.engine()?.settings().sprites.layers)?;
    }
    network::check_key(app, &agent, &command)?;
    let work = task.work(app, &name, arguments.parent.as_ref())?;
    let mut run = record(arguments, &command, &steps, &app.engine()?.settings().sprites.limits);
    run["dir"] = json!(folder::chosen(app)?);
    store.add_sprite(&NewSprite {
        name: name.clone(),
        work_item_id: work.work_item_id.clone(),
        agent,
        task: work.text.clone(),
        branch: work.branch.to_string(),
        parent: work.parent.to_string(),
        base: work.base.to_string(),
        run: run.to_string(),
        started_at: app.now.to_string(),
    })?;
    let sprite = store.sprite(&name)?;
    let place = place(app, &sprite)?;
    let begin = begin(app, &store, (&place, &sprite), &work).inspect_err(|failure| {
        let _ = store.set_state(sprite.key, SpriteState::Failed, Some(&failure.message), app.now.as_str());
    })?;
    if arguments.detach {
        return detached(app, &store, &sprite);
    }
    let _held = hold(&place)?;
    follow_to_end(app, &mut store, (&place, &sprite), begin)
}

/// How an agent is run, to be remembered.
fn record(arguments: &Arguments, agent: &AgentSettings, steps: &[String], limits: &SpriteLimits) -> Value {
    let isolation = Isolation::from(arguments.sandbox);
    json!({
        "command": agent.command,
        "resume": agent.resume,
        "mounts": agent.mounts,
        "env": agent.env,
        "network": match isolation {
            Isolation::Strict => network::recorded_hosts(agent),
            Isolation::None => json!("not limited"),
        },
        "key": agent.key.as_ref().map(|key| key.url.clone()),
        "sandbox": isolation.as_str(),
        "not_enforced": isolation.not_enforced(),
        "limits": {
            "memory_mb": limits.memory_mb,
            "processes": limits.processes,
            "output_mb": limits.output_mb,
            "minutes": limits.minutes,
        },
        "steps": steps,
        "allow": arguments.allow,
        "collect": !arguments.no_collect,
    })
}

/// What accepted proposals have agents begin with. Those that name no step are told to the agent.
fn steps(store: &Store) -> Result<Vec<String>, Failure> {
    let accepted = store.proposals()?.into_iter().filter(|row| row.state == "accepted");
    Ok(accepted.filter_map(|row| row.step).collect())
}

/// The agent's name and how it is started.
fn agent(app: &App, arguments: &Arguments) -> Result<(String, AgentSettings), Failure> {
    let (name, mut agent) = named_agent(app, arguments)?;
    match &arguments.network {
        None => {}
        Some(Reach::None) => (agent.network, agent.key) = (Vec::new(), None),
        Some(Reach::Hosts(hosts)) => agent.network.clone_from(hosts),
    }
    Ok((name, agent))
}

fn named_agent(app: &App, arguments: &Arguments) -> Result<(String, AgentSettings), Failure> {
    if let Some(program) = arguments.command.first() {
        let command = AgentSettings { command: arguments.command.clone(), ..AgentSettings::default() };
        return Ok((program.clone(), command));
    }
    let settings = app.engine()?.settings().sprites;
    let Some(name) = arguments.agent.clone().or_else(|| settings.agent.clone()) else {
        return Err(Failure::usage("say which agent: --agent NAME, or its command after --")
            .hint("lattice config set sprite.agent NAME makes it the one that runs if none is named"));
    };
    let known: Vec<_> = AgentSettings::presets().map(str::to_owned).chain(settings.agents.keys().cloned()).collect();
    match settings.agent(&name) {
        Some(agent) => Ok((name, agent)),
        None => Err(Failure::usage(format!("there is no agent `{name}`; there are {}", known.join(", ")))),
    }
}

/// Starts a supervisor that outlives this process, and waits until the agent runs.
fn detached(app: &App, store: &Store, sprite: &Sprite) -> Result<Reply, Failure> {
    let failed = |error: std::io::Error| Failure::new("io", format!("a supervisor cannot be started: {error}"));
    let program = app.program().map_err(failed)?;
    let mut supervisor =
        prompt::let_run(&program, &["sprite", "begin", &sprite.name], &app.directory).map_err(failed)?;
    loop {
        let now = store.sprite(&sprite.name)?;
        if now.state != SpriteState::Queued {
            let text = format!("{} {}\n", sprite.name, now.state.as_str());
            let reply = Reply::new(document(&now, Vec::new()), text);
            if let Some(warning) = bare::warning(&now) {
                err(&warning);
            }
            return Ok(reply.note(format!("follow it: lattice sprite events {} --follow", sprite.name)));
        }
        if supervisor.try_wait().map_err(failed)?.is_some() && store.sprite(&sprite.name)?.state == SpriteState::Queued
        {
            return Err(Failure::new("not-started", format!("`{}` could not be started", sprite.name))
                .hint(format!("lattice sprite begin {} says why", sprite.name)));
        }
        app.pause();
    }
}

/// Follows a sprite that was made and not started yet, without a terminal.
pub(crate) fn run_begin(app: &App, name: &str) -> Result<Reply, Failure> {
    let common = app.engine()?.repository().common_dir.clone();
    let mut store = Store::open(&lattice_sprites::store_path(&common))?;
    let sprite = store.sprite(name)?;
    if sprite.state != SpriteState::Queued {
        return Err(Failure::new("begun", format!("`{name}` is {}", sprite.state.as_str())));
    }
    // A terminal that is closed takes its session with it.
    let _ = lattice_sprites::run::own_session();
    let place = place(app, &sprite)?;
    let _held = hold(&place)?;
    let spec = spec(app, (&place, &sprite), Going::First).inspect_err(|failure| {
        let _ = store.set_state(sprite.key, SpriteState::Failed, Some(&failure.message), app.now.as_str());
    })?;
    follow_to_end(app, &mut store, (&place, &sprite), Begin { spec, answer: None })
}

/// A sprite as `run` tells it.
fn document(sprite: &Sprite, approvals: Vec<String>) -> RunDocument {
    RunDocument {
        sprite: sprite.name.clone(),
        state: sprite.state.as_str(),
        outcome: sprite.outcome.clone().unwrap_or_default(),
        branches: Vec::new(),
        checkpoint: sprite.checkpoint.clone(),
        violations: 0,
        approvals,
        sandbox: bare::isolation(sprite).as_str(),
        not_enforced: bare::isolation(sprite).not_enforced(),
    }
}

/// Makes everything that the agent needs.
fn begin(app: &App, store: &Store, (place, sprite): (&SpritePlace, &Sprite), work: &Work) -> Result<Begin, Failure> {
    match app.later().engine()?.for_sprite(&sprite.name).keep_base(&sprite.name, work.base)? {
        Outcome::Gated(bundle) => return Err(bundle.into()),
        Outcome::Done { .. }
        | Outcome::Nothing { .. }
        | Outcome::Planned { .. }
        | Outcome::Differs { .. }
        | Outcome::Paused(_) => {}
    }
    prepare::prepare(app, place, &work.branch, work.base, &work.text)?;
    if let Some((kind, number, head)) = &work.item {
        gather_into(app, (*kind, *number, head.clone()), (&place.mail(), place.owner))?;
    }
    prepare::pack_code(app, place, work)?;
    prepare::tell_environment(place, store)?;
    let spec = spec(app, (place, sprite), Going::First)?;
    Ok(Begin { spec, answer: None })
}

/// Keeps every other process from starting the same sprite or changing its files.
pub(crate) fn hold(place: &SpritePlace) -> Result<std::fs::File, Failure> {
    place.hold().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new("busy", "another lattice works on this sprite"),
        _ => Failure::new("io", format!("the sprite's files cannot be used: {error}")).hint("was it destroyed?"),
    })
}

fn sprite_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.len() > 40 || !text.bytes().all(fits) || text.starts_with('-') || text == "base" {
        return Err("a name has up to 40 lower-case letters, digits and dashes".to_owned());
    }
    Ok(text.to_owned())
}

fn reach(text: &str) -> Result<Reach, String> {
    match text {
        "none" => Ok(Reach::None),
        hosts if hosts.split(',').any(|host| host == "none") => Err("`none` has no hosts beside it".to_owned()),
        hosts => hosts.split(',').map(NetworkHost::new).collect::<Result<_, _>>().map(Reach::Hosts),
    }
}

fn action_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_uppercase();
    if SpriteSettings::is_action(&name) { Ok(name) } else { Err("there is no such action".to_owned()) }
}

pub(crate) fn run_checkpoint(app: &App, _: &CheckpointArguments) -> Result<Reply, Failure> {
    asked(&app.workspace().join(".lattice"))
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
            RunError::Record(error) => {
                let text = std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
                Self::new("io", text)
            }
            RunError::Replayed => Self::new("replayed", "this answer was given already; nothing was done"),
            RunError::Io(source) => Self::new("io", format!("the sprite's files could not be used: {source}")),
        }
    }
}

impl From<lattice_sprites::sandbox::SandboxError> for Failure {
    fn from(error: lattice_sprites::sandbox::SandboxError) -> Self {
        let without = "lattice run --sandbox none runs an agent that you trust without any isolation, and says so";
        let hints = error.hint().into_iter().chain(error.is_of_the_system().then_some(without));
        let failure = Self::new("sandbox-refused", error.to_string());
        hints.fold(failure, Self::hint)
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Self::new("not-restored", format!("{error}{cause}"))
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
            LandError::Place(lattice_sprites::run::PlaceError::Restore(error)) => error.into(),
            LandError::Refused(source) => {
                let mut causes = Vec::new();
                let mut cause: Option<&dyn std::error::Error> = Some(&source);
                while let Some(inner) = cause {
                    causes.push(printable(&inner.to_string()));
                    cause = inner.source();
                }
                Self { causes, ..Self::new("commits-refused", text) }
            }
            LandError::NotAList | LandError::Other(_) => Self::new("commits-refused", text),
        }
    }
}
