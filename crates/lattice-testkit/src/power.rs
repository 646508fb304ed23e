//! A disk whose power can be cut: an ext4 image behind a loop device.
//!
//! What a program writes stays in the page cache of the mounted file system until it is flushed or written back to
//! the loop device, and only then lands in the image file. A copy of the image is therefore what a machine would
//! find after losing power at that moment. It is a lenient power cut: what has once reached the image survives, as on a
//! disk without a cache of its own.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities};
use tempfile::TempDir;

use crate::git_versions::program;

const SIZE: u64 = 64 << 20;
/// Nothing is committed or written back by a timer during a test, only by what the program asks for.
const MOUNT_OPTIONS: &str = "loop,commit=300";
const BLOCK: usize = 64 << 10;
static ZEROS: [u8; BLOCK] = [0; BLOCK];
/// Each attempt to copy a quiet image succeeds; this many failures mean that somebody keeps writing.
const COPY_ATTEMPTS: usize = 100;

/// A mounted file system of its own.
#[derive(Debug)]
pub struct PowerDisk {
    image: PathBuf,
    mounted: Mounted,
    cuts: usize,
    // Dropped last: the files are removed when nothing is mounted in between any more.
    temp: TempDir,
}

/// What was left on the disk after a power cut, mounted elsewhere.
#[derive(Debug)]
pub struct PowerCutImage {
    mounted: Mounted,
    _temp: TempDir,
}

/// Why this machine cannot mount images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Only root may mount.
    NotRoot,
    /// Root of a container, which may not mount either.
    NoMountCapability,
    /// The system has no loop devices.
    NoLoopDevices,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRoot => "power cuts need root",
            Self::NoMountCapability => "power cuts need the capability to mount (CAP_SYS_ADMIN)",
            Self::NoLoopDevices => "power cuts need loop devices (/dev/loop-control)",
        })
    }
}

/// Why power cuts are impossible here, if they are.
pub fn unavailable() -> Option<Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Some(Unavailable::NotRoot);
    }
    let sets = capabilities(None).expect("a process can read its own capabilities");
    if !sets.effective.contains(CapabilitySet::SYS_ADMIN) {
        return Some(Unavailable::NoMountCapability);
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some(Unavailable::NoLoopDevices);
    }
    None
}

impl PowerDisk {
    /// Makes and mounts an empty disk, or prints why that is impossible on this machine.
    ///
    /// Where it should be possible, a failure is a panic: a test must not be skipped by accident.
    #[track_caller]
    pub fn new() -> Option<Self> {
        if let Some(reason) = unavailable() {
            print_reason(reason);
            return None;
        }
        let temp = new_temp();
        let image = temp.path().join("disk.img");
        File::create_new(&image).and_then(|file| file.set_len(SIZE)).expect("an image can be made");
        // Nothing is left for the kernel to initialise in the background while the image is copied.
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q".as_ref(), "-E".as_ref(), eager.as_ref(), &image]);
        let mounted = Mounted::new(&image, &temp.path().join("disk"));
        // The empty file system is on the disk before the test begins.
        run("sync", &["-f".as_ref(), &mounted.dir]);
        Some(Self { image, mounted, cuts: 0, temp })
    }

    /// Where the disk is mounted.
    pub fn path(&self) -> &Path {
        &self.mounted.dir
    }

    /// Makes durable that un-synced files exist, but not what is in them.
    ///
    /// This is how ext4 leaves empty files behind: somebody else's fsync commits the journal for all.
    #[track_caller]
    pub fn commit_journal(&self) {
        let file = self.path().join("journal-commit");
        let file = File::create(file).expect("the disk can be written");
        file.sync_all().expect("the disk can be flushed");
    }

    /// Mounts what would be left if the power failed now; the disk itself goes on.
    #[track_caller]
    pub fn cut(&self) -> PowerCutImage {
        let temp = new_temp();
        let image = temp.path().join("cut.img");
        copy_still(&self.image, &image);
        let mounted = Mounted::new(&image, &temp.path().join("disk"));
        PowerCutImage { mounted, _temp: temp }
    }

    /// Cuts the power and switches the machine on again: the same path now shows what was left.
    ///
    /// Paths in the files on the disk stay valid, unlike with [`PowerDisk::cut`].
    #[track_caller]
    pub fn restart(&mut self) {
        self.cuts += 1;
        let image = self.temp.path().join(format!("disk-{}.img", self.cuts));
        copy_still(&self.image, &image);
        // Unmounting flushes into the old image, which nobody will look at.
        self.mounted.unmount();
        self.mounted = Mounted::new(&image, &self.temp.path().join("disk"));
        fs::remove_file(&self.image).expect("the old image is not in use");
        self.image = image;
    }
}

impl PowerCutImage {
    /// Where the copy is mounted.
    pub fn path(&self) -> &Path {
        &self.mounted.dir
    }
}

/// A mount that ends with its value.
#[derive(Debug)]
struct Mounted {
    dir: PathBuf,
    active: bool,
}

impl Mounted {
    #[track_caller]
    fn new(image: &Path, dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("a mount point can be made");
        run("mount", &["-o".as_ref(), MOUNT_OPTIONS.as_ref(), image, dir]);
        Self { dir: dir.to_owned(), active: true }
    }

    /// Unmounts, lazily if somebody still stands in the directory; the loop device goes with it.
    fn unmount(&mut self) {
        if !std::mem::take(&mut self.active) {
            return;
        }
        if try_run("umount", &[&self.dir]).is_err() {
            run("umount", &["--lazy".as_ref(), &self.dir]);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Copies an image as it was at one moment, although the kernel may be writing to it.
///
/// If the image still equals the copy when all is copied, that is what it was at the end of copying.
#[track_caller]
fn copy_still(from: &Path, to: &Path) {
    for _ in 0..COPY_ATTEMPTS {
        let source = File::open(from).expect("the image can be read");
        let copy = File::create(to).expect("an image can be made");
        copy.set_len(SIZE).expect("an image can be made");
        for_each_block(&source, |place, block| {
            let written = *block == ZEROS[..] || copy.write_all_at(block, place).is_ok();
            assert!(written, "an image can be written");
        });
        if equals(&source, to) {
            return;
        }
    }
    panic!("the disk is written to all the time; stop the writers before the power is cut");
}

fn equals(source: &File, copy: &Path) -> bool {
    let copy = File::open(copy).expect("the copy was just made");
    let mut same = true;
    let mut copied = ZEROS;
    for_each_block(source, |place, block| {
        copy.read_exact_at(&mut copied, place).expect("the copy has the same size");
        same &= *block == copied[..];
    });
    same
}

/// Reads an image block by block; a large buffer would cost more in page faults than the reading.
fn for_each_block(image: &File, mut visit: impl FnMut(u64, &[u8])) {
    let mut block = ZEROS;
    for place in (0..SIZE).step_by(BLOCK) {
        image.read_exact_at(&mut block, place).expect("the image can be read");
        visit(place, &block);
    }
}

fn new_temp() -> TempDir {
    let mut builder = tempfile::Builder::new();
    let temp = builder.prefix("lattice-power-").tempdir();
    temp.expect("the temporary directory can be written")
}

#[track_caller]
fn run(name: &str, args: &[&Path]) {
    if let Err(stderr) = try_run(name, args) {
        panic!("{name} {args:?} failed: {stderr}");
    }
}

fn try_run(name: &str, args: &[&Path]) -> Result<(), String> {
    let program = program(name).ok_or("not installed")?;
    let output = Command::new(program).args(args).env("LC_ALL", "C").output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test has to say why")]
fn print_reason(reason: Unavailable) {
    eprintln!("skipped: {reason}");
}
