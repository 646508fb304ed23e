//! Delivery: four steps in their order, all files or none, and no link is followed.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use lattice_context::bundle::{Bundle, deliver, is_replaceable};
use lattice_context::deliver::{Backend, DeliveryError, FileWriter, HostFolder};
use tempfile::TempDir;

use super::{MadeUp, issue, pull};

/// Writes to a folder, notes each call, and fails where it is told to.
struct Recording {
    folder: HostFolder,
    calls: Vec<String>,
    /// A call, how often it fails, and how.
    fails: Option<(&'static str, usize, io::ErrorKind)>,
    /// A file that vanishes before it is listed.
    loses: Option<&'static str>,
}

impl Recording {
    fn new(base: &Path) -> Self {
        let folder = HostFolder::at(base, Path::new("context"), None).expect("a folder");
        Self { folder, calls: Vec::new(), fails: None, loses: None }
    }

    fn note(&mut self, call: String) -> io::Result<()> {
        if let Some((on, times @ 1.., kind)) = &mut self.fails
            && *on == call
        {
            *times -= 1;
            return Err((*kind).into());
        }
        self.calls.push(call);
        Ok(())
    }
}

impl Backend for Recording {
    fn clear(&mut self) -> io::Result<()> {
        self.note("clear".to_owned())?;
        self.folder.clear()
    }

    fn create(&mut self, folders: &[&str]) -> io::Result<()> {
        self.note(format!("create {}", folders.join(" ")))?;
        self.folder.create(folders)
    }

    fn write(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        self.note(format!("write {path}"))?;
        self.folder.write(path, content)
    }

    fn list(&mut self) -> io::Result<BTreeMap<String, Option<u64>>> {
        self.note("verify".to_owned())?;
        let mut found = self.folder.list()?;
        self.loses.map(|path| found.remove(path));
        Ok(found)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.note("publish".to_owned())?;
        self.folder.publish()
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn to(base: &Path, bundle: &Bundle) -> Result<(), DeliveryError> {
    let mut folder = HostFolder::at(base, Path::new("context"), None).expect("a folder");
    deliver(bundle, &mut FileWriter::new(&mut folder))
}

/// All files below a folder with their contents.
fn files(base: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![base.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(base).expect("it is below").display().to_string();
            if path.is_dir() {
                waiting.push(path)
            } else {
                drop(found.insert(name, std::fs::read_to_string(&path).expect("a text")))
            }
        }
    }
    found
}

fn expected(bundle: &Bundle) -> BTreeMap<String, String> {
    let mut files: BTreeMap<_, _> = bundle.files.iter().map(|file| (file.path.clone(), file.content.clone())).collect();
    files.insert("manifest.json".to_owned(), bundle.manifest.render());
    files
}

// proves: CB-82, CB-83, CB-84, CB-86, CB-94
#[test]
fn a_delivery_clears_creates_writes_and_verifies_in_this_order() {
    let base = folder();
    let mut backend = Recording::new(base.path());
    let bundle = MadeUp::pull_request().gather(pull(1));
    deliver(&bundle, &mut FileWriter::new(&mut backend)).expect("it is delivered");
    let expected_calls = [
        "clear",
        "create linked",
        "write manifest.json",
        "write trigger.md",
        "write thread.md",
        "write diff_stats.md",
        "write reviews.md",
        "write linked/issue_2.md",
        "write linked/issue_3.md",
        "verify",
        "publish",
    ];
    assert_eq!(backend.calls, expected_calls);
    assert_eq!(files(&base.path().join("context")), expected(&bundle));
    let plain = MadeUp::with(&[(1, "")]).gather(issue(1));
    to(base.path(), &plain).expect("it is delivered");
    let linked = base.path().join("context/linked");
    assert_eq!(std::fs::read_dir(linked).expect("the folder is there").count(), 0);
}

// proves: CB-34, CB-81
#[test]
fn nothing_of_an_older_bundle_remains() {
    let base = folder();
    to(base.path(), &MadeUp::pull_request().gather(pull(1))).expect("it is delivered");
    std::fs::write(base.path().join("context/stray"), "x").expect("a file");
    let bundle = MadeUp::with(&[(1, "")]).gather(issue(1));
    to(base.path(), &bundle).expect("it is delivered");
    assert_eq!(
        files(base.path()),
        expected(&bundle).into_iter().map(|(path, text)| (format!("context/{path}"), text)).collect()
    );
}

// proves: CB-85
#[test]
fn a_delivery_that_fails_at_any_step_leaves_the_old_bundle() {
    let old = MadeUp::pull_request().gather(pull(1));
    let new = MadeUp::with(&[(1, "new")]).gather(issue(1));
    let steps = ["clear", "create linked", "write manifest.json", "write thread.md", "verify", "publish"];
    for step in steps {
        let base = folder();
        to(base.path(), &old).expect("it is delivered");
        let mut backend = Recording::new(base.path());
        backend.fails = Some((step, 1, io::ErrorKind::StorageFull));
        let error = deliver(&new, &mut FileWriter::new(&mut backend)).expect_err("the disk is full");
        assert!(matches!(error, DeliveryError::Step { .. }), "{step}: {error}");
        let last = backend.calls.last().cloned().unwrap_or_default();
        assert!(steps.iter().position(|s| *s == last) < steps.iter().position(|s| *s == step), "{step} was the last");
        assert_eq!(files(&base.path().join("context")), expected(&old), "{step}");
        drop(backend);
        assert_eq!(std::fs::read_dir(base.path()).expect("a folder").count(), 1, "{step}: nothing is left beside it");
    }
    let base = folder();
    to(base.path(), &old).expect("it is delivered");
    let mut backend = Recording { loses: Some("thread.md"), ..Recording::new(base.path()) };
    let error = deliver(&new, &mut FileWriter::new(&mut backend)).expect_err("a file is missing");
    assert_eq!(error.to_string(), "`thread.md` was written and is not there");
    assert_eq!(files(&base.path().join("context")), expected(&old));
}

// proves: CB-89
#[test]
fn what_fails_for_a_moment_is_tried_again_and_what_fails_for_good_is_not() {
    let bundle = MadeUp::with(&[(1, "")]).gather(issue(1));
    for kind in [io::ErrorKind::Interrupted, io::ErrorKind::TimedOut, io::ErrorKind::ResourceBusy] {
        let base = folder();
        let mut backend = Recording { fails: Some(("write trigger.md", 2, kind)), ..Recording::new(base.path()) };
        deliver(&bundle, &mut FileWriter::new(&mut backend)).expect("it works the third time");
        assert_eq!(files(&base.path().join("context")), expected(&bundle));
    }
    let base = folder();
    let denied = Some(("write trigger.md", 9, io::ErrorKind::PermissionDenied));
    let mut backend = Recording { fails: denied, ..Recording::new(base.path()) };
    deliver(&bundle, &mut FileWriter::new(&mut backend)).expect_err("it is not allowed");
    assert_eq!(backend.fails.map(|(_, left, _)| left), Some(8), "it was tried once");
}

#[test]
fn a_link_at_the_place_of_delivery_is_replaced_and_not_followed() {
    let base = folder();
    let elsewhere = folder();
    std::fs::write(elsewhere.path().join("precious"), "x").expect("a file");
    let bundle = MadeUp::with(&[(1, "")]).gather(issue(1));
    for planted in ["context", ".context.new"] {
        symlink(elsewhere.path(), base.path().join(planted)).expect("a link");
        to(base.path(), &bundle).expect("it is delivered");
        assert!(!base.path().join("context").is_symlink(), "{planted}");
        assert_eq!(files(elsewhere.path()).len(), 1, "{planted}: what the link led to is as it was");
        assert_eq!(files(&base.path().join("context")), expected(&bundle), "{planted}");
    }
    symlink(elsewhere.path(), base.path().join("above")).expect("a link");
    let through = HostFolder::at(base.path(), Path::new("above/context"), None);
    assert!(through.is_err(), "a parent that is a link is refused");
    assert_eq!(files(elsewhere.path()).len(), 1);
}

#[test]
fn only_an_older_bundle_may_be_replaced_unasked() {
    let base = folder();
    let bundle = MadeUp::pull_request().gather(pull(1));
    to(base.path(), &bundle).expect("it is delivered");
    let current = || HostFolder::at(base.path(), Path::new("context"), None).expect("a folder").current();
    assert!(is_replaceable(&current().expect("it can be listed")));
    std::fs::write(base.path().join("context/notes.txt"), "mine").expect("a file");
    assert!(!is_replaceable(&current().expect("it can be listed")));
    assert!(is_replaceable(&BTreeMap::new()));
}

#[test]
fn readers_see_one_bundle_or_the_other_while_they_are_exchanged() {
    let base = folder();
    let bundles = [MadeUp::with(&[(1, "one")]).gather(issue(1)), MadeUp::pull_request().gather(pull(1))];
    to(base.path(), &bundles[0]).expect("it is delivered");
    let wanted: Vec<_> = bundles.iter().map(|bundle| bundle.manifest.files.len()).collect();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 1..200 {
                to(base.path(), &bundles[at % 2]).expect("it is delivered");
            }
        });
        let mut read = 0;
        while !writer.is_finished() {
            // A reader that holds the folder open sees all of one bundle.
            let Ok(folder) = std::fs::File::open(base.path().join("context")) else { panic!("there is always one") };
            let below = |name: &str| format!("/proc/self/fd/{}/{name}", std::os::fd::AsRawFd::as_raw_fd(&folder));
            let Ok(text) = std::fs::read_to_string(below("manifest.json")) else { continue };
            let manifest: serde_json::Value = serde_json::from_str(&text).expect("a whole manifest");
            assert!(wanted.contains(&manifest["files"].as_array().expect("a list").len()));
            read += 1;
        }
        writer.join().expect("the writer ends");
        assert!(read > 0, "something was read");
    });
}
