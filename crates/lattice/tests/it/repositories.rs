//! Tests of kinds of repositories: bare, linked, shallow, foreign, read-only, odd.

use std::fs;
use std::path::Path;
use std::process::Command;

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Setup, TestRepo, assert_same};

use crate::doctor::{issue, list, report, text};
use crate::lattice;

fn bare() -> TestRepo {
    Setup::default().bare().draw("main <- a <- b")
}

// proves: ST-5.2-10, ST-5.2-16
#[test]
fn in_a_bare_repository_whatever_reads_or_changes_metadata_only_works() {
    let repo = bare();
    repo.git(&["branch", "stray", "b"]);
    let work: &[&[&str]] = &[
        &["log"],
        &["info", "a"],
        &["parent", "b"],
        &["children", "a"],
        &["trunk"],
        &["init"],
        &["track", "stray", "--parent", "b"],
        &["freeze", "stray"],
        &["unfreeze", "stray"],
        &["untrack", "stray"],
        &["doctor"],
        &["verify"],
        &["ops"],
        &["undo"],
    ];
    for args in work {
        lattice(&repo).args(*args).ok();
    }
    assert!(repo.metadata_refs().contains_key("stray"), "the undo took the last untrack back");
    for args in [&["log"][..], &["info", "a"], &["doctor"]] {
        let said = lattice(&repo).args(args).json().to_string();
        assert!(!said.contains("clean"), "{args:?}: there is no working copy that could be clean: {said}");
    }
    let fresh = TestRepo::bare();
    lattice(&fresh).args(["init", "--trunk", "main"]).ok();
    assert_eq!(lattice(&fresh).arg("trunk").ok().stdout.trim(), "main", "a bare repository has a trunk");
}

// proves: ST-5.2-15
#[test]
fn in_a_bare_repository_the_others_refuse_with_a_way_out() {
    let repo = bare();
    let before = repo.state();
    for args in [
        &["create", "new", "-m", "x"][..],
        &["modify", "-m", "x"],
        &["restack"],
        &["restack", "a"],
        &["move", "--source", "b", "--onto", "main"],
        &["checkout", "a"],
        &["up"],
        &["down"],
        &["top"],
        &["bottom"],
    ] {
        let output = lattice(&repo).args(args).fails(1);
        for said in ["this repository is bare", "worktree add", "log, info, parent, children, trunk, init, track"] {
            assert!(output.stderr.contains(said), "{args:?} says {said:?}:\n{}", output.snapshot());
        }
        assert!(!output.stderr.contains("fatal:"), "{args:?} shows no raw error of Git:\n{}", output.snapshot());
        assert_same(&before, &repo.state());
    }
}

#[test]
fn a_worktree_of_a_bare_repository_has_everything() {
    let repo = bare();
    let work = repo.worktree("work", "b");
    let info = lattice(&work).args(["info", "b"]).json();
    assert_eq!(info["repository"]["context"], "worktree", "{info:#}");
    lattice(&work).args(["create", "c", "-m", "x"]).ok();
    assert_eq!(repo.metadata("c")["parent"]["name"], "b", "the metadata is shared");
    assert_eq!(work.git(&["symbolic-ref", "--short", "HEAD"]), "c", "the branch is checked out there");
}

#[test]
fn the_context_and_the_paths_are_told() {
    let repo = TestRepo::draw("main <- a*");
    let linked = repo.worktree("linked", "main");
    for (repo, context) in [(&repo, "normal"), (&linked, "worktree"), (&bare(), "bare")] {
        let told = lattice(repo).args(["info", "a"]).json()["repository"].clone();
        assert_eq!(told["context"], context, "{told:#}");
        assert_eq!(told["git_dir"], repo.git_dir().to_str().expect("a text"), "{context}");
        assert_eq!(told["common_dir"], repo.common_dir().to_str().expect("a text"), "{context}");
        let expected = (context != "bare").then(|| repo.dir().to_str().expect("a text"));
        assert_eq!(told["work_dir"].as_str(), expected, "{context}");
    }
}

#[test]
fn a_linked_worktree_and_a_subdirectory_see_the_same_stack() {
    let repo = TestRepo::draw("main <- a <- b*");
    let linked = repo.worktree("linked", "main");
    repo.write("deep/er/file", "x\n");
    let stack = |run: lattice_testkit::Lattice| lattice_testkit::Lattice::json(run.arg("log"))["branches"].clone();
    let expected = stack(lattice(&repo));
    assert_eq!(list(&expected).len(), 2, "{expected:#}");
    assert_eq!(stack(lattice(&linked)), expected, "from a linked worktree");
    assert_eq!(stack(lattice(&repo).cwd("deep/er")), expected, "from a subdirectory");
    assert_eq!(stack(lattice(&repo).cwd(".git")), expected, "from inside .git");
    assert_eq!(stack(lattice(&linked).arg("-C").arg(repo.dir())), expected, "with -C");
    lattice(&repo).cwd("deep/er").args(["freeze", "b"]).ok();
    assert_eq!(repo.metadata("b")["freeze"]["state"], "frozen");
    assert!(!repo.dir().join("deep/er/lattice").exists(), "nothing is written where the program was started");
}

#[test]
fn an_operation_in_a_linked_worktree_leaves_the_other_one_alone() {
    let repo = TestRepo::draw("main* <- a <- b");
    let linked = repo.worktree("linked", "b");
    repo.commit_file("new", "x\n", "advance");
    repo.write("README", "edited\n");
    let before = repo.read("README");
    lattice(&linked).args(["restack"]).ok();
    assert_eq!(repo.rev("a~1"), repo.rev("main"), "the stack was moved");
    assert!(linked.dir().join("new").exists(), "the linked worktree has the new files");
    assert_eq!(linked.git(&["status", "--porcelain"]), "", "and is clean");
    assert_eq!(repo.read("README"), before, "the edit in the main worktree is untouched");
}

#[test]
fn a_git_operation_gates_only_the_worktree_it_is_in() {
    let repo = crate::doctor::states::conflict();
    let linked = repo.worktree("linked", "main");
    repo.try_git(&["cherry-pick", "main"]).expect_err("it conflicts");
    let here = lattice(&repo).args(["checkout", "b"]).json();
    assert_eq!(here["issues"][0]["kind"], "git-operation-in-progress", "{here:#}");
    lattice(&linked).args(["checkout", "b"]).ok();
}

// proves partly: ST-6.3-1 — a trace of system calls in a repository of files
#[test]
fn sha256_and_reftable_work_like_the_usual_formats() {
    let setups = [("sha256", "files"), ("sha1", "reftable"), ("sha256", "reftable")];
    for (objects, refs) in setups {
        if refs == "reftable" && TestRepo::reftable().is_none() {
            eprintln!("this git knows no reftable");
            continue;
        }
        let setup = match refs {
            "reftable" => Setup::default().object_format(objects).ref_format(refs),
            _ => Setup::default().object_format(objects),
        };
        let repo = setup.draw("main* <- a <- b");
        repo.commit_file("new", "x\n", "advance");
        let before = repo.state();
        lattice(&repo).args(["restack"]).ok();
        assert_eq!(repo.rev("a~1"), repo.rev("main"), "{objects} {refs}");
        assert_eq!(repo.rev("b~1"), repo.rev("a"), "{objects} {refs}");
        lattice(&repo).arg("verify").ok();
        lattice(&repo).arg("undo").ok();
        assert_same(&before, &repo.state());
        repo.set_metadata_raw("b", b"garbage");
        let id = crate::doctor::fix_named(&report(&repo), "restore-metadata");
        lattice(&repo).args(["doctor", "--fix", &id]).ok();
        assert_same(&before, &repo.state());
    }
}

#[test]
fn a_stale_lock_of_a_reftable_is_named_and_removed_on_request() {
    if TestRepo::reftable().is_none() {
        eprintln!("this git knows no reftable");
        return;
    }
    let repo = Setup::default().ref_format("reftable").draw("main <- a*");
    crate::doctor::states::leave_lock(&repo.common_dir().join("reftable/tables.list.lock"));
    let gated = lattice(&repo).args(["freeze", "a"]).json();
    assert_eq!(gated["issues"][0]["kind"], "stale-lock", "{gated:#}");
    assert!(text(&gated["issues"][0]["summary"]).contains("reftable/tables.list.lock"), "{gated:#}");
    assert!(text(&gated["issues"][0]["summary"]).contains("seconds ago"), "its age is told: {gated:#}");
    let id = crate::doctor::fix_named(&report(&repo), "remove-lock");
    lattice(&repo).args(["doctor", "--fix", &id]).ok();
    lattice(&repo).args(["freeze", "a"]).ok();
}

// proves: ST-5.2-2
#[test]
fn outside_of_a_repository_every_command_refuses_by_name() {
    let repo = TestRepo::new();
    let outside = repo.sandbox().root().join("outside");
    fs::create_dir(&outside).expect("the sandbox can be written");
    for args in [
        &["log"][..],
        &["doctor"],
        &["verify"],
        &["init", "--trunk", "main"],
        &["restack"],
        &["create", "x"],
        &["info"],
        &["undo"],
        &["ops"],
        &["continue"],
        &["abort"],
        &["config", "list"],
        &["explain", "x"],
    ] {
        let output = lattice(&repo).cwd(&outside).arg("--json").args(args).fails(1);
        assert_eq!(output.json()["error"]["code"], "not-a-repository", "{args:?}: {}", output.snapshot());
    }
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0, "nothing is written there");
    let found = lattice(&repo).arg("doctor").json();
    let held = found["capabilities"].as_array().expect("a list");
    assert!(held.contains(&"RepoOpen".into()), "where there is one, it is open: {found:#}");
}

#[test]
fn an_unborn_branch_is_told_and_nothing_is_guessed() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "--quiet", "--orphan", "empty"]);
    repo.git(&["update-ref", "-d", "refs/heads/main"]);
    lattice(&repo).arg("log").ok();
    let answer = lattice(&repo).args(["init"]).json();
    assert_eq!(answer["error"]["code"], "no-branches", "{answer:#}");
    let answer = lattice(&repo).args(["init", "--trunk", "empty"]).json();
    assert_eq!(answer["error"]["code"], "no-such-branch", "{answer:#}");
    let answer = lattice(&repo).args(["create", "x", "-m", "x"]).json();
    assert_eq!(answer["issues"][0]["kind"], "not-initialised", "{answer:#}");
}

#[test]
fn a_shallow_clone_reads_and_refuses_to_rewrite() {
    let origin = TestRepo::draw("main(5) <- a");
    let clone = origin.sandbox().root().join("clone");
    let url = format!("file://{}", origin.dir().display());
    origin.git(&["clone", "--quiet", "--depth=1", "--no-single-branch", &url, clone.to_str().expect("a text")]);
    let clone = origin.beside(&clone);
    clone.git(&["checkout", "--quiet", "-b", "a", "origin/a"]);
    lattice(&clone).args(["init", "--trunk", "main"]).ok();
    lattice(&clone).arg("log").ok();
    let before = clone.state();
    let found = report(&clone);
    assert_eq!(issue(&found, "shallow-clone")["severity"], "warning", "{found:#}");
    let answer = lattice(&clone).args(["create", "x", "-m", "x"]).json();
    assert_eq!(answer["ok"], false, "{answer:#}");
    assert_same(&before, &clone.state());
    clone.git(&["fetch", "--quiet", "--unshallow"]);
    assert!(list(&report(&clone)["issues"]).is_empty(), "all commits are here now");
}

#[test]
fn a_partial_clone_is_read_without_the_network() {
    let origin = TestRepo::draw("main(3) <- a(2) <- b");
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = origin.sandbox().root().join("clone");
    let url = format!("file://{}", origin.dir().display());
    origin.git(&["clone", "--quiet", "--filter=blob:none", &url, clone.to_str().expect("a text")]);
    let clone = origin.beside(&clone);
    for branch in ["a", "b"] {
        clone.git(&["branch", branch, &format!("origin/{branch}")]);
    }
    lattice(&clone).args(["init", "--trunk", "main"]).ok();
    lattice(&clone).args(["track", "a", "--parent", "main"]).ok();
    lattice(&clone).args(["track", "b", "--parent", "a"]).ok();
    fs::rename(origin.dir(), origin.sandbox().root().join("gone")).expect("the origin can be moved away");
    let log = lattice(&clone).arg("log").json();
    let commits: Vec<_> = list(&log["branches"]).iter().map(|branch| branch["commits"].clone()).collect();
    assert_eq!(commits, [2, 1], "{log:#}");
    lattice(&clone).arg("verify").ok();
}

#[test]
fn submodules_are_left_alone_and_are_repositories_of_their_own() {
    let library = TestRepo::new();
    let repo = TestRepo::draw("main* <- a");
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        library.dir().to_str().expect("a text"),
        "lib",
    ]);
    repo.git(&["commit", "--quiet", "--message", "a library"]);
    let inner = repo.beside(&repo.dir().join("lib"));
    inner.commit_file("inner", "x\n", "inside");
    let pinned = inner.rev("HEAD");
    lattice(&repo).args(["restack"]).ok();
    lattice(&repo).args(["checkout", "a"]).ok();
    lattice(&repo).args(["checkout", "main"]).ok();
    assert_eq!(inner.rev("HEAD"), pinned, "the commit that was checked out inside stays");
    lattice(&inner).args(["init", "--trunk", "main"]).ok();
    assert_eq!(lattice(&inner).arg("trunk").ok().stdout.trim(), "main");
    let told = lattice(&inner).args(["info", "main"]).json();
    let git_dir = told["repository"]["git_dir"].as_str().unwrap_or_default().to_owned();
    assert!(git_dir.ends_with(".git/modules/lib"), "{told:#}");
    assert!(!repo.read(".git/lattice/config.toml").is_empty(), "the outer configuration is another file");
}

#[test]
fn the_repository_that_git_would_use_is_used_whatever_its_configuration() {
    let elsewhere = |repo: &TestRepo| repo.sandbox().root().join("tree");
    let repo = TestRepo::draw("main <- a*");
    fs::create_dir(elsewhere(&repo)).expect("the sandbox can be written");
    repo.git(&["config", "core.worktree", elsewhere(&repo).to_str().expect("a text")]);
    let told = lattice(&repo).args(["info", "a"]).json();
    assert_eq!(told["repository"]["work_dir"], elsewhere(&repo).to_str().expect("a text"), "{told:#}");
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["config", "core.bare", "true"]);
    let told = lattice(&repo).args(["info", "a"]).json();
    assert_eq!(told["repository"]["context"], "bare", "core.bare is believed: {told:#}");
}

/// Changes the owner of everything below a directory; only root can.
fn give_away(path: &Path, owner: &str) -> bool {
    Command::new("chown").arg("-R").arg(owner).arg(path).status().is_ok_and(|status| status.success())
}

#[test]
fn a_repository_of_somebody_else_is_refused_as_git_refuses_it() {
    let repo = TestRepo::draw("main <- a*");
    let before = repo.state();
    if !give_away(repo.dir(), "65534:65534") {
        eprintln!("only root can give a repository away");
        return;
    }
    for args in [&["log"][..], &["doctor"], &["freeze", "a"], &["init"]] {
        let output = lattice(&repo).arg("--json").args(args).fails(1);
        assert_eq!(output.json()["error"]["code"], "not-trusted", "{args:?}: {}", output.snapshot());
        assert!(!output.stdout.contains("safe.directory=*"), "no advice to trust everything: {}", output.snapshot());
    }
    assert!(give_away(repo.dir(), "0:0"), "it is given back");
    assert_same(&before, &repo.state());
}

/// The program as another user, who may read the repository and not write it.
fn as_reader(repo: &TestRepo, args: &[&str]) -> std::process::Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_lattice")]);
    repo.sandbox().apply(&mut command);
    command.args(args).current_dir(repo.dir());
    command.output().expect("setpriv starts")
}

// proves: ST-4.1-9
#[test]
fn a_read_only_repository_is_read_and_the_reader_is_told_that_nothing_was_recorded() {
    let repo = crate::doctor::states::recorded(|repo| drop(repo.git(&["update-ref", "-d", &metadata_ref("b")])));
    if !give_away(repo.sandbox().root(), "65534:65534") {
        eprintln!("only root can become another user");
        return;
    }
    let lock = |mode: &str| Command::new("chmod").args(["-R", mode]).arg(repo.dir()).status();
    lock("a-w").expect("chmod starts");
    let refs_before = fs::read(repo.dir().join(".git/refs/lattice/event-log")).ok();
    let log = as_reader(&repo, &["log"]);
    let doctor = as_reader(&repo, &["doctor", "--json"]);
    let told = as_reader(&repo, &["doctor"]);
    let freeze = as_reader(&repo, &["untrack", "a"]);
    lock("u+w").expect("chmod starts");
    let refs_after = fs::read(repo.dir().join(".git/refs/lattice/event-log")).ok();
    assert!(give_away(repo.sandbox().root(), "0:0"), "it is given back");
    let shown = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(log.status.code(), Some(0), "log works: {}", shown(&log));
    assert!(shown(&log).contains("could not be recorded"), "and says what it could not do: {}", shown(&log));
    assert_eq!(doctor.status.code(), Some(0), "doctor works: {}", shown(&doctor));
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).expect("one document");
    assert_eq!(issue(&report, "metadata-vanished")["severity"], "warning");
    assert!(shown(&told).contains("could not be recorded"), "doctor says it too: {}", shown(&told));
    assert_eq!(freeze.status.code(), Some(1), "a change is refused: {}", shown(&freeze));
    assert_eq!(refs_before, refs_after, "nothing was recorded");
}

#[test]
fn variables_of_a_hook_do_not_lead_to_another_repository() {
    let repo = TestRepo::draw("main <- a*");
    let other = TestRepo::draw("main <- x*");
    let before = other.state();
    let inherited = [
        ("GIT_DIR", other.dir().join(".git")),
        ("GIT_WORK_TREE", other.dir().to_owned()),
        ("GIT_INDEX_FILE", other.dir().join(".git/index")),
        ("GIT_OBJECT_DIRECTORY", other.dir().join(".git/objects")),
        ("GIT_NAMESPACE", "ns".into()),
        ("GIT_PREFIX", "deep/".into()),
    ];
    let run = |args: &[&str]| {
        let run = inherited.iter().fold(lattice(&repo), |run, (name, value)| run.env(name, value));
        run.args(args).ok()
    };
    assert!(run(&["log"]).stdout.contains('a'), "the repository of the directory is read");
    repo.write("staged", "x\n");
    repo.git(&["add", "staged"]);
    run(&["create", "b", "-m", "new"]);
    assert_eq!(repo.metadata("b")["parent"]["name"], "a", "and changed");
    assert_eq!(repo.git(&["show", "--name-only", "--format=", "b"]), "staged", "with its own index");
    assert_same(&before, &other.state());
}

#[test]
fn a_hook_that_asks_lattice_gets_an_answer() {
    let repo = TestRepo::draw("main <- a*");
    let hook = repo.dir().join(".git/hooks/pre-commit");
    let program = env!("CARGO_BIN_EXE_lattice");
    fs::create_dir_all(hook.parent().expect("it has a directory")).expect("it can be made");
    fs::write(&hook, format!("#!/bin/sh\n'{program}' parent > seen\n")).expect("it can be written");
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    repo.write("file", "x\n");
    repo.git(&["add", "file"]);
    repo.git(&["commit", "--quiet", "--message", "by git"]);
    assert_eq!(repo.read("seen").trim(), "main", "from a hook of plain git");
}

#[test]
fn what_one_user_of_a_shared_repository_makes_the_others_can_use() {
    let repo = TestRepo::draw("main <- a <- b*");
    let git_dir = repo.dir().join(".git");
    let at = git_dir.to_str().expect("the kit chooses its paths");
    repo.git(&["config", "core.sharedRepository", "group"]);
    let opened = Command::new("chmod").args(["-R", "g+rwX", at]).status().expect("chmod runs");
    assert!(opened.success());
    // A user whose own files are nobody else's business.
    let careful = repo.sandbox().root().join("careful");
    fs::write(&careful, format!("#!/bin/sh\numask 077\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_lattice")))
        .expect("ours");
    fs::set_permissions(&careful, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let run = |line: &str| {
        let careful = careful.to_str().expect("the kit chooses its paths");
        lattice_testkit::Lattice::new(careful, &repo).args(line.split(' ')).ok();
    };
    repo.write("new", "x\n");
    run("create c -a -m new");
    repo.git(&["checkout", "--quiet", "a"]);
    repo.write("new in a", "x\n");
    run("modify -a -c -m more");
    run("undo");
    let kept = Command::new("find")
        .args([at, "(", "!", "-perm", "-040", "-o", "-type", "d", "!", "-perm", "-070", ")"])
        .output();
    let kept = String::from_utf8(kept.expect("find runs").stdout).expect("the kit chooses its paths");
    // Git itself writes the message of a commit with the mask of the user.
    let kept: Vec<_> = kept.lines().filter(|path| !path.ends_with("/COMMIT_EDITMSG")).collect();
    assert_eq!(kept, Vec::<&str>::new(), "nothing is kept from the group");
    for file in ["lattice/lock", "lattice/config.toml", "index"] {
        use std::os::unix::fs::MetadataExt as _;
        let mode = git_dir.join(file).metadata().expect("it was made").mode();
        assert_eq!(mode & 0o060, 0o060, "{file}: {mode:o}");
    }
}

#[test]
fn the_folder_that_one_stands_in_is_not_removed() {
    let repo = TestRepo::draw("main <- a*");
    repo.write("sub/only-here", "x\n");
    lattice(&repo).args(["modify", "-a"]).ok();
    let sub = repo.dir().join("sub");
    lattice(&repo.beside(&sub)).arg("down").ok();
    assert!(sub.is_dir(), "as with git checkout");
    lattice(&repo.beside(&sub)).arg("up").ok();
    assert!(sub.join("only-here").exists());
}
