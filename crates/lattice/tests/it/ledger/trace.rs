//! Tests of what can be seen from outside: the git that does the work, and the report of a scan.

use std::fs;

use lattice_testkit::{Action, GitWrapper, Occurrence, TestRepo, assert_same};

use super::stack;
use crate::doctor::{list, report, text};
use crate::lattice;
use crate::observed::recorded;

// proves partly: ST-10.1-2 — a later call that went around the wrapper would not be noticed
#[test]
fn all_work_on_the_repository_goes_through_the_git_of_the_path() {
    let repo = stack();
    let wrapper = GitWrapper::new(&repo);
    let dir = wrapper.path().parent().expect("it has a directory").to_owned();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("tests have one"));
    let started = |arg: &str| wrapper.calls().iter().any(|call| call.split(' ').any(|word| word == arg));
    lattice(&repo).env("PATH", &path).args(["create", "new", "-m", "new"]).ok();
    for work in ["for-each-ref", "cat-file", "update-ref", "write-tree"] {
        assert!(started(work), "`{work}` is the work of git: {:#?}", wrapper.calls());
    }
    wrapper.clear_calls();
    lattice(&repo).env("PATH", &path).args(["restack"]).ok();
    assert!(started("update-ref"), "{:#?}", wrapper.calls());

    let mut broken = GitWrapper::new(&repo);
    broken.on("", Occurrence::Every, Action::Fail(1));
    let dir = broken.path().parent().expect("it has a directory").to_owned();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("tests have one"));
    let before = repo.state();
    for args in [&["log"][..], &["restack"], &["freeze", "a"], &["undo"]] {
        let output = lattice(&repo).env("PATH", &path).args(args).run();
        assert_eq!(output.code, Some(1), "{args:?} can do nothing without git:\n{}", output.snapshot());
    }
    assert_same(&before, &repo.state());
}

// proves: ST-4.1-7, ST-4.1-8
#[test]
fn one_report_tells_of_repository_configuration_metadata_and_operations_of_git() {
    let repo = recorded(|repo| {
        repo.write_config("[trunk]\nbranch = \"main\"\n[lock]\ntimeuot_ms = 1\n");
        repo.set_metadata_raw("b", b"garbage");
        repo.git(&["bisect", "start"]);
        fs::write(repo.common_dir().join("refs/heads/broken"), "nonsense\n").expect("it can be written");
    });
    let found = report(&repo);
    let kinds: Vec<_> = list(&found["issues"]).iter().map(|issue| text(&issue["kind"])).collect();
    for kind in ["broken-ref", "config-unknown-key", "metadata-unreadable", "git-operation-in-progress"] {
        assert!(kinds.contains(&kind), "{kind} is reported: {found:#}");
    }
    for issue in list(&found["issues"]) {
        assert!(issue["evidence"].as_object().is_some_and(|facts| !facts.is_empty()), "with evidence: {issue:#}");
    }
    let held: Vec<_> = list(&found["capabilities"]).iter().map(text).collect();
    assert!(held.contains(&"TrunkKnown"), "what holds is listed: {held:?}");
    for lost in ["MetadataReadable", "NoExternalGitOpInProgress"] {
        assert!(!held.contains(&lost), "what does not hold is not: {held:?}");
    }
    assert_eq!(found["divergence"]["changes"][0]["name"], "refs/branch-metadata/b", "{found:#}");
    let calm = report(&TestRepo::draw("main* <- a"));
    assert!(list(&calm["issues"]).is_empty() && calm["divergence"].is_null(), "nothing is invented: {calm:#}");
}
