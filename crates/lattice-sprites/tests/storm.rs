//! Many events, cut anywhere, in another order on each side, while their reader is killed again and again.
//!
//! The reader is a process of its own, so that a kill is one: this test starts itself as its child. The suite runs a
//! small draw; `cargo xtask bench protocol` runs the large one.

#![expect(clippy::disallowed_methods, reason = "tests write files, start programs and read their environment")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lattice_sprites::merge::Identity;
use lattice_sprites::store::{Ending, NewSprite, Recorder, Store};

const AT: &str = "2026-01-15T10:30:00Z";
const FOLDER: &str = "LATTICE_STORM_FOLDER";

/// A small generator, so that a failing draw is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("it is small")
    }
}

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Many are equal: they count as often as they were said.
fn event(number: usize, kinds: usize) -> String {
    let message = number % kinds;
    format!(
        r#"{{"protocol_version":"v1","event_type":"INFO","sprite_id":"s1","work_item_id":"issue-17","timestamp":"{AT}","payload":{{"message":"m{message}"}}}}"#
    )
}

fn prepare(folder: &Path) {
    let mut store = Store::open(&folder.join("sprites.db")).expect("a store");
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
    store.begin_session(sprite, None, AT).expect("a session");
    File::create(folder.join("outbox.jsonl")).expect("an outbox");
}

/// The reader: what comes on stdin is the agent's stdout. A part of the test below, and nothing by itself.
#[test]
fn reader() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else { return };
    let mut store = Store::open(&folder.join("sprites.db")).expect("the store opens");
    let sprite = store.sprite("s1").expect("the sprite").key;
    let session = store.last_session(sprite).expect("a store").expect("a session");
    let identity = Identity { sprite_id: "s1".to_owned(), work_item_id: "issue-17".to_owned() };
    let outbox = folder.join("outbox.jsonl");
    let (mut recorder, _) = Recorder::open(&mut store, sprite, session, identity, &outbox).expect("a recorder");
    let mut stdin = std::io::stdin().lock();
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = stdin.read(&mut bytes).expect("stdin is read");
        if count == 0 {
            break;
        }
        recorder.stdout(&mut store, &bytes[..count], AT).expect("stdout is stored");
        recorder.outbox(&mut store, AT).expect("the outbox is read");
    }
    recorder.finish(&mut store, Ending::CutOff, AT).expect("the session ends");
}

fn start(folder: &Path) -> Child {
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", "reader", "--nocapture", "--quiet"]).env(FOLDER, folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// The lines as the outbox gets them: neighbours change places, and some come twice.
fn outbox_lines(said: &[String], dice: &mut Dice) -> Vec<String> {
    let mut lines = said.to_vec();
    for window in lines.chunks_mut(64) {
        for at in (1..window.len()).rev() {
            window.swap(at, dice.roll(at + 1));
        }
    }
    let mut twice: Vec<String> = Vec::new();
    let mut written = Vec::with_capacity(lines.len() + lines.len() / 50);
    for line in lines {
        if dice.roll(100) == 0 {
            twice.push(line.clone());
        }
        written.push(line);
        if dice.roll(100) == 0 {
            written.extend(twice.pop());
        }
    }
    written
}

fn counts<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    lines.for_each(|line| *counts.entry(line).or_insert(0) += 1);
    counts
}

// proves: SP-8, SP-11, SP-82
#[test]
fn nothing_is_lost_or_doubled_while_the_reader_is_killed_again_and_again() {
    let (events, kills) = (setting("LATTICE_STORM_EVENTS", 8_000), setting("LATTICE_STORM_KILLS", 8));
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    let mut dice = Dice(0x5eed_1234_5678);
    let said: Vec<String> = (0..events).map(|number| event(number, events / 2 + 1)).collect();
    let lines = outbox_lines(&said, &mut dice);
    let stdout: Vec<u8> =
        said.iter().flat_map(|line| format!("some output\nLATTICE_EVENT {line}\n").into_bytes()).collect();
    let written: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let mut outbox = File::options().append(true).open(folder.path().join("outbox.jsonl")).expect("the outbox");
    let (mut read, mut appended, mut killed) = (0, 0, 0);
    let mut reader = start(folder.path());
    let most = (stdout.len() / (kills + 1)).max(1);
    while killed < kills {
        // What stdout carried to a reader that is killed is gone; the outbox may end in the middle of a line.
        let mut room = dice.roll(most);
        while room > 0 && read < stdout.len() {
            let piece = (1 + dice.roll(20_000)).min(room).min(stdout.len() - read);
            let pipe = reader.stdin.as_mut().expect("it has a stdin");
            pipe.write_all(&stdout[read..read + piece]).expect("the reader lives");
            (read, room) = (read + piece, room - piece);
            let until = written.len() * read / stdout.len();
            let more = (until.saturating_sub(appended) + dice.roll(500)).min(written.len() - appended);
            outbox.write_all(&written[appended..appended + more]).expect("the outbox grows");
            appended += more;
        }
        reader.kill().expect("it can be killed");
        reader.wait().expect("it ends");
        killed += 1;
        reader = start(folder.path());
    }
    outbox.write_all(&written[appended..]).expect("the outbox grows");
    let mut pipe = reader.stdin.take().expect("it has a stdin");
    for piece in stdout[read..].chunks(7_001) {
        pipe.write_all(piece).expect("the reader lives");
    }
    drop(pipe);
    assert!(reader.wait().expect("it ends").success(), "the last reader ends well");
    let store = Store::open(&folder.path().join("sprites.db")).expect("the store opens");
    let sprite = store.sprite("s1").expect("the sprite").key;
    let found = store.events(sprite, 0, u64::MAX).expect("events");
    let messages: Vec<String> =
        found.iter().map(|row| row.envelope["payload"]["message"].as_str().unwrap_or("?").to_owned()).collect();
    let expected: Vec<String> = lines
        .iter()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("an event");
            event["payload"]["message"].as_str().expect("a message").to_owned()
        })
        .collect();
    let (found, expected) = (counts(messages.iter().map(String::as_str)), counts(expected.iter().map(String::as_str)));
    let difference = |one: &BTreeMap<&str, usize>, other: &BTreeMap<&str, usize>| -> usize {
        one.iter().map(|(key, count)| count.saturating_sub(other.get(key).copied().unwrap_or(0))).sum()
    };
    let (lost, doubled) = (difference(&expected, &found), difference(&found, &expected));
    println!("{} events, {killed} kills: {lost} lost, {doubled} doubled", lines.len());
    assert_eq!((lost, doubled), (0, 0), "lost and doubled");
}
