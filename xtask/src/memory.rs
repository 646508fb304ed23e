//! Where tests write.

use crate::process::Call;

const SHARED_MEMORY: &str = "/dev/shm";

/// So much has to be free in memory for the tests to use it.
const LEAST_GIGABYTES: u64 = 8;

/// A folder in memory for what tests write, where there is room for it: they wait for the disk more than for anything else.
pub(crate) fn folder() -> Option<tempfile::TempDir> {
    let asked = ["--output=fstype,avail", "--block-size=G", SHARED_MEMORY];
    let said = Call { program: "df", arguments: &asked, environment: &[] }.answer()?;
    let (kind, free) = said.lines().nth(1)?.trim().split_once(' ')?;
    let free: u64 = free.trim().trim_end_matches('G').parse().ok()?;
    if kind != "tmpfs" || free < LEAST_GIGABYTES {
        return None;
    }
    // Sandboxes of root belong to another user, who has to get this far.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new().prefix("lattice-tests-").permissions(open).tempdir_in(SHARED_MEMORY).ok()
}
