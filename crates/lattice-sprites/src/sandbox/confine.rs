//! What the agent's process gives up before it becomes the agent.

use std::io;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::filter::{self, Renaming};
use super::launcher::{At as _, Refusal};
use super::spec::{Layer, Limits, Spec, Stage};
use super::sys;

/// Where the agent may write.
const WRITABLE: [&str; 5] = ["/workspace", "/home/agent", "/tmp", "/dev/shm", "/dev/pts"];

/// Devices that everyone may write to.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What it may read and run.
const READABLE: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/run", "/proc"];

/// Gives up, in this order, everything that is not needed. If renames are asked about, gives the end where that is heard.
pub(super) fn confine(spec: &Spec, renaming: Renaming) -> Result<Option<OwnedFd>, Refusal> {
    let keep = |layer: Layer| !spec.omit.contains(&layer);
    if keep(Layer::Limits) {
        limit(&spec.limits).at(Stage::Limits, "limits of resources")?;
    }
    if keep(Layer::Descriptors) {
        // Whoever starts a sprite may have files open, and a shell passes them on.
        sys::close_others_on_exec().at(Stage::Privileges, "open files")?;
    }
    // A process that changed its user may not write its own files of `/proc` until it says that it may.
    sys::prctl(libc::PR_SET_DUMPABLE, 1).at(Stage::Privileges, "dumpable")?;
    // The first to go when memory is short; Landlock then keeps it from taking that back.
    super::launcher::write("/proc/self/oom_score_adj", "1000").at(Stage::Limits, "oom_score_adj")?;
    if keep(Layer::Privileges) {
        drop_privileges().at(Stage::Privileges, "capabilities")?;
    }
    if keep(Layer::Setuid) {
        rustix::thread::set_no_new_privs(true).at(Stage::Privileges, "no_new_privs")?;
    }
    if keep(Layer::Landlock) {
        restrict_files(spec)?;
    }
    match keep(Layer::Seccomp) {
        true => filter_calls(renaming).at(Stage::Seccomp, "the filter of system calls"),
        false => Ok(None),
    }
}

fn filter_calls(renaming: Renaming) -> io::Result<Option<OwnedFd>> {
    if renaming == Renaming::Asked {
        match sys::install_asking_filter(&filter::filter(Renaming::Asked)) {
            // A kernel before 5.19 cannot wait as it must, and only one filter may ask, which that of a container may be. The
            // file system then says what it cannot rename.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EBUSY)) => {}
            listener => return listener.map(Some),
        }
    }
    sys::install_filter(&filter::filter(Renaming::Direct)).map(|()| None)
}

fn limit(limits: &Limits) -> io::Result<()> {
    limit_to(&[(Resource::Nproc, limits.processes)])?;
    limit_bare(limits)
}

/// Limits that need no namespace: without one, all processes of the user would be counted.
pub(super) fn limit_bare(limits: &Limits) -> io::Result<()> {
    limit_to(&[
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Core, 0),
        (Resource::Memlock, 8 << 20),
    ])
}

fn limit_to(all: &[(Resource, u64)]) -> io::Result<()> {
    for (resource, most) in all.iter().copied() {
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |allowed| allowed.min(most));
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

fn drop_privileges() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // Newer names than the kernel has.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

fn restrict_files(spec: &Spec) -> Result<(), Refusal> {
    let wrong = |detail: String| Refusal { stage: Stage::Landlock, detail, errno: libc::ENOSYS };
    let abi = ABI::V6;
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut rules: Vec<(std::path::PathBuf, _)> = Vec::new();
    rules.push(("/".into(), AccessFs::ReadDir.into()));
    rules.extend(WRITABLE.iter().map(|path| ((*path).into(), all)));
    rules.extend(DEVICES.iter().map(|path| ((*path).into(), device)));
    rules.extend(READABLE.iter().map(|path| ((*path).into(), read)));
    rules.extend(spec.binds.iter().map(|bind| (bind.to.clone(), read)));
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?;
        let mut ruleset = ruleset.scope(Scope::from_all(abi))?.create()?;
        for (path, access) in rules {
            let Ok(place) = PathFd::new(&path) else { continue };
            // A right to list makes no sense for a file; the kernel would refuse the rule.
            let access = if path.is_dir() { access } else { access & AccessFs::from_file(abi) };
            ruleset = ruleset.add_rule(PathBeneath::new(place, access))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match restrict().map_err(|error| wrong(error.to_string()))? {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(wrong("this kernel does not enforce Landlock".to_owned())),
    }
}
