//! Whether an action is carried out: its form, whose it is, then policy.

use lattice_model::name::BranchName;
use lattice_model::settings::{Policy, SpriteSettings};

use super::request::{Action, read_action, work_item_number};
use crate::store::{ActionRow, Sprite};

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    CarryOut,
    AskAPerson,
    /// For this reason.
    Deny(String),
}

/// Decides on a request. `allowed` are actions that whoever started the sprite allowed; `is_foreign` says of a branch
/// that it is there and not this sprite's.
pub fn decide(
    row: &ActionRow,
    sprite: &Sprite,
    (settings, allowed): (&SpriteSettings, &[String]),
    is_foreign: impl Fn(&BranchName) -> bool,
) -> Decision {
    let action = match read_action(&row.action, &row.parameters) {
        Ok(action) => action,
        Err(problem) => return Decision::Deny(problem),
    };
    if let Some(problem) = not_its_own(&action, row, sprite, (settings, &is_foreign)) {
        return Decision::Deny(problem);
    }
    match settings.policy(&row.action) {
        Policy::Deny => Decision::Deny(format!("the policy denies {}", row.action)),
        Policy::Allow => Decision::CarryOut,
        Policy::Ask if allowed.contains(&row.action) => Decision::CarryOut,
        Policy::Ask => Decision::AskAPerson,
    }
}

/// Why a sprite may not ask for this at all.
fn not_its_own(
    action: &Action,
    row: &ActionRow,
    sprite: &Sprite,
    (settings, is_foreign): (&SpriteSettings, &dyn Fn(&BranchName) -> bool),
) -> Option<String> {
    let foreign = |branch: &BranchName| {
        let own = branch.as_str() == sprite.branch;
        (!own && is_foreign(branch)).then(|| format!("`{branch}` is not a branch of this sprite"))
    };
    match action {
        Action::OpenPr { head, base, .. } if head == base => Some("`head` and `base` are the same branch".to_owned()),
        Action::OpenPr { head, .. } => foreign(head),
        Action::PushToBranch { branch } => foreign(branch),
        Action::PostComment { .. } | Action::LabelIssue { .. } => work_item_number(&sprite.work_item_id)
            .is_none()
            .then(|| format!("its work item `{}` is no issue or pull request", sprite.work_item_id)),
        Action::NotifyUser { .. } => None,
        Action::FetchCredential { name } if !settings.credentials.contains_key(name) => {
            Some(format!("there is no credential `{name}` for agents"))
        }
        Action::FetchCredential { .. } if !row.blocking => {
            Some("FETCH_CREDENTIAL must be blocking: there is no other way to give an answer".to_owned())
        }
        Action::FetchCredential { .. } => None,
    }
}
