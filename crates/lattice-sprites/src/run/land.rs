//! Brings a sprite's commits into the repository: out of its sandbox, through a quarantine, onto the stack.

use lattice_engine::{Engine, EngineError, ImportRequest, Landed, Outcome};
use lattice_model::gate::RepairBundle;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_repo::workspace::{self, Collect, ReceiveError, Uncommitted};

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
    pub uncommitted: Uncommitted,
    /// Remotes that the agent made, which nothing uses.
    pub remotes: Vec<String>,
    /// Every branch of the sprite by its name there, with its name here.
    pub names: Vec<(String, BranchName)>,
}

impl Landing {
    /// Nothing was landed.
    pub fn none() -> Self {
        Self { branches: Vec::new(), uncommitted: Uncommitted::None, remotes: Vec::new(), names: Vec::new() }
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

/// The branches that a sprite has, by name and tip, apart from those that are at its base.
pub fn branches_inside(place: &SpritePlace, base: Oid) -> Result<Vec<(String, Oid)>, LandError> {
    let spec = place.after(base, workspace::export_command(base, Collect::Commits, ""))?;
    let export = workspace::read_export(Sandbox::run(&place.program, &spec, MOST)?).ok_or(LandError::NotAList)?;
    Ok(export.refs.into_iter().filter(|(_, tip)| *tip != base).collect())
}

/// Lands every branch that the sprite made or moved.
pub fn land(engine: &Engine, work: &Work<'_>) -> Result<Landing, LandError> {
    let command = workspace::export_command(work.base, work.collect, &work.message);
    let spec = work.place.after(work.base, command)?;
    let printed = Sandbox::run(&work.place.program, &spec, MOST)?;
    let export = workspace::read_export(printed).ok_or(LandError::NotAList)?;
    let mut landing = Landing { uncommitted: export.uncommitted, remotes: export.remotes, ..Landing::none() };
    let tips: Vec<_> = export.refs.iter().map(|(_, tip)| *tip).filter(|tip| *tip != work.base).collect();
    if tips.is_empty() {
        return Ok(landing);
    }
    engine.receive_pack(export.pack, &tips)?;
    let request = ImportRequest {
        sprite: work.sprite.to_owned(),
        branch: work.branch.clone(),
        parent: work.parent.clone(),
        base: work.base,
        refs: export.refs,
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
