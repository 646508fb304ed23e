//! What git does around a rewrite besides making commits, Lattice does too: hooks, notes, signatures.

use std::os::unix::fs::PermissionsExt;

use lattice_testkit::{TestRepo, assert_same};

use crate::lattice;

fn hook(repo: &TestRepo, name: &str, script: &str) {
    let path = repo.common_dir().join("hooks").join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a hook");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it runs");
}

/// A stack of three behind its trunk, `b` checked out.
fn behind() -> TestRepo {
    let repo = TestRepo::draw("main <- a(2) <- b* <- c");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("README", "newer\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", "b"]);
    repo
}

/// What hooks wrote, beside the repository.
fn said(repo: &TestRepo) -> String {
    std::fs::read_to_string(repo.common_dir().join("said")).unwrap_or_default()
}

fn commits(repo: &TestRepo, from: &str) -> Vec<String> {
    repo.git(&["rev-list", "--reverse", &format!("main..{from}")]).lines().map(str::to_owned).collect()
}

#[test]
fn a_rewrite_tells_the_hooks_that_a_rebase_would_tell() {
    let repo = behind();
    hook(&repo, "pre-rebase", r#"echo "pre-rebase $*" >> "$GIT_DIR/said""#);
    hook(&repo, "post-rewrite", r#"echo "post-rewrite $1" >> "$GIT_DIR/said"; cat >> "$GIT_DIR/said""#);
    hook(&repo, "post-checkout", r#"echo "post-checkout $*" >> "$GIT_DIR/said""#);
    let (old, head) = (commits(&repo, "c"), repo.rev("b"));
    let trunk = repo.rev("main");
    std::fs::remove_file(repo.common_dir().join("said")).ok();
    lattice(&repo).arg("restack").ok();
    let new = commits(&repo, "c");
    let mut expected = format!("pre-rebase {trunk} a\npre-rebase a\npre-rebase b c\n");
    expected += &format!("post-checkout {head} {} 1\npost-rewrite rebase\n", repo.rev("b"));
    expected.extend(old.iter().zip(&new).map(|(old, new)| format!("{old} {new}\n")));
    assert_eq!(said(&repo), expected);
    std::fs::remove_file(repo.common_dir().join("said")).expect("it was written");
    lattice(&repo).args(["--no-verify", "undo"]).ok();
    lattice(&repo).args(["--no-verify", "restack"]).ok();
    assert_eq!(said(&repo), "", "none of them is asked");
}

#[test]
fn a_hook_that_refuses_a_rebase_stops_it_before_anything_changes() {
    let repo = behind();
    hook(&repo, "pre-rebase", r#"test "$2" != c || { echo "not c" >&2; exit 1; }"#);
    let before = repo.state();
    let output = lattice(&repo).arg("restack").fails(1);
    assert!(output.stderr.contains("pre-rebase") && output.stderr.contains("not c"), "{}", output.stderr);
    assert!(output.stderr.contains("--no-verify"), "it says how to go without:\n{}", output.stderr);
    assert_same(&before, &repo.state());
    assert!(!repo.op_state_path().exists(), "nothing is in progress");
    lattice(&repo).args(["restack", "--no-verify"]).ok();
}

#[test]
fn amending_tells_of_the_amended_commit_and_of_what_stands_on_it() {
    let repo = TestRepo::draw("main <- a <- b; a*");
    hook(&repo, "post-rewrite", r#"echo "$1" >> "$GIT_DIR/said"; cat >> "$GIT_DIR/said""#);
    let old = commits(&repo, "b");
    repo.write("a.txt", "better\n");
    lattice(&repo).args(["modify", "-a"]).ok();
    let new = commits(&repo, "b");
    assert_eq!(said(&repo), format!("amend\n{} {}\nrebase\n{} {}\n", old[0], new[0], old[1], new[1]));
}

#[test]
fn hooks_are_found_where_the_configuration_says() {
    let repo = behind();
    hook(&repo, "post-rewrite", r#"echo wrong >> "$GIT_DIR/said""#);
    std::fs::create_dir_all(repo.dir().join("my hooks")).expect("a folder");
    std::fs::rename(repo.common_dir().join("hooks/post-rewrite"), repo.dir().join("my hooks/post-rewrite"))
        .expect("moved");
    hook(&repo, "post-rewrite", "exit 1");
    repo.git(&["config", "core.hooksPath", "my hooks"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(said(&repo), "wrong\n");
}

fn note(repo: &TestRepo, commit: &str, namespace: &str) -> String {
    repo.try_git(&["notes", "--ref", namespace, "show", commit]).unwrap_or_default()
}

#[test]
fn notes_follow_the_commits_that_they_are_about() {
    let repo = behind();
    repo.git(&["notes", "add", "-m", "about a 1", "a~1"]);
    repo.git(&["notes", "--ref", "review", "add", "-m", "looks good", "c"]);
    let old = repo.rev("c");
    lattice(&repo).arg("restack").ok();
    assert_eq!(note(&repo, "a~1", "commits"), "about a 1");
    assert_eq!(note(&repo, "c", "review"), "looks good");
    lattice(&repo).arg("undo").ok();
    assert_eq!(repo.rev("c"), old);
    assert_eq!(note(&repo, "c", "review"), "looks good", "what is back has its notes too");
    repo.git(&["checkout", "--quiet", "a"]);
    lattice(&repo).args(["squash"]).ok();
    assert_eq!(note(&repo, "a", "commits"), "about a 1");
    repo.write("a.txt", "better\n");
    lattice(&repo).args(["modify", "-a"]).ok();
    assert_eq!(note(&repo, "a", "commits"), "about a 1");
}

#[test]
fn the_configuration_decides_which_notes_follow() {
    let repo = behind();
    repo.git(&["notes", "add", "-m", "plain", "a"]);
    repo.git(&["notes", "--ref", "review", "add", "-m", "looks good", "a"]);
    repo.git(&["config", "notes.rewriteRef", "refs/notes/review"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!([note(&repo, "a", "commits"), note(&repo, "a", "review")], ["", "looks good"]);
    lattice(&repo).arg("undo").ok();
    repo.git(&["config", "notes.rewrite.rebase", "false"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "-m", "other times"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(note(&repo, "c", "review"), "");
}

#[test]
fn a_conflict_loses_no_note() {
    let repo = TestRepo::draw("main <- a <- b*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("a.txt", "the trunk's own\n", "take over a.txt");
    repo.git(&["checkout", "--quiet", "b"]);
    repo.git(&["notes", "add", "-m", "about a", "a"]);
    repo.git(&["notes", "add", "-m", "about b", "b"]);
    lattice(&repo).arg("restack").fails(4);
    repo.write("a.txt", "both\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!([note(&repo, "a", "commits"), note(&repo, "b", "commits")], ["about a", "about b"]);
}

/// Has the user of this repository sign with a key of their own.
fn signing(repo: &TestRepo) {
    let folder = repo.common_dir();
    let key = folder.join("key");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(&key)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "ssh-keygen makes a key");
    let public = std::fs::read_to_string(key.with_extension("pub")).expect("its public half");
    let allowed = folder.join("allowed");
    std::fs::write(&allowed, format!("* {public}")).expect("a list of signers");
    let options = [
        ("gpg.format", "ssh".to_owned()),
        ("user.signingKey", key.display().to_string()),
        ("gpg.ssh.allowedSignersFile", allowed.display().to_string()),
        ("commit.gpgSign", "true".to_owned()),
    ];
    options.iter().for_each(|(name, value)| drop(repo.git(&["config", name, value])));
}

/// `G` for each commit of a stack that has a good signature.
fn signatures(repo: &TestRepo, tip: &str) -> String {
    repo.git(&["log", "--format=%G?", &format!("main..{tip}")]).replace('\n', "")
}

#[test]
fn who_signs_has_signed_commits_after_a_rewrite() {
    let repo = behind();
    signing(&repo);
    let before = repo.git(&["log", "--format=%an %ae %ad %s", "main..c"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(signatures(&repo, "c"), "GGGG");
    assert_eq!(repo.git(&["log", "--format=%an %ae %ad %s", "main..c"]), before, "authors and dates stay");
    assert_eq!(repo.rev("c~1"), repo.rev("b"), "one stands on the other");
    lattice(&repo).args(["verify", "--full"]).ok();
    lattice(&repo).args(["reorder", "--order", "b,a,c"]).ok();
    assert_eq!(signatures(&repo, "c"), "GGGG");
    lattice(&repo).args(["verify", "--full"]).ok();
}

#[test]
fn what_is_below_a_conflict_is_signed_and_what_is_above_it_too() {
    let repo = TestRepo::draw("main <- a <- b <- c*");
    signing(&repo);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("b.txt", "the trunk's own\n", "take over b.txt");
    repo.git(&["checkout", "--quiet", "c"]);
    lattice(&repo).arg("restack").fails(4);
    repo.write("b.txt", "both\n");
    lattice(&repo).args(["continue", "-a"]).ok();
    assert_eq!(signatures(&repo, "c"), "GGG");
    lattice(&repo).args(["verify", "--full"]).ok();
}

/// A change of `a`, which `b` stands on, staged and waiting for `modify`.
fn about_to_amend() -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b; a*");
    repo.write("a.txt", "better\n");
    repo.git(&["add", "a.txt"]);
    repo
}

#[test]
fn row_16_a_hook_that_hangs_is_stopped_with_what_it_started_and_nothing_changes() {
    let repo = about_to_amend();
    lattice(&repo).args(["config", "set", "hooks.timeout_ms", "300"]).ok();
    let before = repo.state();
    for name in ["pre-commit", "prepare-commit-msg", "commit-msg"] {
        hook(&repo, name, r#"sleep 1000 & echo $! > "$GIT_DIR/sleeper"; wait"#);
        let output = lattice(&repo).args(["--json", "modify", "-m", "better"]).fails(1);
        assert_eq!(output.json()["error"]["code"], "hook-hangs", "{}", output.snapshot());
        assert!(output.stdout.contains(name) && output.stdout.contains("hooks.timeout_ms"), "{}", output.stdout);
        assert_same(&before, &repo.state());
        assert!(!repo.op_state_path().exists(), "nothing is in progress");
        let sleeper = repo.read(".git/sleeper");
        let running = std::fs::read_to_string(format!("/proc/{}/status", sleeper.trim())).unwrap_or_default();
        assert!(running.is_empty() || running.contains("Z (zombie)"), "what it started is gone too:\n{running}");
        std::fs::remove_file(repo.common_dir().join("hooks").join(name)).expect("it is ours");
    }
    let last = lattice(&repo).args(["ops", "--json"]).ok().json();
    assert!(last.to_string().contains("aborted"), "the attempts are on record: {last}");
    // What is told afterwards cannot take anything back, and does not keep the user waiting either.
    hook(&repo, "post-rewrite", "sleep 1000");
    lattice(&repo).args(["modify", "-m", "better"]).ok();
    lattice(&repo).arg("verify").ok();
}

#[test]
fn row_16_a_hook_that_moves_the_branch_is_noticed_and_its_commit_is_kept() {
    let repo = about_to_amend();
    hook(&repo, "pre-commit", "git update-ref refs/heads/a main");
    let output = lattice(&repo).args(["--json", "modify"]).run();
    assert_ne!(output.code, Some(0), "{}", output.snapshot());
    assert_eq!(repo.rev("a"), repo.rev("main"), "what the hook did is not undone behind its back");
    assert!(!repo.op_state_path().exists(), "nothing is in progress: {}", output.snapshot());
    assert!(output.stdout.contains("refs/heads/a"), "the ref is named: {}", output.snapshot());
    assert_eq!(repo.git(&["diff", "--cached", "--name-only", "a@{1}"]), "a.txt", "what was staged still is");
}

#[test]
fn row_16_a_hook_that_calls_lattice_reads_and_is_told_at_once_that_it_cannot_write() {
    let repo = about_to_amend();
    let program = env!("CARGO_BIN_EXE_lattice");
    hook(
        &repo,
        "pre-commit",
        &format!("'{program}' parent > \"$GIT_DIR/said\"\n'{program}' freeze b 2>> \"$GIT_DIR/said\""),
    );
    let output = lattice(&repo).arg("modify").fails(1);
    assert!(output.stderr.contains("pre-commit"), "the hook passes the refusal on: {}", output.stderr);
    let said = said(&repo);
    assert!(said.starts_with("main\n") && said.contains("a hook cannot change the stack"), "{said}");
    hook(&repo, "pre-commit", &format!("'{program}' freeze b || true"));
    lattice(&repo).arg("modify").ok();
    assert_eq!(repo.metadata("b")["freeze"]["state"], "unfrozen");
    lattice(&repo).arg("verify").ok();
}
