//! Several fixes at once, fixes that contradict each other, and fixes whose time has passed.

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use super::states::{self, edit, leave_lock, recorded, stack};
use super::{copy_of, fix_named, issue, list, plans, report, text};
use crate::lattice;

/// Three defects of different parts: configuration, a document, the graph.
fn three_defects() -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b; main* <- c");
    repo.write_config("trunk = \"main\"\n");
    repo.set_metadata_raw("c", b"garbage");
    edit(&repo, "b", |metadata| metadata["parent"]["name"] = serde_json::json!("never"));
    repo
}

#[test]
fn a_new_trunk_keeps_what_can_be_read_of_a_broken_configuration() {
    let repo = recorded(|_| {});
    repo.write_config("[undo]\nkeep_days = 7 # a week\n[actions]\nopen_pr = \"deny\"\n[lock\ntimeout_ms = 3\n");
    let found = report(&repo);
    let fix = plans(issue(&found, "config-invalid"))[0].clone();
    let told = text(&fix["summary"]);
    for said in ["line 5, line 6 cannot be read and would be lost", "config.toml.replaced-"] {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert_eq!(found["divergence"]["changes"], serde_json::json!([]), "the trunk is as it was");
    assert_eq!(found["divergence"]["files"], serde_json::json!(["lattice/config.toml"]));
    let output = lattice(&repo).args(["doctor", "--fix", text(&fix["id"])]).ok();
    assert!(output.stdout.contains("config.toml.replaced-"), "{}", output.snapshot());
    for (key, value) in [("undo.keep_days", "7"), ("actions.open_pr", "deny"), ("trunk.branch", "main")] {
        assert_eq!(lattice(&repo).args(["config", "get", key]).ok().stdout.trim(), value, "{key}");
    }
    let kept = std::fs::read_dir(repo.lattice_dir()).expect("it is there").flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("config.toml.replaced-"));
    assert_eq!(kept.count(), 1, "the old file is beside it");
}

#[test]
fn a_configuration_that_was_edited_by_hand_is_named() {
    let repo = recorded(|repo| repo.write_config("[trunk]\nbranch = \"main\"\n[undo]\nkeep_days = 7\n"));
    let output = lattice(&repo).arg("doctor").ok();
    let told = "changed outside of Lattice since its last operation:\n  lattice/config.toml\n";
    assert!(output.stdout.contains(told), "{}", output.snapshot());
}

#[test]
fn a_deleted_branch_can_be_brought_back_also_after_other_operations() {
    let repo = TestRepo::draw("main* <- a; main <- b");
    lattice(&repo).args(["freeze", "a"]).ok();
    let tip = repo.rev("b");
    repo.git(&["branch", "-D", "b"]);
    for _ in 0..2 {
        lattice(&repo).args(["unfreeze", "a"]).ok();
        lattice(&repo).args(["freeze", "a"]).ok();
    }
    let found = report(&repo);
    let fix = fix_named(&found, "recreate-branch");
    lattice(&repo).args(["doctor", "--fix", &fix]).ok();
    assert_eq!(repo.rev("b"), tip);
    lattice(&repo).args(["verify", "--full"]).ok();
}

// proves: ST-8.1-1
#[test]
fn three_different_defects_are_listed_together() {
    let found = report(&three_defects());
    for kind in ["config-foreign", "metadata-unreadable", "missing-parent"] {
        issue(&found, kind);
    }
}

#[test]
fn several_fixes_are_one_operation() {
    let repo = three_defects();
    let found = report(&repo);
    let [config, document, graph] =
        ["convert-config", "remove-metadata", "remove-metadata"].map(|name| name.to_owned());
    let id = |kind: &str, name: &str| {
        let fixes = plans(issue(&found, kind));
        let fix = fixes.into_iter().find(|fix| text(&fix["id"]).starts_with(name));
        text(&fix.unwrap_or_else(|| panic!("{kind} has {name}"))["id"]).to_owned()
    };
    let ids = [id("config-foreign", &config), id("metadata-unreadable", &document), id("missing-parent", &graph)];
    let before = repo.state();
    lattice(&repo).args(["doctor", "--fix", &ids[0], "--fix", &ids[1], "--fix", &ids[2]]).ok();
    assert_eq!(repo.metadata_refs().into_keys().collect::<Vec<_>>(), ["a"], "both documents are removed");
    lattice(&repo).arg("verify").ok();
    let ledger = repo.ledger();
    assert_eq!(ledger[0]["event"], "DoctorApplied");
    assert_eq!(list(&ledger[0]["detail"]["fixes"]).len(), 3, "one record for all three");
    lattice(&repo).arg("undo").ok();
    assert_same(&before, &repo.state());
}

#[test]
fn fixes_that_change_the_same_ref_are_refused_together() {
    let repo = recorded(|repo| repo.set_metadata_raw("b", b"{}"));
    let found = report(&repo);
    let (restore, remove) = (fix_named(&found, "restore-metadata"), fix_named(&found, "remove-metadata"));
    let before = repo.state();
    let refused = lattice(&repo).args(["doctor", "--fix", &restore, "--fix", &remove]).json();
    assert_eq!(refused["error"]["code"], "fixes-clash", "{refused:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn two_trunks_at_once_are_refused() {
    let repo = TestRepo::new();
    repo.git(&["branch", "master"]);
    let found = report(&repo);
    let ids: Vec<_> = plans(issue(&found, "not-initialised")).iter().map(|fix| text(&fix["id"]).to_owned()).collect();
    assert_eq!(ids.len(), 2, "main and master are both likely: {found:#}");
    let refused = lattice(&repo).args(["doctor", "--fix", &ids[0], "--fix", &ids[1]]).json();
    assert_eq!(refused["error"]["code"], "fixes-clash", "one file cannot name two trunks: {refused:#}");
    assert!(!repo.lattice_dir().join("config.toml").exists(), "nothing is written");
}

#[test]
fn the_same_fix_named_twice_is_applied_once() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    lattice(&repo).args(["doctor", "--fix", &id, "--fix", &id]).ok();
    assert!(!repo.metadata_refs().contains_key("b"), "the fix is applied");
}

// proves: ST-8.3-8
#[test]
fn an_unknown_id_beside_a_known_one_applies_neither() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    let before = repo.state();
    for unknown in ["remove-metadata-00000000", "remove-metadata", "*", ""] {
        let refused = lattice(&repo).args(["doctor", "--fix", &id, "--fix", unknown]).json();
        assert_eq!(refused["error"]["code"], "unknown-fix", "{unknown:?}: {refused:#}");
        assert_same(&before, &repo.state());
    }
    let help = lattice(&repo).args(["doctor", "--help"]).ok().stdout;
    let flags: Vec<_> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() > 6, "the flags are found: {help}");
    for flag in flags {
        let args = match flag {
            "--fix" => continue,
            "--cwd" => vec![flag, "."],
            "--color" => vec![flag, "never"],
            _ => vec![flag],
        };
        lattice(&repo).arg("doctor").args(&args).run();
        assert_same(&before, &repo.state());
    }
}

// proves: ST-8.2-6
#[test]
fn a_precondition_that_was_lost_since_the_listing_refuses_the_fix() {
    let repo = states::raw(b"garbage");
    let found = report(&repo);
    let fix = plans(issue(&found, "metadata-unreadable"))[0];
    let needs: Vec<_> = list(&fix["preconditions"]).iter().map(text).collect();
    assert_eq!(needs, ["RepoOpen", "NoLatticeOpInProgress", "RefsWritable"]);
    for (lost, make) in [("RefsWritable", "packed-refs.lock"), ("NoLatticeOpInProgress", "lattice/op-state.json")] {
        let copy = copy_of(&repo, lost);
        leave_lock(&copy.common_dir().join(make));
        let before = copy.state();
        let refused = lattice(&copy).args(["doctor", "--fix", text(&fix["id"])]).json();
        assert_eq!(refused["error"]["code"], "precondition-failed", "{refused:#}");
        assert!(text(&refused["error"]["message"]).contains(lost), "{lost} is named: {refused:#}");
        assert_same(&before, &copy.state());
    }
}

#[test]
fn a_fix_for_evidence_that_has_changed_is_unknown() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    repo.set_metadata_raw("b", b"other garbage");
    let before = repo.state();
    let refused = lattice(&repo).args(["doctor", "--fix", &id]).json();
    assert_eq!(refused["error"]["code"], "unknown-fix", "{refused:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn a_ref_that_moves_while_a_fix_is_applied_is_kept() {
    let repo = states::raw(b"garbage");
    let id = fix_named(&report(&repo), "remove-metadata");
    let healthy = repo.rev(&metadata_ref("a"));
    let mut wrapper = GitWrapper::new(&repo);
    // Someone else repairs the document after Lattice has looked and before it acts.
    let other = format!("\"$REAL_GIT\" update-ref {} {healthy}", metadata_ref("b"));
    wrapper.on("unpack-objects", 1, Action::Run(other));
    let output = lattice(&repo).wrapper(&wrapper).args(["doctor", "--fix", &id]).fails(1);
    assert!(!output.stdout.contains("applied"), "no success is claimed:\n{}", output.snapshot());
    assert_eq!(repo.rev(&metadata_ref("b")), healthy, "the other process's value stands");
    assert!(!repo.op_state_path().exists(), "nothing is left in progress");
}

// proves partly: ST-8.2-11 — authentication issues come with the forges; this is the same kind of fix
#[test]
fn a_fix_that_is_the_users_to_do_changes_nothing_and_says_what_to_do() {
    let repo = states::configured("[trunk]\nbranch = \"main\"\n[lock]\ntimeuot_ms = 3\n");
    let found = report(&repo);
    let fix = &issue(&found, "config-unknown-key")["fixes"][0];
    assert!(fix["plan"].is_null() && fix["user_action"].is_string(), "{fix:#}");
    let before = repo.state();
    let output = lattice(&repo).args(["doctor", "--fix", text(&fix["id"])]).ok();
    assert!(output.stderr.contains(text(&fix["user_action"])), "the action is shown:\n{}", output.snapshot());
    assert_same(&before, &repo.state());
    assert_eq!(lattice(&repo).args(["doctor", "--fix", text(&fix["id"])]).json()["applied"], serde_json::json!([]));
}

// proves: ST-8.1-2, ST-5.3-7, ST-1.1-3, ST-13.4-2
#[test]
fn doctor_repairs_are_reachable_with_the_ids_that_a_gated_command_prints() {
    let blocking = states::ALL.iter().filter(|state| state.severity == "blocking");
    let mut seen = 0;
    for state in blocking {
        let repo = (state.make)();
        let before = repo.state();
        let gated = lattice(&repo).arg("restack").json();
        assert_eq!(gated["ok"], false, "restack runs although there is {}: {gated:#}", state.name);
        let found = report(&repo);
        let expected = issue(&found, state.kind);
        if state.kind == "unmerged-files" {
            // The files are only looked at when the operation begins, and then this is what is in the way.
            assert_eq!(gated["error"]["code"], "unmerged-files", "{gated:#}");
            assert_same(&before, &repo.state());
            continue;
        }
        let printed = list(&gated["issues"]).iter().find(|issue| issue["id"] == expected["id"]);
        let printed = printed.unwrap_or_else(|| panic!("{} gates restack: {gated:#}", state.name));
        assert_eq!(printed["fixes"], expected["fixes"], "both offer the same for {}", state.name);
        assert_same(&before, &repo.state());
        for (at, fix) in plans(printed).into_iter().enumerate() {
            let copy = copy_of(&repo, &format!("copy-{at}"));
            let applied = lattice(&copy).args(["doctor", "--fix", text(&fix["id"])]).json();
            assert_eq!(applied["applied"][0], fix["id"], "{}: {applied:#}", state.name);
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} repairs were tried");
}

#[test]
fn a_frozen_branch_is_unfrozen_by_the_id_that_the_gated_command_prints() {
    let repo = TestRepo::draw("main <- a!*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("new", "x\n", "advance");
    let gated = lattice(&repo).args(["restack", "a"]).json();
    let id = text(&gated["issues"][0]["fixes"][0]["id"]).to_owned();
    assert!(list(&report(&repo)["issues"]).is_empty(), "a frozen branch is no defect of the repository");
    lattice(&repo).args(["doctor", "--fix", &id]).ok();
    lattice(&repo).args(["restack", "a"]).ok();
    assert_eq!(repo.rev("a~1"), repo.rev("main"), "the restack happened");
}

// proves: ST-8.3-9
#[test]
fn the_exit_code_says_whether_something_blocks() {
    for state in states::ALL {
        let repo = (state.make)();
        let blocks = list(&report(&repo)["issues"]).iter().any(|issue| issue["severity"] == "blocking");
        let code = lattice(&repo).args(["doctor", "--no-interactive"]).run().code;
        assert_eq!(code, Some(i32::from(blocks)), "{}", state.name);
    }
    assert_eq!(lattice(&stack()).arg("doctor").run().code, Some(0), "a healthy repository");
}

#[test]
fn what_a_fix_replaced_comes_back_by_undo_even_after_pruning() {
    let damaged = states::ALL.iter().filter(|state| state.kind == "metadata-unreadable");
    for state in damaged.filter(|state| state.name != "a missing object as metadata") {
        let repo = (state.make)();
        let before = repo.state();
        let found = report(&repo);
        let fixes = plans(issue(&found, state.kind));
        let remove = fixes.last().expect("the last resort is to remove it");
        lattice(&repo).args(["doctor", "--fix", text(&remove["id"])]).ok();
        repo.git(&["reflog", "expire", "--expire=now", "--all"]);
        repo.git(&["gc", "--quiet", "--prune=now"]);
        lattice(&repo).arg("undo").ok();
        assert_same(&before, &repo.state());
    }
}

#[test]
fn a_configuration_that_is_replaced_stays_beside_the_new_one() {
    let contents: [&[u8]; 2] = [b"[trunk\nbranch", &[0xff, 0xfe, 0x00]];
    for content in contents {
        let repo = stack();
        std::fs::write(repo.lattice_dir().join("config.toml"), content).expect("it can be written");
        lattice(&repo).args(["doctor", "--fix", &fix_named(&report(&repo), "set-trunk")]).ok();
        let kept = std::fs::read_dir(repo.lattice_dir()).expect("there is a directory").flatten();
        let kept: Vec<_> =
            kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("config.toml.replaced")).collect();
        assert_eq!(kept.len(), 1, "the old file is kept");
        assert_eq!(std::fs::read(kept[0].path()).expect("it can be read"), content, "byte for byte");
    }
}

#[test]
fn a_branch_that_was_reset_below_its_parent_gets_no_commits_of_others_as_its_own() {
    let repo = TestRepo::draw("main <- a(2) <- b <- c*");
    repo.git(&["reset", "--quiet", "--hard", "a"]);
    let report = lattice(&repo).args(["--json", "doctor"]).fails(1).json();
    let fix = report["issues"][0]["fixes"][0]["id"].as_str().expect("a fix");
    assert!(fix.starts_with("correct-base-"), "{report:#}");
    lattice(&repo).args(["doctor", "--fix", fix]).ok();
    assert_eq!(repo.metadata("c")["base"]["oid"], serde_json::json!(repo.rev("a")), "the last commit they share");
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("c"), repo.rev("b"), "nothing was left of its own");
}
