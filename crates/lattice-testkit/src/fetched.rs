//! What others published and tests read: `cargo xtask` fetches it into a folder beside what cargo builds.

use std::path::PathBuf;

/// A package of a registry, in the one version that tests are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub registry: Registry,
    pub name: &'static str,
    pub version: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    Npm,
    PyPi,
    /// In the version that the release of the machine has.
    Debian,
}

/// Every package, with the compiler that judges outlines first.
pub const PACKAGES: &[Package] = &[
    npm("typescript", "5.9.3"),
    npm("rxjs", "7.8.2"),
    npm("immer", "10.1.3"),
    npm("zod", "4.1.12"),
    pypi("black", "26.10.1"),
    pypi("jsonschema", "4.26.0"),
    pypi("starlette", "1.10.0"),
    npm("@capacitor/android", "7.4.4"),
    debian("golang-github-spf13-cobra-dev"),
    debian("libstb-dev"),
    debian("nlohmann-json3-dev"),
    debian("ruby-rack"),
];

const fn npm(name: &'static str, version: &'static str) -> Package {
    Package { registry: Registry::Npm, name, version }
}

const fn pypi(name: &'static str, version: &'static str) -> Package {
    Package { registry: Registry::PyPi, name, version }
}

const fn debian(name: &'static str) -> Package {
    Package { registry: Registry::Debian, name, version: "debian" }
}

impl Package {
    /// The name of its folder.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", self.name.replace('/', "+"), self.version)
    }
}

/// The folder for all of it.
pub fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a program knows where it is");
    // What cargo keeps in the folder that it builds in.
    let is_built_in = |folder: &std::path::Path| folder.join(".rustc_info.json").is_file();
    let target = program.ancestors().find(|folder| is_built_in(folder));
    target.expect("cargo built this program").join("fetched")
}

/// A part of it; `task` is what fetches it.
#[track_caller]
pub fn path(name: &str, task: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(path.exists(), "{} is missing; `cargo xtask {task}` fetches it", path.display());
    path
}

/// The contents of a package.
#[track_caller]
pub fn package(name: &str) -> PathBuf {
    let package = PACKAGES.iter().find(|package| package.name == name).expect("the package is in the table");
    path(&package.folder_name(), "samples")
}
