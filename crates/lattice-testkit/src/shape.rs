//! What a repository comes to, whenever it was made.

use std::collections::BTreeMap;

use crate::repo::TestRepo;

/// Everything that a command is to leave, without dates and the ids that follow from them.
#[track_caller]
pub fn shape(repo: &TestRepo) -> BTreeMap<String, String> {
    let mut shape = BTreeMap::new();
    for branch in repo.branch_refs().keys() {
        let history = repo.git(&["log", "--format=%T %s", &format!("refs/heads/{branch}")]);
        shape.insert(format!("branch {branch}"), history);
    }
    for branch in repo.metadata_refs().keys() {
        let text = repo.git(&["cat-file", "blob", &format!("refs/branch-metadata/{branch}")]);
        let Ok(mut document) = serde_json::from_str::<serde_json::Value>(&text) else {
            shape.insert(format!("metadata {branch}"), text);
            continue;
        };
        let base = document["base"]["oid"].as_str().expect("a base is text").to_owned();
        document["base"] = repo.git(&["log", "-1", "--format=%T %s", &base]).into();
        document["timestamps"] = serde_json::Value::Null;
        document["freeze"]["frozen_at"] = serde_json::Value::Null;
        shape.insert(format!("metadata {branch}"), document.to_string());
    }
    let facts = repo.state().facts.into_iter().filter(|(name, _)| !name.starts_with("ref "));
    shape.extend(facts.map(|(name, value)| (name, value.escape_ascii().to_string())));
    shape
}
