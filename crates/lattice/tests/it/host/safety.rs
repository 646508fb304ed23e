//! What is pushed, when, and over what: never over something that was not seen.

use lattice_testkit::{Action, GitWrapper, assert_same};
use serde_json::json;

use super::World;

#[track_caller]
fn submitted(drawing: &str) -> World {
    let world = World::path(drawing);
    world.run("submit --stack");
    world
}

#[test]
fn no_command_but_merge_changes_the_trunk_of_the_remote() {
    let world = submitted("main <- a <- b*");
    let trunk = world.remote_tip("main");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("local.txt", "local\n", "a commit on the local trunk");
    world.repo.git(&["checkout", "--quiet", "b"]);
    for line in ["submit --stack", "submit --stack --force --always", "sync", "sync --force", "get a", "pr show"] {
        world.lattice().args(line.split(' ')).run();
        assert_eq!(world.remote_tip("main"), trunk, "after {line}");
    }
    world.repo.git(&["branch", "--force", "main", trunk.as_deref().expect("a trunk")]);
    world.run("checkout a");
    world.run("unfreeze");
    world.run("submit");
    world.run("merge --confirm");
    assert_ne!(world.remote_tip("main"), trunk, "merge does");
}

#[test]
fn sync_moves_the_local_trunk_only_forward_and_reports_a_diverged_one() {
    let world = submitted("main <- a*");
    let bob = world.colleague("bob");
    bob.commit_file("theirs.txt", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "main"]);
    world.run("sync");
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"), "forward");
    world.repo.git(&["checkout", "--quiet", "main"]);
    let own = world.repo.commit_file("mine.txt", "mine\n", "mine");
    world.run("sync");
    assert_eq!(world.repo.rev("main"), own, "a trunk with more than the remote stays");
    bob.commit_file("more.txt", "more\n", "more");
    bob.git(&["push", "--quiet", "origin", "main"]);
    let document = world.lattice().args(["sync", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("trunk-diverged"), "{document:#}");
    assert_eq!(world.repo.rev("main"), own, "a diverged one is reported and not reset");
}

#[test]
fn a_lease_uses_only_a_value_that_was_seen_before_planning() {
    let world = submitted("main <- a*");
    world.repo.commit_file("a.txt", "changed\n", "changed");
    let foreign = world.remote.rev("main");
    let mut wrapper = GitWrapper::new(&world.repo);
    let moves = format!("\"$REAL_GIT\" --git-dir '{}' update-ref refs/heads/a {foreign}", world.remote.dir().display());
    wrapper.on("push --porcelain", 1, Action::Run(moves));
    let before = world.repo.branch_refs();
    let document = world.lattice().wrapper(&wrapper).args(["submit", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("push-refused"), "{document:#}");
    assert_eq!(world.remote_tip("a"), Some(foreign), "what somebody pushed meanwhile stays");
    assert_eq!(world.repo.branch_refs(), before);
    assert!(!world.repo.op_state_path().exists(), "no operation is left in progress");
}

#[test]
fn a_pull_request_is_not_opened_against_a_branch_that_the_remote_does_not_have() {
    let world = World::path("main*");
    world.run("create empty");
    world.repo.write("file", "x\n");
    world.run("create full -a -m full");
    let before = world.remote.refs();
    let document = world.lattice().args(["submit", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("base-not-on-remote"), "{document:#}");
    assert_eq!(world.remote.refs(), before);
}

#[test]
fn a_text_that_was_not_written_is_not_submitted() {
    let world = World::path("main <- a*");
    let empties = world.repo.sandbox().root().join("empties");
    std::fs::write(&empties, "#!/bin/sh\n: > \"$1\"\n").expect("a script");
    world.repo.git(&["update-index", "--refresh"]);
    std::fs::set_permissions(&empties, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it can be run");
    let (before, remote) = (world.repo.state(), world.remote.refs());
    for (editor, said) in [("false", "false ended without success"), (empties.to_str().expect("text"), "no first line")]
    {
        let output = world.lattice().env("GIT_EDITOR", editor).arg("submit").terminal().run();
        assert_eq!(output.code, Some(1), "{}", output.snapshot());
        assert!(
            output.stdout.contains("nothing is submitted") && output.stdout.contains(said),
            "{}",
            output.snapshot()
        );
        assert_eq!(world.remote.refs(), remote, "{editor}");
        assert_same(&before, &world.repo.state());
    }
}

#[test]
fn commits_that_only_the_remote_has_are_never_overwritten_without_force() {
    let world = submitted("main <- a*");
    let bob = world.colleague("bob");
    bob.git(&["checkout", "--quiet", "a"]);
    let theirs = bob.commit_file("theirs.txt", "theirs\n", "theirs");
    bob.git(&["push", "--quiet", "origin", "a"]);
    world.repo.write("a.txt", "amended\n");
    world.run("modify -a");
    // A fetch in the background makes the value known; that does not make its commits ours.
    for fetched in [false, true] {
        if fetched {
            world.repo.git(&["fetch", "--quiet", "origin"]);
        }
        let document = world.lattice().args(["submit", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!("remote-has-more"), "{document:#}");
        assert_eq!(world.remote_tip("a"), Some(theirs.clone()));
    }
    world.run("submit --force");
    assert_eq!(world.remote_tip("a"), Some(world.repo.rev("a")), "--force replaces them");
}

#[test]
fn a_kill_between_push_and_pull_request_is_finished_by_the_next_run_and_nothing_is_doubled() {
    for world in [World::path("main <- a <- b*"), World::github("main <- a <- b*")] {
        let mut wrapper = GitWrapper::new(&world.repo);
        wrapper.on("push --porcelain", 1, Action::KillParentAfter);
        let killed = world.lattice().wrapper(&wrapper).args(["submit", "--stack"]).run();
        assert_eq!(killed.code, None, "{}", killed.snapshot());
        assert_eq!(world.remote_tip("b"), Some(world.repo.rev("b")), "the push was done");
        let pushed = world.repo.ledger();
        let intents = pushed[0]["detail"]["remote"].to_string();
        assert!(intents.contains("push origin refs/heads/a: absent -> "), "what was intended is on record: {intents}");
        assert!(!world.repo.op_state_path().exists(), "the local part was done; nothing is in progress");
        for _ in 0..2 {
            world.run("submit --stack");
            let on_remote = || world.remote.refs_below("refs/lattice/forge/items/").len();
            let items = world.github.as_ref().map_or_else(on_remote, |github| github.items("acme/tools"));
            assert_eq!(items, 2, "one pull request for each branch");
        }
        assert_eq!(world.repo.metadata("a")["pr"]["state"], json!("linked"));
    }
}

#[test]
fn a_remote_that_refuses_one_ref_takes_none_and_says_why() {
    let world = World::path("main <- a <- b*");
    let hook = world.remote.dir().join("hooks/update");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("the sandbox can be written");
    std::fs::write(&hook, "#!/bin/sh\ntest \"$1\" != refs/heads/b || { echo not on my watch; exit 1; }\n")
        .expect("a hook");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let before = world.repo.state();
    let output = world.lattice().args(["submit", "--stack"]).fails(1);
    assert!(output.stderr.contains("not on my watch"), "{}", output.snapshot());
    assert_eq!(world.remote.branch_refs().len(), 1, "all or none");
    let now = world.repo.state();
    assert_same(&before, &now);
}

#[test]
fn addresses_that_start_programs_are_refused_before_anything_starts() {
    let world = World::path("main <- a*");
    let marker = world.repo.sandbox().root().join("started");
    for url in [
        format!("ext::sh -c 'touch {}'", marker.display()),
        format!("--upload-pack=touch {}", marker.display()),
        format!("ssh://-oProxyCommand=touch {}/a/b", marker.display()),
    ] {
        world.repo.git(&["config", "remote.origin.url", &url]);
        for line in ["submit", "sync", "get a", "issue list"] {
            let output = world.lattice().args(line.split(' ')).run();
            assert_eq!(output.code, Some(1), "{url}: {line}\n{}", output.snapshot());
        }
        assert!(!marker.exists(), "{url} started a program");
    }
}

#[test]
fn rewritten_and_other_remotes_are_found() {
    let world = World::path("main <- a*");
    let root = world.repo.sandbox().root().join("remote").display().to_string();
    world.repo.git(&["config", &format!("url.{root}/.insteadOf"), "corp:"]);
    world.repo.git(&["remote", "set-url", "origin", "corp:acme/tools.git"]);
    world.run("submit");
    assert!(world.remote_tip("a").is_some(), "insteadOf is followed");
    let fork = world.repo.beside(&world.repo.sandbox().root().join("fork.git"));
    std::fs::create_dir_all(fork.dir()).expect("the sandbox can be written");
    fork.git(&["init", "--quiet", "--bare"]);
    world.repo.git(&["remote", "add", "mine", fork.dir().to_str().expect("text")]);
    world.run("config set forge.remote mine");
    world.repo.git(&["push", "--quiet", "mine", "main"]);
    world.run("submit");
    assert_eq!(fork.branch_refs().get("a"), Some(&world.repo.rev("a")), "another remote is honoured");
}

#[test]
fn a_remote_over_ssh_is_a_host_like_any_other() {
    let world = World::path("main <- a*");
    let script = world.repo.sandbox().root().join("ssh");
    // What stands before the command is the host; the command is for a shell there.
    std::fs::write(&script, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n").expect("the sandbox can be written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    world.repo.git(&["config", "core.sshCommand", script.to_str().expect("text")]);
    world.repo.git(&["config", "ssh.variant", "simple"]);
    let url = format!("ssh://git@host.invalid{}", world.remote.dir().display());
    world.repo.git(&["remote", "set-url", "origin", &url]);
    world.run("submit");
    world.run("merge --confirm");
    assert_eq!(Some(world.repo.rev("main")), world.remote_tip("main"));
}

// proves: ST-11.1-2
#[test]
fn no_host_is_asked_while_the_stack_itself_is_broken() {
    let world = World::github("main <- a <- b*");
    world
        .repo
        .set_metadata_raw("a", world.repo.metadata("a").to_string().replace("\"trunk\"", "\"branch\"").as_bytes());
    let github = world.github.as_ref().expect("a GitHub");
    github.forget();
    for line in ["submit", "sync", "get b", "merge --confirm"] {
        let output = world.lattice().args(line.split(' ')).arg("--json").run();
        assert_eq!(output.json()["error"]["code"], json!("gated"), "{line}: {}", output.snapshot());
    }
    assert!(github.log().is_empty(), "not one request: {:?}", github.requests());
}

#[test]
fn nothing_lands_while_a_branch_of_the_line_has_no_open_pull_request() {
    let world = submitted("main <- a <- b <- c*");
    world.run("pr close 2");
    let trunk = world.remote_tip("main");
    let refused = world.lattice().args(["merge", "--confirm", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("no-pull-request"), "{refused:#}");
    assert_eq!(world.remote_tip("main"), trunk, "nothing landed");
    assert!(world.repo.branch_refs().contains_key("a"));
}

#[test]
fn a_dry_run_of_merge_names_everything_that_would_land() {
    let world = submitted("main <- a <- b <- c*");
    let told = world.lattice().args(["merge", "--dry-run"]).ok();
    for pull in ["#1 (a)", "#2 (b)", "#3 (c)"] {
        assert!(told.stdout.contains(&format!("land {pull} by squash")), "{pull}: {}", told.snapshot());
    }
    assert_eq!(world.run("merge --dry-run")["to_land"], json!(["a", "b", "c"]));
    assert_eq!(world.pull("a")["state"], json!("open"));
}

#[test]
fn merge_checks_before_it_asks() {
    let world = submitted("main <- a*");
    let refused = world.lattice().args(["merge", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("not-confirmed"), "{refused:#}");
    world.run("checkout main");
    let refused = world.lattice().args(["merge", "--json"]).fails(1).json();
    assert_ne!(refused["error"]["code"], json!("not-confirmed"), "the trunk does not land: {refused:#}");
    world.run("checkout a");
    world.repo.git(&["remote", "remove", "origin"]);
    let refused = world.lattice().args(["merge", "--json"]).fails(1).json();
    assert_ne!(refused["error"]["code"], json!("not-confirmed"), "there is no remote: {refused:#}");
}

#[test]
fn a_y_is_a_yes_for_merge() {
    for (answer, lands) in [("n\r", false), ("\r", false), ("y\r", true)] {
        let world = submitted("main <- a*");
        let output = world.lattice().arg("merge").terminal().answer("Go on? [y/n] ", answer).run();
        assert_eq!(output.code, Some(if lands { 0 } else { 1 }), "{answer:?}:\n{}", output.snapshot());
        assert_eq!(world.pull("a")["state"] == json!("merged"), lands, "{answer:?}:\n{}", output.snapshot());
    }
}

#[test]
fn what_is_known_of_a_pull_request_follows_what_was_done_to_it() {
    for world in [World::path("main <- a <- b*"), World::github("main <- a <- b*")] {
        world.run("submit --stack");
        world.run("pr close 2");
        let log = world.lattice().arg("log").ok().stdout;
        assert!(log.contains("#1 open") && log.contains("#2 closed"), "{log}");
        let told = world.lattice().args(["unlink", "b"]).ok().stdout;
        assert_eq!(told, "b has no pull request here any more\n");
    }
}

#[test]
fn undo_of_a_submit_reverses_the_local_part() {
    let world = submitted("main <- a*");
    let linked = world.repo.metadata("a")["pr"]["state"].clone();
    world.run("undo");
    assert_eq!((linked, world.repo.metadata("a")["pr"]["state"].clone()), (json!("linked"), json!("none")));
    assert_eq!(world.remote_tip("a"), Some(world.repo.rev("a")), "what is on the remote stays there");
    let operations = world.run("ops");
    let pushed = operations["operations"].as_array().expect("a list").iter().any(|op| {
        op["remote"].as_array().is_some_and(|remote| remote.iter().any(|line| line.to_string().contains("push origin")))
    });
    assert!(pushed, "and ops says what was done there: {operations:#}");
}

#[test]
fn undo_passes_over_what_changed_nothing_here() {
    let world = submitted("main <- a*");
    let before = world.repo.rev("a");
    world.repo.write("more.txt", "more\n");
    world.run("modify -a");
    for line in ["submit", "sync"] {
        world.run(line);
    }
    let output = world.lattice().arg("undo").ok();
    assert_eq!(world.repo.rev("a"), before, "{}", output.snapshot());
    assert!(output.stdout.starts_with("undid `modify`"), "{}", output.snapshot());
    for said in ["passed over `submit`", "passed over `sync`", "stays on the remote: push origin"] {
        assert!(output.stderr.contains(said), "{said}: {}", output.snapshot());
    }
}

// proves: ST-3.2.2-14, ST-4.1-25, ST-11.1-4
#[test]
fn what_a_host_says_changes_only_the_cached_part_of_metadata() {
    for world in [World::path("main <- a <- b*"), World::github("main <- a <- b*")] {
        let before = [world.repo.metadata("a"), world.repo.metadata("b")];
        world.run("submit --stack");
        world.run("sync");
        for (before, name) in before.into_iter().zip(["a", "b"]) {
            let mut after = world.repo.metadata(name);
            assert_eq!(after["pr"]["state"], json!("linked"));
            assert_eq!(after["pr"]["last_known"], json!({ "state": "open", "is_draft": false }));
            for part in ["pr", "timestamps"] {
                after[part] = before[part].clone();
            }
            assert_eq!(after, before, "{name}");
        }
        world.run("unlink b");
        assert_eq!(world.repo.metadata("b")["pr"], json!({ "state": "none" }));
    }
}

// proves: ST-6.1-9, ST-6.1-6
#[test]
fn everything_that_concerns_a_remote_comes_last_in_a_plan() {
    let world = World::path("main <- a <- b*");
    let plan = world.run("submit --stack --dry-run --reviewers ann")["plan"].clone();
    let steps: Vec<_> = plan["steps"].as_array().expect("a list").iter().collect();
    let phases: Vec<_> = steps.iter().map(|step| step["phase"].as_str().expect("a phase")).collect();
    let order = ["local-structural", "local-verification", "remote"];
    let rank = |phase: &&str| order.iter().position(|known| known == phase).expect("a known phase");
    assert!(phases.is_sorted_by_key(rank), "{phases:?}");
    for step in steps {
        let remote = ["push", "fetch", "host"].contains(&step["type"].as_str().expect("a type"));
        assert_eq!(step["phase"] == json!("remote"), remote, "{step:#}");
    }
    assert!(phases.contains(&"remote"), "{phases:?}");
    let told = world.lattice().args(["submit", "--stack", "--dry-run"]).ok().stdout;
    assert!(told.contains("open a pull request") && !told.contains("stack of the host"), "it keeps none:\n{told}");
    assert_eq!(world.remote.branch_refs().len(), 1, "a dry run pushes nothing");
}

// proves: ST-6.1-8
#[test]
fn a_result_that_is_not_what_was_planned_is_never_pushed() {
    let world = World::path("main <- a <- b*");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("more.txt", "more\n", "trunk moves");
    world.repo.git(&["push", "--quiet", "origin", "main"]);
    world.repo.git(&["checkout", "--quiet", "b"]);
    let old = world.repo.rev("b");
    let mut wrapper = GitWrapper::new(&world.repo);
    // Once the restack has moved `b`, somebody moves it away before the result is looked at.
    let moves = format!(
        "test \"$(\"$REAL_GIT\" rev-parse refs/heads/b)\" = {old} || \"$REAL_GIT\" update-ref refs/heads/b refs/heads/main"
    );
    wrapper.on("for-each-ref", lattice_testkit::Occurrence::Every, Action::Run(moves));
    let output = world.lattice().wrapper(&wrapper).args(["submit", "--stack", "--json"]).fails(1);
    assert_eq!(output.json()["error"]["code"], json!("not-verified"), "{}", output.snapshot());
    assert_eq!(world.remote.branch_refs().len(), 1, "nothing was pushed");
    assert!(wrapper.calls().iter().all(|call| !call.contains("push --porcelain")), "nor tried");
}

#[test]
fn commits_that_only_the_local_trunk_has_are_in_no_pull_request() {
    let world = World::path("main*");
    let published = world.remote_tip("main");
    world.repo.commit_file("private.txt", "private\n", "not for others yet");
    world.repo.write("a.txt", "a\n");
    world.run("create a -a -m a");
    for line in ["submit --no-edit", "submit --no-edit --dry-run"] {
        let refused = world.lattice().args(line.split(' ')).arg("--json").fails(1).json();
        assert_eq!(refused["error"]["code"], json!("trunk-not-pushed"), "{line}: {refused:#}");
    }
    assert_eq!(world.remote.branch_refs().len(), 1, "nothing was pushed");
    world.repo.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    world.lattice().args(["submit", "--no-edit"]).fails(1);
    assert_eq!(world.remote.branch_refs().len(), 1, "nor where the trunk of the remote was never seen");
    // Somebody else publishes them, which was not seen here yet.
    let bob = world.colleague("bob");
    bob.git(&["pull", "--quiet", world.repo.dir().to_str().expect("text"), "main"]);
    bob.git(&["push", "--quiet", "origin", "main"]);
    assert_ne!(world.remote_tip("main"), published);
    world.run("submit --no-edit");
    world.run("merge --confirm");
}

#[test]
fn nothing_lands_where_a_frozen_branch_would_have_to_follow() {
    let world = submitted("main <- a <- b*");
    let trunk = world.remote_tip("main");
    let bob = world.colleague("bob");
    world.lattice_in(&bob).args(["get", "2"]).ok();
    for line in ["merge --dry-run", "merge --confirm"] {
        let refused = world.lattice_in(&bob).args(line.split(' ')).arg("--json").fails(1).json();
        assert!(refused["issues"][0]["summary"].to_string().contains("`b` is frozen"), "{line}: {refused:#}");
        assert_eq!(world.remote_tip("main"), trunk, "{line}");
    }
}

#[test]
fn a_branch_is_not_restacked_onto_commits_with_which_it_could_not_be_submitted() {
    let world = World::path("main <- a*");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("private.txt", "private\n", "not for others yet");
    world.repo.git(&["checkout", "--quiet", "a"]);
    let before = world.repo.rev("a");
    for line in ["submit --no-edit --dry-run", "submit --no-edit"] {
        let refused = world.lattice().args(line.split(' ')).arg("--json").fails(1).json();
        assert_eq!(refused["error"]["code"], json!("trunk-not-pushed"), "{line}: {refused:#}");
        assert_eq!(world.repo.rev("a"), before, "{line}");
    }
    world.run("submit --no-edit --no-restack");
    assert_eq!(world.remote_tip("a"), Some(before), "as it is, it holds nothing private");
}
