//! Projects that others published, for tests that need real code: fetched once, in fixed versions, never committed.

use std::path::Path;

use lattice_testkit::fetched::{self, PACKAGES, Package, Registry};

use crate::Failure;
use crate::process::Call;

/// Fetches what is missing.
pub fn fetch() -> Result<(), Failure> {
    let folder = fetched::folder();
    let file = |cause| Failure::File { path: folder.clone(), cause };
    std::fs::create_dir_all(&folder).map_err(file)?;
    for package in PACKAGES {
        let to = folder.join(package.folder_name());
        if to.exists() {
            continue;
        }
        // Only what is whole gets its name.
        let scratch = tempfile::tempdir_in(&folder).map_err(file)?;
        unpack(package, scratch.path())?;
        publish(&scratch.path().join("contents"), &to)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a folder that can be fetched again, not one of a repository")]
fn publish(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::rename(from, to).map_err(|cause| Failure::File { path: to.to_owned(), cause })
}

/// Has the registry's own client fetch an archive, and puts what is in it into `contents`.
fn unpack(package: &Package, scratch: &Path) -> Result<(), Failure> {
    let Package { name, version, .. } = package;
    let run = |program, arguments: &[&str]| Call { program, arguments, environment: &[] }.run(scratch);
    match package.registry {
        Registry::Npm => {
            run("npm", &["pack", "--silent", &format!("{name}@{version}")])?;
            run("sh", &["-c", "tar -xzf *.tgz && mv package contents"])
        }
        Registry::PyPi => {
            let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"];
            run("python3", &[&pip[..], &[&format!("{name}=={version}")]].concat())?;
            run("sh", &["-c", "python3 -m zipfile -e *.whl contents"])
        }
        Registry::Debian => {
            let download = || run("apt-get", &["--quiet", "download", name]);
            // A fresh machine does not know what there is.
            download().or_else(|_| run("apt-get", &["--quiet", "update"]).and_then(|()| download()))?;
            run("sh", &["-c", "dpkg-deb -x *.deb contents"])
        }
    }
}
