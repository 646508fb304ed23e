//! The git programs of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The distinct git programs: the first in `PATH`, and the distribution's.
pub fn gits() -> Vec<PathBuf> {
    let mut gits = vec![first_in_path()];
    let system = PathBuf::from("/usr/bin/git");
    if system.is_file() && real(&system) != real(&gits[0]) {
        gits.push(system);
    }
    gits
}

/// Major and minor version of a git program.
pub fn version_of(git: &Path) -> (u32, u32) {
    let output = Command::new(git)
        .arg("--version")
        .output()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", git.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_version(&text).unwrap_or_else(|| panic!("not a git version: {text:?}"))
}

/// The git that a shell would start.
pub fn first_in_path() -> PathBuf {
    program("git").expect("tests need git in PATH")
}

/// Finds a program as a shell does, and where administrators' programs lie.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().expect("the program exists")
}
