//! Tests of the store: both sides of sessions go in, one history comes out, whatever happens to the reader.
#![expect(clippy::disallowed_methods, reason = "tests write files as they need")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Effect, Ending, NewSprite, Recorder, SessionKey, SpriteKey, Store, StoreError};
use crate::merge::Identity;
use crate::protocol::{EventType, PREFIX};

const AT: &str = "2026-01-15T10:30:00Z";

struct World {
    _folder: tempfile::TempDir,
    path: PathBuf,
    outbox: PathBuf,
    sprite: SpriteKey,
    session: SessionKey,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sprites.db");
        let mut store = Store::open(&path).expect("a store");
        let text = |text: &str| text.to_owned();
        let new = NewSprite {
            name: text("s1"),
            work_item_id: text("issue-17"),
            agent: text("shell"),
            task: text("task"),
            branch: text("sprite/s1"),
            parent: text("main"),
            base: text("0"),
            run: text("{}"),
            started_at: text(AT),
        };
        let sprite = store.add_sprite(&new).expect("a sprite");
        assert!(matches!(store.add_sprite(&new), Err(StoreError::NameTaken(_))), "a name is used once");
        let session = store.begin_session(sprite, None, AT).expect("a session").expect("a new one");
        Self { outbox: folder.path().join("outbox.jsonl"), _folder: folder, path, sprite, session }
    }

    fn open(&self) -> (Store, Recorder, Vec<Effect>) {
        let mut store = Store::open(&self.path).expect("the store opens");
        let identity = Identity { sprite_id: "s1".to_owned(), work_item_id: "issue-17".to_owned() };
        let (recorder, effects) =
            Recorder::open(&mut store, self.sprite, self.session, identity, &self.outbox).expect("a recorder");
        (store, recorder, effects)
    }

    fn append(&self, text: &str) {
        let mut file = fs::File::options().append(true).create(true).open(&self.outbox).expect("the outbox opens");
        file.write_all(text.as_bytes()).expect("it is written");
    }

    fn messages(&self, store: &Store) -> Vec<String> {
        let events = store.events(self.sprite, 0, u64::MAX).expect("events");
        events.iter().map(|row| row.envelope["payload"]["message"].as_str().unwrap_or("?").to_owned()).collect()
    }

    fn rules(&self, store: &Store) -> Vec<String> {
        store.violations(self.sprite).expect("violations").into_iter().map(|row| row.rule).collect()
    }
}

fn info(message: &str) -> String {
    line("INFO", json!({ "message": message }))
}

fn line(kind: &str, payload: serde_json::Value) -> String {
    let event = json!({ "protocol_version": "v1", "event_type": kind, "sprite_id": "s1", "work_item_id": "issue-17",
        "timestamp": AT, "payload": payload });
    format!("{event}\n")
}

fn printed(line: &str) -> Vec<u8> {
    [PREFIX, line.as_bytes()].concat()
}

fn counted(effects: &[Effect]) -> Vec<(u64, EventType)> {
    let counts = |effect: &Effect| match effect {
        Effect::Counts { seq, event } => Some((*seq, event.kind)),
        Effect::Seen { .. } | Effect::Found(_) => None,
    };
    effects.iter().filter_map(counts).collect()
}

/// A small generator, so that a failing case is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

// proves: SP-8, SP-11, SP-82
#[test]
fn nothing_is_lost_or_doubled_when_the_reader_dies_at_any_point() {
    let mut dice = Dice(0x5eed);
    for round in 0..1 {
        let world = World::new();
        // Many events are equal, and equal ones count as often as they were said.
        let mut said: Vec<String> = (0..4000).map(|number| info(&format!("m{}", number % 1500))).collect();
        let stdout: Vec<u8> = said.iter().flat_map(|line| printed(line)).collect();
        // What stdout had and the outbox has not read yet when a reader dies comes from the outbox again.
        let (mut read, mut written) = (0, 0);
        for _ in 0..200 {
            let (mut store, mut recorder, _) = world.open();
            for _ in 0..dice.roll(4) {
                let end = (written + dice.roll(40)).min(said.len());
                if dice.roll(7) == 0 && end > written + 1 {
                    said[written..end].reverse();
                }
                world.append(&said[written..end].concat());
                written = end;
                if dice.roll(2) == 0 {
                    recorder.outbox(&mut store, AT).expect("the outbox is read");
                }
                let piece = dice.roll(3000).min(stdout.len() - read);
                recorder.stdout(&mut store, &stdout[read..read + piece], AT).expect("stdout is stored");
                read += piece;
            }
            // The next reader begins in the middle of what this one left; stdout between them is lost.
        }
        world.append(&said[written..].concat());
        let (mut store, mut recorder, _) = world.open();
        recorder.finish(&mut store, Ending::CutOff, AT).expect("the session ends");
        let (mut found, mut expected) = (world.messages(&store), Vec::new());
        expected.extend((0..4000).map(|number| format!("m{}", number % 1500)));
        found.sort();
        expected.sort();
        assert!(found == expected, "round {round}: {} events instead of {}", found.len(), expected.len());
    }
}

// proves: SP-19, SP-84, SP-101
#[test]
fn a_changed_outbox_is_reported_and_what_was_known_stays() {
    let world = World::new();
    world.append(&[info("one"), info("two"), "{\"half\n".to_owned(), info("three")].concat());
    let (mut store, mut recorder, _) = world.open();
    recorder.outbox(&mut store, AT).expect("read");
    assert_eq!(world.messages(&store), ["one", "two", "three"], "a half line hides nothing");
    let damaged = store.violations(world.sprite).expect("violations");
    assert_eq!((damaged.len(), damaged[0].line, damaged[0].rule.as_str()), (1, Some(3), "not-json"));
    fs::write(&world.outbox, [info("ONE"), info("two")].concat()).expect("the agent rewrites it");
    recorder.outbox(&mut store, AT).expect("read");
    assert_eq!(world.messages(&store), ["one", "two", "three", "ONE"], "what was said first stays");
    // An edit far from the end is found when the session ends, by a reader that knows only the database.
    let long: String = (0..200).map(|number| info(&format!("n{number}"))).collect();
    world.append(&long);
    recorder.outbox(&mut store, AT).expect("read");
    let edited = fs::read_to_string(&world.outbox).expect("the outbox").replacen("two", "TWO", 1);
    fs::write(&world.outbox, edited).expect("the agent edits it");
    let (mut store, mut recorder, effects) = world.open();
    assert!(matches!(&effects[..], [Effect::Found(_)]), "{effects:?}");
    recorder.finish(&mut store, Ending::CutOff, AT).expect("the session ends");
    let messages = world.messages(&store);
    assert_eq!(messages.len(), 205, "the edited line came on top, nothing twice");
    assert_eq!(messages.last().map(String::as_str), Some("TWO"));
    fs::remove_file(&world.outbox).expect("the agent removes it");
    std::os::unix::fs::symlink("/etc/passwd", &world.outbox).expect("and puts a link there");
    recorder.outbox(&mut store, AT).expect("read");
    recorder.outbox(&mut store, AT).expect("read");
    let tampered = world.rules(&store).iter().filter(|rule| *rule == "outbox-tampered").count();
    assert_eq!(tampered, 3, "each change is reported once: {:?}", world.rules(&store));
    assert_eq!(world.messages(&store).len(), 205);
}

// proves: SP-20
// proves partly: SP-6 — the nine types through the program
#[test]
fn each_side_alone_is_reported_if_both_were_read_to_their_ends() {
    let world = World::new();
    let all: Vec<String> = (0..10_000).map(|number| info(&format!("m{number}"))).collect();
    let (mut store, mut recorder, _) = world.open();
    world.append(&all[1..].concat());
    let stdout: Vec<u8> = all[..9_999].iter().flat_map(|line| printed(line)).collect();
    recorder.stdout(&mut store, &stdout, AT).expect("stored");
    recorder.finish(&mut store, Ending::ReadToItsEnd, AT).expect("the session ends");
    let expected: Vec<_> = (0..10_000).map(|number| format!("m{number}")).collect();
    assert!(world.messages(&store) == expected, "all are there, in order");
    let details: Vec<_> =
        store.violations(world.sprite).expect("violations").into_iter().map(|row| row.detail).collect();
    assert_eq!(details, ["the event is missing in the outbox", "the event is missing on stdout"]);
    let sources: Vec<_> =
        store.events(world.sprite, 0, u64::MAX).expect("events").into_iter().map(|row| row.source).collect();
    assert_eq!((sources[0].as_str(), sources[5000].as_str(), sources[9999].as_str()), ("stdout", "both", "outbox"));
}

#[test]
fn an_event_counts_once_the_outbox_has_it() {
    let world = World::new();
    let (mut store, mut recorder, _) = world.open();
    let request = line("ACTION_REQUEST", json!({ "action": "NOTIFY_USER", "parameters": { "message": "m" } }));
    let effects = recorder.stdout(&mut store, &printed(&request), AT).expect("stored");
    assert_eq!(counted(&effects), [], "a test's output must not act");
    world.append(&request);
    let effects = recorder.outbox(&mut store, AT).expect("read");
    assert_eq!(counted(&effects), [(1, EventType::ActionRequest)]);
    let effects = recorder.stdout(&mut store, &printed(&info("a")), AT).expect("stored");
    assert_eq!(effects.len(), 1, "{effects:?}");
    let foreign = info("b").replace("s1", "s2");
    recorder.stdout(&mut store, &printed(&foreign), AT).expect("stored");
    assert_eq!(world.rules(&store), ["wrong-identity"], "who speaks is known by the channel");
}

// proves partly: SP-100 — stdout that is no event
#[test]
fn a_token_in_an_event_is_masked_and_reported() {
    let world = World::new();
    let token = format!("ghp_{}", "x9".repeat(18));
    world.append(&line("ARTIFACT", json!({ "kind": "file", "ref": token, "url": token, "metadata": { "t": token } })));
    let (mut store, mut recorder, _) = world.open();
    recorder.outbox(&mut store, AT).expect("read");
    drop((store, recorder));
    let (store, ..) = world.open();
    assert_eq!(world.rules(&store), ["secret-shown"]);
    assert_eq!(store.artifacts(world.sprite).expect("artifacts")[0].reference.as_deref(), Some("[masked]"));
    let held = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes.windows(40).any(|part| part == token.as_bytes()));
    assert!(!held(&world.path) && !held(&world.path.with_extension("db-wal")), "no byte of it is in the store");
}

#[test]
fn the_database_itself_refuses_to_change_events() {
    let world = World::new();
    world.append(&info("one"));
    let (mut store, mut recorder, _) = world.open();
    recorder.outbox(&mut store, AT).expect("read");
    for statement in ["UPDATE events SET json = '{}'", "DELETE FROM events", "DELETE FROM violations"] {
        store
            .db
            .execute("INSERT INTO violations (sprite, rule, weight, detail, at) VALUES (1, 'r', 'w', 'd', 'a')", [])
            .expect("added");
        let refused = store.db.execute(statement, []).expect_err("a refusal").to_string();
        assert!(refused.contains("append-only"), "{statement}: {refused}");
    }
    store.db.pragma_update(None, "user_version", 99).expect("a version of the future");
    assert!(matches!(Store::open(&world.path), Err(StoreError::TooNew { found: 99, .. })));
}

#[test]
fn a_store_that_many_make_and_look_for_at_once_is_made_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sprites.db");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || match number % 2 {
                    0 => drop(Store::open(path).expect("a store can be made")),
                    _ => drop(Store::look(path).expect("a store can be looked for")),
                });
            }
        });
        // Connections that close at the same moment may each leave SQLite's log to the other.
        let of_store = |name: &str| ["sprites.db", "sprites.db-wal", "sprites.db-shm"].contains(&name);
        let names = std::fs::read_dir(folder.path()).expect("the folder");
        let mut names = names.map(|entry| entry.expect("a file").file_name().into_string().expect("a name"));
        assert_eq!(names.find(|name| !of_store(name)), None, "no draft is left beside it");
    }
}
