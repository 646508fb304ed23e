//! What commands that concern a host share: documents, words, and the forge itself.

use std::collections::BTreeMap;
use std::iter::successors;

use clap::ValueEnum;
use lattice_engine::{Engine, Host, Outcome};
use lattice_forge::{Forge, ForgeError, ItemState};
use lattice_model::host::{Draft, Pull};
use lattice_model::name::BranchName;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::commands::change;
use crate::error::Failure;
use crate::output::documents::{ChangeDocument, RefDocument};
use crate::output::{Reply, printable};

/// A pull request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PullDocument {
    pub(crate) branch: String,
    pub(crate) number: u64,
    pub(crate) url: String,
    pub(crate) state: &'static str,
    pub(crate) draft: bool,
    pub(crate) title: String,
    pub(crate) author: String,
    pub(crate) base: String,
    pub(crate) head: Option<String>,
}

impl PullDocument {
    pub(crate) fn of(pull: &Pull) -> Self {
        Self {
            branch: pull.head.clone(),
            number: pull.number,
            url: pull.url.clone(),
            state: pull.state.as_str(),
            draft: pull.draft == Draft::Draft,
            title: pull.title.clone(),
            author: pull.author.clone(),
            base: pull.base.clone(),
            head: pull.head_at.map(|oid| oid.to_string()),
        }
    }
}

/// What a changing command did here, and the pull requests that there are now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HostedDocument {
    #[serde(flatten)]
    pub(crate) change: ChangeDocument,
    pub(crate) pulls: Vec<PullDocument>,
    /// Branches whose content is in the trunk.
    pub(crate) landed: Vec<String>,
    /// Of `submit`: what moved here before, as `refs` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restacked: Option<Vec<RefDocument>>,
    /// Of `sync`: branches that have commits on the remote which were never here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) theirs: Option<Vec<String>>,
    /// What a dry run of `merge` would land, lowest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to_land: Option<Vec<String>>,
}

/// Which items of a host are listed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum States {
    Open,
    Closed,
    All,
}

impl States {
    pub(crate) fn wanted(self) -> Option<ItemState> {
        match self {
            Self::Open => Some(ItemState::Open),
            Self::Closed => Some(ItemState::Closed),
            Self::All => None,
        }
    }
}

/// A repository with its host.
pub(crate) struct Connected {
    pub(crate) engine: Engine,
    pub(crate) host: Host,
}

pub(crate) fn connect(app: &App) -> Result<Connected, Failure> {
    let engine = app.engine()?;
    let host = engine.host()?;
    host.forge()?;
    Ok(Connected { engine, host })
}

impl Connected {
    pub(crate) fn forge(&self) -> Result<&dyn Forge, Failure> {
        Ok(self.host.forge()?)
    }

    pub(crate) fn wait<T>(&self, answer: impl Future<Output = Result<T, ForgeError>>) -> Result<T, Failure> {
        Ok(self.host.wait(answer)?)
    }
}

/// The reply for an outcome with pull requests and landed branches.
pub(crate) fn reply(name: &str, outcome: Outcome, pulls: Vec<&Pull>, landed: &[BranchName]) -> Result<Reply, Failure> {
    let reply = change::reply(name, outcome)?;
    let pulls: Vec<_> = pulls.into_iter().map(PullDocument::of).collect();
    let landed: Vec<_> = landed.iter().map(ToString::to_string).collect();
    let reply = reply.with_field("pulls", serde_json::to_value(pulls).unwrap_or_default());
    Ok(reply.with_field("landed", serde_json::to_value(landed).unwrap_or_default()))
}

/// Pull requests in the order in which they stand on each other.
pub(crate) fn lowest_first(pulls: &BTreeMap<BranchName, Pull>) -> Vec<&Pull> {
    let below = |pull: &Pull| BranchName::new(&pull.base).ok().and_then(|base| pulls.get(&base));
    let mut ordered: Vec<_> = pulls.values().collect();
    ordered.sort_by_cached_key(|pull| successors(Some(*pull), |pull| below(pull)).take(pulls.len()).count());
    ordered
}

/// Whether nothing was done but to ask the remote what it has.
pub(crate) fn only_fetched(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { plan, refs, .. } if refs.is_empty() && plan.only_fetches())
}

/// One line about a pull request.
pub(crate) fn pull_line(pull: &Pull) -> String {
    let draft = if pull.draft == Draft::Draft { ", draft" } else { "" };
    format!(
        "#{} {} ({}{draft})  {} -> {}\n   {}\n",
        pull.number,
        one_line(&pull.title),
        pull.state.as_str(),
        one_line(&pull.head),
        one_line(&pull.base),
        one_line(&pull.url)
    )
}

/// Text from outside on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\r', '\t'], " "))
}
