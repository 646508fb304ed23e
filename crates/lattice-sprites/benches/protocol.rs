//! How fast events are read and stored, as ratios to plain ways of doing the same.
//!
//! Prints one line per figure, `name<TAB>median in microseconds<TAB>bytes or rows`; `cargo xtask bench protocol` makes
//! a table of them.

#![expect(clippy::print_stdout, reason = "its output is its result")]
#![expect(clippy::disallowed_methods, reason = "a benchmark writes files and starts programs")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lattice_sprites::merge::Identity;
use lattice_sprites::protocol::{Line, Lines, PREFIX, read_event};
use lattice_sprites::store::{NewSprite, Recorder, Store};
use rusqlite::Connection;

const AT: &str = "2026-01-15T10:30:00Z";
const ROUNDS: usize = 7;
const LINES: usize = 400_000;
const EVENTS: usize = 50_000;
/// Bytes that a supervisor hands over at once.
const PIECE: usize = 64 << 10;
const INSERT: &str =
    "INSERT INTO events (sprite, session, seq, kind, side, key, json) VALUES (1, 1, ?1, 'INFO', 'stdout', ?2, ?3)";

fn event(number: usize) -> String {
    format!(
        r#"{{"protocol_version":"v1","event_type":"INFO","sprite_id":"s1","work_item_id":"issue-17","timestamp":"{AT}","payload":{{"message":"step {number} of many","kind":"progress","metadata":{{"percent":{}}}}}}}"#,
        number % 100
    )
}

/// What an agent prints: one line of ten is an event.
fn transcript() -> (Vec<u8>, Vec<String>) {
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    for number in 0..LINES {
        if number % 10 == 0 {
            let event = event(number);
            bytes.extend_from_slice(PREFIX);
            bytes.extend_from_slice(event.as_bytes());
            events.push(event);
        } else {
            bytes.extend_from_slice(
                format!("   Compiling crate-{number} v0.1.{} (/workspace/crates/x)", number % 50).as_bytes(),
            );
        }
        bytes.push(b'\n');
    }
    (bytes, events)
}

/// The median of several rounds, all contestants in turns.
fn in_turns(contestants: &mut [(&str, u64, Box<dyn FnMut() + '_>)]) {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); contestants.len()];
    for round in 0..=ROUNDS {
        for ((_, _, run), times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            run();
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    for ((name, amount, _), mut times) in contestants.iter().zip(times) {
        times.sort();
        println!("{name}\t{}\t{amount}", times[times.len() / 2].as_micros());
    }
}

fn parse(bytes: &[u8]) -> usize {
    let mut lines = Lines::stdout();
    let mut found = 0;
    for piece in bytes.chunks(PIECE) {
        lines.feed(piece, |_, line| {
            if let Line::Event(line) = line
                && let Ok(event) = read_event(line)
            {
                black_box(event);
                found += 1;
            }
        });
    }
    found
}

fn parsing(folder: &Path) {
    let (bytes, events) = transcript();
    let file = folder.join("transcript");
    fs::write(&file, &bytes).expect("a file");
    let size = bytes.len() as u64;
    let event_bytes: u64 = events.iter().map(|event| event.len() as u64).sum();
    in_turns(&mut [
        ("parser", size, Box::new(|| assert_eq!(parse(&bytes), events.len(), "every event is found"))),
        ("wc -l", size, Box::new(|| drop(Command::new("wc").arg("-l").arg(&file).output().expect("wc starts")))),
        (
            "serde_json",
            event_bytes,
            Box::new(|| {
                for event in &events {
                    black_box(serde_json::from_str::<serde_json::Value>(event).expect("an event"));
                }
            }),
        ),
    ]);
}

/// A new store with one sprite and one session; every round has its own.
fn store(folder: &Path, round: &mut usize) -> (Store, Recorder) {
    *round += 1;
    let (path, outbox) = (folder.join(format!("{round}.db")), folder.join(format!("{round}.jsonl")));
    fs::write(&outbox, "").expect("an outbox");
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
    let session = store.begin_session(sprite, None, AT).expect("a store").expect("a session");
    let identity = Identity { sprite_id: text("s1"), work_item_id: text("issue-17") };
    let (recorder, _) = Recorder::open(&mut store, sprite, session, identity, &outbox).expect("a recorder");
    (store, recorder)
}

fn ingestion(folder: &Path) {
    let events: Vec<String> = (0..EVENTS).map(event).collect();
    let stdout: Vec<u8> = events.iter().flat_map(|event| format!("LATTICE_EVENT {event}\n").into_bytes()).collect();
    let (mut round, mut plain) = (0, 0);
    let per_piece = EVENTS * PIECE / stdout.len();
    in_turns(&mut [
        (
            "ingestion",
            EVENTS as u64,
            Box::new(|| {
                let (mut store, mut recorder) = store(folder, &mut round);
                for piece in stdout.chunks(PIECE) {
                    recorder.stdout(&mut store, piece, AT).expect("it is stored");
                }
            }),
        ),
        (
            "plain SQLite",
            EVENTS as u64,
            Box::new(|| {
                plain += 1;
                let mut db = Connection::open(folder.join(format!("plain{plain}.db"))).expect("a database");
                db.execute_batch(
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE events (id INTEGER PRIMARY KEY, sprite \
                     INTEGER NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, side TEXT NOT \
                     NULL, key BLOB NOT NULL, json TEXT NOT NULL, UNIQUE (sprite, seq));",
                )
                .expect("a table");
                for (piece, lines) in events.chunks(per_piece).enumerate() {
                    let transaction = db.transaction().expect("a transaction");
                    let mut insert = transaction.prepare_cached(INSERT).expect("SQL");
                    for (at, line) in lines.iter().enumerate() {
                        insert.execute((piece * per_piece + at, [7_u8; 32], line)).expect("a row");
                    }
                    drop(insert);
                    transaction.commit().expect("it is durable");
                }
            }),
        ),
    ]);
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    parsing(folder.path());
    ingestion(folder.path());
}
