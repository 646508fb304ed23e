//! Bits that flipped and files that lost their end: named, without a panic, and nothing is written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lattice_testkit::TestRepo;

use crate::doctor::states::{object_path, recorded, remove_object, unpack};
use crate::doctor::{fix_named, issue, report};
use crate::lattice;

/// A trunk that has moved on, so that every branch has something to be restacked.
fn advanced() -> TestRepo {
    let repo = TestRepo::draw("main* <- a(3) <- b; main <- c(2)");
    repo.commit_file("new", "x\n", "advance the trunk");
    repo
}

#[test]
fn a_branch_with_a_missing_commit_is_named_and_no_branch_loses_a_commit() {
    for missing in ["a~1", "a~2", "a"] {
        let repo = advanced();
        let lost = repo.rev(missing);
        remove_object(&repo, &lost);
        let before = repo.refs();
        for branch in ["a", "b", "c"] {
            let refused = lattice(&repo).args(["restack", branch]).json();
            assert_eq!(refused["error"]["code"], "gated", "{branch} without {missing}: {refused:#}");
        }
        assert_eq!(repo.refs_below("refs/heads/"), branch_refs(&before), "no branch moves while one is damaged");
        let found = report(&repo);
        let damaged: Vec<_> = found["issues"].as_array().expect("a list").iter().collect();
        let kinds: Vec<_> = damaged.iter().map(|issue| issue["kind"].as_str().unwrap_or_default()).collect();
        assert_eq!(kinds, ["history-unreadable", "history-unreadable"], "a and b above it, not c: {found:#}");
        assert!(damaged[0]["summary"].to_string().contains(&lost), "the object is named: {found:#}");
        assert_eq!(lattice(&repo).arg("log").run().code, Some(0), "log works without {missing}");
    }
}

fn branch_refs(refs: &std::collections::BTreeMap<String, String>) -> std::collections::BTreeMap<String, String> {
    let branch = |(name, oid): (&String, &String)| Some((name.strip_prefix("refs/heads/")?.to_owned(), oid.clone()));
    refs.iter().filter_map(branch).collect()
}

#[test]
fn the_other_branches_are_usable_once_the_damaged_one_is_no_longer_tracked() {
    let repo = TestRepo::draw("main* <- a(3); main <- c(2)");
    repo.commit_file("new", "x\n", "advance the trunk");
    remove_object(&repo, &repo.rev("a~1"));
    let id = fix_named(&report(&repo), "remove-metadata");
    lattice(&repo).args(["doctor", "--fix", &id]).ok();
    lattice(&repo).args(["restack", "c"]).ok();
    assert_eq!(repo.git(&["rev-list", "--count", "main..c"]), "2", "both commits of c are there");
    assert_eq!(repo.rev("c~2"), repo.rev("main"), "and stand on the trunk");
}

/// One way to damage a file: flip a bit near the middle, or cut it off.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Half,
    Empty,
}

fn damage(path: &Path, how: Damage) {
    let mut bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match how {
        Damage::Flip => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
        }
        Damage::Half => bytes.truncate(bytes.len() / 2),
        Damage::Empty => bytes.clear(),
    }
    // Objects are read-only files.
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("the file is ours");
    fs::write(path, bytes).expect("the file is ours");
}

/// Every file of the repository that Lattice depends on.
fn victims(repo: &TestRepo) -> Vec<(&'static str, PathBuf)> {
    let object = |name: &str| object_path(repo, &repo.rev(name));
    let git = repo.common_dir();
    vec![
        ("packed-refs", git.join("packed-refs")),
        ("HEAD", git.join("HEAD")),
        ("index", git.join("index")),
        ("tip of a branch", object("refs/heads/a")),
        ("tree of a branch", object("refs/heads/a^{tree}")),
        ("metadata", object("refs/branch-metadata/a")),
        ("newest record", object("refs/lattice/event-log")),
        ("older record", object("refs/lattice/event-log~1")),
        ("refs of the record", object("refs/lattice/event-log:refs")),
        ("configuration of git", git.join("config")),
        ("configuration", git.join("lattice/config.toml")),
    ]
}

fn bytes_below(dir: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in fs::read_dir(dir).expect("it can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(bytes_below(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

#[test]
fn damaged_files_are_never_a_panic_nor_a_silent_change_of_refs() {
    for how in [Damage::Flip, Damage::Half, Damage::Empty] {
        let count = victims(&whole()).len();
        for at in 0..count {
            let repo = whole();
            let (name, path) = victims(&repo).swap_remove(at);
            damage(&path, how);
            let what = format!("{how:?} of the {name}");
            check(&repo, &what);
        }
    }
}

/// A repository with every object loose and every ref packed, after an operation.
fn whole() -> TestRepo {
    let repo = recorded(|_| {});
    unpack(&repo);
    repo.git(&["pack-refs", "--all"]);
    repo
}

fn check(repo: &TestRepo, what: &str) {
    // Whatever git says of the refs, the files say the same before and after; records and the cache are excepted.
    let git = repo.dir().join(".git");
    let kept = |(path, _): &(PathBuf, Vec<u8>)| {
        let path = path.to_string_lossy().into_owned();
        let own = ["refs/lattice", "/objects/", "/logs/", "/lattice/lock", "/lattice/ops", "/lattice/cache"];
        !own.iter().any(|own| path.contains(own))
    };
    let files = || -> std::collections::BTreeMap<_, _> { bytes_below(&git).into_iter().filter(kept).collect() };
    let before = files();
    for args in [&["log"][..], &["doctor"], &["doctor", "--json"], &["verify", "--full"], &["info", "a"], &["ops"]] {
        let output = lattice(repo).args(args).run();
        assert!(matches!(output.code, Some(0 | 1)), "{args:?} after a {what}:\n{}", output.snapshot());
        let said = !output.stdout.is_empty() || !output.stderr.is_empty();
        assert!(said && !output.stderr.contains("bug"), "{args:?} says something after a {what}");
    }
    let after = files();
    let changed: Vec<_> =
        after.keys().chain(before.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(changed.is_empty(), "looking changed {changed:?} after a {what}");
    // A changing command either refuses or succeeds and holds; it never ends as a bug.
    let output = lattice(repo).args(["freeze", "b"]).run();
    assert!(matches!(output.code, Some(0 | 1 | 3)), "freeze after a {what}:\n{}", output.snapshot());
    if output.code == Some(0) {
        let metadata = repo.try_git(&["cat-file", "blob", "refs/branch-metadata/b"]);
        let frozen = metadata.is_ok_and(|text| text.contains("\"frozen\""));
        assert!(frozen, "a freeze that succeeded is there after a {what}");
    }
}

// proves: ST-3-4
#[test]
fn flipped_bytes_of_every_document_are_found() {
    flip_metadata_and_configuration();
    flip_marker();
    flip_record();
}

/// A document may still be valid with another byte in it; then what Lattice recorded of it says that it changed.
fn flip_metadata_and_configuration() {
    let repo = recorded(|_| {});
    let metadata = repo.git_with_input(&["cat-file", "blob", "refs/branch-metadata/b"], b"");
    for damaged in flipped(&metadata, 0, 7) {
        repo.set_metadata_raw("b", &damaged);
        let found = report(&repo);
        assert!(sees(&found), "metadata: {}", String::from_utf8_lossy(&damaged));
    }
    repo.set_metadata_raw("b", &metadata);
    assert!(!sees(&report(&repo)), "the document as it was is in order");
    let path = repo.lattice_dir().join("config.toml");
    let config = fs::read(&path).expect("there is a configuration");
    for damaged in flipped(&config, 0, 1) {
        fs::write(&path, &damaged).expect("it can be written");
        assert!(sees(&report(&repo)), "configuration: {}", String::from_utf8_lossy(&damaged));
    }
}

fn sees(report: &serde_json::Value) -> bool {
    !report["issues"].as_array().expect("a list").is_empty() || !report["divergence"].is_null()
}

fn flip_marker() {
    let repo = crate::doctor::states::paused();
    let marker = fs::read(repo.op_state_path()).expect("an operation is paused");
    for damaged in flipped(&marker, 0, 23) {
        fs::write(repo.op_state_path(), &damaged).expect("it can be written");
        issue(&report(&repo), "op-state-damaged");
    }
}

fn flip_record() {
    let repo = recorded(|_| {});
    let tip = repo.rev("refs/lattice/event-log");
    let record = repo.git_with_input(&["cat-file", "commit", &tip], b"");
    let message = record.windows(2).position(|pair| pair == b"\n\n").expect("a message follows") + 2;
    for damaged in flipped(&record, message, 29) {
        let oid = repo.git_with_input(&["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], &damaged);
        repo.git(&["update-ref", "refs/lattice/event-log", String::from_utf8_lossy(&oid).trim()]);
        issue(&report(&repo), "ledger-damaged");
    }
}

/// The document with one bit of one byte flipped, for every `step`-th byte.
fn flipped(bytes: &[u8], from: usize, step: usize) -> Vec<Vec<u8>> {
    let flip = |at: usize| {
        let mut damaged = bytes.to_owned();
        damaged[at] ^= 0x01;
        damaged
    };
    (from..bytes.len()).step_by(step).map(flip).collect()
}
