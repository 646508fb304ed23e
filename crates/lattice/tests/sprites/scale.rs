//! Many at once: sprites side by side, and the same answer from many sides.

use lattice_testkit::TestRepo;
use serde_json::json;

use lattice_sprites::store::{CheckpointRow, NewSprite, SpriteState, Store};

use crate::{agent, lattice, look};

/// Makes a sprite that waits, as a run leaves it.
fn add_waiting(store: &mut Store, name: String, like: &lattice_sprites::store::Sprite) {
    let at = "2026-01-15T10:30:00Z";
    let new = NewSprite {
        work_item_id: format!("task-{name}"),
        agent: like.agent.clone(),
        task: like.task.clone(),
        branch: format!("sprite/{name}"),
        parent: like.parent.clone(),
        base: like.base.clone(),
        run: like.run.clone(),
        started_at: at.to_owned(),
        name,
    };
    let key = store.add_sprite(&new).expect("a sprite");
    store.begin_session(key, None, at).expect("a session").expect("a session");
    let row = CheckpointRow {
        id: format!("chk_{}", new.name),
        session: 0,
        previous: None,
        made_at: at.to_owned(),
        cost: None,
    };
    store.add_checkpoint(key, &row).expect("a checkpoint");
    store.set_state(key, SpriteState::Waiting, Some("r"), at).expect("a state");
}

/// Processes that are in a folder or have something of it open.
fn processes_in(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("a folder");
    let is_inside = |link: std::path::PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(&folder));
    let all = std::fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let found = all.filter(|process| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        is_inside(process.join("cwd")) || files.map(|file| file.path()).any(is_inside)
    });
    found.map(|process| process.display().to_string()).collect()
}

#[test]
fn sprites_that_wait_cost_no_process_however_many_there_are() {
    let repo = TestRepo::draw("main*");
    let waits = "id=$(lattice checkpoint); lattice emit waiting --reason r --checkpoint $id --expect ok=boolean";
    let running = lattice(&repo).args(["run", "x", "--name", "runs", "--", "bash", "-c"]);
    let running = running.arg("while [ ! -e .lattice/go ]; do sleep 0.05; done").spawn();
    assert_eq!(agent(&repo, "first", waits).code, Some(4));
    while look(&repo, &["show", "runs"])["sprite"]["state"] != json!("running") {
        std::thread::yield_now();
    }
    assert!(processes_in(repo.dir()).len() > 1, "one that runs has its supervisor and its sandbox");
    std::fs::write(repo.dir().join(".git/lattice/sprites/runs/mail/go"), "").expect("a file");
    running.wait();
    let mut store = Store::open(&lattice_sprites::store_path(&repo.common_dir())).expect("a store");
    let like = store.sprite("first").expect("a sprite");
    (1..500).for_each(|number| add_waiting(&mut store, format!("w{number}"), &like));
    drop(store);
    let listed = look(&repo, &["list"]);
    let waiting = listed["sprites"].as_array().expect("a list").iter().filter(|sprite| sprite["state"] == "waiting");
    assert_eq!(waiting.count(), 500);
    assert_eq!(processes_in(repo.dir()), [""; 0], "nothing runs for those that wait");
    let resumed = lattice(&repo).args(["resume", "first", "--input", "ok=true", "--json"]).run();
    assert_eq!(resumed.code, Some(4), "it can go on, and waits again: {}", resumed.snapshot());
}

/// How many there are: a share in every test run, all of them with `cargo xtask sprites` and `resumes`.
fn at_once(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn sprites_that_run_at_once_lose_no_event_and_all_land() {
    let repo = TestRepo::draw("main*");
    let script =
        "for i in $(seq 10); do lattice emit info $i; done; echo $LATTICE_SPRITE_ID > f; git add f; git commit -qm f";
    let names: Vec<_> = (0..at_once("LATTICE_SPRITES", 8)).map(|number| format!("p{number}")).collect();
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
    let running: Vec<_> = (0..at_once("LATTICE_RESUMES", 12)).map(|_| resume().spawn()).collect();
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
