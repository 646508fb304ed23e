//! The remote part of a plan: pushes through the repository, everything else through the forge.

use std::collections::BTreeMap;

use lattice_forge::{Forge, MergeRequest, NewPull, PullUpdate, Stacked};
use lattice_model::host::{HostAction, OverviewPlace, Pull};
use lattice_model::name::BranchName;
use lattice_model::overview;
use lattice_model::plan::{Phase, Plan, Step};
use lattice_model::remote::Pushed;
use lattice_repo::Lock;

use super::Host;
use crate::{Engine, EngineError};

impl Engine {
    /// Carries out the remote steps of a plan in order; `pulls` are those that are known, and then those that there are.
    pub(super) fn perform(
        &self,
        host: &Host,
        lock: &Lock,
        plan: &Plan,
        pulls: &mut BTreeMap<BranchName, Pull>,
    ) -> Result<(), EngineError> {
        let parts = host.parts()?;
        let mut done = Vec::new();
        // Branches that the host keeps as one stack from now on.
        let mut kept = Vec::new();
        for batch in batches(plan) {
            let result = match &batch {
                Batch::Git(step) => self.perform_git(host, lock, plan, step),
                Batch::Host(actions) => host.wait(ask(&*parts.forge, actions, (pulls, &mut kept))),
            };
            self.trace("remote", &batch.lines().join("; "));
            match result {
                Ok(()) => done.extend(batch.lines()),
                Err(error) => return Err(EngineError::RemotePart { done, source: Box::new(error) }),
            }
        }
        Ok(())
    }

    fn perform_git(&self, host: &Host, lock: &Lock, plan: &Plan, step: &Step) -> Result<(), EngineError> {
        match self.repo.execute_remote(lock, &host.remote()?, plan, step)? {
            Pushed::Done => Ok(()),
            Pushed::Refused(refused) => Err(EngineError::PushRefused { refused }),
        }
    }
}

/// Steps that are carried out together.
enum Batch<'a> {
    Git(&'a Step),
    /// Actions of one kind, so that a host can be asked for all of them at once.
    Host(Vec<&'a HostAction>),
}

impl Batch<'_> {
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Git(Step::Push { updates, .. }) => {
                updates.iter().map(|update| format!("pushed {}", update.branch)).collect()
            }
            Self::Git(_) => vec!["fetched".to_owned()],
            Self::Host(actions) => actions.iter().map(|action| action.preview()).collect(),
        }
    }
}

fn batches(plan: &Plan) -> Vec<Batch<'_>> {
    let mut batches: Vec<Batch<'_>> = Vec::new();
    for step in plan.steps.iter().filter(|step| step.phase() == Phase::Remote) {
        let Step::Host { action } = step else {
            batches.push(Batch::Git(step));
            continue;
        };
        let kind = std::mem::discriminant(action);
        match batches.iter_mut().find_map(|batch| match batch {
            Batch::Host(actions) if std::mem::discriminant(actions[0]) == kind => Some(actions),
            Batch::Host(_) | Batch::Git(_) => None,
        }) {
            Some(actions) => actions.push(action),
            None => batches.push(Batch::Host(vec![action])),
        }
    }
    batches
}

/// Asks the forge for actions of one kind.
async fn ask(
    forge: &dyn Forge,
    actions: &[&HostAction],
    (pulls, kept): (&mut BTreeMap<BranchName, Pull>, &mut Vec<BranchName>),
) -> Result<(), EngineError> {
    let (mut new, mut updates) = (Vec::new(), Vec::new());
    for action in actions {
        match action {
            HostAction::OpenPull { head, base, title, body, draft } => new.push(NewPull {
                head: head.clone(),
                base: base.clone(),
                title: title.clone(),
                body: body.clone(),
                draft: *draft,
            }),
            HostAction::UpdatePull { number, head, base, draft } => {
                updates.push(PullUpdate { number: *number, base: base.clone(), body: None, draft: *draft });
                if let Some(pull) = pulls.get_mut(head) {
                    pull.base = base.as_ref().map_or(pull.base.clone(), ToString::to_string);
                    pull.draft = draft.unwrap_or(pull.draft);
                }
            }
            HostAction::RequestReviewers { head, reviewers } => {
                if let Some(pull) = pulls.get(head) {
                    forge.request_reviewers(pull.number, reviewers).await?;
                }
            }
            // What the host itself shows needs no list.
            HostAction::Overview { stack, .. } if stack == kept => {}
            HostAction::Overview { place, stack } => show_stack(forge, *place, stack, pulls).await?,
            HostAction::Unstack { stack } => forge.unstack(*stack).await?,
            HostAction::Stack { branches, onto } => {
                let numbers = branches.iter().filter_map(|branch| pulls.get(branch)).map(|pull| pull.number);
                let numbers: Vec<_> = numbers.skip(onto.map_or(0, |(_, there)| there)).collect();
                if forge.stack_pulls(&numbers, onto.map(|(stack, _)| stack)).await? == Stacked::Kept {
                    kept.extend(branches.iter().cloned());
                }
            }
            HostAction::MergePull { number, at, method, through, .. } => {
                let request = MergeRequest { number: *number, at: *at, method: *method, through: *through };
                forge.merge_pull(&request).await?;
            }
        }
    }
    if !new.is_empty() {
        let opened = forge.open_pulls(&new).await?;
        pulls.extend(new.into_iter().map(|new| new.head).zip(opened));
    }
    if !updates.is_empty() {
        forge.update_pulls(&updates).await?;
    }
    Ok(())
}

/// Tells in each pull request which others belong to its stack.
async fn show_stack(
    forge: &dyn Forge,
    place: OverviewPlace,
    stack: &[BranchName],
    pulls: &mut BTreeMap<BranchName, Pull>,
) -> Result<(), EngineError> {
    let numbers: Vec<_> = stack.iter().filter_map(|branch| pulls.get(branch)).map(|pull| pull.number).collect();
    let mut updates = Vec::new();
    for branch in stack {
        let Some(pull) = pulls.get_mut(branch) else { continue };
        let section = overview::section(&numbers, pull.number);
        match place {
            OverviewPlace::Off => {}
            OverviewPlace::Body => {
                let body = overview::put_into(&pull.body, &section);
                if body != pull.body {
                    pull.body.clone_from(&body);
                    updates.push(PullUpdate { number: pull.number, body: Some(body), ..PullUpdate::default() });
                }
            }
            OverviewPlace::Comment => say(forge, pull.number, &section).await?,
        }
    }
    if updates.is_empty() { Ok(()) } else { Ok(forge.update_pulls(&updates).await?) }
}

/// One comment with the list, however often it is brought up to date.
async fn say(forge: &dyn Forge, number: u64, section: &str) -> Result<(), EngineError> {
    let comments = forge.comments(number).await?;
    match comments.iter().find(|comment| overview::is_in(&comment.body)) {
        Some(known) if known.body == section => {}
        Some(known) => forge.edit_comment(number, known.id, section).await?,
        None => drop(forge.comment(number, section).await?),
    }
    Ok(())
}
