//! Full and read-only disks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lattice_testkit::{Lattice, Setup, TestRepo, assert_same, power};

use crate::lattice;

/// A file system of its own in memory, which is small; none where nobody may mount.
struct SmallDisk {
    dir: PathBuf,
    /// Where mounting is started from.
    outside: TestRepo,
}

impl SmallDisk {
    #[track_caller]
    fn new() -> Option<Self> {
        if power::unavailable().is_some() {
            return None;
        }
        let outside = TestRepo::new();
        let dir = outside.sandbox().root().join("disk");
        std::fs::create_dir(&dir).expect("the sandbox can be written");
        let disk = Self { dir, outside };
        disk.mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"]);
        Some(disk)
    }

    #[track_caller]
    fn mount(&self, args: &[&str]) {
        Lattice::new("mount", &self.outside).args(args).arg(&self.dir).ok();
    }

    /// Fills the disk but for some bytes.
    fn fill_but(&self, free: usize) -> PathBuf {
        let path = self.dir.join("filler");
        let spare = self.dir.join("spare");
        std::fs::write(&spare, vec![1; free]).expect("there is that much space");
        let mut size = 4 << 20;
        while size > 0 {
            let mut content = std::fs::read(&path).unwrap_or_default();
            content.resize(content.len() + size, 1);
            // What did not fit is tried again in smaller pieces.
            if std::fs::write(&path, &content).is_err() {
                size /= 2;
            }
            if size < 2048 {
                break;
            }
        }
        std::fs::remove_file(spare).expect("it was just written");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Lattice::new("umount", &self.outside).arg("--lazy").arg(&self.dir).run();
    }
}

fn stack_at(dir: &Path) -> TestRepo {
    let repo = Setup::default().at(dir).draw("main <- api* <- ui");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("README", "edited\n");
    repo
}

#[test]
fn a_full_disk_costs_at_most_the_operation() {
    let mut failed = 0;
    for step in 0..16 {
        let Some(disk) = SmallDisk::new() else { return };
        let repo = stack_at(&disk.dir);
        let before = repo.state();
        let filler = disk.fill_but(step * 8192);
        let output = lattice(&repo).args(["modify", "-a"]).run();
        let in_progress = repo.op_state_path().exists();
        std::fs::remove_file(filler).expect("it was written");
        let context = format!("with {} free bytes: {}", step * 8192, output.snapshot());
        if output.code == Some(0) {
            assert!(!in_progress, "{context}");
            lattice(&repo).args(["verify", "--full"]).ok();
            continue;
        }
        failed += 1;
        assert_eq!(output.code, Some(1), "{context}");
        if in_progress {
            let aborted = lattice(&repo).arg("abort").run();
            assert_eq!(aborted.code, Some(0), "{context}\n{}", aborted.snapshot());
        }
        let left = before.differences(&repo.state());
        assert!(left.is_empty(), "{context}\n{}", left.join("\n"));
        repo.git(&["fsck", "--no-dangling"]);
        lattice(&repo).args(["modify", "-a"]).ok();
    }
    assert!(failed > 2, "the disk was full only {failed} times");
}

#[test]
fn a_read_only_disk_can_be_read_and_nothing_else() {
    let Some(disk) = SmallDisk::new() else { return };
    let repo = stack_at(&disk.dir);
    lattice(&repo).args(["freeze", "ui"]).ok();
    repo.git(&["update-ref", "refs/heads/ui", "main"]);
    disk.mount(&["-o", "remount,ro"]);
    let before = repo.state();
    lattice(&repo).arg("log").ok();
    for args in [&["modify", "-a"][..], &["freeze", "api"], &["restack"], &["undo"]] {
        let output = lattice(&repo).args(args).fails(1);
        assert_eq!(output.stdout, "", "{args:?} claims nothing");
    }
    assert_same(&before, &repo.state());
}

/// The folders below `objects` that a repository has.
fn object_folders(repo: &TestRepo) -> BTreeSet<String> {
    let entries = std::fs::read_dir(repo.dir().join(".git/objects")).expect("every repository has objects");
    entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn objects_that_git_could_not_put_in_their_place_are_missed_before_a_ref_names_them() {
    let modify = ["modify", "-m", "Another message"];
    let repo = || TestRepo::draw("main <- api* <- ui");
    let whole = repo();
    let before = object_folders(&whole);
    lattice(&whole).args(modify).ok();
    // Git needs no file for the empty tree, which is in this one.
    let made: Vec<_> = object_folders(&whole).difference(&before).filter(|folder| *folder != "4b").cloned().collect();
    assert!(made.len() > 2, "{made:?}");
    let mut refused = 0;
    for folder in made {
        let repo = repo();
        let before = repo.state();
        // Nobody can make a folder there, and git does not say so.
        let place = repo.dir().join(".git/objects").join(&folder);
        std::fs::write(&place, "").expect("the folder is ours");
        let output = lattice(&repo).args(modify).run();
        std::fs::remove_file(place).expect("it was just written");
        assert!(!repo.op_state_path().exists(), "{}", output.snapshot());
        // Records have another id each time, so not every folder is needed twice.
        if output.code != Some(0) {
            refused += 1;
            assert_same(&before, &repo.state());
            lattice(&repo).args(modify).ok();
        }
        repo.git(&["fsck", "--no-dangling"]);
    }
    assert!(refused > 1, "only {refused} objects were missed");
}
