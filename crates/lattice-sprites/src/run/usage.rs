//! What a sprite uses as a whole, where no limit of the kernel counts it for an ordinary user.

use std::time::Duration;

use crate::sandbox::below;

/// What all processes of a sprite together may use.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub memory_bytes: u64,
    pub output_bytes: u64,
    /// From the start of the agent to its end.
    pub time: Duration,
}

/// Memory of a process and of everything below it, what they share counted once.
pub(super) fn memory(process: u32) -> u64 {
    [process].into_iter().chain(below(process)).map(proportional).sum()
}

/// The part of memory that is this process's, or all that it has where the kernel does not tell.
fn proportional(process: u32) -> u64 {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let rollup = read("smaps_rollup");
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    match rollup.lines().find(|line| line.starts_with("Pss:")).and_then(kilobytes) {
        Some(kilobytes) => kilobytes << 10,
        None => {
            let pages = read("statm").split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
            pages.unwrap_or(0) * rustix::param::page_size() as u64
        }
    }
}
