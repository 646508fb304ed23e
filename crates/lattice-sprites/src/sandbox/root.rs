//! The root of a sandbox: what it sees of the host, and where it can write.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use super::INSIDE_ID;
use super::launcher::{At, Refusal, place};
use super::spec::{Layer, Spec, Stage, Tree};
use super::sys;

/// Folders of the host, opened before the way to them is closed.
pub(super) struct Folders {
    root: OwnedFd,
    workspace: OpenTree,
    home: OpenTree,
    mail: Option<OwnedFd>,
    binds: Vec<(OwnedFd, PathBuf)>,
    checkpoints: Option<OwnedFd>,
}

enum OpenTree {
    Plain(OwnedFd),
    Overlay { lower: Vec<OwnedFd>, upper: OwnedFd, work: OwnedFd },
    View { lower: Vec<OwnedFd> },
}

/// What of a sandbox a checkpoint covers, and where it goes.
pub(super) struct Layers {
    pub(super) workspace: Option<OwnedFd>,
    pub(super) home: Option<OwnedFd>,
    pub(super) checkpoints: Option<OwnedFd>,
}

/// Parts of `/etc` that programs need and that say nothing about the host's people.
const ETC: [&str; 12] = [
    "ssl",
    "ca-certificates",
    "pki",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "mime.types",
    "protocols",
    "services",
    "debian_version",
];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Folders of the host's system, or links to such.
const SYSTEM: [&str; 6] = ["usr", "bin", "sbin", "lib", "lib32", "lib64"];

const GUARDED: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

impl Folders {
    pub(super) fn open(spec: &Spec) -> Result<Self, Refusal> {
        let optional = |path: &Option<PathBuf>| path.as_deref().map(place).transpose();
        let bind = |bind: &super::spec::Bind| Ok((place(&bind.from)?, bind.to.clone()));
        Ok(Self {
            root: place(&spec.root)?,
            workspace: OpenTree::open(&spec.workspace)?,
            home: OpenTree::open(&spec.home)?,
            mail: optional(&spec.mail)?,
            binds: spec.binds.iter().map(bind).collect::<Result<_, Refusal>>()?,
            checkpoints: optional(&spec.checkpoints)?,
        })
    }

    /// The places that checkpoints need, which outlive the root.
    pub(super) fn layers(self) -> Layers {
        Layers { workspace: self.workspace.upper(), home: self.home.upper(), checkpoints: self.checkpoints }
    }
}

impl OpenTree {
    fn open(tree: &Tree) -> Result<Self, Refusal> {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| place(path)).collect::<Result<Vec<_>, _>>();
        Ok(match tree {
            Tree::Plain(path) => Self::Plain(place(path)?),
            Tree::Overlay { lower, upper, work } => {
                Self::Overlay { lower: all(lower)?, upper: place(upper)?, work: place(work)? }
            }
            Tree::View { lower } => Self::View { lower: all(lower)? },
        })
    }

    /// Where what is written goes.
    fn upper(self) -> Option<OwnedFd> {
        match self {
            Self::Overlay { upper, .. } | Self::Plain(upper) => Some(upper),
            Self::View { .. } => None,
        }
    }

    fn mount(&self, target: &str) -> Result<(), Refusal> {
        let name = |place: &OwnedFd| format!("/proc/self/fd/{}", place.as_raw_fd());
        let names = |places: &[OwnedFd]| places.iter().map(name).collect::<Vec<_>>().join(":");
        let options = match self {
            Self::Plain(place) => return bind(place.as_fd(), target, WRITABLE),
            Self::Overlay { lower, upper, work } => {
                format!("lowerdir={},upperdir={},workdir={},userxattr,volatile", names(lower), name(upper), name(work))
            }
            Self::View { lower } => format!("lowerdir={},userxattr", names(lower)),
        };
        let options = std::ffi::CString::new(options).map_err(io::Error::from).at(Stage::Overlay, target)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("overlay", target, "overlay", flags, options.as_c_str()).at(Stage::Overlay, target)
    }
}

/// Builds the root and goes there.
pub(super) fn build(spec: &Spec, folders: &Folders) -> Result<(), Refusal> {
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).at(Stage::Root, "mounts of the host")?;
    let root = memory(spec.limits.temporary_bytes, "0755")?;
    attach(root.as_fd(), folders.root.as_fd()).at(Stage::Root, "the new root")?;
    rustix::process::fchdir(&root).at(Stage::Root, "the new root")?;
    system()?;
    etc(spec)?;
    devices(spec)?;
    for folder in ["tmp", "run", "var", "home", "home/agent", "workspace"] {
        make(folder)?;
    }
    for name in ["run", "tmp"] {
        on_folder(memory(spec.limits.temporary_bytes, if name == "tmp" { "1777" } else { "0755" })?, name)?;
    }
    symlink("/tmp", "var/tmp").at(Stage::Root, "var/tmp")?;
    folders.workspace.mount("workspace")?;
    folders.home.mount("home/agent")?;
    mail(spec, folders)?;
    for (from, to) in &folders.binds {
        let inside = to.strip_prefix("/").unwrap_or(to);
        prepare_target(from.as_fd(), inside)?;
        let attributes = if spec.omit.contains(&Layer::Setuid) { libc::MOUNT_ATTR_RDONLY } else { GUARDED };
        bind(from.as_fd(), &inside.to_string_lossy(), attributes)?;
    }
    processes(spec)?;
    if spec.omit.contains(&Layer::Root) {
        // A test needs the host's tree to see what the root keeps away.
        let host = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(Stage::Root, "/")?;
        make("host")?;
        bind(host.as_fd(), "host", libc::MOUNT_ATTR_NOSUID)?;
    }
    sys::pivot_root_here().at(Stage::Root, "the change of the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at(Stage::Root, "the host's root")?;
    rustix::process::chdir("/").at(Stage::Root, "/")?;
    if spec.omit.contains(&Layer::ReadOnlyRoot) {
        return Ok(());
    }
    let top = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(Stage::Root, "/")?;
    read_only_alone(top.as_fd()).at(Stage::Root, "a root that cannot be written")
}

fn system() -> Result<(), Refusal> {
    for name in SYSTEM {
        let host = Path::new("/").join(name);
        match std::fs::read_link(&host) {
            Ok(target) => symlink(target, name).at(Stage::Root, name)?,
            Err(_) if host.is_dir() => {
                make(name)?;
                bind(place(&host)?.as_fd(), name, GUARDED)?;
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn etc(spec: &Spec) -> Result<(), Refusal> {
    make("etc")?;
    let people = format!(
        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{INSIDE_ID}:{INSIDE_ID}:agent:/home/agent:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    let groups = format!("root:x:0:\nagent:x:{INSIDE_ID}:\nnogroup:x:65534:\n");
    let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    spec.names.iter().for_each(|(name, address)| hosts.push_str(&format!("{address} {name}\n")));
    let files = [
        ("etc/passwd", people.as_str()),
        ("etc/group", groups.as_str()),
        ("etc/hosts", hosts.as_str()),
        ("etc/resolv.conf", "nameserver 127.0.0.1\n"),
        ("etc/hostname", "sprite\n"),
        ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ];
    for (path, text) in files {
        let file = File::options().write(true).create_new(true).mode(0o644).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).at(Stage::Root, path)?;
    }
    for name in ETC {
        let host = Path::new("/etc").join(name);
        let Ok(from) = place(&host) else { continue };
        let inside = Path::new("etc").join(name);
        prepare_target(from.as_fd(), &inside)?;
        bind(from.as_fd(), &inside.to_string_lossy(), GUARDED)?;
    }
    Ok(())
}

fn devices(spec: &Spec) -> Result<(), Refusal> {
    make("dev")?;
    on_folder(memory(1 << 20, "0755")?, "dev")?;
    for name in DEVICES {
        let from = place(&Path::new("/dev").join(name))?;
        let inside = format!("dev/{name}");
        prepare_target(from.as_fd(), Path::new(&inside))?;
        bind(from.as_fd(), &inside, libc::MOUNT_ATTR_NOSUID)?;
    }
    make("dev/pts")?;
    make("dev/shm")?;
    on_folder(memory(spec.limits.temporary_bytes, "1777")?, "dev/shm")?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("devpts", "dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
        .at(Stage::Root, "terminals")?;
    for (target, name) in
        [("pts/ptmx", "ptmx"), ("/proc/self/fd", "fd"), ("fd/0", "stdin"), ("fd/1", "stdout"), ("fd/2", "stderr")]
    {
        symlink(target, format!("dev/{name}")).at(Stage::Root, name)?;
    }
    Ok(())
}

/// The mailbox: what it delivers can be read, and the outbox can be written but not replaced.
fn mail(spec: &Spec, folders: &Folders) -> Result<(), Refusal> {
    let Some(mail) = &folders.mail else { return Ok(()) };
    const HERE: &str = "workspace/.lattice";
    match rustix::fs::mkdir(HERE, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error).at(Stage::Root, HERE),
    }
    bind(mail.as_fd(), HERE, WRITABLE)?;
    if spec.omit.contains(&Layer::ReadOnlyMail) {
        return Ok(());
    }
    for name in ["context", "skills"] {
        let inside = format!("{HERE}/{name}");
        if let Ok(from) = place(Path::new(&inside)) {
            bind(from.as_fd(), &inside, GUARDED)?;
        }
    }
    let outbox = format!("{HERE}/outbox.jsonl");
    if let Ok(from) = place(Path::new(&outbox)) {
        bind(from.as_fd(), &outbox, WRITABLE)?;
    }
    Ok(())
}

fn processes(spec: &Spec) -> Result<(), Refusal> {
    make("proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "proc", "proc", flags, None::<&std::ffi::CStr>).at(Stage::Proc, "proc")?;
    if !spec.omit.contains(&Layer::NestedNamespaces) {
        super::launcher::write("proc/sys/user/max_user_namespaces", "0").at(Stage::Proc, "max_user_namespaces")?;
    }
    for name in ["proc/sys", "proc/sysrq-trigger", "proc/irq", "proc/bus"] {
        if let Ok(from) = place(Path::new(name)) {
            bind(from.as_fd(), name, GUARDED)?;
        }
    }
    Ok(())
}

/// A new file system in memory.
fn memory(bytes: u64, mode: &str) -> Result<OwnedFd, Refusal> {
    let make = || -> rustix::io::Result<OwnedFd> {
        let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(&context, "size", bytes.to_string())?;
        rustix::mount::fsconfig_set_string(&context, "mode", mode)?;
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().at(Stage::Root, "a file system in memory")
}

fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", target, "", flags)
}

fn on_folder(mount: OwnedFd, target: &str) -> Result<(), Refusal> {
    attach(mount.as_fd(), place(Path::new(target))?.as_fd()).at(Stage::Root, target)
}

/// Shows `from` at `target` with these attributes.
fn bind(from: BorrowedFd<'_>, target: &str, attributes: u64) -> Result<(), Refusal> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let copy = rustix::mount::open_tree(from, "", flags).at(Stage::Bind, target)?;
    sys::protect(copy.as_fd(), attributes).at(Stage::Bind, target)?;
    attach(copy.as_fd(), place(Path::new(target))?.as_fd()).at(Stage::Bind, target)
}

/// Makes the file or folder that something is shown at.
fn prepare_target(from: BorrowedFd<'_>, inside: &Path) -> Result<(), Refusal> {
    let name = inside.display().to_string();
    let found = rustix::fs::fstat(from).at(Stage::Bind, name.clone())?;
    if let Some(parent) = inside.parent() {
        std::fs::create_dir_all(parent).at(Stage::Bind, name.clone())?;
    }
    if rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
        return std::fs::create_dir_all(inside).at(Stage::Bind, name);
    }
    File::options().write(true).create(true).truncate(false).open(inside).map(drop).at(Stage::Bind, name)
}

fn make(folder: &str) -> Result<(), Refusal> {
    rustix::fs::mkdir(folder, Mode::from_raw_mode(0o755)).at(Stage::Root, folder)
}

/// Makes the root itself read-only, not what is mounted on it.
fn read_only_alone(top: BorrowedFd<'_>) -> io::Result<()> {
    sys::protect_alone(top, libc::MOUNT_ATTR_RDONLY)
}
