//! What decides the list of files besides the working tree itself, so that a list can be used again.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::process::Git;

impl Git {
    /// Files that decide what `work_files` answers: index, configuration and ignore rules outside of the working tree.
    ///
    /// They need not exist. `None` if something decides that no file tells.
    pub(crate) fn listing_inputs(&self, git_dir: &Path, common_dir: &Path) -> Result<Option<Vec<PathBuf>>, GitError> {
        let stdout = self.call("config").args(["--null", "--list", "--show-origin"]).run()?;
        let Some(work_dir) = self.work_dir() else { return Ok(None) };
        let home = self.variable("HOME").map(PathBuf::from);
        let own = self.variable("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let own = own.or_else(|| Some(home.as_ref()?.join(".config"))).map(|folder| folder.join("git"));
        let mut inputs = vec![git_dir.join("index"), common_dir.join("info/exclude"), common_dir.join("config")];
        inputs.extend([git_dir.join("config.worktree"), PathBuf::from("/etc/gitconfig")]);
        inputs.extend(home.as_ref().map(|home| home.join(".gitconfig")));
        inputs.extend(own.iter().flat_map(|own| [own.join("config"), own.join("ignore")]));
        let mut records = stdout.split(|byte| *byte == 0);
        while let (Some(origin), Some(setting)) = (records.next(), records.next()) {
            if let Some(path) = origin.strip_prefix(b"file:") {
                inputs.push(work_dir.join(OsStr::from_bytes(path)));
            }
            let newline = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
            let (name, value) = setting.split_at(newline);
            if name.starts_with(b"includeif.") {
                // A condition may look at the branch.
                return Ok(None);
            }
            if name == b"core.excludesfile" {
                let Some(path) = expanded(value.get(1..).unwrap_or_default(), home.as_deref()) else { return Ok(None) };
                inputs.push(work_dir.join(path));
            }
        }
        inputs.sort();
        inputs.dedup();
        Ok(Some(inputs))
    }

    /// Those of these folders that Git ignores with all that is in them.
    pub(crate) fn ignored_folders(&self, folders: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        let mut stdin = folders.join(&0);
        stdin.push(0);
        let finished = self.call("check-ignore").args(["-z", "--stdin"]).stdin(stdin).finish()?;
        // It ends with 1 if nothing is ignored.
        let stdout = if finished.code == 1 { Vec::new() } else { finished.check("check-ignore")? };
        Ok(stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// A path of the configuration; other forms than `~/` are for Git alone.
fn expanded(value: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    match value {
        [b'~', b'/', rest @ ..] => Some(home?.join(OsStr::from_bytes(rest))),
        [b'~' | b'%' | b':', ..] => None,
        path => Some(PathBuf::from(OsStr::from_bytes(path))),
    }
}
