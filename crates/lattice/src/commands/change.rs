//! What all changing commands share: preview, repair on the spot, and the story of what was done.

use lattice_engine::{DropReason, Dropped, Engine, Foresight, Mode, Outcome, Paused, WorkingCopyNeed};
use lattice_model::event::{HeadValue, RefChange};
use lattice_model::gate::{Command, Refusal, RepairBundle};
use lattice_model::issue::FixEffect;
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::{CommitMode, Derivation, Expected, FreezeDraft, Plan, Step, count};
use lattice_model::snapshot::Snapshot;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::error::{Code, Failure};
use crate::output::documents::{
    ChangeDocument, ConflictDocument, DroppedDocument, KeptDocument, PlanDocument, RefDocument,
};
use crate::output::{Reply, err, issues, printable};
use crate::prompt;

/// How often a user may repair before the command gives up.
const REPAIRS: usize = 5;

/// Takes a request through the engine and tells what came of it.
pub(crate) fn change<C: Command>(
    app: &App,
    (name, preview): (&'static str, Preview),
    need: WorkingCopyNeed,
    build: impl Fn(&Engine, &Snapshot) -> Result<C, Refusal>,
) -> Result<Reply, Failure> {
    let mode = mode(app, preview);
    for _ in 0..REPAIRS {
        let engine = app.engine()?;
        match engine.run(&mode, need, &build)? {
            Outcome::Gated(bundle) => repair(app, &engine, RepairBundle { command: name, ..bundle })?,
            outcome => return reply(name, outcome),
        }
    }
    Err(Failure::new("gated", "issues remain after several repairs").hint("lattice doctor lists them"))
}

pub(crate) fn mode(app: &App, preview: Preview) -> Mode {
    match &app.mode {
        Some(mode) => mode.clone(),
        None if preview.dry_run => Mode::DryRun,
        None => Mode::Execute,
    }
}

/// Whether the command only says what it would do.
pub(crate) fn previews(app: &App, preview: Preview) -> bool {
    mode(app, preview) == Mode::DryRun
}

/// Offers the fixes of a gated command. `Ok` means that one was applied and the command may try again.
fn repair(app: &App, engine: &Engine, bundle: RepairBundle) -> Result<(), Failure> {
    let fixes = bundle.issues.iter().flat_map(|issue| &issue.fixes);
    let fixes: Vec<_> = fixes.filter(|fix| matches!(fix.effect, FixEffect::Plan(_))).cloned().collect();
    if app.interaction == Interaction::Never || fixes.is_empty() {
        return Err(bundle.into());
    }
    err(&issues::text(&bundle.issues, app.style));
    let options: Vec<_> = fixes.iter().map(|fix| format!("{}  {}", fix.id, fix.summary)).collect();
    let Some(picked) = prompt::choose("Which fix?", &options) else { return Err(bundle.into()) };
    let ids = [fixes[picked].id.to_string()];
    let plan = engine.combined_plan(&engine.find_fixes(&ids)?)?;
    plan.preview().iter().for_each(|line| err(&format!("  {line}\n")));
    if !prompt::confirm("Apply this?", "apply") {
        return Err(bundle.into());
    }
    engine.apply_fixes(&ids)?;
    Ok(())
}

/// The reply for an outcome that is no gate.
pub(crate) fn reply(name: &str, outcome: Outcome) -> Result<Reply, Failure> {
    match outcome {
        Outcome::Done { op, plan, refs, dropped } => {
            let document = ChangeDocument {
                changed: true,
                operation: Some(op.to_string()),
                refs: refs.iter().map(RefDocument::of).collect(),
                kept: KeptDocument::all(&plan),
                dropped: dropped.iter().map(DroppedDocument::of).collect(),
                current: head_after(&plan),
                plan: None,
                conflicts: Vec::new(),
                notes: Vec::new(),
            };
            let lines = renamed(&plan).map_or_else(|| story(&plan, &refs), |line| vec![line]);
            let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            text.push_str(&kept_branches(&plan));
            text.extend(dropped.iter().map(|commit| format!("dropped {}\n", dropped_commit(commit))));
            Ok(Reply::named(name, document, text).story())
        }
        Outcome::Nothing { plan } => {
            Ok(Reply::named(name, nothing(&plan), kept_branches(&plan)).story().note("nothing to do"))
        }
        Outcome::Planned { plan, foresight } => Ok(planned(name, &plan, &foresight)),
        Outcome::Differs { plan } => {
            let failure =
                Failure::new("plan-differs", "the plan is not the one that was agreed to; nothing was changed");
            Err(Failure { causes: plan.preview(), ..failure }.hint("make a new plan and look at it"))
        }
        Outcome::Paused(paused) => Err(paused_failure(&paused)),
        Outcome::Gated(bundle) => Err(bundle.into()),
    }
}

/// What a dry run says.
fn planned(name: &str, plan: &Plan, foresight: &Result<Foresight, String>) -> Reply {
    let mut text: String = plan.preview().iter().map(|line| format!("{line}\n")).collect();
    let found = foresight.as_ref().cloned().unwrap_or_default();
    for conflict in &found.conflicts {
        let files: Vec<_> = conflict.files.iter().map(|file| printable(file)).collect();
        let (branch, commit) = (&conflict.branch, conflict.commit.short());
        text.push_str(&format!("conflict in {branch}: {commit} changes {}\n", files.join(", ")));
    }
    text.extend(found.dropped.iter().map(|commit| format!("drop {}\n", dropped_commit(commit))));
    let document = ChangeDocument {
        plan: Some(PlanDocument::of(plan)),
        conflicts: found.conflicts.iter().map(ConflictDocument::of).collect(),
        dropped: found.dropped.iter().map(DroppedDocument::of).collect(),
        notes: foresight.as_ref().err().cloned().into_iter().collect(),
        ..nothing(plan)
    };
    let reply = Reply::named(name, document, text);
    let reply = match foresight {
        Ok(_) => reply,
        Err(reason) => reply.note(format!("whether there are conflicts cannot be told: {reason}")),
    };
    match plan.is_empty() {
        true => reply.note("nothing to do"),
        false => reply.note("this was a dry run: nothing was changed"),
    }
}

fn nothing(plan: &Plan) -> ChangeDocument {
    ChangeDocument {
        changed: false,
        operation: None,
        refs: Vec::new(),
        kept: KeptDocument::all(plan),
        dropped: Vec::new(),
        current: head_after(plan),
        plan: None,
        conflicts: Vec::new(),
        notes: Vec::new(),
    }
}

/// A line for each branch that a plan leaves as it is.
pub(crate) fn kept_branches(plan: &Plan) -> String {
    plan.kept.iter().map(|kept| format!("kept {} ({})\n", kept.branch, kept.reason)).collect()
}

/// A commit that is dropped, and why.
pub(crate) fn dropped_commit(commit: &Dropped) -> String {
    let why = match commit.because {
        DropReason::BelowHasIt => "what it stands on has the change already",
        DropReason::Resolution => "nothing was left of it when its conflict was resolved; lattice undo brings it back",
    };
    format!("{} of {} ({}): {why}", commit.commit.short(), commit.branch, printable(&commit.subject))
}

/// A conflict: no failure of anyone, and still not done.
pub(crate) fn paused_failure(paused: &Paused) -> Failure {
    let failure = Failure::new("conflict", format!("`{}` is paused: {} conflicts", paused.command, paused.branch));
    let files = paused.files.iter().map(|file| printable(file)).collect();
    let detail = serde_json::json!({
        "operation": paused.op.to_string(),
        "branch": paused.branch.to_string(),
        "files": paused.files,
        "remembered": paused.remembered,
    });
    let failure = Failure { code: Code::Paused, causes: files, detail: Some(detail), ..failure };
    let resolve = match paused.remembered.as_slice() {
        [] => "resolve the files, then: lattice continue -a".to_owned(),
        again if again.len() == paused.files.len() => {
            "git resolved them as you did before; look at them, then: lattice continue -a".to_owned()
        }
        again => {
            let again: Vec<_> = again.iter().map(|file| printable(file)).collect();
            format!("git resolved {} as you did before; resolve the rest, then: lattice continue -a", again.join(", "))
        }
    };
    failure.hint(resolve).hint("or go back to where it began: lattice abort")
}

fn head_after(plan: &Plan) -> Option<String> {
    plan.steps.iter().find_map(|step| match step {
        Step::Switch { to: HeadValue::Branch(branch) } | Step::LeaveFiles { to: HeadValue::Branch(branch) } => {
            Some(branch.to_string())
        }
        _ => None,
    })
}

fn committed(branch: &BranchName, how: CommitMode, at: &str) -> String {
    match how {
        CommitMode::Amend(_) | CommitMode::AmendElsewhere(_) => format!("amended {branch}, now {at}"),
        CommitMode::OnTop(_) | CommitMode::OnTopElsewhere(_) => format!("committed {at} to {branch}"),
    }
}

fn derived(branch: &BranchName, how: &Derivation, at: &str) -> String {
    match how {
        Derivation::Squash { commits, .. } => {
            format!("squashed {} of {branch}, now {at}", count(commits.len(), "commit"))
        }
        Derivation::Files { paths, .. } => format!("moved {} to {branch} ({at})", paths.join(", ")),
        Derivation::Hunks { lines, paths, .. } => {
            format!("moved {} to {branch} ({at})", count(lines.len() + paths.len(), "hunk"))
        }
        Derivation::Rest { .. } => format!("left the rest in {branch}, now {at}"),
        Derivation::Revert { commit, .. } => format!("took {} back on {branch} ({at})", commit.short()),
    }
}

/// What became of a ref that is gone. A branch that is deleted is no longer tracked; that need not be said twice.
fn gone(name: &RefName, refs: &[RefChange]) -> Option<String> {
    if let Some(branch) = name.as_branch() {
        return Some(format!("deleted {branch}"));
    }
    let Some(branch) = name.as_metadata_of() else { return Some(format!("deleted {name}")) };
    let deleted = refs.iter().any(|change| change.name == branch.branch_ref() && change.new.is_none());
    (!deleted).then(|| format!("stopped tracking {branch}"))
}

/// A branch with another name: what the steps do one by one would read as if it were another branch.
fn renamed(plan: &Plan) -> Option<String> {
    plan.steps.iter().find_map(|step| match step {
        Step::MoveOptions { from, to } => Some(format!("renamed {from} to {to}")),
        _ => None,
    })
}

/// What was done, in one line per thing.
fn story(plan: &Plan, refs: &[RefChange]) -> Vec<String> {
    let parent = |branch| {
        plan.steps.iter().find_map(|step| match step {
            Step::SetMetadata { branch: name, document, .. } if name == branch => Some(document.parent.name().clone()),
            _ => None,
        })
    };
    let new = |name: &RefName| {
        refs.iter().find(|change| change.name == *name).and_then(|change| change.new).map(|oid| oid.short())
    };
    let mut lines = Vec::new();
    for step in &plan.steps {
        let line = match step {
            Step::Commit { branch, how, .. } => committed(branch, *how, &new(&branch.branch_ref()).unwrap_or_default()),
            Step::Derive { branch, how, .. } => derived(branch, how, &new(&branch.branch_ref()).unwrap_or_default()),
            Step::Rewrite { branch, commits, .. } => {
                let onto = parent(branch).map(|parent| format!(" onto {parent}")).unwrap_or_default();
                format!("rebased {branch} ({}){onto}", count(commits.len(), "commit"))
            }
            Step::SetMetadata { branch, expected: Expected::Absent, document } => {
                format!("tracking {branch} on {}", document.parent.name())
            }
            Step::SetMetadata { branch, document, .. } => match (&document.freeze, plan.command.as_str()) {
                (FreezeDraft::FreezeNow { .. }, _) => format!("froze {branch}"),
                (FreezeDraft::Keep(_), "unfreeze") => format!("unfroze {branch}"),
                (FreezeDraft::Keep(_), "unlink") => format!("{branch} has no pull request here any more"),
                (FreezeDraft::Keep(_), _) => continue,
            },
            Step::SetRef { name, to: None, .. } => match gone(name, refs) {
                Some(line) => line,
                None => continue,
            },
            Step::Switch { to: HeadValue::Branch(branch) } => format!("on {branch}"),
            Step::Switch { to: HeadValue::Detached(commit) } | Step::LeaveFiles { to: HeadValue::Detached(commit) } => {
                format!("on {} (detached)", commit.short())
            }
            Step::LeaveFiles { .. } if plan.command == "absorb" => continue,
            Step::LeaveFiles { to: HeadValue::Branch(branch) } => format!("on {branch}, with the changes staged"),
            Step::Fixup { fixup } => {
                format!("absorbed {}:{} into {}", fixup.path, fixup.here + 1, fixup.commit.short())
            }
            Step::Push { remote, updates } => {
                let names: Vec<_> = updates.iter().map(|update| update.branch.to_string()).collect();
                format!("pushed {} to {remote}", names.join(", "))
            }
            Step::Host { action } => match action.story() {
                Some(line) => line,
                None => continue,
            },
            Step::SetRef { name, to: Some(to), expected: Expected::At(_) } => match name.as_branch() {
                Some(branch) => format!("moved {branch} to {to}"),
                None => continue,
            },
            Step::WriteConfig { .. }
            | Step::Stage { .. }
            | Step::MoveOptions { .. }
            | Step::SetRef { .. }
            | Step::Guard { .. }
            | Step::RestoreWorktree { .. }
            | Step::RemoveOpState
            | Step::RemoveLock { .. }
            | Step::Verify
            | Step::Fetch { .. } => continue,
        };
        lines.push(line);
    }
    if lines.is_empty() {
        lines = plan.preview();
    }
    lines
}
