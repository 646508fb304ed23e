//! Tests of the fingerprint: anyone can compute it with git, and it covers exactly what Lattice depends on.

use std::collections::BTreeMap;
use std::fs;

use lattice_testkit::TestRepo;
use sha2::{Digest as _, Sha256};

use super::advance;
use crate::doctor::{report, text};
use crate::lattice;

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The documented rule: the lines `<value> <name>` of trunk, tracked branches, their metadata and the
/// configuration, sorted by name, through SHA-256.
pub(crate) fn recomputed(repo: &TestRepo, trunk: &str) -> String {
    let listing = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let refs: BTreeMap<_, _> = listing.lines().filter_map(|line| line.split_once(' ')).collect();
    let covers = |name: &str| {
        let tracked = |branch: &str| refs.contains_key(&*format!("refs/branch-metadata/{branch}"));
        let branch = name.strip_prefix("refs/heads/");
        name.starts_with("refs/branch-metadata/") || branch.is_some_and(|branch| branch == trunk || tracked(branch))
    };
    let mut entries: BTreeMap<_, _> =
        refs.iter().filter(|(name, _)| covers(name)).map(|(name, oid)| (*name, (*oid).to_owned())).collect();
    if let Ok(config) = fs::read(repo.lattice_dir().join("config.toml")) {
        entries.insert("lattice/config.toml", sha256(&config));
    }
    let lines: String = entries.iter().map(|(name, value)| format!("{value} {name}\n")).collect();
    sha256(lines.as_bytes())
}

fn shown(repo: &TestRepo) -> String {
    text(&report(repo)["fingerprint"]).to_owned()
}

// proves: ST-7.1-1, ST-7.1-6
#[test]
fn it_is_what_git_and_sha256_give_in_whatever_order_refs_were_made_and_kept() {
    let repo = TestRepo::draw("main* <- a(2) <- b; main <- z/deep; main <- c!");
    repo.git(&["branch", "untracked"]);
    repo.git(&["tag", "v1"]);
    let first = shown(&repo);
    assert_eq!(first, recomputed(&repo, "main"), "the rule is the documented one");
    assert_eq!(shown(&repo), first, "a second scan of the same repository");
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(shown(&repo), first, "packed");
    let mut refs: Vec<_> = repo.refs().into_iter().filter(|(name, _)| name != "refs/heads/main").collect();
    refs.reverse();
    for (name, _) in &refs {
        repo.git(&["update-ref", "-d", name]);
    }
    assert_ne!(shown(&repo), first, "without its refs it is another repository");
    for (name, oid) in &refs {
        repo.git(&["update-ref", name, oid]);
    }
    assert_eq!(shown(&repo), first, "made again in the opposite order");
}

// proves: ST-7.1-2, ST-7.1-3, ST-7.1-4, ST-7.1-5
#[test]
fn it_changes_with_everything_that_lattice_depends_on_and_with_nothing_else() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.git(&["branch", "untracked"]);
    let last = std::cell::RefCell::new(shown(&repo));
    let check = |what: &str, trunk: &str, differs: bool| {
        let now = shown(&repo);
        assert_eq!(now, recomputed(&repo, trunk), "{what}: by the documented rule");
        let before = last.replace(now.clone());
        assert_eq!(now != before, differs, "{what}: whether the fingerprint changes");
    };
    advance(&repo, "untracked");
    check("a commit on an untracked branch", "main", false);
    repo.git(&["tag", "v1"]);
    check("a tag", "main", false);
    repo.git(&["checkout", "--quiet", "a"]);
    check("HEAD", "main", false);
    advance(&repo, "main");
    check("a commit on the trunk", "main", true);
    advance(&repo, "b");
    check("a commit on a tracked branch", "main", true);
    let mut metadata = repo.metadata("b");
    metadata["timestamps"]["updated_at"] = "2026-01-01T00:00:01Z".into();
    repo.set_metadata_raw("b", metadata.to_string().as_bytes());
    check("a metadata ref", "main", true);
    repo.write_config("[trunk]\nbranch = \"untracked\"\n");
    check("the trunk in the configuration", "untracked", true);
    repo.write_config("[trunk]\nbranch = \"main\"\n");
    check("the trunk put back", "main", true);
    let records = repo.ledger().len();
    lattice(&repo).args(["freeze", "b"]).ok();
    lattice(&repo).args(["unfreeze", "b"]).ok();
    assert!(repo.ledger().len() > records, "the ledger grew");
    let before = recomputed(&repo, "main");
    repo.git(&["update-ref", "-d", "refs/lattice/event-log"]);
    assert_eq!(shown(&repo), before, "evidence is no part of what it is evidence of");
}
