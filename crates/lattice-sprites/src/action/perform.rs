//! Carries an action out: intent, effect, receipt. Whatever is cut off is found and finished, and done once.

use std::fs::File;
use std::path::Path;

use lattice_engine::{Engine, EngineError, Host, HostOutcome, Outcome};
use lattice_forge::{ForgeError, LabelChange};
use lattice_model::capability::Capability;
use lattice_model::gate::RepairBundle;
use lattice_model::host::{Draft, PullText};
use lattice_model::name::BranchName;
use lattice_model::settings::SpriteSettings;
use rustix::fs::FlockOperation;
use serde_json::{Map, Value, json};

use super::request::{Action, read_action, work_item_number};
use super::source::{HostValues, credential, notify};
use crate::run::LandError;
use crate::store::{ActionRow, ActionState, Sprite, Store, StoreError};

/// What carrying out needs, besides the store.
pub struct Hands<'a> {
    /// Acts for the sprite.
    pub engine: &'a Engine,
    pub settings: &'a SpriteSettings,
    pub host: &'a HostValues,
    /// Lands the sprite's commits, and gives its branches by their names there with those here.
    pub land: &'a dyn Fn() -> Result<Vec<(String, BranchName)>, LandError>,
    pub now: &'a dyn Fn() -> String,
    /// Hears of each step; a test ends the process there.
    pub step: &'a dyn Fn(&str),
}

/// What an effect left.
#[derive(Default)]
struct Effect {
    result: Map<String, Value>,
    notice: Option<String>,
}

/// Why there was no effect.
enum Trouble {
    /// Somebody is in the middle of something.
    Busy(String),
    /// It may work later, when the host is in reach or the user is logged in.
    Later(String),
    Never(String),
}

/// Whether an action is to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It is settled.
    No,
    /// What is in its way passes by itself.
    Soon,
    WhenAsked,
}

/// Carries an approved action out, and gives it as it is then: settled, or still approved with the reason why.
pub fn carry_out(
    store: &mut Store,
    sprite: &Sprite,
    id: i64,
    hands: &Hands<'_>,
) -> Result<(ActionRow, Retry), StoreError> {
    let _only_one = exclusively(&hands.engine.repository().common_dir)?;
    let row = store.action(id)?;
    if row.state != ActionState::Approved {
        return Ok((row, Retry::No));
    }
    let done = match read_action(&row.action, &row.parameters) {
        Err(problem) => Err(Trouble::Never(problem)),
        Ok(action) => match said_before(store, &row, &action)? {
            Some(result) => Ok(Effect { result, notice: None }),
            None => {
                let is_first = store.begin_action(id, &row.action, &(hands.now)())?;
                (hands.step)("intent");
                effect(&action, (&row, sprite), is_first, hands)
            }
        },
    };
    (hands.step)("effect");
    let retry = match done {
        Ok(Effect { result, notice }) => {
            let end = (ActionState::Done, None);
            store.end_action(&row, end, (&result, notice.as_deref()), &(hands.now)())?;
            Retry::No
        }
        Err(Trouble::Never(reason)) => {
            let end = (ActionState::Failed, Some(reason.as_str()));
            store.end_action(&row, end, (&Map::new(), None), &(hands.now)())?;
            Retry::No
        }
        Err(Trouble::Busy(reason)) => store.delay_action(id, &reason).map(|()| Retry::Soon)?,
        Err(Trouble::Later(reason)) => store.delay_action(id, &reason).map(|()| Retry::WhenAsked)?,
    };
    (hands.step)("receipt");
    Ok((store.action(id)?, retry))
}

/// What is said to people is said once, also by an agent that was interrupted and begins again.
fn said_before(store: &Store, row: &ActionRow, action: &Action) -> Result<Option<Map<String, Value>>, StoreError> {
    match action {
        Action::PostComment { .. } | Action::NotifyUser { .. } => store.done_before(row),
        // These do nothing where it is done already.
        Action::OpenPr { .. }
        | Action::PushToBranch { .. }
        | Action::LabelIssue { .. }
        | Action::FetchCredential { .. } => Ok(None),
    }
}

/// One process at a time carries actions out; the kernel lets the next one in if it is killed.
fn exclusively(common_dir: &Path) -> std::io::Result<File> {
    let path = common_dir.join("lattice").join("actions.lock");
    let file = File::options().create(true).append(true).open(path)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn effect(
    action: &Action,
    (row, sprite): (&ActionRow, &Sprite),
    is_first: bool,
    hands: &Hands<'_>,
) -> Result<Effect, Trouble> {
    let number = || {
        work_item_number(&sprite.work_item_id)
            .ok_or_else(|| Trouble::Never(format!("`{}` is no issue or pull request", sprite.work_item_id)))
    };
    let results = |pairs: Vec<(&str, Value)>| {
        let result = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Effect { result, notice: None })
    };
    match action {
        Action::OpenPr { title, body, base, head, draft } => {
            let branch = landed(head, hands)?;
            check_base(&branch, base, hands)?;
            let draft = if *draft { Draft::Draft } else { Draft::Ready };
            let text = PullText { title: title.clone(), body: body.clone() };
            let mut outcome = settled(hands.engine.submit_alone(&branch, Some((text, draft))))?;
            let pull = outcome.pulls.remove(&branch);
            let pull = pull.ok_or_else(|| Trouble::Never(format!("`{branch}` has no commits to open one for")))?;
            results(vec![("pr_number", json!(pull.number)), ("pr_url", json!(pull.url))])
        }
        Action::PushToBranch { branch } => {
            let branch = landed(branch, hands)?;
            settled(hands.engine.submit_alone(&branch, None))?;
            let tip = hands.engine.tip(&branch).map_err(trouble)?;
            results(vec![("sha", json!(tip.map(|tip| tip.to_string())))])
        }
        Action::PostComment { body } => {
            let host = hands.engine.host().map_err(trouble)?;
            results(vec![("url", json!(comment(&host, number()?, (body, &mark(row, sprite)), is_first)?))])
        }
        Action::LabelIssue { labels } => {
            let host = hands.engine.host().map_err(trouble)?;
            let change = LabelChange { add: labels.clone(), remove: Vec::new() };
            let now = ask(&host, host.forge().map_err(trouble)?.label(number()?, &change))?;
            results(vec![("labels", json!(now))])
        }
        Action::NotifyUser { message } => {
            if !hands.settings.notify.is_empty() {
                // What cannot be told that way is still told by `sprite show`.
                let _ = notify(&hands.settings.notify, hands.host, (&mark(row, sprite), &sprite.name, message));
            }
            Ok(Effect { result: Map::new(), notice: Some(message.clone()) })
        }
        Action::FetchCredential { name } => {
            let source = hands.settings.credentials.get(name);
            let source = source.ok_or_else(|| Trouble::Never(format!("there is no credential `{name}` for agents")))?;
            // Looked up again when it is handed over: it is stored nowhere.
            credential(source, hands.host).map_err(Trouble::Later)?;
            Ok(Effect::default())
        }
    }
}

/// Names a request on a host, so that what a killed process did there is found.
fn mark(row: &ActionRow, sprite: &Sprite) -> String {
    format!("{}-{}-{}", sprite.name, row.seq, row.mark)
}

/// Lands the sprite's commits, and gives the name that its branch has here.
fn landed(inside: &BranchName, hands: &Hands<'_>) -> Result<BranchName, Trouble> {
    let names = (hands.land)().map_err(|error| match error {
        LandError::Gated(bundle) => gated(&bundle),
        LandError::Engine(error) => trouble(error),
        other => Trouble::Never(chain(&other)),
    })?;
    let found = names.into_iter().find(|(name, _)| name == inside.as_str());
    found.map(|(_, here)| here).ok_or_else(|| Trouble::Never(format!("the sprite made no commits on `{inside}`")))
}

/// A pull request goes to the branch that its own stands on.
fn check_base(branch: &BranchName, base: &BranchName, hands: &Hands<'_>) -> Result<(), Trouble> {
    let parent = hands.engine.parent_of(branch).map_err(trouble)?;
    match parent {
        Some(parent) if parent != *base => {
            Err(Trouble::Never(format!("`{branch}` stands on `{parent}`, so `base` must be `{parent}`")))
        }
        Some(_) | None => Ok(()),
    }
}

fn comment(host: &Host, number: u64, (body, mark): (&str, &str), is_first: bool) -> Result<String, Trouble> {
    let forge = host.forge().map_err(trouble)?;
    let hidden = format!("<!-- lattice:{mark} -->");
    let known = if is_first { Vec::new() } else { ask(host, forge.comments(number))? };
    let id = match known.iter().find(|comment| comment.body.contains(&hidden)) {
        Some(there) => there.id,
        None => ask(host, forge.comment(number, &format!("{body}\n\n{hidden}")))?.id,
    };
    let url = ask(host, forge.issue(number))?.url;
    Ok(format!("{url}#issuecomment-{id}"))
}

fn ask<T>(host: &Host, answer: impl Future<Output = Result<T, ForgeError>>) -> Result<T, Trouble> {
    host.wait(answer).map_err(|error| trouble(error.into()))
}

fn settled(outcome: Result<HostOutcome, EngineError>) -> Result<HostOutcome, Trouble> {
    let outcome = outcome.map_err(trouble)?;
    match &outcome.outcome {
        Outcome::Done { .. } | Outcome::Nothing { .. } => Ok(outcome),
        Outcome::Gated(bundle) => Err(gated(bundle)),
        Outcome::Planned { .. } | Outcome::Differs { .. } | Outcome::Paused(_) => {
            Err(Trouble::Busy("it stopped half-way; lattice continue or lattice abort".to_owned()))
        }
    }
}

fn gated(bundle: &RepairBundle) -> Trouble {
    let reasons: Vec<_> = bundle.issues.iter().map(|issue| issue.summary.clone()).collect();
    let reason = reasons.join("; ");
    let passes = [Capability::NoLatticeOpInProgress, Capability::NoExternalGitOpInProgress, Capability::BranchesFree];
    let personal = [Capability::AuthAvailable, Capability::RepoAuthorized, Capability::RemoteResolved];
    let lacks = |some: &[Capability]| bundle.missing.iter().any(|missing| some.contains(missing));
    match (lacks(&passes), lacks(&personal)) {
        (true, _) => Trouble::Busy(reason),
        (false, true) => Trouble::Later(reason),
        (false, false) => Trouble::Never(reason),
    }
}

fn trouble(error: EngineError) -> Trouble {
    let text = chain(&error);
    let source = match error {
        EngineError::RemotePart { source, .. } | EngineError::After { source, .. } => *source,
        other => other,
    };
    match source {
        EngineError::Lock(_) => Trouble::Busy(text),
        EngineError::Remote(_)
        | EngineError::NoRuntime(_)
        | EngineError::InsideOperation { .. }
        | EngineError::Forge(
            ForgeError::Remote(_)
            | ForgeError::Unauthorized
            | ForgeError::RateLimited { .. }
            | ForgeError::Server(_)
            | ForgeError::Unreachable { .. }
            | ForgeError::TimedOut { .. }
            | ForgeError::Auth(_)
            | ForgeError::Busy,
        ) => Trouble::Later(text),
        EngineError::Git(_)
        | EngineError::Scan(_)
        | EngineError::Execute(_)
        | EngineError::Refused(_)
        | EngineError::PushRefused { .. }
        | EngineError::RemotePart { .. }
        | EngineError::After { .. }
        | EngineError::Forge(_) => Trouble::Never(text),
    }
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.ends_with(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = inner.source();
    }
    text
}
