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

/// Writes one number after another to three files in turn, without pause: through an open file, a memory map, and a working
/// directory that it keeps. Meanwhile a hundred checkpoints are asked for.
const WRITES: &str = r"
import mmap, os, signal, socket
os.mkdir('kept')
for name in ('open', 'mapped', 'kept/relative'):
    with open(name, 'wb') as file: file.write(b'%08d' % 0)
writer = os.fork()
if writer == 0:
    held = os.open('open', os.O_RDWR)
    shared = mmap.mmap(os.open('mapped', os.O_RDWR), 8)
    os.chdir('kept')
    number = 0
    while True:
        number += 1
        text = b'%08d' % number
        os.pwrite(held, text, 0)
        shared[0:8] = text
        file = os.open('relative', os.O_WRONLY)
        os.pwrite(file, text, 0)
        os.close(file)
for _ in range(100):
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect('.lattice/control.sock')
        print(asked.makefile().readline().strip(), flush=True)
os.kill(writer, signal.SIGKILL)
";

#[test]
fn what_is_written_after_a_checkpoint_is_never_in_it() {
    let repo = TestRepo::draw("main*");
    let out = lattice(&repo).args(["run", "x", "--name", "writer", "--", "python3", "-c", WRITES]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "writer"));
    let packs = repo.dir().join(".git/lattice/sprites/writer/packs");
    let folder = tempfile::tempdir().expect("a folder");
    let mut last = 0;
    let said = log(&repo, "writer");
    let checkpoints: Vec<_> = said.lines().filter(|line| line.starts_with("chk_")).collect();
    assert_eq!(checkpoints.len(), 100, "{said}");
    for id in &checkpoints {
        let (workspace, home) = (folder.path().join(id), folder.path().join(format!("{id}-home")));
        [&workspace, &home].iter().for_each(|folder| std::fs::create_dir(folder).expect("a folder"));
        let checkpoint = lattice_sprites::checkpoint::Checkpoint::open(&packs, id).expect("it is there");
        checkpoint.restore((&workspace, &home), None).expect("it is restored");
        let number = |name: &str| -> u64 {
            std::fs::read_to_string(workspace.join(name)).expect("a file").parse().expect("a number")
        };
        let (open, mapped, relative) = (number("open"), number("mapped"), number("kept/relative"));
        // Each number goes to them in this order, so in one moment no two of them are more than one apart.
        let is_one_moment = open >= mapped && mapped >= relative && relative + 1 >= open;
        assert!(is_one_moment, "{id}: {open}, {mapped}, {relative}");
        assert!(open >= last, "{id} is not older than the one before");
        last = open;
    }
    assert!(last > 100, "it wrote all the time");
}

#[test]
fn nobody_changes_the_files_of_a_sprite_while_another_does_or_its_sandbox_is_about_to_end() {
    let repo = TestRepo::draw("main*");
    assert_eq!(agent(&repo, "one", "echo 1 > f; lattice checkpoint; echo 2 > f").code, Some(0));
    let id = look(&repo, &["show", "one"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    let place = repo.dir().join(".git/lattice/sprites/one");
    let held = |name: &str| {
        let file = std::fs::File::options().append(true).open(place.join(name)).expect("it is there");
        file.lock_shared().expect("nobody else has it");
        file
    };
    let file = held("lock");
    for args in [&["restore", "one", &id][..], &["destroy", "one"]] {
        let refused = lattice(&repo).arg("sprite").args(args).fails(1);
        assert!(refused.stderr.contains("another lattice"), "{}", refused.snapshot());
    }
    assert_eq!(std::fs::read_to_string(place.join("upper/f")).expect("a file"), "2\n");
    drop(file);
    let file = held("alive");
    let waiting = lattice(&repo).args(["sprite", "restore", "one", &id]).spawn();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(std::fs::read_to_string(place.join("upper/f")).expect("a file"), "2\n", "it waits");
    drop(file);
    assert_eq!(waiting.wait().code, Some(0));
    assert_eq!(std::fs::read_to_string(place.join("upper/f")).expect("a file"), "1\n");
}
