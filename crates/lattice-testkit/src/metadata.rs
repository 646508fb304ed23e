//! Valid branch metadata, written without the program that is under test.

use serde_json::{Value, json};

/// What stands before the branch in the name of its metadata ref.
pub const METADATA_PREFIX: &str = "refs/branch-metadata/";

/// The time at which every drawn branch was tracked.
pub const TRACKED_AT: &str = "2026-01-01T00:00:00Z";

/// What metadata says of a branch; the rest of the document is constant.
#[derive(Clone, Copy, Debug)]
pub struct Tracked<'a> {
    /// The branch itself.
    pub branch: &'a str,
    /// What it is stacked on.
    pub parent: Parent<'a>,
    /// The commit of the parent it starts at.
    pub base: &'a str,
    /// Whether it may be rewritten.
    pub freeze: Freeze,
}

/// The parent of a tracked branch.
#[derive(Clone, Copy, Debug)]
pub enum Parent<'a> {
    /// The configured trunk.
    Trunk(&'a str),
    /// Another tracked branch.
    Branch(&'a str),
}

/// Whether a branch may be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeze {
    /// It may.
    Unfrozen,
    /// It may not, nor may what is below it.
    Frozen,
}

/// Where the metadata of `branch` is kept.
pub fn metadata_ref(branch: &str) -> String {
    format!("{METADATA_PREFIX}{branch}")
}

/// The metadata document of a branch.
pub fn document(tracked: &Tracked<'_>) -> Value {
    let (kind, parent) = match tracked.parent {
        Parent::Trunk(name) => ("trunk", name),
        Parent::Branch(name) => ("branch", name),
    };
    let freeze = match tracked.freeze {
        Freeze::Unfrozen => json!({ "state": "unfrozen" }),
        Freeze::Frozen => json!({
            "state": "frozen",
            "scope": "downstack_inclusive",
            "reason": null,
            "frozen_at": TRACKED_AT,
        }),
    };
    json!({
        "kind": "lattice.branch-metadata",
        "schema_version": 1,
        "branch": { "name": tracked.branch },
        "parent": { "kind": kind, "name": parent },
        "base": { "oid": tracked.base },
        "freeze": freeze,
        "pr": { "state": "none" },
        "timestamps": { "created_at": TRACKED_AT, "updated_at": TRACKED_AT },
    })
}
