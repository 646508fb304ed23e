//! What the engine does for sprites: keeps their base, and lands their branches on the stack.

use std::path::PathBuf;

use lattice_model::command::sprite::{Import, Imported, KeepBase, ReleaseBase, base_ref};
use lattice_model::gate::Refusal;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::plan::Expected;
use lattice_model::snapshot::Snapshot;
use lattice_repo::ReadWorkingCopy;
use lattice_repo::workspace::ReceiveError;

use crate::{Engine, EngineError, Mode, Outcome};

/// Branches that a sprite has, after their objects were taken over.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    pub sprite: String,
    /// The sprite's own branch.
    pub branch: BranchName,
    pub parent: BranchName,
    pub base: Oid,
    /// Names and tips, as the sprite has them.
    pub refs: Vec<(String, Oid)>,
    /// Where this sprite left branches when it was landed before.
    pub landed: Vec<(String, Oid)>,
}

/// A branch that was landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub branch: BranchName,
    pub tip: Oid,
    pub parent: BranchName,
}

/// What landing led to.
#[derive(Debug)]
pub struct ImportOutcome {
    pub outcome: Outcome,
    /// Branches that moved.
    pub landed: Vec<Landed>,
    /// Every branch of the sprite by its name there, with its name here.
    pub names: Vec<(String, BranchName)>,
}

/// How a sprite's commits are named that are on none of its branches.
pub fn detached_name(own: &BranchName) -> String {
    format!("{own}-detached")
}

impl Engine {
    /// Keeps the commit that a sprite starts from until the sprite is destroyed.
    pub fn keep_base(&self, sprite: &str, commit: Oid) -> Result<Outcome, EngineError> {
        let keep = base_ref(sprite).map_err(bad_name)?;
        self.run(&Mode::Execute, ReadWorkingCopy::No, |_, _| Ok(KeepBase { keep, commit }))
    }

    pub fn release_base(&self, sprite: &str, commit: Oid) -> Result<Outcome, EngineError> {
        let keep = base_ref(sprite).map_err(bad_name)?;
        self.run(&Mode::Execute, ReadWorkingCopy::No, |_, _| Ok(ReleaseBase { keep, commit }))
    }

    /// Takes objects of a sprite into the repository, if they are sound and complete.
    pub fn receive_pack(&self, pack: Vec<u8>, tips: &[Oid]) -> Result<(), ReceiveError> {
        self.repo.receive_pack(pack, tips)
    }

    pub fn objects(&self) -> PathBuf {
        self.repo.objects()
    }

    /// Name and address that the user commits with.
    pub fn identity(&self) -> (Option<String>, Option<String>) {
        self.repo.identity()
    }

    /// Lands the branches of a sprite as tracked branches. What could not be landed is said.
    pub fn import(&self, request: &ImportRequest) -> Result<ImportOutcome, EngineError> {
        let (mut landed, mut names) = (Vec::new(), Vec::new());
        let outcome = self.run(&Mode::Execute, ReadWorkingCopy::No, |engine, snapshot| {
            names = named(snapshot, request)?;
            let branches = engine.imported(snapshot, request, &names)?;
            let tell = |one: &Imported| Landed { branch: one.branch.clone(), tip: one.tip, parent: one.parent.clone() };
            landed = branches.iter().map(tell).collect();
            Ok(Import { branches })
        })?;
        Ok(ImportOutcome { outcome, landed, names })
    }

    fn is_below(&self, one: Oid, other: Oid) -> Result<bool, lattice_repo::GitError> {
        Ok(self.repo.merge_base(one, other)? == Some(one))
    }

    /// Those that are below no other.
    fn topmost(&self, branches: Vec<(BranchName, Oid)>) -> Result<Vec<(BranchName, Oid)>, lattice_repo::GitError> {
        let mut topmost = Vec::new();
        for (branch, tip) in &branches {
            let mut covered = false;
            for (_, other) in branches.iter().filter(|(_, other)| other != tip) {
                covered |= self.is_below(*tip, *other)?;
            }
            if !covered {
                topmost.push((branch.clone(), *tip));
            }
        }
        Ok(topmost)
    }

    /// Which branches there are to land, under which names and on what.
    fn imported(
        &self,
        snapshot: &Snapshot,
        request: &ImportRequest,
        names: &[(String, BranchName)],
    ) -> Result<Vec<Imported>, Refusal> {
        let failed = |error: lattice_repo::GitError| Refusal::new("git-failed", error.to_string());
        let tip_of = |inside: &String| request.refs.iter().find(|(name, _)| name == inside).map(|(_, tip)| *tip);
        let named: Vec<_> =
            names.iter().filter_map(|(inside, branch)| Some((branch.clone(), tip_of(inside)?))).collect();
        let mut branches = Vec::new();
        // Whatever became of it here since: merged and deleted, restacked or amended, it has had its landing.
        let is_new = |(branch, tip): &&(BranchName, Oid)| {
            !request.landed.iter().any(|(name, landed)| name == branch.as_str() && landed == tip)
        };
        let is_gone =
            |branch: &BranchName, tip: Oid| !is_new(&&(branch.clone(), tip)) && snapshot.tip(branch).is_none();
        for (branch, tip) in named.iter().filter(is_new) {
            let mut below = Vec::new();
            for (other, at) in named.iter().filter(|(other, at)| other != branch && at != tip) {
                if self.is_below(*at, *tip).map_err(failed)? {
                    below.push((other.clone(), *at));
                }
            }
            let below = self.topmost(below).map_err(failed)?;
            let (parent, base) = match below.as_slice() {
                [] => (request.parent.clone(), self.repo.merge_base(*tip, request.base).map_err(failed)?),
                // It was landed before and is gone since, so what stands on it stands where that stood.
                [(parent, base)] if is_gone(parent, *base) => (request.parent.clone(), Some(*base)),
                [(parent, base)] => (parent.clone(), Some(*base)),
                several => {
                    let names: Vec<_> = several.iter().map(|(name, _)| name.to_string()).collect();
                    return Err(Refusal::new(
                        "parent-undecided",
                        format!("`{branch}` could stand on any of: {}", names.join(", ")),
                    ));
                }
            };
            let base = base.ok_or_else(|| {
                Refusal::new("unrelated-history", format!("`{branch}` shares no history with the sprite's base"))
            })?;
            let now = snapshot.tip(branch);
            let is_own = |now: Oid| request.landed.iter().any(|(name, tip)| name == branch.as_str() && *tip == now);
            if let Some(now) = now
                && !is_own(now)
                && self.repo.merge_base(now, *tip).map_err(failed)? != Some(now)
            {
                return Err(Refusal::new(
                    "branch-moved",
                    format!("`{branch}` has commits that the sprite does not have"),
                )
                .hint(format!("rename it to let both stay: git branch -m {} <name>", branch.word())));
            }
            let expected = Expected::from_option(now);
            branches.push(Imported { branch: branch.clone(), expected, tip: *tip, parent, base });
        }
        // Parents come before what stands on them.
        let names: Vec<_> = branches.iter().map(|one| one.branch.clone()).collect();
        branches.sort_by_key(|one| names.iter().filter(|name| **name == one.parent).count());
        branches.retain(|one| one.expected != Expected::At(one.tip));
        Ok(branches)
    }
}

/// The names that branches get which the sprite made or moved.
fn named(snapshot: &Snapshot, request: &ImportRequest) -> Result<Vec<(String, BranchName)>, Refusal> {
    let new = request.refs.iter().filter(|(_, tip)| *tip != request.base);
    new.map(|(name, _)| Ok((name.clone(), landing_name(snapshot, request, name)?))).collect()
}

/// The sprite's own name for a branch if that is free or its own, else one below its own. Names that other sprites have
/// or will have are not free: what lands under one would be taken for theirs.
fn landing_name(snapshot: &Snapshot, request: &ImportRequest, name: &str) -> Result<BranchName, Refusal> {
    let own = format!("{}/", request.branch);
    let wanted = BranchName::new(name).ok();
    let landed = |name: &BranchName| request.landed.iter().any(|(known, _)| known == name.as_str());
    let is_own = |name: &BranchName| *name == request.branch || name.as_str().starts_with(&own) || landed(name);
    let is_reserved = |name: &BranchName| {
        let name = name.as_str();
        (name.starts_with("sprite/") || name.starts_with("sprite-")) && name != detached_name(&request.branch)
    };
    let free = |name: &BranchName| is_own(name) || (snapshot.tip(name).is_none() && !is_reserved(name));
    match wanted.filter(free) {
        Some(name) => Ok(name),
        None => BranchName::new(format!("sprite-{}/{name}", request.sprite))
            .map_err(|error| Refusal::new("bad-name", format!("a branch of the sprite has no usable name: {error}"))),
    }
}

fn bad_name(error: lattice_model::name::NameError) -> EngineError {
    EngineError::Refused(Refusal::new("bad-name", error.to_string()))
}
