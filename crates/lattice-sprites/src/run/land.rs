//! Brings a sprite's commits into the repository: out of its sandbox, through a quarantine, onto the stack.

use std::collections::BTreeSet;

use lattice_engine::{Engine, EngineError, ImportRequest, Landed, Outcome};
use lattice_model::gate::RepairBundle;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_repo::workspace::{self, Collect, Export, ReceiveError, Uncommitted};

use super::place::{PlaceError, SpritePlace};
use crate::sandbox::{Sandbox, SandboxError};

/// Why a sprite's work is not on the stack. It stays in the sprite.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the sprite's repository could not be read")]
    Sandbox(#[from] SandboxError),
    #[error("the sprite's repository gave out something that is no list of branches")]
    NotAList,
    #[error("the sprite's commits were refused")]
    Refused(#[from] ReceiveError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the stack cannot be changed now")]
    Gated(RepairBundle),
    #[error("{0}")]
    Other(String),
}

/// What was landed, and what was seen on the way.
#[derive(Debug)]
pub struct Landing {
    pub branches: Vec<Landed>,
    pub uncommitted: BTreeSet<Uncommitted>,
    /// Remotes that the agent made, which nothing uses.
    pub remotes: Vec<String>,
    /// Every branch of the sprite by its name there, with its name here.
    pub names: Vec<(String, BranchName)>,
}

impl Landing {
    /// Nothing was landed.
    pub fn none() -> Self {
        Self { branches: Vec::new(), uncommitted: BTreeSet::new(), remotes: Vec::new(), names: Vec::new() }
    }
}

/// A sprite whose work is to be landed.
#[derive(Debug)]
pub struct Work<'a> {
    pub place: &'a SpritePlace,
    pub sprite: &'a str,
    pub branch: BranchName,
    pub parent: BranchName,
    pub base: Oid,
    pub collect: Collect,
    pub message: String,
    /// Where the sprite left branches when it was landed before.
    pub landed: Vec<(String, Oid)>,
}

/// More than this no sprite commits.
const MOST: u64 = 2 << 30;

/// What is in a sprite, as far as it can be seen without changing anything.
#[derive(Debug, Default)]
pub struct Inside {
    /// By name and tip, apart from those that are at the base.
    pub branches: Vec<(String, Oid)>,
    pub uncommitted: BTreeSet<Uncommitted>,
}

/// Looks into a sprite whose own branch is `own`.
pub fn look_inside(place: &SpritePlace, own: &BranchName, base: Oid) -> Result<Inside, LandError> {
    let export = exported(place, base, workspace::export_command(base, Collect::Commits, ""))?;
    Ok(Inside { branches: branches(export.refs, export.head, (own, base)), uncommitted: export.uncommitted })
}

/// Removes locks of a Git that was killed with the agent. Nothing of the sprite may run.
pub fn unlock(place: &SpritePlace, base: Oid) -> Result<(), LandError> {
    Sandbox::run(&place.program, &place.after(base, workspace::unlock_command())?, MOST)?;
    Ok(())
}

/// Lands every branch that the sprite made or moved.
pub fn land(engine: &Engine, work: &Work<'_>) -> Result<Landing, LandError> {
    let command = workspace::export_command(work.base, work.collect, &work.message);
    let export = exported(work.place, work.base, command)?;
    let mut landing = Landing { uncommitted: export.uncommitted, remotes: export.remotes, ..Landing::none() };
    let refs = branches(export.refs, export.head, (&work.branch, work.base));
    if refs.is_empty() {
        return Ok(landing);
    }
    let tips: Vec<_> = refs.iter().map(|(_, tip)| *tip).collect();
    engine.receive_pack(export.pack, &tips)?;
    let request = ImportRequest {
        sprite: work.sprite.to_owned(),
        branch: work.branch.clone(),
        parent: work.parent.clone(),
        base: work.base,
        refs,
        landed: work.landed.clone(),
    };
    let imported = engine.import(&request)?;
    landing.names = imported.names;
    match imported.outcome {
        Outcome::Done { .. } | Outcome::Nothing { .. } => landing.branches = imported.landed,
        Outcome::Gated(bundle) => return Err(LandError::Gated(bundle)),
        Outcome::Planned { .. } | Outcome::Differs { .. } | Outcome::Paused(_) => {}
    }
    Ok(landing)
}

/// What a command in the sandbox of a sprite gave out.
fn exported(place: &SpritePlace, base: Oid, command: Vec<String>) -> Result<Export, LandError> {
    let printed = Sandbox::run(&place.program, &place.after(base, command)?, MOST)?;
    workspace::read_export(printed).ok_or(LandError::NotAList)
}

/// Branches that are not at the base. A HEAD on no branch is the sprite's own branch if that was not used, else one beside it.
fn branches(refs: Vec<(String, Oid)>, head: Option<Oid>, (own, base): (&BranchName, Oid)) -> Vec<(String, Oid)> {
    let mut branches: Vec<_> = refs.into_iter().filter(|(_, tip)| *tip != base).collect();
    let is_taken = |name: &str| branches.iter().any(|(other, _)| other == name);
    let mut name = own.to_string();
    if is_taken(&name) {
        name = lattice_engine::detached_name(own);
    }
    while is_taken(&name) {
        name.push('-');
    }
    branches.extend(head.map(|head| (name, head)));
    branches
}
