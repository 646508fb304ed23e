//! Installs what the tests need besides git and a Rust toolchain, and only what is missing.

use std::path::Path;

use crate::Failure;
use crate::process::Call;

/// Commands of cargo and how to get them. What runs for a second need not be optimized for minutes, nor be debugged.
const CARGO_COMMANDS: [(&str, &[&str]); 2] = [
    ("nextest", &["install", "--locked", "cargo-nextest"]),
    ("deny", &["install", "--locked", "--debug", "--config", "profile.dev.debug=0", "cargo-deny"]),
];

/// System programs that tests use to make file systems and keys of their own, to watch the program and to speak to it in
/// other languages, and the compiler of the fuzzer, with the Debian package of each.
const SYSTEM_PROGRAMS: [(&str, &str); 9] = [
    ("mkfs.ext4", "e2fsprogs"),
    ("losetup", "mount"),
    ("strace", "strace"),
    ("ssh-keygen", "openssh-client"),
    ("c++", "g++"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("pip3", "python3-pip"),
];

/// Folders of system programs; those for administration are not in every user's `PATH`.
const PROGRAM_FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Makes the tools of the test suite available.
///
/// A missing command of cargo is an error. A missing system program is only reported: the tests
/// that need it say so themselves.
pub(crate) fn install(root: &Path) -> Result<(), Failure> {
    report_git();
    for (name, arguments) in CARGO_COMMANDS {
        if answer("cargo", &[name, "--version"]).is_none() {
            Call { program: "cargo", arguments, environment: &[] }.run(root)?;
        }
    }
    install_system_programs(root);
    Ok(())
}

/// The tests run with each Git that a machine has: the system's own and the first in `PATH`.
fn report_git() {
    for program in ["git", "/usr/bin/git"] {
        match answer(program, &["--version"]) {
            Some(version) => eprintln!("{program}: {version}"),
            None => eprintln!("{program}: not found"),
        }
    }
}

fn install_system_programs(root: &Path) {
    install_missing(root, &missing_system_programs());
}

/// Makes one program available that only a benchmark needs.
pub(crate) fn install_one(root: &Path, program: &'static str, package: &'static str) {
    if !has_system_program(program) {
        install_missing(root, &[(program, package)]);
    }
}

fn install_missing(root: &Path, missing: &[(&'static str, &'static str)]) {
    if missing.is_empty() {
        return;
    }
    let names = names_of(missing);
    if !can_install() {
        eprintln!("not installed: {names} (needs root and apt-get)");
        return;
    }
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(missing.iter().map(|(_, package)| *package));
    let done = apt_get(root, &["update"]).and_then(|()| apt_get(root, &arguments));
    if let Err(failure) = done {
        eprintln!("not installed: {names} ({failure})");
    }
}

fn missing_system_programs() -> Vec<(&'static str, &'static str)> {
    SYSTEM_PROGRAMS.into_iter().filter(|(program, _)| !has_system_program(program)).collect()
}

fn has_system_program(program: &str) -> bool {
    PROGRAM_FOLDERS.iter().any(|folder| Path::new(folder).join(program).exists())
}

fn names_of(programs: &[(&str, &str)]) -> String {
    let names: Vec<&str> = programs.iter().map(|(program, _)| *program).collect();
    names.join(", ")
}

fn can_install() -> bool {
    has_system_program("apt-get") && answer("id", &["-u"]).as_deref() == Some("0")
}

fn apt_get(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    Call { program: "apt-get", arguments, environment: &[("DEBIAN_FRONTEND", "noninteractive")] }.run(root)
}

fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    Call { program, arguments, environment: &[] }.answer()
}
