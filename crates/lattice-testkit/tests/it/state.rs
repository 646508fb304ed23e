//! A difference of two states names what changed and nothing else.

use lattice_testkit::{TestRepo, assert_same};

/// Makes a change and compares what is noticed, one line per fact.
#[track_caller]
fn check(change: impl FnOnce(&TestRepo), expected: &[&str]) {
    let repo = TestRepo::draw("main <- api*");
    let before = repo.state();
    change(&repo);
    let differences = before.differences(&repo.state());
    let facts: Vec<&str> = differences.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(facts, expected, "{differences:#?}");
}

#[test]
fn looking_changes_nothing() {
    check(|repo| drop(repo.git(&["status"])), &[]);
    let repo = TestRepo::bare();
    assert_same(&repo.state(), &repo.state());
}

#[test]
fn an_index_change_alone_is_noticed() {
    // The working tree is the same before and after; only what is staged differs.
    check(
        |repo| {
            let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"staged\n");
            let blob = String::from_utf8(blob).unwrap();
            repo.git(&["update-index", "--cacheinfo", &format!("100644,{},README", blob.trim())]);
        },
        &[
            "~ index README:0",
            "+ status 1 MM N... 100644 100644 100644 f75d8f9f654bcb89d7b9c6c1076a9dd125099bcf 19d9cc8584ac2c7dcf57d2680375e80f099dc481 README",
        ],
    );
}

#[test]
fn a_hidden_index_flag_is_noticed() {
    check(|repo| drop(repo.git(&["update-index", "--skip-worktree", "README"])), &["~ index README:0"]);
}

#[test]
fn every_other_place_is_looked_at() {
    check(|repo| drop(repo.git(&["update-ref", "refs/tags/v1", "main"])), &["+ ref refs/tags/v1"]);
    check(
        |repo| drop(repo.git(&["update-ref", "refs/branch-metadata/api", "main"])),
        &["~ ref refs/branch-metadata/api"],
    );
    check(|repo| drop(repo.git(&["update-ref", "refs/lattice/event-log", "main"])), &[]);
    check(|repo| drop(repo.git(&["checkout", "--quiet", "--detach"])), &["~ HEAD"]);
    check(|repo| repo.write_config("[trunk]\nbranch = \"api\"\n"), &["~ lattice config.toml"]);
    check(
        |repo| repo.write("new/file", "text"),
        &["+ directory new", "+ file new/file", "+ mode new/file", "+ status ? new/file"],
    );
    check(|repo| std::fs::create_dir(repo.git_dir().join("rebase-merge")).unwrap(), &["+ operation rebase-merge"]);
    check(
        |repo| drop(std::fs::File::create(repo.git_dir().join("refs/heads/api.lock")).unwrap()),
        &["+ lock refs/heads/api.lock"],
    );
}

#[test]
#[should_panic(expected = "+ ref refs/heads/ui")]
fn an_assertion_prints_the_difference() {
    let repo = TestRepo::new();
    let before = repo.state();
    repo.git(&["branch", "ui"]);
    assert_same(&before, &repo.state());
}
