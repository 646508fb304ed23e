//! The executor against changes that come between plan and execution, and the order of what it writes.

mod disk;
mod together;

use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};
use serde_json::Value;

use crate::lattice;

/// Three branches behind their trunk, the middle one checked out, and a commit `foreign` on `api`.
#[track_caller]
fn behind() -> TestRepo {
    let repo = TestRepo::draw("main <- api <- ui* <- top; main <- db");
    repo.git(&["checkout", "--quiet", "-b", "foreign", "api"]);
    repo.commit_file("foreign.txt", "by someone else\n", "foreign");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo
}

fn newest(repo: &TestRepo) -> String {
    let ledger = repo.ledger();
    let event = ledger.first().map(|event| event["event"].as_str().unwrap_or_default().to_owned());
    event.unwrap_or_default()
}

/// Runs shell text at each reference transaction that is in `state` and touches `pattern`, once.
#[track_caller]
fn hook(repo: &TestRepo, state: &str, pattern: &str, text: &str) {
    let fired = repo.sandbox().root().join("fired");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = {state} ] || exit 0\nlines=$(cat)\ncase $lines in *{pattern}*) ;; *) exit 0;; esac\n\
         [ ! -e {fired} ] || exit 0\ntouch {fired}\n{text}\n",
        fired = fired.display()
    );
    let path = repo.common_dir().join("hooks/reference-transaction");
    repo.write(".git/hooks/reference-transaction", script);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
}

#[track_caller]
fn unhook(repo: &TestRepo) {
    assert!(repo.sandbox().root().join("fired").exists(), "the hook has done its work");
    std::fs::remove_file(repo.common_dir().join("hooks/reference-transaction")).expect("it was written");
}

// proves: ST-2-8, ST-3.2.3-2, ST-3.2.3-3, ST-7.3-4, ST-13.2-1
#[test]
fn a_ref_that_changes_at_any_moment_keeps_the_foreign_value() {
    // A branch of the plan, a document of the plan, and the trunk that the plan depends on.
    for name in ["refs/heads/api", "refs/branch-metadata/top", "refs/heads/main"] {
        let mut refused = 0;
        for call in 1.. {
            let repo = behind();
            let foreign = match name {
                "refs/branch-metadata/top" => repo.rev("refs/branch-metadata/db"),
                "refs/heads/main" => repo.git(&["commit-tree", "-p", "main", "-m", "foreign", "main^{tree}"]),
                _ => repo.rev("foreign"),
            };
            let before = repo.refs();
            let mut wrapper = GitWrapper::new(&repo);
            wrapper.on("", call, Action::Run(format!("git update-ref {name} {foreign}")));
            let output = lattice(&repo).arg("restack").wrapper(&wrapper).run();
            if wrapper.count() < call as usize {
                break;
            }
            let context = format!("{name} changed at call {call}: {}", output.snapshot());
            if output.code == Some(0) || repo.op_state_path().exists() {
                // It came before the scan, or after everything was done.
                continue;
            }
            refused += 1;
            let mut expected = before.clone();
            expected.insert(name.to_owned(), foreign.clone());
            let now = repo.refs();
            let ours = |name: &String| !name.starts_with("refs/lattice/");
            let now: std::collections::BTreeMap<_, _> = now.into_iter().filter(|(name, _)| ours(name)).collect();
            assert_eq!(now, expected, "{context}");
            if newest(&repo) != "DivergenceObserved" && !repo.ledger().is_empty() {
                assert_eq!(newest(&repo), "Aborted", "{context}");
            }
            if name == "refs/heads/api" {
                lattice(&repo).arg("restack").ok();
                assert!(repo.git(&["log", "--format=%s", "api"]).starts_with("foreign"), "planned on the new value");
            }
        }
        assert!(refused > 2, "{name} was changed between plan and execution only {refused} times");
    }
}

// The public predecessor looked at a ref, and then set it by force; and a failed comparison left
// its op-state behind.
// proves: ST-6.2-7
// proves partly: ST-3.4.2-3 — the failed comparison; `abort` is in the tests of conflicts
#[test]
fn a_ref_that_changes_after_the_last_look_is_not_overwritten_and_leaves_no_marker() {
    let repo = behind();
    let foreign = repo.rev("foreign");
    let before = repo.state();
    // The process that moves refs starts after every check was made.
    let mut wrapper = GitWrapper::new(&repo);
    wrapper.on("update-ref", 1, Action::Run(format!("git update-ref refs/heads/api {foreign}")));
    let output = lattice(&repo).args(["--json", "restack"]).wrapper(&wrapper).fails(1).json();
    assert_eq!(output["error"]["code"], "ref-moved");
    assert!(output["error"]["message"].to_string().contains("refs/heads/api"), "{output}");
    assert_eq!(repo.rev("api"), foreign, "the foreign value stays");
    assert!(!repo.op_state_path().exists(), "no operation is in progress");
    repo.git(&["update-ref", "refs/heads/api", &before.facts["ref refs/heads/api"].escape_ascii().to_string()]);
    assert_same(&before, &repo.state());
    assert_eq!(newest(&repo), "Aborted");
}

// proves: ST-6.2-5
#[test]
fn a_branch_that_is_checked_out_elsewhere_meanwhile_is_not_moved() {
    let repo = behind();
    let branches = repo.branch_refs();
    let mut wrapper = GitWrapper::new(&repo);
    wrapper.on("write-tree", 1, Action::Run("git worktree add --quiet ../other top".to_owned()));
    let output = lattice(&repo).args(["--json", "restack"]).wrapper(&wrapper).fails(1).json();
    assert_eq!(output["error"]["code"], "precondition-failed", "{output}");
    let message = output["error"]["message"].to_string();
    assert!(message.contains("top") && message.contains("other"), "branch and path are named: {message}");
    assert_eq!(repo.branch_refs(), branches);
    assert!(!repo.op_state_path().exists());
}

#[test]
fn a_branch_that_git_is_rebasing_in_another_worktree_is_not_moved() {
    let repo = behind();
    let other = repo.worktree("other", "top");
    repo.commit_file("top.txt", "the same file\n", "collides with top");
    other.try_git(&["rebase", "ui"]).expect_err("the rebase stops at a conflict");
    let (tip, operation) = (repo.rev("top"), other.git_dir().join("rebase-merge"));
    let kept = lattice(&repo).arg("restack").json()["kept"].clone();
    let path = other.dir().to_str().expect("the kit chooses its paths");
    assert_eq!(kept[0]["branch"], "top", "{kept}");
    assert!(kept[0]["reason"].to_string().contains(path), "{kept}");
    assert_eq!(repo.rev("top"), tip, "the branch of the rebase stays");
    assert!(operation.exists(), "and so does the rebase");
    assert_eq!(repo.metadata("ui")["base"]["oid"], repo.rev("api"), "what is below it moved");
    other.git(&["rebase", "--abort"]);
}

// proves: ST-4.1-20, ST-6.2-3, ST-6.2-4, ST-6.2-10, ST-3.4.2-1, ST-3.4.2-2
#[test]
fn marker_and_intent_come_before_the_first_ref_and_the_record_before_the_end_of_the_marker() {
    let repo = behind();
    let log = repo.sandbox().root().join("order");
    let look = format!(
        "#!/bin/sh\n[ \"$1\" = prepared ] || exit 0\nwhile read -r old new name; do\n\
         marker=$([ -e \"$GIT_DIR/lattice/op-state.json\" ] && echo marker || echo none)\n\
         tip=$(git log -1 --format=%B refs/lattice/event-log 2>/dev/null | grep -o '\"event\":\"[A-Za-z]*\"')\n\
         echo \"$name $marker $tip\" >>{}\ndone\n",
        log.display()
    );
    repo.write(".git/hooks/reference-transaction", look);
    let path = repo.common_dir().join("hooks/reference-transaction");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    lattice(&repo).arg("restack").ok();
    std::fs::remove_file(&path).expect("it was written");
    let log = std::fs::read_to_string(log).expect("the hook wrote it");
    let lines: Vec<_> = log.lines().filter(|line| !line.contains("refs/lattice/import/")).collect();
    let of = |prefix: &str| lines.iter().filter(|line| line.starts_with(prefix)).copied().collect::<Vec<_>>();
    let mut moved = [of("refs/heads/"), of("refs/branch-metadata/")].concat();
    moved.retain(|line| !line.starts_with("refs/heads/main "));
    assert_eq!(moved.len(), 6, "three branches and three documents move: {log}");
    for line in moved {
        assert!(line.ends_with("marker \"event\":\"IntentRecorded\""), "{line}");
    }
    let records = of("refs/lattice/event-log");
    assert_eq!(records.len(), 2, "intent and end: {log}");
    assert!(records[0].contains(" marker "), "the marker comes before the intent: {log}");
    assert!(records[1].contains(" marker "), "and goes after the end is recorded: {log}");
    assert_eq!(newest(&repo), "Committed");
    assert!(!repo.op_state_path().exists());
}

// proves: ST-0-4, ST-6.2-9, ST-12-7
#[test]
fn a_result_that_is_changed_before_it_was_checked_is_no_success() {
    let repo = behind();
    let foreign = repo.rev("foreign");
    hook(&repo, "committed", "refs/heads/api", &format!("git update-ref refs/heads/api {foreign}"));
    let output = lattice(&repo).args(["--json", "restack"]).fails(1).json();
    unhook(&repo);
    assert_eq!(output["error"]["code"], "not-verified", "{output}");
    assert_eq!(output["ok"], false);
    assert_ne!(newest(&repo), "Committed", "nobody claims that it was done");
    let aborted = lattice(&repo).arg("abort").json();
    assert_eq!(aborted["left_alone"][0], "refs/heads/api", "{aborted}");
    assert_eq!(repo.rev("api"), foreign, "the foreign value stays");
    assert!(!repo.op_state_path().exists());
}

#[test]
fn a_change_elsewhere_meanwhile_is_no_failure_and_is_noticed_by_the_next_command() {
    let repo = behind();
    let foreign = repo.rev("foreign");
    hook(&repo, "committed", "refs/heads/api", &format!("git update-ref refs/heads/db {foreign}"));
    lattice(&repo).args(["restack", "ui"]).ok();
    unhook(&repo);
    let log = lattice(&repo).arg("log").json();
    assert!(log["divergence"].to_string().contains("refs/heads/db"), "{}", log["divergence"]);
}

#[test]
fn evidence_that_comes_between_intent_and_end_stays_in_the_chain() {
    let repo = behind();
    // Another program appends a record of its own right after the intent.
    let tip = "refs/lattice/event-log";
    let text = format!(
        "git update-ref {tip} $(git log -1 --format=%B {tip} | sed s/IntentRecorded/DivergenceObserved/ |\
         git commit-tree -p {tip} -F - {tip}^{{tree}})"
    );
    hook(&repo, "committed", tip, &text);
    lattice(&repo).args(["freeze", "db"]).ok();
    unhook(&repo);
    let events: Vec<Value> = repo.ledger().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(events[..3], ["Committed", "DivergenceObserved", "IntentRecorded"], "nothing is lost");
    lattice(&repo).args(["undo"]).ok();
}

#[test]
fn a_lock_file_on_one_ref_stops_the_whole_plan() {
    for name in ["refs/heads/top", "refs/branch-metadata/api", "HEAD", "index"] {
        let repo = behind();
        let lock = repo.common_dir().join(format!("{name}.lock"));
        std::fs::File::create(&lock).expect("it can be written");
        let before = repo.state();
        let output = lattice(&repo).args(["--json", "restack"]).run();
        if output.code == Some(0) {
            assert_eq!(name, "HEAD", "a restack need not write HEAD");
            continue;
        }
        if name == "index" {
            assert_eq!(output.json()["error"]["code"], "index-locked", "nothing of the user's is in the way");
        }
        assert_same(&before, &repo.state());
        assert!(!repo.op_state_path().exists(), "{name}: {}", output.snapshot());
        std::fs::remove_file(&lock).expect("it is there");
        lattice(&repo).arg("restack").ok();
    }
}

#[test]
fn a_lock_that_an_editor_holds_for_a_moment_is_waited_for() {
    let repo = behind();
    let lock = repo.common_dir().join("index.lock");
    std::fs::File::create(&lock).expect("it can be written");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(700));
            std::fs::remove_file(&lock).expect("it is there");
        });
        lattice(&repo).arg("restack").ok();
    });
}

#[test]
fn an_untracked_file_in_the_way_stops_a_commit_with_the_index_as_it_was() {
    let repo = TestRepo::draw("main <- api <- ui*");
    repo.git(&["checkout", "--quiet", "api"]);
    repo.commit_file("coming.txt", "comes with api\n", "more");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo.write("coming.txt", "untracked here\n");
    repo.write("README", "edited\n");
    let before = repo.state();
    let output = lattice(&repo).args(["--json", "modify", "-u", "--into", "api"]).fails(1).json();
    assert_eq!(output["error"]["code"], "files-in-the-way", "{output}");
    assert_same(&before, &repo.state());
    assert!(!repo.op_state_path().exists());
}

// proves partly: ST-13.2-2 — failures by pruned objects; those by git itself are in the kill tests
#[test]
fn garbage_collected_at_any_moment_costs_at_most_the_operation() {
    for call in 1..60 {
        let repo = behind();
        let before = repo.state();
        let mut wrapper = GitWrapper::new(&repo);
        let collect = "git reflog expire --expire=now --all; git gc --prune=now --quiet";
        wrapper.on("", call, Action::Run(collect.to_owned()));
        let output = lattice(&repo).arg("restack").wrapper(&wrapper).run();
        repo.git(&["fsck", "--no-dangling"]);
        if output.code != Some(0) {
            if repo.op_state_path().exists() {
                lattice(&repo).arg("abort").ok();
            }
            assert_same(&before, &repo.state());
            lattice(&repo).arg("restack").ok();
        }
        lattice(&repo).args(["verify", "--full"]).ok();
        if wrapper.count() < call as usize {
            return;
        }
    }
    panic!("so many calls of git are a defect of their own");
}
