//! The branch metadata document: self-describing JSON, parsed strictly.

use lattice_model::branch::{BranchMetadataV1, FreezeState, Parent, PrState};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::snapshot::MetadataProblem;
use lattice_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const KIND: &str = "lattice.branch-metadata";

/// Larger documents are not read.
pub(crate) const SIZE_LIMIT: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentV1 {
    kind: String,
    schema_version: u32,
    branch: BranchPart,
    parent: Parent,
    base: BasePart,
    freeze: FreezeState,
    pr: PrState,
    timestamps: Timestamps,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchPart {
    name: BranchName,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BasePart {
    oid: Oid,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timestamps {
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Just enough to tell a document of another version from a broken one.
#[derive(Deserialize)]
struct Probe {
    schema_version: Option<Value>,
    freeze: Option<Value>,
}

/// Reads the document that stands at the metadata ref of `branch`.
pub(crate) fn parse(bytes: &[u8], branch: &BranchName, hex_len: usize) -> Result<BranchMetadataV1, MetadataProblem> {
    let malformed = |error: serde_json::Error| MetadataProblem::Malformed(error.to_string());
    let probe: Probe = serde_json::from_slice(bytes).map_err(malformed)?;
    match probe.schema_version {
        Some(version) if version == 1 => {}
        Some(version) => return Err(MetadataProblem::UnknownVersion(version.to_string())),
        None => return Err(MetadataProblem::UnknownVersion("none".to_owned())),
    }
    if !unfrozen_stands_alone(probe.freeze.as_ref()) {
        return Err(MetadataProblem::Malformed("`freeze`: `unfrozen` has no further fields".to_owned()));
    }
    let document: DocumentV1 = serde_json::from_slice(bytes).map_err(malformed)?;
    if document.kind != KIND {
        return Err(MetadataProblem::Malformed(format!("its kind is `{}`, not `{KIND}`", document.kind)));
    }
    if document.branch.name != *branch {
        return Err(MetadataProblem::NameMismatch(document.branch.name.to_string()));
    }
    if document.base.oid.hex_len() != hex_len {
        return Err(MetadataProblem::Malformed("its base is an id of another object format".to_owned()));
    }
    Ok(BranchMetadataV1 {
        name: document.branch.name,
        parent: document.parent,
        base: document.base.oid,
        freeze: document.freeze,
        pr: document.pr,
        created_at: document.timestamps.created_at,
        updated_at: document.timestamps.updated_at,
    })
}

/// The derived parser lets a variant without fields have any, which would be a field nobody understands.
fn unfrozen_stands_alone(freeze: Option<&Value>) -> bool {
    match freeze.and_then(Value::as_object) {
        Some(fields) => fields.get("state").is_none_or(|state| state != "unfrozen") || fields.len() == 1,
        None => true,
    }
}

/// The document as it is stored, readable with `git cat-file`.
pub(crate) fn render(metadata: &BranchMetadataV1) -> Vec<u8> {
    let document = DocumentV1 {
        kind: KIND.to_owned(),
        schema_version: 1,
        branch: BranchPart { name: metadata.name.clone() },
        parent: metadata.parent.clone(),
        base: BasePart { oid: metadata.base },
        freeze: metadata.freeze.clone(),
        pr: metadata.pr.clone(),
        timestamps: Timestamps { created_at: metadata.created_at.clone(), updated_at: metadata.updated_at.clone() },
    };
    let mut text = serde_json::to_vec_pretty(&document).expect("bug: the document has string keys");
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests;
