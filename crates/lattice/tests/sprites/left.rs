//! What becomes of work that an agent left in another way than as commits on its branch.

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::{agent, lattice, log, look, validated};

/// What a sprite landed, by the first lines of its commits.
fn landed(repo: &TestRepo, branch: &str) -> String {
    repo.git(&["log", "--format=%s", &format!("main..{branch}")])
}

#[test]
fn what_an_agent_did_not_commit_is_collected_whatever_it_did_to_git() {
    let repo = TestRepo::draw("main*");
    let cases = [
        ("locked", "touch .git/index.lock .git/HEAD.lock .git/refs/heads/sprite/locked.lock"),
        ("index", "echo garbage > .git/index"),
        ("elsewhere", "git config core.worktree /nowhere"),
        ("quiet", "git config status.showUntrackedFiles no"),
        ("closed", "chmod 000 work.txt"),
        ("folder", "mkdir inner; mv work.txt inner; chmod 000 inner"),
    ];
    for (name, script) in cases {
        let out = agent(&repo, name, &format!("echo important > work.txt; {script}"));
        assert_eq!(out.code, Some(0), "{name}: {}\n{}", out.snapshot(), log(&repo, name));
        let branch = format!("sprite/{name}");
        assert_eq!(repo.git(&["branch", "--list", "--format=%(refname:short)", &branch]), branch, "{name}");
        let files = repo.git(&["ls-tree", "-r", "--name-only", &branch]);
        assert!(files.contains("work.txt"), "{name}: {files}");
        assert!(out.stderr.contains("are in a last commit"), "{name}: {}", out.snapshot());
        assert!(!out.stderr.contains("stay in the sprite"), "{name}: {}", out.snapshot());
        lattice(&repo).args(["sprite", "destroy", name]).ok();
    }
}

#[test]
fn a_sprite_with_work_that_cannot_land_says_so_and_is_kept() {
    let repo = TestRepo::draw("main*");
    let cases = [
        ("nested", "git init --quiet inner; echo x > inner/x; echo y > y", "could not be committed"),
        ("stash", "echo x > x; git add x; git stash --quiet", "`git stash`"),
        ("middle", "echo x > x; git rev-parse HEAD > .git/MERGE_HEAD", "in the middle of a merge or rebase"),
    ];
    for (name, script, why) in cases {
        let out = agent(&repo, name, script);
        assert_eq!(out.code, Some(0), "{name}: {}\n{}", out.snapshot(), log(&repo, name));
        for part in [why, &format!("lattice sprite diff {name}")] {
            assert!(out.stderr.contains(part), "{name}: {part}: {}", out.snapshot());
        }
        let refused = lattice(&repo).args(["sprite", "destroy", name]).fails(1);
        for part in [why, "--force"] {
            assert!(refused.stderr.contains(part), "{name}: {part}: {}", refused.snapshot());
        }
        let document: serde_json::Value =
            serde_json::from_str(&lattice(&repo).args(["sprite", "destroy", name, "--json"]).fails(1).stdout)
                .expect("a document");
        assert_eq!(document["error"]["code"], json!("unlanded-work"), "{document:#}");
        let collected = lattice(&repo).args(["sprite", "gc"]).json();
        validated(&repo, &collected);
        assert!(collected["kept"][name].as_str().is_some_and(|kept| kept.contains(why)), "{collected:#}");
        assert!(repo.dir().join(".git/lattice/sprites").join(name).exists(), "{name}");
    }
    assert_eq!(repo.git(&["show", "sprite/nested:y"]), "y", "what can be taken is taken");
    lattice(&repo).args(["sprite", "destroy", "stash", "--force"]).ok();
}

#[test]
fn commits_on_a_detached_head_land() {
    let repo = TestRepo::draw("main*");
    let detached = "git checkout -q --detach; echo w > w.txt; git add .; git commit -qm 'detached work'";
    let out = agent(&repo, "one", &format!("{detached}; echo open > open.txt"));
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "one"));
    assert_eq!(landed(&repo, "sprite/one"), "Do it\ndetached work", "the branch was not moved, so it gets them");
    let own = "echo o > o.txt; git add .; git commit -qm own; git checkout -q --detach HEAD~1";
    let out = agent(&repo, "two", &format!("{own}; {detached}"));
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "two"));
    assert_eq!(landed(&repo, "sprite/two"), "own");
    assert_eq!(landed(&repo, "sprite/two-detached"), "detached work");
    assert_eq!(repo.metadata("sprite/two-detached")["parent"]["name"], json!("main"));
    assert_eq!(agent(&repo, "looks", "git checkout -q --detach").code, Some(0));
    assert_eq!(repo.git(&["branch", "--list", "sprite/looks*"]), "", "a HEAD that is somewhere is no work");
    // Not the commit that landed above, which it would be if it was made in the same second.
    let other = detached.replace("echo w", "echo other");
    let waits = format!("{other}; lattice emit waiting --reason r --checkpoint $(lattice checkpoint)");
    assert_eq!(agent(&repo, "lost", &waits).code, Some(4), "{}", log(&repo, "lost"));
    let lost = lattice(&repo).args(["sprite", "destroy", "lost", "--force"]).json();
    assert!(lost["lost"][0].as_str().is_some_and(|lost| lost.starts_with("sprite/lost at ")), "{lost:#}");
    assert_eq!(lattice(&repo).args(["sprite", "gc"]).json()["kept"], json!({}));
    lattice(&repo).arg("verify").ok();
}

#[test]
fn what_has_landed_is_not_landed_again_whatever_became_of_it() {
    let repo = TestRepo::draw("main*");
    for name in ["merged", "amended"] {
        let script = format!("echo x > {name}; git add -A; git commit --quiet -m {name}");
        assert_eq!(agent(&repo, name, &script).code, Some(0), "{}", log(&repo, name));
    }
    repo.git(&["merge", "--quiet", "--ff-only", "sprite/merged"]);
    repo.git(&["branch", "--quiet", "-D", "sprite/merged"]);
    repo.git(&["update-ref", "-d", "refs/branch-metadata/sprite/merged"]);
    lattice(&repo).args(["restack", "sprite/amended"]).ok();
    let amended = repo.git(&["rev-parse", "sprite/amended"]);
    lattice(&repo).args(["sprite", "destroy", "amended"]).ok();
    let collected = lattice(&repo).args(["sprite", "gc"]).json();
    assert_eq!((&collected["landed"], &collected["sprites"]), (&json!([]), &json!(["merged"])), "{collected:#}");
    assert_eq!(repo.git(&["branch", "--list", "sprite/merged"]), "", "what is merged stays away");
    assert_eq!(repo.git(&["rev-parse", "sprite/amended"]), amended);
}

#[test]
fn an_interrupted_sprite_goes_on_from_what_is_there() {
    let repo = TestRepo::draw("main*");
    let script = "if [ -e work ]; then echo again > more; git add -A; git commit -qm again; exit; fi
        lattice checkpoint; echo w > work; git add -A; git commit -qm work; touch .git/index.lock
        lattice emit info ready; sleep 30";
    let running = lattice(&repo).args(["run", "x", "--name", "cut", "--", "bash", "-c", script]).spawn();
    while !lattice(&repo).args(["sprite", "events", "cut"]).run().stdout.contains("ready") {
        std::thread::yield_now();
    }
    running.kill();
    running.wait();
    let out = lattice(&repo).args(["resume", "cut"]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "cut"));
    assert_eq!(landed(&repo, "sprite/cut"), "again\nwork");
}

#[test]
fn an_agent_takes_no_name_of_another_sprite() {
    let repo = TestRepo::draw("main*");
    let script = "for name in sprite/other sprite-other/x sprite/taker-2/part; do git switch -q -c $name main-; \
        echo $name > file; git add -A; git commit -qm $name; done";
    let script = format!("git branch main-; {script}; git branch -q -D main-");
    assert_eq!(agent(&repo, "taker", &script).code, Some(0), "{}", log(&repo, "taker"));
    let branches = repo.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    let expected =
        ["main", "sprite-taker/sprite-other/x", "sprite-taker/sprite/other", "sprite-taker/sprite/taker-2/part"];
    assert_eq!(branches, expected.join("\n"));
}

#[test]
fn a_difference_shows_what_is_there_now() {
    let repo = TestRepo::draw("main*");
    repo.write("kept", "kept\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "-m", "kept"]);
    let script = "echo 1 > one; echo 1 > same; echo 1 > touched; ln one linked; ln -s one link; : > empty
        lattice checkpoint; echo 2 > one; echo 1 > touched; echo n > new; rm kept; chmod +x same";
    assert_eq!(agent(&repo, "one", script).code, Some(0), "{}", log(&repo, "one"));
    let id = look(&repo, &["show", "one"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    let all = look(&repo, &["diff", "one"]);
    let expected = json!({
        "empty": "added", "kept": "removed", "link": "added", "linked": "added", "new": "added", "one": "added",
        "same": "added", "touched": "added",
    });
    assert_eq!((&all["files"], &all["checkpoint"]), (&expected, &json!(null)));
    let since = look(&repo, &["diff", "one", "--since", &id]);
    let expected =
        json!({ "kept": "removed", "linked": "changed", "new": "added", "one": "changed", "same": "changed" });
    assert_eq!((&since["files"], &since["checkpoint"]), (&expected, &json!(null)));
    lattice(&repo).args(["sprite", "restore", "one", &id]).ok();
    assert_eq!(look(&repo, &["diff", "one", "--since", &id])["files"], json!({}), "it is as it was");
    lattice(&repo).args(["sprite", "diff", "one", "--since", "chk_none"]).fails(1);
}

#[test]
fn a_difference_of_a_sprite_that_runs_says_what_it_does_not_show() {
    let repo = TestRepo::draw("main*");
    let script = "echo 1 > one; lattice checkpoint; echo 2 > two; while [ ! -e .lattice/go ]; do sleep 0.05; done";
    let running = lattice(&repo).args(["run", "x", "--name", "runs", "--", "bash", "-c", script]).spawn();
    while lattice(&repo).args(["sprite", "diff", "runs"]).run().stdout.is_empty() {
        std::thread::yield_now();
    }
    let out = lattice(&repo).args(["sprite", "diff", "runs"]).ok();
    assert_eq!(out.stdout, "added    one\n");
    for part in ["what it did since chk_", "is not shown: lattice sprite checkpoint runs"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.snapshot());
    }
    std::fs::write(repo.dir().join(".git/lattice/sprites/runs/mail/go"), "").expect("a file");
    running.wait();
}

#[test]
fn a_dry_run_of_gc_says_what_it_would_land_and_keep() {
    let repo = TestRepo::draw("main*");
    let run = |name: &str, script: &str| {
        lattice(&repo).args(["run", "x", "--no-collect", "--name", name, "--", "bash", "-c", script]).ok()
    };
    run("stash", "echo x > x; git add x; git stash --quiet");
    run("landed", "echo x > x; git add x; git commit -qm x");
    let script = "echo b > b; git add b; git commit -qm b; lattice checkpoint; git commit -q --amend -m c";
    assert_eq!(agent(&repo, "back", script).code, Some(0), "{}", log(&repo, "back"));
    let id = look(&repo, &["show", "back"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    lattice(&repo).args(["sprite", "restore", "back", &id]).ok();
    let refs = repo.git(&["for-each-ref"]);
    let planned = lattice(&repo).args(["sprite", "gc", "--dry-run"]).json();
    validated(&repo, &planned);
    assert_eq!((&planned["sprites"], &planned["landed"]), (&json!(["landed", "back"]), &json!(["sprite/back"])));
    assert!(planned["kept"]["stash"].as_str().is_some_and(|why| why.contains("`git stash`")), "{planned:#}");
    assert_eq!(repo.git(&["for-each-ref"]), refs, "nothing was landed");
    let done = lattice(&repo).args(["sprite", "gc"]).json();
    assert_eq!((&done["sprites"], &done["landed"]), (&planned["sprites"], &planned["landed"]));
}
