//! Repositories that are wrong in one way each, made with plain git and edits of files.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use lattice_testkit::metadata::{Freeze, Parent, Tracked, document, metadata_ref};
use lattice_testkit::{Setup, TestRepo};
use serde_json::json;

use crate::lattice;

/// A way to be wrong.
pub(crate) struct State {
    pub(crate) name: &'static str,
    /// The kind of the issue that doctor must name.
    pub(crate) kind: &'static str,
    pub(crate) severity: &'static str,
    /// The fixes that change something, without their tags, in the order in which they are offered.
    pub(crate) fixes: &'static [&'static str],
    pub(crate) make: fn() -> TestRepo,
}

const BLOCKING: &str = "blocking";
const WARNING: &str = "warning";
const INFO: &str = "info";

const fn state(
    (name, kind): (&'static str, &'static str),
    severity: &'static str,
    fixes: &'static [&'static str],
    make: fn() -> TestRepo,
) -> State {
    State { name, kind, severity, fixes, make }
}

/// Every issue that a repository itself can have.
pub(crate) const ALL: &[State] = &[
    state(("no configuration", "not-initialised"), BLOCKING, &["set-trunk"], TestRepo::new),
    state(("a configuration without trunk", "not-initialised"), BLOCKING, &["set-trunk"], || {
        configured("[lock]\ntimeout_ms = 900 # short\n")
    }),
    state(("a broken configuration", "config-invalid"), BLOCKING, &["set-trunk"], || configured("[trunk\nbranch")),
    state(("a binary configuration", "config-invalid"), BLOCKING, &["set-trunk"], binary_config),
    state(("a configuration of another program", "config-foreign"), BLOCKING, &["convert-config"], || {
        configured("trunk = \"main\"\n")
    }),
    state(("a misspelt option", "config-unknown-key"), WARNING, &[], || {
        configured("[trunk]\nbranch = \"main\"\n[lock]\ntimeuot_ms = 3\n")
    }),
    state(("a trunk that does not exist", "trunk-missing"), BLOCKING, &["set-trunk"], || {
        configured("[trunk]\nbranch = \"gone\"\n")
    }),
    state(("a tracked trunk", "trunk-tracked"), BLOCKING, &["remove-metadata"], tracked_trunk),
    state(("garbage as metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || raw(b"not json")),
    state(("garbage over recorded metadata", "metadata-unreadable"), BLOCKING, RESTORE, || {
        recorded(|repo| repo.set_metadata_raw("b", b"{}"))
    }),
    state(("metadata of version 999", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || {
        raw(br#"{"kind":"lattice.branch-metadata","schema_version":999}"#)
    }),
    state(("a commit as metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || pointed("main")),
    state(("a tree as metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || pointed("main^{tree}")),
    state(("a tag as metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || {
        let repo = stack();
        repo.git(&["tag", "-a", "-m", "a tag", "v1", "main"]);
        repo.git(&["update-ref", &metadata_ref("b"), "refs/tags/v1"]);
        repo
    }),
    state(("a missing object as metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], missing_object),
    state(("huge metadata", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || raw(&[b' '; 70_000])),
    state(("metadata of another branch", "metadata-unreadable"), BLOCKING, &["remove-metadata"], || pointed_meta("a")),
    state(("removed metadata", "metadata-vanished"), WARNING, &["restore-metadata"], || {
        recorded(|repo| drop(repo.git(&["update-ref", "-d", &metadata_ref("b")])))
    }),
    state(("a deleted leaf", "metadata-orphaned"), WARNING, &["remove-metadata"], || {
        let repo = TestRepo::draw("main* <- a <- b");
        repo.git(&["branch", "-D", "b"]);
        repo
    }),
    state(("a renamed branch", "metadata-orphaned"), WARNING, RENAMED, || {
        recorded(|repo| drop(repo.git(&["branch", "-m", "a", "renamed"])))
    }),
    state(("a parent of the wrong kind", "parent-kind-wrong"), BLOCKING, &["correct-kind"], || {
        edited("a", |metadata| metadata["parent"]["kind"] = json!("branch"))
    }),
    state(("a deleted parent", "missing-parent"), BLOCKING, PARENT_GONE, || {
        recorded(|repo| drop(repo.git(&["branch", "-D", "a"])))
    }),
    state(("a renamed parent", "missing-parent"), BLOCKING, PARENT_RENAMED, || {
        recorded(|repo| drop(repo.git(&["branch", "-m", "a", "renamed"])))
    }),
    state(("a parent that never was", "missing-parent"), BLOCKING, PARENT_UNKNOWN, || {
        edited("b", |metadata| metadata["parent"]["name"] = json!("never"))
    }),
    state(("a branch on itself", "cycle"), BLOCKING, &["cut-cycle", "remove-metadata"], || {
        edited("b", |metadata| metadata["parent"] = json!({ "kind": "branch", "name": "b" }))
    }),
    state(("two branches on each other", "cycle"), BLOCKING, CYCLE_OF_TWO, || {
        edited("a", |metadata| metadata["parent"] = json!({ "kind": "branch", "name": "b" }))
    }),
    state(("a base that is no commit", "base-missing"), BLOCKING, BASE, || {
        edited("b", |metadata| metadata["base"]["oid"] = json!("1".repeat(40)))
    }),
    state(("a base beside the branch", "base-not-ancestor"), BLOCKING, BASE, || {
        let repo = stack();
        let other = repo.git(&["commit-tree", "-m", "elsewhere", "main^{tree}"]);
        edit(&repo, "b", |metadata| metadata["base"]["oid"] = json!(other));
        repo
    }),
    state(("a missing commit", "history-unreadable"), BLOCKING, &["remove-metadata"], || {
        let repo = TestRepo::draw("main* <- a <- b(2)");
        remove_object(&repo, &repo.rev("b~1"));
        repo
    }),
    state(("a damaged marker", "op-state-damaged"), BLOCKING, &["remove-marker"], || {
        let repo = stack();
        fs::write(repo.op_state_path(), "").expect("the directory is there");
        repo
    }),
    state(("a paused operation", "operation-in-progress"), BLOCKING, &[], paused),
    state(("a rebase by git", "git-operation-in-progress"), BLOCKING, &[], || conflicting(&["rebase", "main"])),
    state(("a merge by git", "git-operation-in-progress"), BLOCKING, &[], || conflicting(&["merge", "main"])),
    state(("a cherry-pick by git", "git-operation-in-progress"), BLOCKING, &[], || {
        conflicting(&["cherry-pick", "main"])
    }),
    state(("a revert by git", "git-operation-in-progress"), BLOCKING, &[], || conflicting(&["revert", "main"])),
    state(("a bisect by git", "git-operation-in-progress"), BLOCKING, &[], || {
        let repo = stack();
        repo.git(&["bisect", "start"]);
        repo
    }),
    state(("conflicts without an operation", "unmerged-files"), BLOCKING, &[], || {
        let repo = conflicting(&["merge", "main"]);
        fs::remove_file(repo.git_dir().join("MERGE_HEAD")).expect("a merge is in progress");
        repo
    }),
    state(("a lock on the index", "stale-lock"), BLOCKING, &["remove-lock"], || locked("index.lock")),
    state(("a lock on HEAD", "stale-lock"), BLOCKING, &["remove-lock"], || locked("HEAD.lock")),
    state(("a lock on a branch", "stale-lock"), BLOCKING, &["remove-lock"], || locked("refs/heads/a.lock")),
    state(("a lock on metadata", "stale-lock"), BLOCKING, &["remove-lock"], || locked("refs/branch-metadata/a.lock")),
    state(("a lock on the ledger", "stale-lock"), BLOCKING, &["remove-lock"], || locked("refs/lattice/event-log.lock")),
    state(("a lock on packed refs", "stale-lock"), BLOCKING, &["remove-lock"], || locked("packed-refs.lock")),
    state(("a bare repository", "bare-repository"), INFO, &[], || Setup::default().bare().draw("main <- a <- b")),
    state(("a shallow clone", "shallow-clone"), WARNING, &[], shallow),
    state(("a ledger that ends in garbage", "ledger-damaged"), WARNING, &["go-on"], || ledger_at("main")),
    state(("a ledger that is a blob", "ledger-damaged"), WARNING, &["go-on"], || ledger_at("main:README")),
    state(("a ledger without its newest record", "ledger-damaged"), WARNING, &["go-on"], ledger_cut_off),
    state(("a branch like an option", "unusable-name"), INFO, &[], || branch_at("refs/heads/--output=x")),
    state(("names that differ in case", "look-alike-names"), WARNING, &[], || branch_at("refs/heads/A")),
    state(("a broken ref", "broken-ref"), WARNING, &[], || {
        let repo = stack();
        fs::write(repo.common_dir().join("refs/heads/broken"), "nonsense\n").expect("it can be written");
        repo
    }),
];

const RESTORE: &[&str] = &["restore-metadata", "remove-metadata"];
const RENAMED: &[&str] = &["follow-rename", "recreate-branch", "remove-metadata"];
const PARENT_GONE: &[&str] = &["recreate-branch", "adopt", "reparent-to-trunk", "move-to-trunk", "remove-metadata"];
const PARENT_RENAMED: &[&str] =
    &["follow-rename", "recreate-branch", "adopt", "reparent-to-trunk", "move-to-trunk", "remove-metadata"];

const PARENT_UNKNOWN: &[&str] = &["reparent-to-trunk", "move-to-trunk", "remove-metadata"];
const CYCLE_OF_TWO: &[&str] = &["cut-cycle", "remove-metadata", "cut-cycle", "remove-metadata"];
const BASE: &[&str] = &["correct-base", "remove-metadata"];

/// Two branches on the trunk, the upper one checked out.
pub(crate) fn stack() -> TestRepo {
    TestRepo::draw("main <- a <- b*")
}

/// The same, after Lattice has recorded what it looks like, and then changed by other means.
pub(crate) fn recorded(change: impl Fn(&TestRepo)) -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- b");
    lattice(&repo).args(["freeze", "b"]).ok();
    lattice(&repo).args(["unfreeze", "b"]).ok();
    change(&repo);
    repo
}

pub(crate) fn configured(toml: &str) -> TestRepo {
    let repo = stack();
    repo.write_config(toml);
    repo
}

fn binary_config() -> TestRepo {
    let repo = stack();
    fs::write(repo.lattice_dir().join("config.toml"), [0xff, 0xfe, 0x00]).expect("the directory is there");
    repo
}

pub(crate) fn raw(bytes: &[u8]) -> TestRepo {
    let repo = stack();
    repo.set_metadata_raw("b", bytes);
    repo
}

/// Changes the metadata of a branch by hand.
pub(crate) fn edit(repo: &TestRepo, branch: &str, change: impl Fn(&mut serde_json::Value)) {
    let mut metadata = repo.metadata(branch);
    change(&mut metadata);
    repo.set_metadata_raw(branch, metadata.to_string().as_bytes());
}

pub(crate) fn edited(branch: &str, change: impl Fn(&mut serde_json::Value)) -> TestRepo {
    let repo = stack();
    edit(&repo, branch, change);
    repo
}

fn pointed(at: &str) -> TestRepo {
    let repo = stack();
    let oid = repo.rev(at);
    repo.git(&["update-ref", &metadata_ref("b"), &oid]);
    repo
}

fn pointed_meta(branch: &str) -> TestRepo {
    pointed(&metadata_ref(branch))
}

fn tracked_trunk() -> TestRepo {
    let repo = stack();
    let base = repo.rev("main");
    let tracked = Tracked { branch: "main", parent: Parent::Branch("a"), base: &base, freeze: Freeze::Unfrozen };
    repo.set_metadata_raw("main", document(&tracked).to_string().as_bytes());
    repo
}

/// Git refuses to point a ref to nothing, so the file is written by hand.
fn missing_object() -> TestRepo {
    let repo = stack();
    let path = repo.common_dir().join(metadata_ref("b"));
    repo.git(&["pack-refs", "--all"]);
    fs::create_dir_all(path.parent().expect("it has a directory")).expect("the repository can be written");
    fs::write(path, format!("{}\n", "2".repeat(40))).expect("the repository can be written");
    repo
}

/// A restack that waits for a conflict to be resolved.
pub(crate) fn paused() -> TestRepo {
    let repo = conflict();
    lattice(&repo).args(["restack"]).fails(4);
    repo
}

/// The lower branch and the trunk change the same line.
pub(crate) fn conflict() -> TestRepo {
    let repo = TestRepo::draw("main <- a* <- b");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "another\n", "the same file");
    repo.git(&["checkout", "--quiet", "a"]);
    repo
}

fn conflicting(args: &[&str]) -> TestRepo {
    let repo = conflict();
    if args[0] == "revert" {
        // What is reverted must have changed since.
        repo.commit_file("a.txt", "changed\n", "change");
        repo.try_git(&["revert", "--no-edit", "HEAD~1"]).expect_err("the revert conflicts");
        return repo;
    }
    repo.try_git(args).expect_err("it conflicts");
    repo
}

/// A lock that a dead process left a day before the tests' clock begins.
pub(crate) fn locked(path: &str) -> TestRepo {
    let repo = stack();
    leave_lock(&repo.common_dir().join(path));
    repo
}

pub(crate) fn leave_lock(path: &Path) {
    fs::create_dir_all(path.parent().expect("it has a directory")).expect("the repository can be written");
    let file = File::create(path).expect("the lock can be written");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    file.set_times(FileTimes::new().set_modified(long_ago)).expect("times can be set");
}

fn shallow() -> TestRepo {
    let origin = TestRepo::draw("main(3) <- a <- b");
    let clone = origin.sandbox().root().join("clone");
    let url = format!("file://{}", origin.dir().display());
    origin.git(&["clone", "--quiet", "--depth=2", "--no-single-branch", &url, clone.to_str().expect("a text")]);
    let clone = origin.beside(&clone);
    clone.git(&["fetch", "--quiet", "origin", "refs/heads/a:refs/heads/a", "refs/heads/b:refs/heads/b"]);
    clone.git(&["fetch", "--quiet", "origin", "+refs/branch-metadata/*:refs/branch-metadata/*"]);
    clone.write_config("[trunk]\nbranch = \"main\"\n");
    clone
}

fn ledger_at(object: &str) -> TestRepo {
    let repo = recorded(|_| {});
    let oid = repo.rev(object);
    repo.git(&["update-ref", "refs/lattice/event-log", &oid]);
    repo
}

fn ledger_cut_off() -> TestRepo {
    let repo = recorded(|_| {});
    remove_object(&repo, &repo.rev("refs/lattice/event-log"));
    repo
}

/// Removes one object, as a disk that loses a file does.
pub(crate) fn remove_object(repo: &TestRepo, oid: &str) {
    unpack(repo);
    fs::remove_file(object_path(repo, oid)).expect("the object is loose");
}

pub(crate) fn object_path(repo: &TestRepo, oid: &str) -> std::path::PathBuf {
    repo.common_dir().join("objects").join(&oid[..2]).join(&oid[2..])
}

/// Turns every pack into loose objects, so that single ones can be damaged.
pub(crate) fn unpack(repo: &TestRepo) {
    let pack_dir = repo.common_dir().join("objects/pack");
    let aside = repo.common_dir().join("aside");
    fs::create_dir_all(&aside).expect("the repository can be written");
    for entry in fs::read_dir(&pack_dir).expect("there is a directory for packs").flatten() {
        fs::rename(entry.path(), aside.join(entry.file_name())).expect("a pack can be moved");
    }
    for entry in fs::read_dir(&aside).expect("it was just made").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            repo.git_with_input(&["unpack-objects", "-q"], &fs::read(&path).expect("a pack can be read"));
        }
    }
    fs::remove_dir_all(&aside).expect("it is ours");
}

fn branch_at(name: &str) -> TestRepo {
    let repo = stack();
    let oid = repo.rev("main");
    repo.git(&["update-ref", name, &oid]);
    repo
}
