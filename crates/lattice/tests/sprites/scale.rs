//! Many at once: sprites side by side, and the same answer from many sides.

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::{agent, lattice, look};

#[test]
fn sprites_that_run_at_once_lose_no_event_and_all_land() {
    let repo = TestRepo::draw("main*");
    let script =
        "for i in $(seq 10); do lattice emit info $i; done; echo $LATTICE_SPRITE_ID > f; git add f; git commit -qm f";
    let names: Vec<_> = (0..8).map(|number| format!("p{number}")).collect();
    let run = |name: &String| lattice(&repo).args(["run", "x", "--name", name, "--", "bash", "-c", script]).spawn();
    let running: Vec<_> = names.iter().map(run).collect();
    for one in running {
        one.wait();
    }
    let listed = look(&repo, &["list"]);
    for sprite in listed["sprites"].as_array().expect("a list") {
        assert_eq!((&sprite["state"], &sprite["events"]), (&json!("completed"), &json!(10)), "{sprite:#}");
    }
    let branches = repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/sprite"]);
    assert_eq!(branches.lines().count(), names.len());
    lattice(&repo).arg("verify").ok();
}

#[test]
fn the_same_answer_given_many_times_at_once_starts_the_agent_once() {
    let repo = TestRepo::draw("main*");
    let script = "if [ -e .lattice/resume.json ]; then lattice emit info resumed; exit 0; fi
        id=$(lattice checkpoint); lattice emit waiting --reason r --checkpoint $id --expect ok=boolean";
    assert_eq!(agent(&repo, "w", script).code, Some(4));
    let resume = || lattice(&repo).args(["resume", "w", "--input", "ok=true"]);
    let running: Vec<_> = (0..12).map(|_| resume().spawn()).collect();
    for one in running {
        one.wait();
    }
    for _ in 0..3 {
        assert_eq!(resume().json()["replay"], json!(true));
    }
    let events = look(&repo, &["events", "w"]);
    let resumed = events["events"].as_array().expect("a list").iter().filter(|e| e["payload"]["message"] == "resumed");
    assert_eq!(resumed.count(), 1, "{events:#}");
}
