//! System calls that have no safe wrapper. The only place in Lattice with `unsafe`.
#![expect(unsafe_code, reason = "namespaces, forks and tracing have no safe interface")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::{c_int, c_long, c_ulong, pid_t};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork this is.
pub(super) enum Fork {
    Child,
    Parent(pid_t),
}

/// Splits the process, which must have one thread.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the launcher has a single thread, so the child has everything that the parent has.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Makes a mount read-only and without devices and set-uid programs.
pub(super) fn protect(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    set_attributes(mount, attributes, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)
}

/// The same for one mount and not for those on it.
pub(super) fn protect_alone(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    set_attributes(mount, attributes, libc::AT_EMPTY_PATH)
}

fn set_attributes(mount: BorrowedFd<'_>, attributes: u64, flags: c_int) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is empty and ends in zero, `attr` lives through the call and its size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    check_long(result).map(drop)
}

pub(super) fn pivot_root_here() -> io::Result<()> {
    // SAFETY: both paths end in zero.
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    check_long(result).map(drop)
}

pub(super) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length belong together.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Switches the loopback device of this network namespace on.
pub(super) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a request of zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is as the call wants it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }).map(drop)
}

pub(super) fn prctl(option: c_int, argument: c_ulong) -> io::Result<c_int> {
    // SAFETY: used for options whose argument is a number.
    check(unsafe { libc::prctl(option, argument, 0, 0, 0) })
}

/// Has everything but input and output closed when another program begins.
pub(super) fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: plain numbers; no descriptor is closed now.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3 as c_ulong, c_ulong::from(u32::MAX), CLOSE_ON_EXEC) };
    check_long(result).map(drop)
}

/// The flag of `close_range` that closes later.
const CLOSE_ON_EXEC: c_ulong = 4;

/// Installs a filter of system calls for this process and all that it starts.
pub(super) fn install_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    set_filter(filter, 0).map(drop)
}

/// The same for a filter that asks, and gives the end at which its questions arrive. Who asks and was heard waits for the
/// answer, whatever signal comes: a call that was carried out must not be made again.
pub(super) fn install_asking_filter(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let descriptor = c_int::try_from(set_filter(filter, flags)?).map_err(io::Error::other)?;
    // SAFETY: the new descriptor belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn set_filter(filter: &[libc::sock_filter], flags: c_ulong) -> io::Result<c_long> {
    let program =
        libc::sock_fprog { len: u16::try_from(filter.len()).unwrap_or(u16::MAX), filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program during the call and does not write to it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    check_long(result)
}

/// A system call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub(super) id: u64,
    pub(super) task: pid_t,
    pub(super) call: c_long,
    pub(super) arguments: [u64; 6],
}

/// Takes the next question; there is none any more if who asked was interrupted.
pub(super) fn question(listener: BorrowedFd<'_>) -> io::Result<Question> {
    // SAFETY: a notice of zeros is what the kernel wants to fill in.
    let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the notice lives through the call and has the size that the request names.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) })?;
    Ok(Question {
        id: notice.id,
        task: notice.pid.cast_signed(),
        call: c_long::from(notice.data.nr),
        arguments: notice.data.args,
    })
}

/// Whether who asked still waits, so that what was read of it is of the one who asked.
pub(super) fn is_waiting(listener: BorrowedFd<'_>, question: u64) -> bool {
    // SAFETY: the number lives through the call.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const question) }).is_ok()
}

/// What a system call that waited gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The kernel carries it out.
    GoOn,
    /// It was carried out, or failed with this error.
    Done(Result<(), c_int>),
}

/// Answers a question. One who was killed meanwhile needs no answer.
pub(super) fn answer(listener: BorrowedFd<'_>, question: u64, verdict: Verdict) {
    let (error, flags) = match verdict {
        Verdict::GoOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Verdict::Done(done) => (done.err().map_or(0, |errno| -errno), 0),
    };
    let mut response = libc::seccomp_notif_resp { id: question, val: 0, error, flags };
    // SAFETY: the response lives through the call and has the size that the request names.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
}

/// Takes this process's user and group to one id each, without supplementary groups where that may be said.
pub(super) fn become_id(id: u32) -> io::Result<()> {
    // SAFETY: plain numbers; an empty list of groups needs no pointer.
    unsafe {
        // An ordinary user may not drop groups; unmapped, they open nothing inside that others cannot open.
        let _ = libc::setgroups(0, std::ptr::null());
        check(libc::setresgid(id, id, id))?;
        check(libc::setresuid(id, id, id))?;
    }
    Ok(())
}

/// Begins to trace a task without stopping it.
pub(super) fn seize(task: pid_t) -> io::Result<()> {
    trace(libc::PTRACE_SEIZE, task, 0)
}

/// Stops a traced task.
pub(super) fn interrupt(task: pid_t) -> io::Result<()> {
    trace(libc::PTRACE_INTERRUPT, task, 0)
}

/// Lets a stopped task go on, with the signal that it was stopped by.
pub(super) fn release(task: pid_t, signal: c_int) -> io::Result<()> {
    trace(libc::PTRACE_DETACH, task, signal)
}

fn trace(request: libc::c_uint, task: pid_t, data: c_int) -> io::Result<()> {
    // SAFETY: these requests read no memory; the last two arguments are numbers in the place of pointers.
    let result = unsafe { libc::ptrace(request as _, task, 0, c_long::from(data)) };
    check_long(result).map(drop)
}

/// How a child changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Exited(c_int),
    Killed(c_int),
    /// Stopped by this signal, or by the tracer if it is zero.
    Stopped(c_int),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    JustLook,
}

/// Waits for a child or traced task; -1 is any. `None` if nothing happened or there is none.
pub(super) fn wait(task: pid_t, patience: Patience) -> Option<(pid_t, Change)> {
    let options = match patience {
        Patience::Wait => libc::__WALL,
        Patience::JustLook => libc::__WALL | libc::WNOHANG,
    };
    let mut status = 0;
    loop {
        // SAFETY: the status lives through the call.
        let found = unsafe { libc::waitpid(task, &raw mut status, options) };
        if found < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        if found <= 0 {
            return None;
        }
        let change = if libc::WIFEXITED(status) {
            Change::Exited(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Change::Killed(libc::WTERMSIG(status))
        } else if (status >> 16) == libc::PTRACE_EVENT_STOP {
            Change::Stopped(0)
        } else {
            Change::Stopped(libc::WSTOPSIG(status))
        };
        return Some((found, change));
    }
}

pub(super) fn kill(task: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::kill(task, signal) }).map(drop)
}

/// A descriptor that can be read when a child of this process changed.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set lives through the calls, and the new descriptor belongs to nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        let descriptor = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Tries a raw system call of numbers only, as a canary does.
pub(super) fn attempt(number: c_long, arguments: [c_long; 3]) -> io::Result<c_long> {
    // SAFETY: canaries pass numbers and null pointers only.
    check_long(unsafe { libc::syscall(number, arguments[0], arguments[1], arguments[2], 0, 0, 0) })
}

/// Tries to mount a file system in memory on a folder.
pub(super) fn attempt_mount(target: &str) -> io::Result<()> {
    let target = CString::new(target)?;
    let kind = c"tmpfs".as_ptr();
    // SAFETY: all texts end in zero, and there are no options.
    check(unsafe { libc::mount(kind, target.as_ptr(), kind, 0, std::ptr::null()) }).map(drop)
}
