//! Which system calls an agent may make: a filter for seccomp, written as a table.

use libc::{c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls of another personality of the same processor begin here.
#[cfg(target_arch = "x86_64")]
const FOREIGN: u32 = 0x4000_0000;

/// Calls that build or leave namespaces, change mounts, look into other processes or the kernel.
const DENIED: [c_long; 41] = [
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
];

/// The kinds of sockets that a sandbox may make; all others, vsock among them, lead past its network namespace.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Calls that rename, about which the first process is asked: it can do what the file system of a workspace cannot.
#[cfg(target_arch = "x86_64")]
pub(super) const RENAMES: [c_long; 3] = [libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const RENAMES: [c_long; 2] = [libc::SYS_renameat, libc::SYS_renameat2];

/// What becomes of a rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renaming {
    /// The kernel does it.
    Direct,
    /// The first process is asked.
    Asked,
}

/// Requests of `ioctl` that type on someone else's terminal.
const TYPING: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// Where the lower half of an argument is.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// The filter as the kernel wants it.
pub(super) fn filter(renaming: Renaming) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(libc::BPF_JGE, FOREIGN, 0, 1), give(refuse(libc::ENOSYS))]);
    for call in DENIED {
        program.extend([jump(libc::BPF_JEQ, number(call), 0, 1), give(refuse(libc::EPERM))]);
    }
    if renaming == Renaming::Asked {
        for call in RENAMES {
            program.extend([jump(libc::BPF_JEQ, number(call), 0, 1), give(libc::SECCOMP_RET_USER_NOTIF)]);
        }
    }
    // Its flags are in memory that a filter cannot read; programs fall back to the older call.
    program.extend([jump(libc::BPF_JEQ, number(libc::SYS_clone3), 0, 1), give(refuse(libc::ENOSYS))]);
    program.extend([
        jump(libc::BPF_JEQ, number(libc::SYS_clone), 0, 4),
        load(argument(0)),
        jump(libc::BPF_JSET, NEW_NAMESPACES as u32, 0, 1),
        give(refuse(libc::EPERM)),
        give(libc::SECCOMP_RET_ALLOW),
    ]);
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let families = FAMILIES.len() as u8;
        program.extend([jump(libc::BPF_JEQ, number(call), 0, families + 3), load(argument(0))]);
        for (at, family) in FAMILIES.into_iter().enumerate() {
            program.push(jump(libc::BPF_JEQ, family as u32, families - at as u8, 0));
        }
        program.extend([give(refuse(libc::EAFNOSUPPORT)), give(libc::SECCOMP_RET_ALLOW)]);
    }
    let requests = TYPING.len() as u8;
    program.extend([jump(libc::BPF_JEQ, number(libc::SYS_ioctl), 0, requests + 3), load(argument(1))]);
    for (at, request) in TYPING.into_iter().enumerate() {
        program.push(jump(libc::BPF_JEQ, request as u32, requests - at as u8, 0));
    }
    program.extend([give(libc::SECCOMP_RET_ALLOW), give(refuse(libc::EPERM))]);
    program.push(give(libc::SECCOMP_RET_ALLOW));
    program
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn jump(condition: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | condition | libc::BPF_K) as u16, jt: yes, jf: no, k: value }
}

fn give(verdict: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: verdict }
}
