//! Checkpoints through the program: what they hold besides the files, and what they cost.

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::{agent, lattice, log, look, validated};

/// Makes a checkpoint before and after everything that it does.
const WORKS: &str = r#"
    set -e
    test "$(stat -c %s big)" = 1073741824
    lattice checkpoint > /dev/null
    lattice emit info "the cache is in src"
    echo small > small; lattice emit artifact --kind file --ref small
    lattice checkpoint > /dev/null; lattice checkpoint > /dev/null
    while [ ! -e .lattice/go ]; do sleep 0.05; done
"#;

// proves: SP-70, SP-71, SP-72
#[test]
fn a_checkpoint_of_a_gigabyte_holds_its_session_and_costs_what_changed() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "first", "true").code, Some(0));
    let base = repo.dir().join(".git/lattice/sprites/base").join(repo.git(&["rev-parse", "main"]));
    let big = std::fs::File::create(base.join("big")).expect("a file");
    big.set_len(1 << 30).expect("a gigabyte");
    let running =
        lattice(&repo).args(["run", "Do it", "--name", "one", "--no-collect", "--", "bash", "-c", WORKS]).spawn();
    let made = || look(&repo, &["show", "one"])["checkpoints"].as_array().cloned().expect("a list");
    while lattice(&repo).args(["sprite", "show", "one"]).run().code != Some(0) || made().len() < 3 {
        std::thread::yield_now();
    }
    let asked = lattice(&repo).args(["sprite", "checkpoint", "one"]).json();
    validated(&repo, &asked);
    assert!(asked["checkpoint"].as_str().is_some_and(|id| id.starts_with("chk_")), "{asked:#}");
    std::fs::write(repo.dir().join(".git/lattice/sprites/one/mail/go"), "").expect("a file");
    running.wait();
    assert_eq!(look(&repo, &["show", "one"])["sprite"]["state"], json!("completed"), "{}", log(&repo, "one"));

    let checkpoints = made();
    assert_eq!(checkpoints.len(), 4);
    for checkpoint in &checkpoints {
        let id = checkpoint["id"].as_str().expect("an id");
        let pack = repo.dir().join(format!(".git/lattice/sprites/one/packs/{id}.pack"));
        let size = std::fs::metadata(pack).expect("a pack").len();
        assert!(size < 1 << 20, "what did not change is not written: {size} bytes");
        assert!(checkpoint["bytes"].as_u64().is_some_and(|bytes| bytes <= size), "{checkpoint:#}");
        assert!(checkpoint["pause_us"].as_u64().is_some_and(|pause| pause > 0), "the report says how long it took");
    }
    let restored = |id: &serde_json::Value| {
        let out = lattice(&repo).args(["context", "session", "restore", id.as_str().expect("an id")]).ok();
        serde_json::from_str::<serde_json::Value>(&out.stdout).expect("a record")
    };
    let (early, late) = (restored(&checkpoints[0]["id"]), restored(&checkpoints[1]["id"]));
    assert_eq!(restored(&checkpoints[1]["session"]), late, "either finds the other");
    assert_eq!((&late["session_id"], &late["user_request"]), (&checkpoints[1]["session"], &json!("Do it")));
    assert_eq!((&early["artifacts"], &late["artifacts"][0]["path"]), (&json!([]), &json!("small")));
    assert_eq!(early["conversation_history"], json!([{ "role": "user", "content": "Do it" }]));
    assert_eq!(late["conversation_history"][1]["content"], json!("INFO: the cache is in src"));
    let unknown = lattice(&repo).args(["context", "session", "restore", "chk_none"]).fails(1);
    assert!(unknown.stderr.contains("there is no session `chk_none`"), "{}", unknown.snapshot());
}
