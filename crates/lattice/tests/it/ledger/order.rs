//! Tests of the order in which an operation becomes visible, seen by git's own hook for refs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use lattice_testkit::TestRepo;

use super::{LEDGER, stack};
use crate::lattice;

/// Runs shell text with every line `old new name` of a transaction on its input, once git has committed it.
pub(crate) fn after_each_transaction(repo: &TestRepo, text: &str) -> PathBuf {
    let path = repo.common_dir().join("hooks/reference-transaction");
    fs::create_dir_all(path.parent().expect("it has a directory")).expect("the repository can be written");
    fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = committed ] || exit 0\n{text}\n")).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

/// Writes down every transaction: whether the marker exists, the names of the refs, and their new values.
fn watch(repo: &TestRepo) -> PathBuf {
    let log = repo.sandbox().root().join("transactions");
    let (marker, to) = (repo.op_state_path(), log.display());
    let marker = format!("marker=absent; [ -e '{}' ] && marker=present", marker.display());
    let text = format!("{marker}\nwhile read -r old new name; do echo \"$marker $name $new\"; done >>'{to}'");
    after_each_transaction(repo, &text);
    log
}

// proves: ST-4.1-20, ST-6.2-10
#[test]
fn the_marker_then_the_intent_then_the_refs_then_the_record_and_the_marker_is_gone() {
    let repo = stack();
    for args in [&["restack"][..], &["freeze", "a"], &["create", "new", "-m", "new"]] {
        let log = watch(&repo);
        lattice(&repo).args(args).ok();
        let seen = fs::read_to_string(&log).expect("the hook wrote it");
        fs::remove_file(&log).expect("it is ours");
        let mut order = Vec::new();
        for line in seen.lines() {
            let [marker, name, value] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert_eq!(marker, "present", "{args:?}: {name} moves only while the marker says so:\n{seen}");
            let what = match name {
                LEDGER => {
                    let record = repo.git(&["log", "-1", "--format=%B", value]);
                    let record: serde_json::Value = serde_json::from_str(&record).expect("a record is JSON");
                    record["event"].as_str().expect("a category").to_owned()
                }
                name if name.starts_with("refs/lattice/") => continue,
                "HEAD" => continue,
                _ => "refs".to_owned(),
            };
            if order.last() != Some(&what) {
                order.push(what);
            }
        }
        assert_eq!(order, ["IntentRecorded", "refs", "Committed"], "{args:?}:\n{seen}");
        assert!(!repo.op_state_path().exists(), "{args:?}: after the last record the marker goes");
        assert_eq!(super::newest(&repo)["event"], "Committed", "{args:?}");
    }
}
