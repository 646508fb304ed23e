//! `approvals`, `approve` and `deny`: actions of sprites that wait for a person.

use clap::{Args, Subcommand};
use lattice_sprites::run::supervisor;
use lattice_sprites::store::{ActionRow, ActionState, Sprite, SpriteState};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::cli::Preview;
use crate::commands::run::{self, act};
use crate::commands::sprite;
use crate::error::Failure;
use crate::output::{Document, Reply, printable};

/// List actions that sprites ask for and that a person decides on
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(subcommand)]
    command: Option<ListCommand>,
}

#[derive(Debug, Subcommand)]
enum ListCommand {
    /// The same
    List,
}

/// Let an action of a sprite be done; a sprite that waits for it goes on with the result
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// The action, as `lattice approvals` lists it
    id: i64,
    #[command(flatten)]
    preview: Preview,
}

/// Refuse an action of a sprite; a sprite that waits for it goes on with the refusal
#[derive(Debug, Args)]
pub(crate) struct DenyArguments {
    /// The action, as `lattice approvals` lists it
    id: i64,
    /// Why; the agent is told
    #[arg(long, default_value = "a person said no")]
    reason: String,
    #[command(flatten)]
    preview: Preview,
}

/// Actions that are not settled.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalsDocument {
    approvals: Vec<ApprovalDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalDocument {
    id: String,
    sprite: String,
    action: String,
    parameters: Map<String, Value>,
    blocking: bool,
    /// What the policy says of such an action: `allow`, `ask` or `deny`.
    policy: &'static str,
    requested_at: String,
    preview: Vec<String>,
    /// `asked`, or `approved` if it could not be done yet.
    state: &'static str,
    /// Why it is not done yet.
    reason: Option<String>,
}

/// What became of an action.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalDoneDocument {
    id: String,
    sprite: String,
    action: String,
    /// `done`, `failed`, `denied`, or `approved` if it could not be done yet.
    state: &'static str,
    reason: Option<String>,
    result: Map<String, Value>,
    /// How the sprite went on, if it waited for it: the document of `run`.
    run: Option<Value>,
}

impl Document for ApprovalsDocument {
    const COMMAND: &'static str = "approvals";
}

impl Document for ApprovalDoneDocument {
    const COMMAND: &'static str = "approve";
}

pub(crate) fn run_list(app: &App, _: &ListArguments) -> Result<Reply, Failure> {
    let settings = app.engine()?.settings().sprites;
    let mut approvals = Vec::new();
    let mut text = String::new();
    if let Some(store) = sprite::store(app)? {
        for row in store.actions(None)?.into_iter().filter(|row| !row.state.is_settled()) {
            let sprite = store.sprite(&row.sprite)?;
            let preview = act::preview(&row, &sprite);
            text.push_str(&format!(
                "{:<4} {}  {}{}\n",
                row.id,
                row.sprite,
                printable(&row.action),
                waits(&row, &sprite)
            ));
            preview.iter().for_each(|line| text.push_str(&format!("       {}\n", printable(line))));
            approvals.push(ApprovalDocument {
                id: row.id.to_string(),
                policy: settings.policy(&row.action).as_str(),
                sprite: row.sprite,
                action: row.action,
                parameters: row.parameters,
                blocking: row.blocking,
                requested_at: row.at,
                preview,
                state: row.state.as_str(),
                reason: row.reason,
            });
        }
    }
    let reply = if approvals.is_empty() {
        Reply::new(ApprovalsDocument { approvals }, text).note("no sprite asks for anything")
    } else {
        Reply::new(ApprovalsDocument { approvals }, text).note("lattice approve ID, or lattice deny ID")
    };
    Ok(reply)
}

fn waits(row: &ActionRow, sprite: &Sprite) -> String {
    let waits = if row.blocking && sprite.state == SpriteState::Waiting { ", and waits for it" } else { "" };
    let reason = row.reason.as_deref().map(|reason| format!(" (approved; {})", printable(reason))).unwrap_or_default();
    format!("{waits}{reason}")
}

pub(crate) fn run_approve(app: &App, arguments: &ApproveArguments) -> Result<Reply, Failure> {
    decide(app, arguments.id, arguments.preview, None)
}

pub(crate) fn run_deny(app: &App, arguments: &DenyArguments) -> Result<Reply, Failure> {
    decide(app, arguments.id, arguments.preview, Some(&arguments.reason))
}

/// Carries out what was decided; a sprite that waits for it goes on.
fn decide(app: &App, id: i64, preview: Preview, refusal: Option<&str>) -> Result<Reply, Failure> {
    let none = || Failure::from(lattice_sprites::store::StoreError::NoSuchAction(id));
    let mut store = sprite::store(app)?.ok_or_else(none)?;
    let row = store.action(id)?;
    let sprite = store.sprite(&row.sprite)?;
    if preview.dry_run {
        let lines: String = act::preview(&row, &sprite).iter().map(|line| format!("{}\n", printable(line))).collect();
        return Ok(Reply::new(done(&row, None), lines).note("this was a dry run: nothing was changed"));
    }
    let place = sprite::place(app, &sprite)?;
    let held = if supervisor(&sprite).is_none() && place.own.exists() { Some(run::hold(&place)?) } else { None };
    if row.state == ActionState::New && supervisor(&sprite).is_none() {
        act::settle(app, &mut store, &sprite, act::When::AtRest)?;
    }
    let row = match refusal {
        None => act::approve(app, &mut store, &sprite, &row)?,
        Some(reason) => act::deny(&store, &row, reason)?,
    };
    check_wanted(&row, refusal)?;
    if held.is_none() || sprite.state != SpriteState::Waiting {
        return Ok(told(&row));
    }
    let Some(begin) = act::answered(app, &mut store, (&place, &sprite))? else { return Ok(told(&row)) };
    let reply = run::follow_to_end(app, &mut store, (&place, &sprite), begin)?;
    let (text, notes, code) = (reply.text.clone(), reply.notes.clone(), reply.code);
    let line = told(&row).text;
    let reply = Reply::new(done(&row, Some(reply.fields())), line + &text).code(code);
    let said = run::action_line(&row);
    Ok(notes.into_iter().filter(|note| Some(note) != said.as_ref()).fold(reply, Reply::note))
}

/// What was decided before stays decided.
fn check_wanted(row: &ActionRow, refusal: Option<&str>) -> Result<(), Failure> {
    match (row.state, refusal) {
        (ActionState::Denied, None) => {
            let reason = row.reason.as_deref().unwrap_or_default();
            Err(Failure::new("denied", format!("action {} was denied: {}", row.id, printable(reason))))
        }
        (ActionState::Done | ActionState::Failed, Some(_)) => {
            Err(Failure::new("too-late", format!("action {} is {} already", row.id, row.state.as_str())))
        }
        (
            ActionState::New
            | ActionState::Asked
            | ActionState::Approved
            | ActionState::Denied
            | ActionState::Done
            | ActionState::Failed,
            _,
        ) => Ok(()),
    }
}

fn done(row: &ActionRow, run: Option<Value>) -> ApprovalDoneDocument {
    ApprovalDoneDocument {
        id: row.id.to_string(),
        sprite: row.sprite.clone(),
        action: row.action.clone(),
        state: row.state.as_str(),
        reason: row.reason.clone(),
        result: row.result.clone().unwrap_or_default(),
        run,
    }
}

fn told(row: &ActionRow) -> Reply {
    let reason = row.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let result = row.result.clone().unwrap_or_default();
    let values: String =
        result.iter().map(|(name, value)| format!("  {name}: {}\n", printable(&plain(value)))).collect();
    let text = format!("{} {}{reason}\n{values}", row.action, row.state.as_str());
    let reply = Reply::new(done(row, None), text);
    match row.state {
        ActionState::Approved if row.reason.is_none() => {
            reply.note(format!("it is carried out when {} ends or waits", row.sprite))
        }
        ActionState::Approved => {
            reply.note(format!("try again: lattice approve {}", row.id)).code(crate::error::Code::Paused)
        }
        ActionState::Failed => reply.code(crate::error::Code::Failed),
        ActionState::New | ActionState::Asked | ActionState::Denied | ActionState::Done => reply,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
