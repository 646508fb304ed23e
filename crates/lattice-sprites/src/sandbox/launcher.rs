//! The launcher: from an ordinary process to the first process of a sandbox.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::spec::{Isolation, Layer, Report, Spec, Stage};
use super::sys::{self, Change, Fork, Patience};
use super::{INSIDE_ID, bare, door, group, init, root};

/// Why there is no sandbox.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) stage: Stage,
    pub(super) detail: String,
    pub(super) errno: i32,
}

/// What goes wrong in a stage, with what it was about.
pub(super) trait At<T> {
    fn at(self, stage: Stage, detail: impl Into<String>) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, stage: Stage, detail: impl Into<String>) -> Result<T, Refusal> {
        self.map_err(|error| {
            let error: io::Error = error.into();
            let errno = error.raw_os_error().unwrap_or(0);
            Refusal { stage, detail: format!("{}: {error}", detail.into()), errno }
        })
    }
}

/// The way to the supervisor.
pub(super) struct Control {
    pub(super) reader: BufReader<UnixStream>,
}

impl Control {
    pub(super) fn tell(&mut self, report: &Report) {
        let mut line = serde_json::to_vec(report).unwrap_or_default();
        line.push(b'\n');
        // A supervisor that is gone is seen when the next order is read.
        let _ = self.reader.get_mut().write_all(&line);
    }
}

/// Runs a launcher; the exit code is for nobody.
pub fn main() -> i32 {
    let mut control = match control() {
        Ok(control) => control,
        Err(_) => return 125,
    };
    let mut order = String::new();
    let spec = control.reader.read_line(&mut order).and_then(|_| Ok(serde_json::from_str::<Spec>(&order)?));
    let made = spec.at(Stage::Order, "the order cannot be read").and_then(|spec| {
        group::enter(&spec.entrances);
        let _alive = spec.alive.as_deref().map(stay_alive).transpose().at(Stage::Order, "its place")?;
        match spec.isolation {
            Isolation::Strict => make(spec, &mut control),
            Isolation::None => bare::make(&spec, &mut control),
        }
    });
    match made {
        Ok(code) => code,
        Err(Refusal { stage, detail, errno }) => {
            control.tell(&Report::Refused { stage, detail, errno });
            125
        }
    }
}

/// Shows that something runs here. What this process starts holds the file too, but for the agent.
fn stay_alive(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::options().create(true).append(true).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// Orders come from standard input, which the agent gets empty.
fn control() -> io::Result<Control> {
    let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    rustix::stdio::dup2_stdin(&nothing()?)?;
    Ok(Control { reader: BufReader::new(UnixStream::from(socket)) })
}

fn nothing() -> io::Result<fs::File> {
    fs::File::options().read(true).write(true).open("/dev/null")
}

/// Lets go of the agent's output, which would else stay open as long as this process lives.
pub(super) fn let_go_of_output() -> io::Result<()> {
    let nothing = nothing()?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(rustix::stdio::dup2_stderr(&nothing)?)
}

fn make(spec: Spec, control: &mut Control) -> Result<i32, Refusal> {
    let outside = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS;
    flags |= libc::CLONE_NEWCGROUP;
    for (layer, flag) in [(Layer::Network, libc::CLONE_NEWNET), (Layer::Ipc, libc::CLONE_NEWIPC)] {
        if !spec.omit.contains(&layer) {
            flags |= flag;
        }
    }
    sys::unshare(flags).at(Stage::Namespaces, "new namespaces")?;
    if spec.host_id.is_some() {
        door::send(control.reader.get_ref(), &[]).at(Stage::Ids, "the supervisor")?;
    }
    // Folders of the host may be closed to the user inside, so they are opened while this still is the user outside.
    let folders = root::Folders::open(&spec)?;
    match spec.host_id {
        Some(_) => await_ids(control)?,
        None => map_from_inside(inside(&spec), outside)?,
    }
    become_inside(inside(&spec))?;
    if flags & libc::CLONE_NEWNET != 0 {
        let kind = rustix::net::SocketType::DGRAM;
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, kind, None).at(Stage::Namespaces, "lo")?;
        sys::loopback_up(socket.as_fd()).at(Stage::Namespaces, "the loopback device")?;
    }
    if !spec.doors.is_empty() {
        // Without a network of its own, which only a test wants, the doors would be the host's.
        let doors = if flags & libc::CLONE_NEWNET != 0 { spec.doors.as_slice() } else { &[] };
        let opened = door::open(doors).and_then(|opened| door::send(control.reader.get_ref(), &opened));
        opened.at(Stage::Doors, "the way to the network")?;
    }
    sys::set_host_name("sprite").at(Stage::Namespaces, "the host name")?;
    match sys::fork().at(Stage::Namespaces, "the first process")? {
        Fork::Child => Ok(first(spec, folders, control)),
        Fork::Parent(child) => {
            let_go_of_output().at(Stage::Namespaces, "/dev/null")?;
            // The child alone speaks from here on; when it ends, so does everything inside.
            loop {
                match sys::wait(child, Patience::Wait) {
                    Some((_, Change::Exited(code))) => return Ok(code),
                    Some((_, Change::Killed(_))) | None => return Ok(125),
                    Some((_, Change::Stopped(_))) => {}
                }
            }
        }
    }
}

/// What the first process of the sandbox does.
fn first(spec: Spec, folders: root::Folders, control: &mut Control) -> i32 {
    let ready = root::build(&spec, &folders);
    let upper = folders.layers();
    if spec.omit.contains(&Layer::FirstProcess) {
        // It became another user, and so is closed to all others until it says otherwise.
        let _ = sys::prctl(libc::PR_SET_DUMPABLE, 1);
    }
    let ready = ready.and_then(|()| init::start(&spec, control));
    match ready {
        Ok(agent) => init::watch(&spec, agent, upper, control),
        Err(Refusal { stage, detail, errno }) => {
            control.tell(&Report::Refused { stage, detail, errno });
            125
        }
    }
}

fn inside(spec: &Spec) -> u32 {
    if spec.omit.contains(&Layer::Ids) { 0 } else { INSIDE_ID }
}

/// Root must not be root inside, and only someone outside may say who it is instead: the supervisor does.
pub(super) fn map_from_outside(launcher: u32, spec: &Spec, id: u32) -> io::Result<()> {
    let mut map = format!("{} {id} 1\n", inside(spec));
    if spec.omit.contains(&Layer::OneId) {
        // A test needs a second user, to whom a program can belong.
        map.push_str(&format!("0 {} 1\n", id + 1));
    }
    ["gid_map", "uid_map"].iter().try_for_each(|name| write(&format!("/proc/{launcher}/{name}"), &map))
}

/// Waits until the supervisor has given this process its ids; what comes is the number of an error, or zero.
fn await_ids(control: &mut Control) -> Result<(), Refusal> {
    let mut errno = String::new();
    control.reader.read_line(&mut errno).at(Stage::Ids, "the supervisor")?;
    match errno.trim().parse() {
        Ok(0) => Ok(()),
        errno => {
            let errno = errno.unwrap_or(libc::EIO);
            Err(io::Error::from_raw_os_error(errno)).at(Stage::Ids, "the user and group ids")
        }
    }
}

/// An ordinary user is, inside, an ordinary user with another number.
fn map_from_inside(inside: u32, (uid, gid): (u32, u32)) -> Result<(), Refusal> {
    write("/proc/self/setgroups", "deny").at(Stage::Ids, "/proc/self/setgroups")?;
    write("/proc/self/uid_map", &format!("{inside} {uid} 1\n")).at(Stage::Ids, "/proc/self/uid_map")?;
    write("/proc/self/gid_map", &format!("{inside} {gid} 1\n")).at(Stage::Ids, "/proc/self/gid_map")
}

fn become_inside(inside: u32) -> Result<(), Refusal> {
    let bits = libc::SECBIT_NO_SETUID_FIXUP | libc::SECBIT_KEEP_CAPS;
    sys::prctl(libc::PR_SET_SECUREBITS, bits as libc::c_ulong).at(Stage::Ids, "secure bits")?;
    sys::become_id(inside).at(Stage::Ids, "the user inside")
}

/// Writes one of the files of `/proc` whose content must come in one piece.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel and none of ours")]
pub(super) fn write(path: &str, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Opens a folder or file as a place.
pub(super) fn place(path: &std::path::Path) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).at(Stage::Folders, path.display().to_string())
}
