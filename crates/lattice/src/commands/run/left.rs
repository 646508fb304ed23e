//! What is said of work that an agent did not commit to a branch, and what is refused for it.

use std::collections::BTreeSet;

use lattice_sprites::run::Uncommitted;

use crate::error::Failure;
use crate::output::Reply;

/// Adds what became of such work.
pub(crate) fn noted(mut reply: Reply, sprite: &str, uncommitted: &BTreeSet<Uncommitted>) -> Reply {
    if uncommitted.contains(&Uncommitted::Collected) {
        reply = reply.note("changes that the agent did not commit are in a last commit");
    }
    match inside(uncommitted) {
        Some(left) => reply.note(format!("{left}: lattice sprite diff {sprite}")),
        None => reply,
    }
}

/// Refuses to remove a sprite that has such work.
pub(crate) fn refuse(sprite: &str, uncommitted: &BTreeSet<Uncommitted>) -> Result<(), Failure> {
    match inside(uncommitted) {
        Some(left) => Err(Failure::new("unlanded-work", left)
            .hint(format!("look at it: lattice sprite diff {sprite}"))
            .hint(format!("remove it with the sprite: lattice sprite destroy {sprite} --force"))),
        None => Ok(()),
    }
}

/// What stays in a sprite, if anything does.
fn inside(uncommitted: &BTreeSet<Uncommitted>) -> Option<String> {
    let left: Vec<_> = uncommitted.iter().filter_map(|one| reason(*one)).collect();
    (!left.is_empty()).then(|| left.join("; "))
}

fn reason(uncommitted: Uncommitted) -> Option<&'static str> {
    match uncommitted {
        Uncommitted::Collected => None,
        Uncommitted::Left => {
            Some("the agent was in the middle of a merge or rebase; its open changes stay in the sprite")
        }
        Uncommitted::Failed => Some("some changes of the agent could not be committed and stay in the sprite"),
        Uncommitted::Stashed => Some("changes that the agent put away with `git stash` stay in the sprite"),
    }
}
