//! Tests of checkpoints on plain folders: what was there is there again, whatever it was.
#![expect(clippy::disallowed_methods, reason = "tests write files as they need")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use super::manifest::{Body, Entry, Layer, MAGIC, Manifest};
use super::{Checkpoint, Packed, RestoreError, Roots, difference, pack};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["upper", "home", "packs"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn roots(&self) -> Roots {
        let open = |name: &str| OwnedFd::from(fs::File::open(self.path(name)).expect("a folder"));
        Roots { workspace: open("upper"), home: open("home"), checkpoints: open("packs") }
    }

    fn checkpoint(&self, id: &str, previous: Option<&str>) -> u64 {
        let packed = pack(&self.roots(), id, previous, &BTreeSet::new());
        packed.and_then(Packed::publish).expect("a checkpoint").bytes
    }

    /// Restores into new folders and gives the one of the workspace.
    fn restored(&self, id: &str) -> PathBuf {
        let to = self.path(&format!("restored-{id}"));
        fs::create_dir(&to).expect("a folder");
        self.restore(id, (&to.join("upper"), &to.join("home"))).expect("a restore");
        to.join("upper")
    }

    fn restore(&self, id: &str, folders: (&Path, &Path)) -> Result<(), RestoreError> {
        Checkpoint::open(&self.path("packs"), id)?.restore(folders, None)
    }
}

/// Everything that a tree is: type, rights, times, size, content, links, attributes.
fn described(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut links: BTreeMap<u64, usize> = BTreeMap::new();
    describe(top, top, &mut links, &mut found);
    found
}

fn describe(top: &Path, path: &Path, links: &mut BTreeMap<u64, usize>, found: &mut BTreeMap<PathBuf, String>) {
    let stat = fs::symlink_metadata(path).expect("an entry");
    let count = links.len();
    let group = if !stat.is_file() { 0 } else { *links.entry(stat.ino()).or_insert(count) };
    let content = match () {
        () if stat.is_symlink() => format!("{:?}", fs::read_link(path).expect("a link")),
        () if stat.is_file() => {
            let bytes = fs::read(path).expect("a file");
            format!("{} bytes {:x?}", bytes.len(), lattice_model::id::ContentDigest::of(&bytes))
        }
        () => String::new(),
    };
    let attributes = super::walk::read_attributes(path.as_os_str().as_encoded_bytes()).expect("attributes");
    let sparse = stat.is_file() && stat.blocks() * 512 < stat.size();
    let text = format!(
        "{:o} {}.{} {group} {content} {attributes:?} sparse={sparse} dev={}",
        stat.mode(),
        stat.mtime(),
        stat.mtime_nsec(),
        stat.rdev()
    );
    found.insert(path.strip_prefix(top).expect("below").to_owned(), text);
    if stat.is_dir() {
        let mut inner: Vec<_> =
            fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        inner.sort();
        inner.iter().for_each(|path| describe(top, path, links, found));
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Does something that an agent may do.
fn change(top: &Path, dice: &mut Dice, number: usize) {
    let name = |dice: &mut Dice| {
        let folder = ["", "a", "a/b", "c", "\u{fc}"][dice.roll(5)];
        top.join(folder).join(format!("f{}", dice.roll(12)))
    };
    let (one, other) = (name(dice), name(dice));
    one.parent().into_iter().for_each(|parent| drop(fs::create_dir_all(parent)));
    other.parent().into_iter().for_each(|parent| drop(fs::create_dir_all(parent)));
    let gone = |path: &Path| drop(fs::remove_file(path).or_else(|_| fs::remove_dir_all(path)));
    match dice.roll(12) {
        0..=3 => {
            gone(&one);
            fs::write(&one, format!("{number}").repeat(dice.roll(3000))).expect("a file");
        }
        4 => gone(&one),
        5 => {
            gone(&one);
            symlink(&other, &one).expect("a link");
        }
        6 => {
            gone(&one);
            if fs::symlink_metadata(&other).is_ok_and(|found| found.is_file()) {
                fs::hard_link(&other, &one).expect("a second name");
            }
        }
        7 => drop(fs::rename(&one, &other)),
        8 => {
            gone(&one);
            fs::create_dir(&one).expect("a folder");
            rustix::fs::lsetxattr(&one, "user.overlay.opaque", b"y", XattrFlags::empty()).expect("an attribute");
        }
        9 => {
            gone(&one);
            let made = rustix::fs::mknodat(CWD, &one, FileType::CharacterDevice, Mode::empty(), 0);
            made.expect("a whiteout");
        }
        10 => {
            gone(&one);
            let file = fs::File::create(&one).expect("a file");
            std::os::unix::fs::FileExt::write_all_at(&file, b"far", 1 << 20).expect("a sparse file");
            file.set_permissions(fs::Permissions::from_mode(0o4750)).expect("rights");
        }
        _ => {
            gone(&one);
            rustix::fs::mknodat(CWD, &one, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a fifo");
        }
    }
}

#[test]
fn checkpoints_are_restored_as_they_were() {
    let mut dice = Dice(0xc0ffee);
    for round in 0..3 {
        let world = World::new();
        let mut expected = Vec::new();
        for number in 0..20 {
            (0..1 + dice.roll(6)).for_each(|_| change(&world.path("upper"), &mut dice, number));
            let id = format!("chk_{number}");
            let previous = (number > 0).then(|| format!("chk_{}", number - 1));
            world.checkpoint(&id, previous.as_deref());
            expected.push((id, described(&world.path("upper"))));
        }
        for (id, was) in &expected {
            assert_eq!(described(&world.restored(id)), *was, "round {round}, {id}");
        }
        // In place, over whatever is there: what stays is no less right than what is made.
        for number in 20..40 {
            (0..dice.roll(6)).for_each(|_| change(&world.path("upper"), &mut dice, number));
            let (id, was) = &expected[dice.roll(expected.len())];
            world.restore(id, (&world.path("upper"), &world.path("home"))).expect("a restore");
            assert_eq!(described(&world.path("upper")), *was, "round {round}, {id} in place");
        }
    }
}

#[test]
fn a_restore_writes_what_changed_and_believes_no_times() {
    let world = World::new();
    let upper = world.path("upper");
    (0..50).for_each(|number| fs::write(upper.join(format!("f{number}")), "as it was").expect("a file"));
    fs::create_dir(upper.join("closed")).expect("a folder");
    fs::write(upper.join("closed/f"), "as it was").expect("a file");
    let closed = |mode| fs::set_permissions(upper.join("closed"), fs::Permissions::from_mode(mode)).expect("rights");
    closed(0o500);
    world.checkpoint("chk_1", None);
    let was = described(&upper);
    let inode = |name: &str| fs::symlink_metadata(upper.join(name)).expect("a file").ino();
    let inodes: Vec<_> = (0..50).map(|number| inode(&format!("f{number}"))).collect();
    // The same length and the same times, and a tree where nothing was.
    let times = fs::metadata(upper.join("f7")).and_then(|found| found.modified()).expect("a time");
    fs::write(upper.join("f7"), "as it is.").expect("a file");
    fs::File::options().write(true).open(upper.join("f7")).and_then(|file| file.set_modified(times)).expect("a time");
    closed(0o700);
    fs::create_dir_all(upper.join("closed/new/deep")).expect("a folder");
    fs::set_permissions(upper.join("closed/new"), fs::Permissions::from_mode(0o000)).expect("rights");
    closed(0o000);
    world.restore("chk_1", (&upper, &world.path("home"))).expect("a restore");
    assert_eq!(described(&upper), was);
    assert_eq!((0..50).map(|number| inode(&format!("f{number}"))).collect::<Vec<_>>(), inodes, "no file is made anew");
    closed(0o700);
}

#[test]
fn a_checkpoint_without_all_its_packs_is_refused_before_anything_changes() {
    let world = World::new();
    fs::write(world.path("upper/a"), "a").expect("a file");
    world.checkpoint("chk_1", None);
    fs::write(world.path("upper/b"), "b").expect("a file");
    world.checkpoint("chk_2", Some("chk_1"));
    fs::write(world.path("upper/a"), "newer").expect("a file");
    let was = described(&world.path("upper"));
    let refused = || {
        let refused = world.restore("chk_2", (&world.path("upper"), &world.path("home"))).expect_err("a refusal");
        assert_eq!(described(&world.path("upper")), was);
        refused.to_string()
    };
    fs::write(world.path("packs/chk_1.pack"), "").expect("a cut pack");
    assert!(refused().contains("`chk_1` is damaged"));
    fs::remove_file(world.path("packs/chk_1.pack")).expect("a pack");
    assert!(refused().contains("`chk_1` is not there"));
}

#[test]
fn a_checkpoint_costs_what_changed_and_says_what_that_is() {
    let world = World::new();
    (0..200)
        .for_each(|number| fs::write(world.path("upper").join(format!("f{number}")), vec![7; 10_000]).expect("a file"));
    let first = world.checkpoint("chk_1", None);
    fs::write(world.path("upper/f3"), "changed").expect("a file");
    fs::remove_file(world.path("upper/f4")).expect("a file");
    fs::write(world.path("upper/new"), "new").expect("a file");
    let second = world.checkpoint("chk_2", Some("chk_1"));
    assert!(first > 2_000_000 && second < 100_000, "{first} and {second} bytes");
    let found = difference(&world.path("packs"), Some("chk_1"), "chk_2", None).expect("a difference");
    let found: Vec<_> = found.into_iter().map(|(path, is)| format!("{path} {is:?}")).collect();
    assert_eq!(found, ["f3 Changed", "f4 Removed", "new Added"]);
}

#[test]
fn a_pack_that_was_not_finished_or_is_damaged_is_no_checkpoint() {
    let world = World::new();
    fs::write(world.path("upper/a"), "a").expect("a file");
    drop(pack(&world.roots(), "chk_1", None, &BTreeSet::new()).expect("a pack that is not published"));
    let refused =
        |id: &str| world.restore(id, (&world.path("x"), &world.path("y"))).expect_err("a refusal").to_string();
    assert!(refused("chk_1").contains("is not there"));
    assert!(refused("../../etc/passwd").contains("is not there"));
    world.checkpoint("chk_1", None);
    let whole = fs::read(world.path("packs/chk_1.pack")).expect("a pack");
    for length in [0, 7, whole.len() / 2, whole.len() - 1] {
        fs::write(world.path("packs/chk_1.pack"), &whole[..length]).expect("half a pack");
        assert!(refused("chk_1").contains("damaged"), "{length} bytes");
    }
    // A list that leads out of the layer is not followed, whoever wrote it.
    fs::create_dir(world.path("upper/d")).expect("a folder");
    fs::write(world.path("upper/d/ab"), "x").expect("a file");
    world.checkpoint("chk_2", None);
    let mut forged = fs::read(world.path("packs/chk_2.pack")).expect("a pack");
    let at = forged.windows(4).rposition(|part| part == b"d/ab").expect("the path");
    forged[at..at + 4].copy_from_slice(b"../b");
    fs::write(world.path("packs/chk_2.pack"), forged).expect("a forged pack");
    assert!(refused("chk_2").contains("damaged"));
}

#[test]
fn a_list_that_leads_out_through_a_link_is_refused_and_nothing_is_written() {
    let world = World::new();
    let outside = world.path("outside");
    fs::create_dir(&outside).expect("a folder");
    let entry = |path: &[u8], body: Body| Entry {
        layer: Layer::Workspace,
        path: path.to_vec(),
        mode: 0o755,
        modified: (0, 0),
        inode: 1,
        changed: (0, 0),
        size: 0,
        attributes: Vec::new(),
        body,
    };
    let link = Body::Symlink(outside.as_os_str().as_encoded_bytes().to_vec());
    let restored = |name: &str, seconds: &[Body], third: Body| {
        let mut entries = vec![entry(b"", Body::Folder)];
        entries.extend(seconds.iter().map(|second| entry(b"d", second.clone())));
        entries.push(entry(b"d/x", third));
        let list = Manifest { packs: Vec::new(), entries }.encode();
        let numbers = [MAGIC.len() as u64, list.len() as u64].map(u64::to_le_bytes).concat();
        let id = format!("chk_{name}");
        fs::write(world.path(&format!("packs/{id}.pack")), [&MAGIC[..], &list, &numbers, MAGIC].concat())
            .expect("a pack");
        fs::create_dir_all(world.path(name).join("home")).expect("a folder");
        world.restore(&id, (&world.path(name), &world.path(name).join("home")))
    };
    restored("sound", &[Body::Folder], Body::Fifo).expect("the same list with a folder");
    for body in [Body::Whiteout, Body::Fifo, Body::File(Vec::new()), Body::Folder] {
        for seconds in [&[link.clone()][..], &[Body::Folder, link.clone()]] {
            let refused = restored("forged", seconds, body.clone()).expect_err("a refusal").to_string();
            assert!(refused.contains("damaged"), "{refused}");
        }
    }
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
}

#[test]
fn what_a_restore_left_half_made_gets_its_owner_and_what_an_agent_added_to_rights_is_gone() {
    let world = World::new();
    fs::create_dir(world.path("upper/d")).expect("a folder");
    fs::write(world.path("upper/d/f"), "x").expect("a file");
    fs::write(world.path("upper/g"), "y").expect("a file");
    world.checkpoint("chk_1", None);
    // Others may read and write: a list of rights in the form of the kernel.
    let list: Vec<u8> = [2, 0, 0, 0].into_iter().chain(rights([(1, 7), (4, 7), (0x10, 7), (0x20, 7)])).collect();
    for name in ["system.posix_acl_default", "system.posix_acl_access"] {
        rustix::fs::lsetxattr(world.path("upper/d"), name, &list, XattrFlags::empty()).expect("a list of rights");
    }
    fs::remove_file(world.path("upper/d/f")).expect("it is made anew");
    let me = rustix::process::geteuid();
    let owner = me.is_root().then_some(64813);
    let checkpoint = Checkpoint::open(&world.path("packs"), "chk_1").expect("a checkpoint");
    checkpoint.restore((&world.path("upper"), &world.path("home")), owner).expect("a restore");
    for (name, mode) in [("upper", 0o755), ("upper/d", 0o755), ("upper/d/f", 0o644), ("upper/g", 0o644)] {
        let found = fs::symlink_metadata(world.path(name)).expect("it is there");
        assert_eq!(found.uid(), owner.unwrap_or(me.as_raw()), "{name}");
        assert_eq!(found.mode() & 0o7777, mode, "{name}");
        for list in ["system.posix_acl_default", "system.posix_acl_access"] {
            let left = rustix::fs::lgetxattr(world.path(name), list, &mut [0; 64][..]);
            assert_eq!(left, Err(rustix::io::Errno::NODATA), "{name} {list}");
        }
    }
}

/// Entries of an access list: whom they are about, and what may be done.
fn rights(entries: [(u16, u16); 4]) -> impl Iterator<Item = u8> {
    let entry = |(whom, what): (u16, u16)| {
        [whom.to_le_bytes(), what.to_le_bytes(), u16::MAX.to_le_bytes(), u16::MAX.to_le_bytes()].concat()
    };
    entries.into_iter().flat_map(entry)
}
