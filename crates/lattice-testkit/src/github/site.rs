//! What people do on the site of the fake: buttons that change pull requests and branches without Git.

use serde_json::{Value, json};

use super::state::{Item, PullPart, Repository};
use super::{GitHub, api};

/// A button of a pull request.
#[derive(Debug)]
pub enum Click {
    /// Lands it by this method and deletes its branch; what stood on that stands on its base from then on.
    Land(&'static str),
    Close,
    Reopen,
    /// Gives it another base.
    Retarget(String),
    /// Adds a line to its text.
    Say(String),
    /// Merges its base into its branch.
    Update,
}

impl GitHub {
    /// All pull requests as they are now, oldest first.
    pub fn pulls(&self, slug: &str) -> Vec<Value> {
        let web = self.web_url();
        let mut state = self.state();
        let repository = state.repositories.get_mut(slug).expect("the repository was made");
        repository.follow();
        repository.items.values().filter_map(|item| item.pull_json(&web, slug)).collect()
    }

    /// Presses a button. What the site would not offer does not happen.
    pub fn click(&self, slug: &str, number: u64, click: &Click) {
        let mut state = self.state();
        let repository = state.repositories.get_mut(slug).expect("the repository was made");
        repository.follow();
        let bare = repository.bare.clone();
        let Some(item) = repository.items.get_mut(&number) else { return };
        let Some((head, base)) = item.pull.as_ref().map(|pull| (pull.head.clone(), pull.base.clone())) else { return };
        match click {
            Click::Land(method) => {
                if api::merge(item, &bare, &json!({ "merge_method": method })).status == 200 {
                    bare.ask(&["update-ref", "-d", &format!("refs/heads/{head}")]).expect("a branch can be deleted");
                    repository.stand_on(&head, &base);
                }
            }
            Click::Close => item.open = false,
            Click::Reopen => item.reopen(bare.tip(&head).is_some() && bare.tip(&base).is_some()),
            Click::Retarget(to) => item.retarget(to, bare.tip(to).is_some()),
            Click::Say(line) => item.body.push_str(&format!("\n\n{line}\n")),
            Click::Update => {
                let has = |below: &String| bare.ask(&["merge-base", "--is-ancestor", below, &head]).is_some();
                let below = bare.tip(&base).filter(|below| item.open && !has(below));
                let _ = below.and_then(|below| bare.land(&head, &below, "merge", &format!("Merge {base} into {head}")));
            }
        }
    }
}

impl Repository {
    /// What has `old` as its base has `new` from now on.
    fn stand_on(&mut self, old: &str, new: &str) {
        let open = self.items.values_mut().filter(|item| item.open);
        for pull in open.filter_map(|item| item.pull.as_mut()).filter(|pull| pull.base == old) {
            new.clone_into(&mut pull.base);
        }
    }
}

impl Item {
    fn reopen(&mut self, has_branches: bool) {
        let landed = self.pull.as_ref().is_some_and(|pull| pull.merged.is_some());
        self.open |= has_branches && !landed;
    }

    fn retarget(&mut self, to: &str, exists: bool) {
        let fits = |pull: &&mut PullPart| exists && pull.head != to;
        if let Some(pull) = self.pull.as_mut().filter(fits).filter(|_| self.open) {
            to.clone_into(&mut pull.base);
        }
    }
}
