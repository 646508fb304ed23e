//! Tests of `run` and `resume`: an agent from its start to a branch of the stack.

use lattice_testkit::TestRepo;
use serde_json::{Value, json};

use crate::{agent, lattice, log, look, rules, validated};

fn repo() -> TestRepo {
    let repo = TestRepo::draw("main <- a*");
    repo.write("folder/inner.txt", "inner\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "a folder"]);
    repo
}

// proves: SP-1, SP-10, SP-15, SP-52, SP-54, SP-96
#[test]
fn the_commits_of_an_agent_land_as_a_branch_of_the_stack() {
    let repo = repo();
    let refs = repo.git(&["for-each-ref", "refs/heads"]);
    let script = r#"
        set -e
        grep -q ENVIRONMENT_PROPOSAL .lattice/skills/protocol/SKILL.md
        grep -q resumed .lattice/skills/protocol/SKILL.md
        test "$(cat .lattice/context/task.md)" = "Do it"
        test "$LATTICE_WORK_ITEM_ID" = task-one
        lattice emit phase-started implement
        echo new > new.txt; git add -A; git commit --quiet -m "first"; git branch -d a 2>/dev/null || true
        git branch side; echo more > more.txt; git add -A; git commit --quiet -m "second"
        echo open > open.txt
        lattice emit artifact --kind branch --ref sprite/one
        lattice emit completed --status success --summary "It is done."
    "#;
    let out = agent(&repo, "one", script);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "one"));
    assert!(out.stdout.contains("one completed: It is done."), "{}", out.stdout);
    let shown = look(&repo, &["show", "one"]);
    assert_eq!(shown["sprite"]["state"], json!("completed"));
    assert_eq!(shown["sprite"]["outcome"], json!("It is done."));
    assert_eq!(shown["violations"], json!([]));
    assert_eq!(repo.git(&["log", "--format=%s", "a..sprite/one"]), "Do it\nsecond\nfirst");
    assert_eq!(
        repo.git(&["ls-tree", "-r", "--name-only", "sprite/one", "--", ".lattice"]),
        "",
        "the mailbox stays out"
    );
    assert_eq!(repo.metadata("sprite/one")["parent"]["name"], json!("side"), "it stands on the nearest branch below");
    assert_eq!(repo.metadata("side")["parent"]["name"], json!("a"));
    for line in refs.lines() {
        assert!(repo.git(&["for-each-ref", "refs/heads"]).contains(line), "no ref of the host moved: {line}");
    }
    lattice(&repo).arg("verify").ok();
    let artifacts = look(&repo, &["artifacts", "one"]);
    assert_eq!(artifacts["artifacts"][0]["path"], json!("sprite/one"));
    let events = look(&repo, &["events", "one"]);
    let events = events["events"].as_array().expect("events");
    assert!(events.iter().all(|event| event["source"] == "both" && event["sprite_id"] == "one"), "{events:?}");
    let ops = lattice(&repo).arg("ops").json();
    assert_eq!(ops["operations"][0]["origin"], json!("sprite"), "the ledger says who asked");
}

/// An agent that asks once and then does what the answer says.
const ASKS: &str = r#"
    set -e
    if [ -e .lattice/resume.json ]; then
        lattice emit info "resumed"
        test "$(cat state)" = before; test ! -e later; test ! -e folder/inner.txt; test -e moved/x
        cat .lattice/resume.json; cat .lattice/resumed
        if grep -q '"approved": true' .lattice/resume.json; then word=yes; else word=no; fi
        echo "$word" > answer; git add -A; git commit --quiet -m "$word"
        lattice emit completed --status success --summary "$word"; exit 0
    fi
    echo before > state; rm -r folder; mkdir moved; echo x > moved/x; git add -A; git commit --quiet -m asked
    echo kept > ~/note
    id=$(lattice checkpoint)
    echo after > state; echo later > later
    lattice emit waiting --reason "PR_REVIEW" --checkpoint "$id" --expect approved=boolean --expect 'comments=array<string>'
    lattice emit info "still here"
"#;

// proves: SP-46, SP-51, SP-69, SP-78, SP-85, SP-86, SP-92, SP-102
#[test]
fn a_sprite_that_waits_goes_on_from_its_checkpoint_with_its_answer() {
    let repo = repo();
    let out = agent(&repo, "asks", ASKS);
    assert_eq!(out.code, Some(4), "{}\n{}", out.snapshot(), log(&repo, "asks"));
    let shown = look(&repo, &["show", "asks"]);
    assert_eq!((&shown["sprite"]["state"], &shown["sprite"]["outcome"]), (&json!("waiting"), &json!("PR_REVIEW")));
    assert_eq!(rules(&repo, "asks"), ["after-waiting"]);
    let resume = |inputs: &[&str]| lattice(&repo).args(["resume", "asks"]).args(inputs);
    let wrong = resume(&["--input", "approved=yes", "--input", "comments=[]"]).fails(1);
    assert!(wrong.stderr.contains("`approved` must be boolean"), "{}", wrong.snapshot());
    assert_eq!(look(&repo, &["show", "asks"])["sprite"]["state"], json!("waiting"), "nothing was restored or started");
    let inputs = ["--input", "approved=true", "--input", r#"comments=["Looks good"]"#];
    let first = resume(&inputs).run();
    assert_eq!(first.code, Some(0), "{}\n{}", first.snapshot(), log(&repo, "asks"));
    assert_eq!(repo.git(&["log", "--format=%s", "a..sprite/asks"]), "yes\nasked");
    let events = look(&repo, &["events", "asks"])["events"].as_array().map_or(0, Vec::len);
    assert_eq!(events, 4, "WAITING and what came after it are still known");
    let replay = resume(&inputs).json();
    validated(&repo, &replay);
    assert_eq!(replay["replay"], json!(true));
    assert_eq!(
        look(&repo, &["events", "asks"])["events"].as_array().map_or(0, Vec::len),
        events,
        "no agent was started"
    );
}

// proves: SP-89, SP-90, SP-91, SP-93
#[test]
fn another_answer_to_the_same_question_is_carried_out() {
    let repo = repo();
    assert_eq!(agent(&repo, "asks", ASKS).code, Some(4));
    for (approved, word) in [("false", "no"), ("true", "yes")] {
        let approved = format!("approved={approved}");
        let out = lattice(&repo).args(["resume", "asks", "--input", &approved, "--input", "comments=[\"c\"]"]).run();
        assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "asks"));
        assert_eq!(repo.git(&["log", "--format=%s", "a..sprite/asks"]), format!("{word}\nasked"));
    }
    let log = log(&repo, "asks");
    let answer = &log[log.find("{\n").expect("resume.json")..];
    let answer: Value = serde_json::Deserializer::from_str(answer).into_iter().next().expect("JSON").expect("JSON");
    let keys: Vec<_> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["checkpoint_id", "context", "inputs", "work_item_id"]);
    assert_eq!(answer["inputs"], json!({ "approved": false, "comments": ["c"] }));
    assert_eq!(answer["context"], json!({}));
}

// proves: SP-48, SP-55
#[test]
fn ends_mean_what_the_agent_said_and_else_what_its_exit_code_says() {
    let repo = repo();
    let cases = [
        ("plain", "true", 0, "completed"),
        ("bad", "exit 3", 1, "failed"),
        ("error", "lattice emit error 'no compiler'", 1, "failed"),
        ("failure", "lattice emit completed --status failure --summary s", 1, "failed"),
        ("forged", "lattice emit waiting --reason r --checkpoint chk_none", 0, "completed"),
        (
            "stdout",
            "echo \"LATTICE_EVENT $(lattice emit completed --status failure | tail -c +15)\" >/dev/null; : > /tmp/x",
            1,
            "failed",
        ),
    ];
    for (name, script, code, state) in cases {
        let out = agent(&repo, name, script);
        assert_eq!(out.code, Some(code), "{name}: {}", out.snapshot());
        assert_eq!(look(&repo, &["show", name])["sprite"]["state"], json!(state), "{name}");
    }
    assert_eq!(rules(&repo, "forged"), ["waiting-without-checkpoint"]);
    assert!(look(&repo, &["show", "error"])["sprite"]["outcome"] == json!("no compiler"));
    let missing = lattice(&repo).args(["run", "x", "--name", "missing", "--", "no-such-program"]).fails(1);
    assert!(missing.stderr.contains("no-such-program"), "{}", missing.snapshot());
    lattice(&repo).args(["run", "x", "--name", "plain", "--", "true"]).fails(1);
    lattice(&repo).args(["run", "x", "--parent", "nowhere", "--", "true"]).fails(1);
    lattice(&repo).args(["resume", "plain"]).fails(1);
}

// proves partly: SP-7 — through `--follow`
#[test]
fn a_supervisor_that_is_killed_loses_no_event_and_leaves_no_process() {
    let repo = repo();
    let script = "lattice emit info one; lattice checkpoint; echo ready; \
        while [ ! -e stop ]; do lattice emit info more >/dev/null; done";
    let running = lattice(&repo).args(["run", "x", "--name", "long", "--", "bash", "-c", script]).spawn();
    let seen = || look(&repo, &["events", "long"])["events"].as_array().map_or(0, Vec::len);
    while lattice(&repo).args(["sprite", "show", "long"]).run().code != Some(0) || seen() < 3 {
        std::thread::yield_now();
    }
    assert_eq!(look(&repo, &["show", "long"])["sprite"]["state"], json!("running"), "events show while it runs");
    running.kill();
    running.wait();
    let shown = look(&repo, &["show", "long"]);
    assert_eq!(shown["sprite"]["state"], json!("interrupted"));
    let outbox = repo.dir().join(".git/lattice/sprites/long/mail/outbox.jsonl");
    let said = std::fs::read_to_string(outbox).expect("the outbox").lines().count();
    assert_eq!(seen(), said, "what the outbox has is known, each once");
    let stopped = lattice(&repo).args(["sprite", "stop", "long"]).json();
    validated(&repo, &stopped);
    lattice(&repo).args(["sprite", "destroy", "long"]).ok();
    assert!(!repo.dir().join(".git/lattice/sprites/long").exists());
    assert_eq!(repo.git(&["for-each-ref", "refs/lattice/sprites"]), "", "its base is let go");
}

#[test]
fn what_a_sprite_needs_survives_a_collection_of_garbage_on_the_host() {
    let repo = repo();
    let script = "lattice checkpoint; while [ ! -e /workspace/.lattice/go ]; do sleep 0.05; done; \
        git log --stat > /dev/null && git fsck --connectivity-only && echo sound";
    let running =
        lattice(&repo).args(["run", "x", "--name", "gc", "--parent", "a", "--", "bash", "-c", script]).spawn();
    while lattice(&repo).args(["sprite", "diff", "gc"]).run().code != Some(0) {
        std::thread::yield_now();
    }
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["branch", "-D", "a"]);
    repo.git(&["update-ref", "-d", "refs/branch-metadata/a"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "--quiet", "--prune=now"]);
    std::fs::write(repo.dir().join(".git/lattice/sprites/gc/mail/go"), "").expect("a file");
    running.wait();
    assert!(log(&repo, "gc").contains("sound"), "{}", log(&repo, "gc"));
}

#[test]
fn each_branch_of_a_sprite_lands_under_a_name_that_nobody_has_and_none_whose_parent_is_not_decided() {
    let repo = repo();
    let taken = repo.git(&["rev-parse", "main"]);
    repo.git(&["branch", "taken", "main"]);
    let script = "git switch -q -c taken; echo x > x; git add -A; git commit --quiet -m taken
        git switch -q -c free; echo y > y; git add -A; git commit --quiet -m free";
    let out = agent(&repo, "names", script);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "names"));
    assert_eq!(repo.git(&["rev-parse", "taken"]), taken, "what is yours stays where it is");
    assert_eq!(repo.metadata("sprite-names/taken")["parent"]["name"], json!("a"));
    assert_eq!(repo.metadata("free")["parent"]["name"], json!("sprite-names/taken"));
    let refs = repo.git(&["for-each-ref", "refs/heads"]);
    let script = "for side in left right; do git switch -q -c $side sprite/merged; echo x > $side; git add -A
        git commit --quiet -m $side; done; git switch -q -c top left; git merge --quiet --no-edit right";
    let merged = agent(&repo, "merged", script);
    assert_eq!(merged.code, Some(1), "{}", merged.snapshot());
    assert!(merged.stderr.contains("`top` could stand on any of: left, right"), "{}", merged.snapshot());
    assert_eq!(repo.git(&["for-each-ref", "refs/heads"]), refs, "nothing is guessed");
    lattice(&repo).arg("verify").ok();
}
