//! `proposals`: changes of the environment that agents propose, and that a person accepts or rejects.

use clap::{Args, Subcommand};
use lattice_model::plan::count;
use lattice_sprites::store::{ProposalRow, Store, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::commands::sprite;
use crate::error::Failure;
use crate::output::{Document, Reply, printable};

/// List what agents propose to change in their environment, and accept or reject it
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<ProposalsCommand>,
}

#[derive(Debug, Subcommand)]
enum ProposalsCommand {
    /// List all proposals
    List,
    /// Accept a proposal; it holds for sprites that are started from now on
    Accept {
        /// The proposal
        id: String,
        /// What to do in the sandbox before an agent starts; the proposal's own command if absent
        #[arg(long, value_name = "COMMAND")]
        step: Option<String>,
    },
    /// Reject a proposal
    Reject {
        /// The proposal
        id: String,
    },
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProposalsDocument {
    proposals: Vec<ProposalDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProposalDocument {
    id: String,
    /// The sprite that made it first.
    sprite: String,
    /// How often it was made.
    seen: u64,
    /// `pending`, `accepted` or `rejected`.
    state: String,
    #[serde(rename = "type")]
    kind: String,
    scope: String,
    confidence: f64,
    payload: Value,
    /// What future sprites do before their agents start.
    step: Option<String>,
}

impl Document for ProposalsDocument {
    const COMMAND: &'static str = "proposals";
}

impl ProposalDocument {
    fn of(row: ProposalRow) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            kind: text(&row.payload["suggested_adjustment"]["type"]),
            scope: text(&row.payload["scope"]),
            confidence: row.payload["confidence"].as_f64().unwrap_or_default(),
            id: row.id,
            sprite: row.sprite,
            seen: row.seen,
            state: row.state,
            payload: row.payload,
            step: row.step,
        }
    }
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.command {
        None | Some(ProposalsCommand::List) => list(app),
        Some(ProposalsCommand::Accept { id, step }) => accept(app, id, step.as_deref()),
        Some(ProposalsCommand::Reject { id }) => {
            let (store, row) = find(app, id)?;
            store.decide_proposal(&row, ("rejected", None), app.now.as_str())?;
            Ok(told(&store, id, format!("{id} rejected\n"))?.story())
        }
    }
}

fn list(app: &App) -> Result<Reply, Failure> {
    let rows = sprite::store(app)?.map_or(Ok(Vec::new()), |store| store.proposals())?;
    let proposals: Vec<_> = rows.into_iter().map(ProposalDocument::of).collect();
    let text: String = proposals.iter().map(text).collect();
    let reply = Reply::new(ProposalsDocument { proposals }, text.clone());
    Ok(if text.is_empty() { reply.note("no agent has proposed anything") } else { reply })
}

fn text(proposal: &ProposalDocument) -> String {
    let failure = &proposal.payload["observed_failure"];
    let details = &proposal.payload["suggested_adjustment"]["details"];
    let mut text = format!(
        "{}  {}  {} ({}, seen {}, {:.0}% sure)\n",
        proposal.id,
        proposal.state,
        proposal.kind,
        proposal.scope,
        count(usize::try_from(proposal.seen).unwrap_or(usize::MAX), "time"),
        proposal.confidence * 100.0
    );
    text.push_str(&format!("  wants: {}\n", printable(&details.to_string())));
    text.push_str(&format!("  saw: {}\n", printable(failure["stderr_hint"].as_str().unwrap_or_default())));
    text.extend(proposal.step.as_deref().map(|step| format!("  does first: {}\n", printable(step))));
    text
}

fn find(app: &App, id: &str) -> Result<(Store, ProposalRow), Failure> {
    let none = || Failure::from(StoreError::NoSuchProposal(id.to_owned()));
    let store = sprite::store(app)?.ok_or_else(none)?;
    let row = store.proposal(id)?;
    Ok((store, row))
}

fn accept(app: &App, id: &str, step: Option<&str>) -> Result<Reply, Failure> {
    let (store, row) = find(app, id)?;
    let adjustment = &row.payload["suggested_adjustment"];
    let own = adjustment["details"]["command"].as_str();
    let step = step.or(own);
    store.decide_proposal(&row, ("accepted", step), app.now.as_str())?;
    let is_global = row.payload["scope"] == "global_candidate";
    let text = match step {
        Some(step) => format!("{id} accepted; agents start after: {}\n", printable(step)),
        None => format!("{id} accepted; agents that start from now on are told of it\n"),
    };
    let reply = told(&store, id, text)?.story();
    let reply = if is_global { reply.note("it holds for this repository; for others, accept it there") } else { reply };
    Ok(match step {
        Some(_) => reply,
        None => {
            reply.note(format!("it names no command; to run one first: lattice proposals accept {id} --step COMMAND"))
        }
    })
}

fn told(store: &Store, id: &str, text: String) -> Result<Reply, Failure> {
    let proposals = vec![ProposalDocument::of(store.proposal(id)?)];
    Ok(Reply::new(ProposalsDocument { proposals }, text))
}
