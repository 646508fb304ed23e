//! A control group around a sandbox, where this user may make one: the kernel then counts what everything in it uses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::launcher::write;

/// The group of one sandbox. It is removed with it.
#[derive(Debug)]
pub(super) struct Group {
    /// One folder, or one for each controller in the first version.
    folders: Vec<PathBuf>,
    version: &'static Version,
}

/// How a version of control groups names things.
#[derive(Debug)]
struct Version {
    name: &'static str,
    memory: &'static str,
    /// What else holds memory, where the kernel has it.
    swap: (&'static str, Swap),
    /// The file that counts who was killed because memory ran out.
    kills: &'static str,
    joins: Joins,
}

/// How a process gets into a group. Moving another one waits for all processors, which costs as much as a sandbox does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joins {
    /// It is moved from outside.
    Moved,
    /// It goes by itself, as only a single thread of the first version can.
    ByItself,
}

/// What the limit of swap counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swap {
    Alone,
    WithMemory,
}

const FIRST: Version = Version {
    name: "cgroup v1",
    memory: "memory.limit_in_bytes",
    swap: ("memory.memsw.limit_in_bytes", Swap::WithMemory),
    kills: "memory.oom_control",
    joins: Joins::ByItself,
};

const SECOND: Version = Version {
    name: "cgroup v2",
    memory: "memory.max",
    swap: ("memory.swap.max", Swap::Alone),
    kills: "memory.events",
    joins: Joins::Moved,
};

const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The file that lists the processes of a group.
const MEMBERS: &str = "cgroup.procs";

/// What groups of sandboxes are called, with the number of their launcher.
const PREFIX: &str = "lattice-";

impl Group {
    /// A new group for a process and all that it will start; `None` where there can be none. The process is in it once it
    /// has gone through the entrances.
    pub(super) fn around(process: u32, memory_bytes: u64, processes: u64) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let places = places(&mounts, &groups);
        places.into_iter().find_map(|(version, parents)| {
            parents.iter().for_each(|parent| sweep(parent));
            let folders = parents.iter().map(|parent| parent.join(format!("{PREFIX}{process}"))).collect();
            let group = Self { folders, version };
            // What is made of a group that cannot be finished is removed with it.
            group.make(process, memory_bytes, processes).ok().map(|()| group)
        })
    }

    fn make(&self, process: u32, memory_bytes: u64, processes: u64) -> io::Result<()> {
        let set =
            |folder: &Path, name: &str, value: u64| write(&folder.join(name).display().to_string(), &value.to_string());
        for folder in &self.folders {
            fs::create_dir(folder)?;
        }
        let (swap, counts) = self.version.swap;
        let swap_bytes = if counts == Swap::Alone { 0 } else { memory_bytes };
        set(self.memory(), self.version.memory, memory_bytes)?;
        // A kernel without swap has no such file.
        let _ = set(self.memory(), swap, swap_bytes);
        set(self.processes(), "pids.max", processes)?;
        match self.version.joins {
            Joins::Moved => self.folders.iter().try_for_each(|folder| set(folder, MEMBERS, u64::from(process))),
            Joins::ByItself => Ok(()),
        }
    }

    /// Files through which the process still has to go.
    pub(super) fn entrances(&self) -> Vec<PathBuf> {
        match self.version.joins {
            Joins::Moved => Vec::new(),
            Joins::ByItself => self.folders.iter().map(|folder| folder.join("tasks")).collect(),
        }
    }

    /// Whether the process is in it.
    pub(super) fn holds(&self, process: u32) -> bool {
        let members = |folder: &PathBuf| fs::read_to_string(folder.join(MEMBERS)).unwrap_or_default();
        self.folders.iter().all(|folder| members(folder).lines().any(|member| member == process.to_string()))
    }

    fn memory(&self) -> &Path {
        self.folders.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn processes(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), PathBuf::as_path)
    }

    pub(super) fn name(&self) -> &'static str {
        self.version.name
    }

    /// Whether something in it was killed because it used more memory than it may.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let counts = fs::read_to_string(self.memory().join(self.version.kills)).unwrap_or_default();
        let killed = counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok());
        killed.is_some_and(|killed| killed > 0)
    }
}

/// Goes through the entrances of a group. Who is not let in is noticed from outside.
pub(super) fn enter(entrances: &[PathBuf]) {
    for entrance in entrances {
        let _ = write(&entrance.display().to_string(), "0");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // One that cannot be removed yet is swept up when the next is made.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes groups whose launchers are gone, as after a crash.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let launcher = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if launcher.is_some_and(|launcher| !Path::new("/proc").join(launcher.to_string()).exists()) {
            // One that is in use is not empty, and stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where a group could be made, best first, with one folder for each that is needed.
fn places(mounts: &str, groups: &str) -> Vec<(&'static Version, Vec<PathBuf>)> {
    let mut places = Vec::new();
    if let Some(own) = own_folder(mounts, groups, "") {
        // A group that has processes itself hands nothing down, but the one above it may: a session of a user is so.
        let above = own.parent().map(Path::to_owned);
        let _ = write(&own.join("cgroup.subtree_control").display().to_string(), "+memory +pids");
        let delegated = [Some(own), above].into_iter().flatten().filter(|folder| hands_down(folder));
        places.extend(delegated.map(|folder| (&SECOND, vec![folder])));
    }
    let first: Option<Vec<_>> = CONTROLLERS.iter().map(|name| own_folder(mounts, groups, name)).collect();
    places.extend(first.map(|folders| (&FIRST, folders)));
    places
}

fn hands_down(folder: &Path) -> bool {
    let handed = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    CONTROLLERS.iter().all(|name| handed.split_whitespace().any(|handed| handed == *name))
}

/// The folder of this process's own group with this controller; that of the second version has no name.
fn own_folder(mounts: &str, groups: &str, controller: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let has = parts.next()?.split(',').any(|name| name == controller);
        parts.next().filter(|_| has)
    })?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let fits = match (kind.next()?, controller) {
            ("cgroup2", "") => true,
            ("cgroup", name) if !name.is_empty() => kind.nth(1)?.split(',').any(|option| option == name),
            (_, _) => false,
        };
        let mut place = place.split(' ').skip(3).filter(|_| fits);
        let (root, folder) = (place.next()?, place.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(folder).join(below))
    })
}

#[cfg(test)]
mod tests;
