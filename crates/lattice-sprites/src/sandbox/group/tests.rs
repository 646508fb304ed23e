//! Where groups are found, as texts of the kernel.

use std::path::PathBuf;

use super::{hands_down, own_folder};

const MOUNTS: &str = "\
24 1 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 /box /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const GROUPS: &str = "5:name=systemd:/\n4:memory:/a/b\n3:pids:/box/c\n0::/user.slice/x.scope\n";

#[test]
fn a_group_is_found_where_its_controller_is_mounted() {
    for (controller, folder) in [
        ("memory", Some("/sys/fs/cgroup/memory/a/b")),
        ("pids", Some("/sys/fs/cgroup/pids/c")),
        ("", Some("/sys/fs/cgroup/unified/user.slice/x.scope")),
        ("cpu", None),
    ] {
        assert_eq!(own_folder(MOUNTS, GROUPS, controller), folder.map(PathBuf::from), "{controller}");
    }
    assert_eq!(own_folder("", GROUPS, "memory"), None, "a container may show none");
}

#[test]
fn a_group_of_the_second_version_serves_only_if_it_hands_both_controllers_down() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(!hands_down(folder.path()), "here is no group at all");
    for (handed, serves) in [("", false), ("cpu memory", false), ("cpu memory pids\n", true)] {
        crate::sandbox::launcher::write(&folder.path().join("cgroup.subtree_control").display().to_string(), handed)
            .expect("a file");
        assert_eq!(hands_down(folder.path()), serves, "{handed}");
    }
}
