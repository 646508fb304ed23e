//! The processes that belong to a command.

use libc::pid_t;

/// Where they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// All that this process can see: it is the first of a namespace.
    Namespace,
    /// Those that it started and what they started. All others are of the host, and none of ours.
    Descendants,
}

impl Family {
    /// Every process but this one.
    pub(super) fn members(self) -> Vec<pid_t> {
        match self {
            Self::Namespace => numbers("/proc").into_iter().filter(|process| *process != 1).collect(),
            Self::Descendants => below(std::process::id()).into_iter().map(u32::cast_signed).collect(),
        }
    }

    /// All tasks of them.
    pub(super) fn tasks(self) -> Vec<pid_t> {
        self.members().into_iter().flat_map(|process| numbers(&format!("/proc/{process}/task"))).collect()
    }
}

/// Every process below one.
pub(crate) fn below(process: u32) -> Vec<u32> {
    let (mut found, mut waiting) = (Vec::new(), vec![process]);
    while let Some(process) = waiting.pop() {
        for task in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
            children.for_each(|child| waiting.push(child));
        }
        found.push(process);
    }
    found.remove(0);
    found
}

fn numbers(folder: &str) -> Vec<pid_t> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
