//! Kills inside a transaction of refs, where the files backend of Git moves one ref after the other.

use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{Output, TestRepo};

use super::{Case, check, create, modify, restack};
use crate::lattice;

/// Which process dies, and when.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// The program, when git has committed a transaction and has not yet said so.
    ProgramAfterCommit,
    /// Git, when everything is locked and nothing has moved.
    GitBeforeCommit,
    /// Git, when the first of the branches and documents has moved and the others have not.
    GitHalfWay,
}

/// A hook that acts at its `nth` call for a transaction that is `prepared` or `committed`.
fn hook(repo: &TestRepo, death: Death, nth: u32) -> String {
    let (state, text) = match death {
        Death::ProgramAfterCommit => ("committed", "set -- $(cat /proc/$PPID/stat); kill -9 $4"),
        Death::GitBeforeCommit => ("prepared", "kill -9 $PPID"),
        Death::GitHalfWay => (
            "prepared",
            "while read -r old new name; do case $name in refs/heads/*|refs/branch-metadata/*)\n\
             case $new in *[!0]*) mv \"$GIT_DIR/$name.lock\" \"$GIT_DIR/$name\";; *) rm \"$GIT_DIR/$name\";; esac\n\
             break;; esac; done\n\
             kill -9 $PPID",
        ),
    };
    let dir = repo.sandbox().root().display();
    format!(
        "#!/bin/sh\n[ \"$1\" = {state} ] || exit 0\necho >>{dir}/transactions\n\
         [ \"$(wc -l <{dir}/transactions)\" -eq {nth} ] || exit 0\necho $PPID >{dir}/fired\n{text}\n"
    )
}

/// Removes the lock files that a killed git leaves, which doctor names and a person removes.
fn remove_locks(repo: &TestRepo) {
    let facts = repo.state().facts;
    for path in facts.keys().filter_map(|name| name.strip_prefix("lock ")) {
        std::fs::remove_file(repo.common_dir().join(path)).expect("it was just listed");
    }
}

/// Whether a process still does something; one that nobody waits for does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn interrupt(case: &Case, death: Death, nth: u32) -> Option<Output> {
    let repo = &case.repo;
    let path = repo.common_dir().join("hooks/reference-transaction");
    repo.write(".git/hooks/reference-transaction", hook(repo, death, nth));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the hook is ours");
    let output = lattice(repo).args(&case.args).run();
    std::fs::remove_file(&path).expect("it was just written");
    let git = std::fs::read_to_string(repo.sandbox().root().join("fired")).ok()?;
    // A git whose program was killed goes on until it finds nobody to talk to.
    while is_alive(git.trim()) {
        std::thread::yield_now();
    }
    remove_locks(repo);
    Some(output)
}

#[track_caller]
fn check_every_transaction(case: fn() -> Case) {
    let whole = case().whole();
    for death in [Death::ProgramAfterCommit, Death::GitBeforeCommit, Death::GitHalfWay] {
        let mut nth = 1;
        while check((&case, &whole), &format!("{death:?} in transaction {nth}"), &|case| interrupt(case, death, nth)) {
            nth += 1;
            assert!(nth < 40, "so many transactions are a defect of their own");
        }
        assert!(nth > 3, "intent, refs and record are transactions of their own, so {nth} are too few");
    }
}

#[test]
fn a_kill_inside_any_transaction_of_create() {
    check_every_transaction(create);
}

#[test]
fn a_kill_inside_any_transaction_of_modify() {
    check_every_transaction(modify);
}

#[test]
fn a_kill_inside_any_transaction_of_restack() {
    check_every_transaction(restack);
}

#[test]
fn a_kill_inside_a_transaction_that_removes_refs() {
    check_every_transaction(|| {
        let repo = TestRepo::draw("main <- api <- ui <- top*");
        Case::new(repo, &["init", "--reset", "--force"])
    });
}

#[test]
fn a_kill_inside_the_undo_of_a_new_branch() {
    check_every_transaction(|| {
        let created = create();
        lattice(&created.repo).args(&created.args).ok();
        Case::new(created.repo, &["undo"])
    });
}
