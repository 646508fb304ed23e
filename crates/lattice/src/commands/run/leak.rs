//! Credentials that an agent was given, and put into its commits.

use lattice_model::id::Oid;
use lattice_sprites::protocol::{Finding, Rule};
use lattice_sprites::store::{Sprite, Store};
use serde_json::Value;

use super::act;
use super::follow::recorded;
use crate::app::App;
use crate::error::Failure;
use crate::output::err;

/// A part of a text this short is in many others.
const SHORTEST: usize = 6;

/// The landed branches that have a credential in their commits.
pub(super) fn leaked(app: &App, store: &Store, sprite: &Sprite) -> Result<Vec<String>, Failure> {
    let run = recorded(&store.sprite(&sprite.name)?);
    let (Some(landed), Ok(base)) = (run["landed"].as_object(), Oid::new(&sprite.base)) else { return Ok(Vec::new()) };
    let given = act::given_out(app, store, sprite)?;
    // A patch has each line by itself.
    let lines = given.iter().filter_map(|value| value.lines().max_by_key(|line| line.len()));
    let lines: Vec<_> = lines.filter(|line| line.len() >= SHORTEST).collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let engine = app.later().engine()?;
    let has_one = |tip: &Value| {
        // A branch that somebody has removed since has nothing to show.
        let text = tip.as_str().and_then(|tip| engine.history_text(base, Oid::new(tip).ok()?).ok());
        text.is_some_and(|text| lines.iter().any(|line| text.contains(line)))
    };
    Ok(landed.iter().filter(|(_, tip)| has_one(tip)).map(|(branch, _)| branch.clone()).collect())
}

/// Says so, and remembers it.
pub(super) fn note(app: &App, store: &mut Store, sprite: &Sprite) -> Result<(), Failure> {
    for branch in leaked(app, store, sprite)? {
        let detail = format!("a credential that it was given is in the commits of `{branch}`");
        err(&format!("warning: {detail}; rotate it, and do not push them\n"));
        store.add_finding(sprite.key, Finding::new(Rule::SecretCommitted, detail), app.clock().as_str())?;
    }
    Ok(())
}
