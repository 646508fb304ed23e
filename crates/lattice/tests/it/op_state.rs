//! The marker of an operation in progress: what it says, and what happens when it cannot be trusted.

use std::path::Path;

use lattice_testkit::{Action, GitWrapper, Lattice, TestRepo, assert_same};
use serde_json::Value;

use crate::lattice;

/// A restack that waits for its user.
#[track_caller]
fn paused() -> TestRepo {
    let repo = TestRepo::draw("main <- api* <- ui; main <- db");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("api.txt", "the trunk's own\n", "take over");
    repo.git(&["checkout", "--quiet", "api"]);
    lattice(&repo).arg("restack").fails(4);
    repo
}

#[track_caller]
fn marker(repo: &TestRepo) -> Value {
    let text = std::fs::read_to_string(repo.op_state_path()).expect("the marker exists");
    serde_json::from_str(&text).expect("the marker is JSON")
}

fn put(path: &Path, content: &[u8]) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).expect("the file can be written");
    file.write_all(content).expect("there is space");
}

// proves: ST-3.3-3, ST-3.3-5, ST-3.3-7, ST-3.3-9, ST-3.4.2-9
#[test]
fn the_marker_says_which_operation_of_which_command_changes_what_and_where() {
    let repo = TestRepo::draw("main <- api* <- ui; main <- db");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("api.txt", "the trunk's own\n", "take over");
    repo.git(&["checkout", "--quiet", "api"]);
    let before = repo.refs();
    let copy = repo.sandbox().root().join("seen");
    let mut wrapper = GitWrapper::new(&repo);
    let look = format!("cp .git/lattice/op-state.json {}", copy.display());
    wrapper.on("replay", 1, Action::Run(look));
    lattice(&repo).arg("restack").wrapper(&wrapper).fails(4);
    let seen: Value = serde_json::from_slice(&std::fs::read(copy).expect("it was there")).expect("it is JSON");
    assert_eq!(seen["phase"], "executing");
    let marker = marker(&repo);
    assert_eq!(marker["phase"], "awaiting_user");
    assert_eq!(marker["origin_work_dir"], Value::from(repo.dir().to_str()));
    assert_eq!(marker["origin_git_dir"], Value::from(repo.git_dir().to_str()));
    let intent = &repo.ledger()[0];
    assert_eq!(intent["event"], "IntentRecorded");
    assert_eq!(intent["op_id"], marker["op_id"]);
    assert_eq!(intent["plan_digest"], marker["plan_digest"]);
    let olds = |document: &Value| {
        let refs = document["touched_refs"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        refs.map(|change| (text(&change["name"]), text(&change["old"]))).collect::<Vec<_>>()
    };
    let names = ["refs/branch-metadata/api", "refs/branch-metadata/ui", "refs/heads/api", "refs/heads/ui"];
    let expected: Vec<_> = names.iter().map(|name| ((*name).to_owned(), before[*name].clone())).collect();
    assert_eq!(olds(&marker), expected, "exactly what the plan touches, with the values from before");
    assert_eq!(olds(intent), expected, "and the ledger says the same");
    let bare = lattice_testkit::Setup::default().bare().draw("main <- a");
    let copy = bare.sandbox().root().join("seen-bare");
    let mut wrapper = GitWrapper::new(&bare);
    wrapper.on("update-ref", 1, Action::Run(format!("cp {} {}", bare.op_state_path().display(), copy.display())));
    lattice(&bare).args(["freeze", "a"]).wrapper(&wrapper).ok();
    let seen: Value = serde_json::from_slice(&std::fs::read(copy).expect("it was there")).expect("it is JSON");
    assert_eq!(seen["origin_work_dir"], Value::Null, "a bare repository has no working tree");
    assert_eq!(seen["origin_git_dir"], Value::from(bare.git_dir().to_str()));
}

// proves: ST-3.3-8
#[test]
fn the_marker_of_a_linked_worktree_names_that_worktree() {
    let repo = TestRepo::draw("main <- api");
    repo.commit_file("api.txt", "the trunk's own\n", "take over");
    let other = repo.worktree("other", "api");
    lattice(&other).arg("restack").fails(4);
    let marker = marker(&repo);
    assert_eq!(marker["origin_git_dir"], Value::from(other.git_dir().to_str()));
    assert_eq!(marker["origin_work_dir"], Value::from(other.dir().to_str()));
    let refused = lattice(&repo).arg("abort").fails(1);
    assert!(refused.stderr.contains(other.dir().to_str().expect("text")), "{}", refused.stderr);
    lattice(&other).arg("abort").ok();
}

// proves: ST-3.3-13, ST-13.2-5
#[test]
fn while_an_operation_is_in_progress_every_other_change_is_refused() {
    let repo = paused();
    lattice(&repo).arg("abort").ok();
    // Something to undo, and something to redo.
    lattice(&repo).args(["config", "set", "undo.keep_days", "40"]).ok();
    lattice(&repo).args(["freeze", "db"]).ok();
    lattice(&repo).arg("undo").ok();
    lattice(&repo).args(["plan", "freeze", "db", "--out", "../plan.json"]).ok();
    lattice(&repo).arg("restack").fails(4);
    repo.set_metadata_raw("ui", b"garbage");
    let report = lattice(&repo).arg("doctor").json();
    let issues = report["issues"].as_array().expect("a list");
    let damage = issues.iter().find(|issue| issue["kind"] == "metadata-unreadable").expect("it is an issue");
    let fixes = damage["fixes"].as_array().expect("there are fixes");
    let fix = fixes.iter().find(|fix| fix["user_action"].is_null()).expect("one can be applied")["id"].clone();
    let before = repo.state();
    let commands: [&[&str]; 22] = [
        &["init", "--trunk", "main"],
        &["init", "--reset", "--force"],
        &["track", "ui", "--force"],
        &["untrack", "db"],
        &["create", "new"],
        &["create", "new", "-a", "-m", "new"],
        &["modify", "-a"],
        &["restack"],
        &["move", "--source", "db", "--onto", "ui"],
        &["freeze", "db"],
        &["unfreeze", "db"],
        &["checkout", "db"],
        &["up"],
        &["down"],
        &["top"],
        &["bottom"],
        &["apply", "../plan.json"],
        &["doctor", "--fix", fix.as_str().expect("text")],
        &["trunk", "set", "db"],
        &["config", "set", "undo.keep_days", "30"],
        &["undo"],
        &["redo"],
    ];
    for args in commands {
        let output = lattice(&repo).args(args).run();
        assert_eq!(output.code, Some(3), "{args:?}: {}", output.snapshot());
        assert!(output.stderr.contains("lattice continue"), "{args:?} says how to go on:\n{}", output.stderr);
        assert!(output.stderr.contains("lattice abort"), "{args:?} says how to go back:\n{}", output.stderr);
    }
    assert_same(&before, &repo.state());
    for args in [&["log"][..], &["info", "db"], &["parent", "db"], &["children", "api"], &["trunk"], &["ops"]] {
        let output = lattice(&repo).args(args).run();
        assert_eq!(output.code, Some(0), "{args:?} only looks: {}", output.snapshot());
    }
}

/// Puts something in the place of the marker of a repository at rest.
#[track_caller]
fn check_damaged(name: &str, damage: impl FnOnce(&TestRepo, &Path)) {
    let repo = TestRepo::draw("main <- api* <- ui");
    lattice(&repo).args(["freeze", "ui"]).ok();
    let path = repo.op_state_path();
    damage(&repo, &path);
    let before = repo.state();
    let refused = lattice(&repo).args(["--json", "unfreeze", "ui"]).fails(3).json();
    lattice(&repo).arg("log").ok();
    for way in ["continue", "abort"] {
        lattice(&repo).arg(way).fails(1);
    }
    assert_same(&before, &repo.state());
    let fixes = refused["issues"][0]["fixes"].as_array().expect("fixes are offered").clone();
    let fix = fixes.iter().find(|fix| fix["user_action"].is_null()).expect("one of them can be applied");
    lattice(&repo).args(["doctor", "--fix", fix["id"].as_str().expect("text")]).ok();
    assert!(path.symlink_metadata().is_err(), "{name}: the marker is out of the way");
    assert_same(&before, &repo.state());
    let kept = std::fs::read_dir(repo.lattice_dir()).expect("a folder").flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).count();
    assert_eq!(kept, 1, "{name}: what was found is kept beside");
    lattice(&repo).args(["unfreeze", "ui"]).ok();
}

/// A marker of a real operation, changed behind the back of its checksum.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut marker = marker(&paused());
    change(&mut marker);
    marker.to_string().into_bytes()
}

/// The checksum that a document has to carry.
#[track_caller]
fn checksum(repo: &TestRepo, document: &Value) -> String {
    let mut bare = document.clone();
    bare.as_object_mut().expect("an object").remove("checksum");
    let path = repo.sandbox().root().join("sealed");
    put(&path, bare.to_string().as_bytes());
    let sum = Lattice::new("sha256sum", repo).arg(path).ok().stdout;
    sum.split(' ').next().expect("a sum").to_owned()
}

/// Changes a document so that its checksum still holds: only what it says can give it away.
#[track_caller]
fn forged(repo: &TestRepo, path: &Path, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    let genuine = document["checksum"].as_str().expect("text").to_owned();
    let plain = checksum(repo, &document);
    assert!(genuine.ends_with(&plain), "the test computes checksums as the program does: {genuine}");
    change(&mut document);
    document["checksum"] = genuine.replace(&plain, &checksum(repo, &document)).into();
    document.to_string().into_bytes()
}

#[test]
fn a_damaged_marker_is_recognised_and_never_followed() {
    check_damaged("empty", |_, path| put(path, b""));
    check_damaged("torn", |_, path| {
        let whole = changed(|_| {});
        put(path, &whole[..whole.len() / 2]);
    });
    check_damaged("not JSON", |_, path| put(path, b"\xff\x00"));
    check_damaged("unknown field", |_, path| put(path, &changed(|marker| marker["extra"] = 1.into())));
    check_damaged("unknown field with a good checksum", |_, path| {
        let other = paused();
        put(path, &forged(&other, &other.op_state_path(), |marker| marker["extra"] = 1.into()));
    });
    check_damaged("wrong version", |_, path| put(path, &changed(|marker| marker["schema_version"] = 2.into())));
    check_damaged("another command", |_, path| put(path, &changed(|marker| marker["command"] = "create".into())));
    check_damaged("a link", |repo, path| {
        let target = repo.sandbox().root().join("elsewhere");
        put(&target, b"not to be read or removed");
        std::os::unix::fs::symlink(&target, path).expect("a link can be made");
    });
    check_damaged("a FIFO", |repo, path| {
        Lattice::new("mkfifo", repo).arg(path).ok();
    });
}

// proves: ST-3.3-6
#[test]
fn a_marker_without_its_journal_does_not_lock_the_repository_for_ever() {
    let damage: [fn(&TestRepo, &Path); 3] = [
        |_, journal| std::fs::remove_file(journal).expect("it is there"),
        |_, journal| put(journal, b""),
        |repo, journal| {
            let other = forged(repo, journal, |document| document["plan"]["command"] = "create".into());
            put(journal, &other);
        },
    ];
    for damage in damage {
        let repo = paused();
        let journal =
            repo.lattice_dir().join("ops").join(format!("{}.json", marker(&repo)["op_id"].as_str().expect("text")));
        damage(&repo, &journal);
        let before = repo.state();
        for way in ["continue", "abort"] {
            let output = lattice(&repo).args(["--json", way]).fails(1).json();
            assert_eq!(output["error"]["code"], "journal-unusable", "{output}");
        }
        assert_same(&before, &repo.state());
        repo.git(&["rebase", "--abort"]);
        repo.git(&["checkout", "--quiet", "api"]);
        let refused = lattice(&repo).args(["--json", "freeze", "db"]).fails(3).json();
        let fixes = refused["issues"][0]["fixes"].as_array().expect("a list").clone();
        let fix = fixes.iter().find(|fix| fix["user_action"].is_null()).expect("doctor knows a way out");
        lattice(&repo).args(["doctor", "--fix", fix["id"].as_str().expect("text")]).ok();
        lattice(&repo).args(["freeze", "db"]).ok();
    }
}

#[test]
fn an_operation_of_a_worktree_that_is_gone_does_not_lock_the_repository_for_ever() {
    let repo = TestRepo::draw("main <- api; main <- db");
    repo.commit_file("api.txt", "the trunk's own\n", "take over");
    let other = repo.worktree("other", "api");
    lattice(&other).arg("restack").fails(4);
    repo.git(&["worktree", "remove", "--force", "../other"]);
    let refused = lattice(&repo).args(["--json", "freeze", "db"]).fails(3).json();
    let fixes = refused["issues"][0]["fixes"].as_array().expect("a list").clone();
    let fix = fixes.iter().find(|fix| fix["user_action"].is_null()).expect("doctor knows a way out");
    lattice(&repo).args(["doctor", "--fix", fix["id"].as_str().expect("text")]).ok();
    lattice(&repo).args(["freeze", "db"]).ok();
}
