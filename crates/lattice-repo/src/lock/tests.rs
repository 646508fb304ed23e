//! Writers wait in line.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use lattice_model::time::Timestamp;

use super::queue::Ticket;
use super::{Lock, LockError, LockHolder};

const PATIENCE_MS: u64 = 60_000;

/// A folder that is gone when the test is.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn lock(&self) -> PathBuf {
        self.0.path().join("lock")
    }

    fn line(&self) -> PathBuf {
        self.0.path().join("lock.queue")
    }

    fn waiting(&self) -> usize {
        let entries = std::fs::read_dir(self.line()).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u64>().is_ok()).count()
    }
}

fn who(pid: u32) -> LockHolder {
    LockHolder { pid, command: "test".to_owned(), since: Timestamp::from_unix(0) }
}

#[test]
fn writers_get_the_lock_in_the_order_in_which_they_came() {
    let folder = Folder::new();
    let served = Mutex::new(Vec::new());
    let first = Lock::acquire(&folder.lock(), &who(0), 0).expect("nobody has it");
    thread::scope(|scope| {
        for number in 1..=8 {
            let (path, served) = (folder.lock(), &served);
            scope.spawn(move || {
                let lock = Lock::acquire(&path, &who(number), PATIENCE_MS).expect("their turn comes");
                served.lock().expect("nobody panics with it").push(number);
                drop(lock);
            });
            while folder.waiting() < number as usize {
                thread::yield_now();
            }
        }
        let late = Lock::acquire(&folder.lock(), &who(99), 0);
        assert!(matches!(late, Err(LockError::Held { holder: Some(holder), .. }) if holder == who(0)));
        drop(first);
    });
    assert_eq!(served.into_inner().expect("nobody panicked"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(folder.waiting(), 0, "nobody is left in the line");
}

#[test]
fn those_who_died_in_the_line_keep_nobody_waiting() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.line()).expect("a folder");
    drop(std::fs::File::create(folder.line().join("1")).expect("what a dead process leaves"));
    Lock::acquire(&folder.lock(), &who(1), 0).expect("nobody is alive before us");
    assert_eq!(folder.waiting(), 0);
}

#[test]
fn a_free_lock_is_not_taken_from_under_those_who_wait_for_it_and_they_are_named() {
    let folder = Folder::new();
    let ticket = Ticket::take(&folder.line(), &who(7)).expect("a place in the line");
    let refused = Lock::acquire(&folder.lock(), &who(8), 0);
    assert!(matches!(refused, Err(LockError::Held { holder: Some(holder), .. }) if holder == who(7)));
    drop(ticket);
    Lock::acquire(&folder.lock(), &who(8), 0).expect("the line is empty");
}
