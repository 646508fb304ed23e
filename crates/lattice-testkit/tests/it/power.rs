//! A power cut loses what was not flushed and nothing else.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use lattice_testkit::power::{self, PowerDisk, Unavailable};
use lattice_testkit::{Lattice, Setup, TestRepo, assert_same};

/// A disk, or the proof that this machine really cannot have one.
#[track_caller]
fn disk() -> Option<PowerDisk> {
    let disk = PowerDisk::new();
    let uid = Lattice::new("id", &TestRepo::new()).arg("-u").ok().stdout;
    let reason = match (uid.trim(), may_mount(), Path::new("/dev/loop-control").exists()) {
        ("0", true, true) => None,
        ("0", true, false) => Some(Unavailable::NoLoopDevices),
        ("0", false, _) => Some(Unavailable::NoMountCapability),
        _ => Some(Unavailable::NotRoot),
    };
    assert_eq!(power::unavailable(), reason, "the reason is the one that a second look finds");
    assert_eq!(disk.is_none(), reason.is_some(), "a disk unless there is a reason");
    disk
}

/// Bit 21 of the effective capabilities is CAP_SYS_ADMIN.
fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells about processes");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("and about capabilities");
    let effective = u64::from_str_radix(effective.trim(), 16).expect("as a number");
    effective >> 21 & 1 == 1
}

fn write(path: &Path, content: &str) -> File {
    let mut file = File::create(path).expect("the disk can be written");
    file.write_all(content.as_bytes()).expect("the disk has space");
    file
}

/// The files of a disk as `name=content`.
fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the disk is mounted").flatten().filter(|entry| entry.path().is_file());
    let mut files: Vec<String> = entries
        .map(|entry| {
            let content = fs::read_to_string(entry.path()).expect("its files are text");
            format!("{}={content}", entry.file_name().display())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn only_what_was_flushed_survives() {
    let Some(mut disk) = disk() else { return };
    write(&disk.path().join("flushed"), "kept").sync_all().unwrap();
    write(&disk.path().join("unflushed"), "lost");
    assert_eq!(files(disk.path()), ["flushed=kept", "unflushed=lost"], "programs see both");
    let cut = disk.cut();
    assert_eq!(files(cut.path()), ["flushed=kept"], "the disk has one");
    drop(cut);
    assert_eq!(files(disk.path()), ["flushed=kept", "unflushed=lost"], "a copy does not disturb the disk");
    disk.commit_journal();
    let cut = disk.cut();
    assert_eq!(files(cut.path()), ["flushed=kept", "journal-commit=", "unflushed="], "a name, but no content");
    let path = disk.path().to_owned();
    disk.restart();
    assert_eq!(disk.path(), path, "the machine comes up with its disk in the same place");
    assert_eq!(files(disk.path()), ["flushed=kept", "journal-commit=", "unflushed="]);
}

#[test]
fn a_repository_on_the_disk_is_what_was_flushed_of_it() {
    let Some(mut disk) = disk() else { return };
    let repo = Setup::default().at(disk.path()).draw("main <- api*");
    Lattice::new("sync", &repo).args(["-f", "."]).ok();
    let flushed = repo.state();
    repo.commit_file("api.txt", "not flushed\n", "lost");
    repo.git(&["branch", "lost"]);
    assert_ne!(flushed, repo.state(), "programs see the new commit");
    disk.restart();
    assert_same(&flushed, &repo.state());
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn nothing_stays_mounted() {
    let Some(disk) = disk() else { return };
    let cut = disk.cut();
    let paths = [disk.path().to_owned(), cut.path().to_owned()];
    drop((disk, cut));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(paths.iter().all(|path| !mounts.contains(path.to_str().unwrap())), "{mounts}");
    assert!(paths.iter().all(|path| !path.exists()), "the files are gone too");
}
