//! Canaries: the finished sandbox tries what must fail, and is refused if anything succeeds.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::launcher::Refusal;
use super::spec::{Layer, Spec, Stage};
use super::sys;

/// Something that must not be possible, and the layer that is to stop it.
struct Canary {
    name: &'static str,
    attempt: fn(&Spec) -> io::Result<()>,
}

const CANARIES: [Canary; 10] = [
    Canary { name: "reach the network", attempt: reach_network },
    Canary { name: "open a socket of the hypervisor", attempt: open_vsock },
    Canary { name: "read a file of the host", attempt: |spec| open_of_host(&spec.probe.secret) },
    Canary {
        name: "read the host's repository, where a push would go",
        attempt: |spec| open_of_host(&spec.probe.repository),
    },
    Canary { name: "leave the root", attempt: |_| open(Path::new("/proc/1/root/etc/passwd")) },
    Canary { name: "mount", attempt: |_| sys::attempt_mount("/tmp") },
    Canary { name: "make a user namespace", attempt: nest },
    Canary { name: "become root", attempt: become_root },
    Canary { name: "write to the system", attempt: write_system },
    Canary { name: "write to what was delivered", attempt: write_delivered },
];

/// Lets every canary try.
pub(super) fn sing(spec: &Spec) -> Result<(), Refusal> {
    if spec.omit.contains(&Layer::Canaries) {
        return Ok(());
    }
    let lives = CANARIES.iter().filter(|canary| (canary.attempt)(spec).is_ok());
    let could: Vec<_> = lives.map(|canary| canary.name).collect();
    if could.is_empty() {
        return Ok(());
    }
    let detail = format!("the sandbox is not tight: something in it could {}", could.join("; "));
    Err(Refusal { stage: Stage::Canary, detail, errno: 0 })
}

/// A service of the host, and an address that is reserved for documents: no host has it, and without a route the
/// kernel says so at once.
fn reach_network(spec: &Spec) -> io::Result<()> {
    if TcpStream::connect((Ipv4Addr::LOCALHOST, spec.probe.port)).is_ok() {
        return Ok(());
    }
    let address = SocketAddr::from(([192, 0, 2, 1], 9));
    match TcpStream::connect_timeout(&address, Duration::from_millis(1)) {
        // On its way is as bad as there.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(()),
        tried => tried.map(drop),
    }
}

fn open_vsock(_: &Spec) -> io::Result<()> {
    let call = [libc::AF_VSOCK.into(), libc::SOCK_STREAM.into(), 0];
    sys::attempt(libc::SYS_socket, call).map(drop)
}

/// At its own place, and where a test that leaves the root out shows the host.
fn open_of_host(path: &Path) -> io::Result<()> {
    open(path).or_else(|_| open(&Path::new("/host").join(path.strip_prefix("/").unwrap_or(path))))
}

fn open(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

fn nest(_: &Spec) -> io::Result<()> {
    sys::attempt(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0]).map(drop)
}

fn become_root(_: &Spec) -> io::Result<()> {
    sys::attempt(libc::SYS_setuid, [0, 0, 0]).map(drop)
}

/// Programs, and what decides how they start.
fn write_system(_: &Spec) -> io::Result<()> {
    create("/usr/bin/.canary").or_else(|_| create("/etc/.canary"))
}

fn create(path: &str) -> io::Result<()> {
    File::options().write(true).create_new(true).open(path).map(drop)
}

fn write_delivered(spec: &Spec) -> io::Result<()> {
    if spec.mail.is_none() {
        return Err(io::ErrorKind::NotFound.into());
    }
    create("/workspace/.lattice/skills/.canary")
}
