//! What a sprite's own repository needs of this one: a base to start from, and a way back for its commits.
//!
//! Git never runs here in a folder that an agent can write. What is to be run with Git in a workspace is given
//! as a command for its sandbox; what comes out is checked in a quarantine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lattice_model::id::Oid;
use lattice_model::name::BranchName;

use crate::Repo;
use crate::git::quarantine::{EXPORT, MAKE_BASE, UNLOCK};

pub use crate::git::quarantine::ReceiveError;

/// Where the objects of the host are inside a sandbox.
pub const OBJECTS_INSIDE: &str = "/run/objects";

/// Longer lists are no lists of branches.
const LONGEST_LIST: usize = 4 << 20;

/// Whether changes that are not committed are taken too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    /// As one last commit with this message.
    Everything,
    Commits,
}

/// What a workspace gives out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Export {
    pub refs: Vec<(String, Oid)>,
    pub remotes: Vec<String>,
    /// The commit of a HEAD that is on no branch.
    pub head: Option<Oid>,
    pub uncommitted: BTreeSet<Uncommitted>,
    pub pack: Vec<u8>,
}

/// What became of changes that were not committed to a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncommitted {
    Collected,
    /// The agent was in the middle of something; they stay in the workspace.
    Left,
    /// Git did not take all of them; those stay in the workspace.
    Failed,
    /// The agent put them into a stash, and that stays in the workspace.
    Stashed,
}

/// The command that makes a checkout of `commit` in an empty workspace, which finds the host's objects at `objects`.
pub fn base_command(commit: Oid, objects: &Path) -> Vec<String> {
    let format = if commit.hex_len() == 64 { "sha256" } else { "sha1" };
    let objects = objects.display().to_string();
    ["sh", "-c", MAKE_BASE, "base", &commit.to_string(), format, &objects].map(str::to_owned).into()
}

/// The command that gives out everything above `base`.
pub fn export_command(base: Oid, collect: Collect, message: &str) -> Vec<String> {
    let collect = match collect {
        Collect::Everything => "collect",
        Collect::Commits => "commits",
    };
    let script = format!("{UNLOCK}{EXPORT}");
    ["sh", "-c", &script, "export", &base.to_string(), collect, message].map(str::to_owned).into()
}

/// The command that removes locks which a Git that was killed left in a workspace.
pub fn unlock_command() -> Vec<String> {
    // What cannot be removed is for the agent to find.
    let script = format!("{UNLOCK}true");
    ["sh", "-c", &script].map(str::to_owned).into()
}

/// The files that put a workspace on a branch of its own.
pub fn branch_files(branch: &BranchName, commit: Oid) -> [(PathBuf, String); 2] {
    let name = branch.branch_ref();
    [
        (PathBuf::from(".git/HEAD"), format!("ref: {}\n", name.as_str())),
        (Path::new(".git").join(name.as_str()), format!("{commit}\n")),
    ]
}

/// Reads what the export command printed. Nothing in it can be trusted.
pub fn read_export(bytes: Vec<u8>) -> Option<Export> {
    let end = if bytes.starts_with(b"\n") {
        0
    } else {
        bytes.windows(2).take(LONGEST_LIST).position(|pair| pair == b"\n\n")? + 1
    };
    let mut export = Export::default();
    for line in std::str::from_utf8(&bytes[..end]).ok()?.lines() {
        match line.split_once(' ') {
            None if line == "collected" => drop(export.uncommitted.insert(Uncommitted::Collected)),
            None if line == "left" => drop(export.uncommitted.insert(Uncommitted::Left)),
            None if line == "failed" => drop(export.uncommitted.insert(Uncommitted::Failed)),
            None if line == "stash" => drop(export.uncommitted.insert(Uncommitted::Stashed)),
            Some(("head", id)) => export.head = Some(Oid::new(id).ok()?),
            Some(("remote", name)) => export.remotes.push(name.to_owned()),
            Some(("ref", rest)) => {
                let (id, name) = rest.split_once(' ')?;
                export.refs.push((name.strip_prefix("refs/heads/")?.to_owned(), Oid::new(id).ok()?));
            }
            None | Some(_) => return None,
        }
    }
    export.pack = bytes[end + 1..].to_vec();
    Some(export)
}

impl Repo {
    /// Where the objects of this repository are.
    pub fn objects(&self) -> PathBuf {
        self.git.objects_dir(&self.paths.common_dir)
    }

    /// Takes a pack if it is sound and `tips` are complete with it.
    pub fn receive_pack(&self, pack: Vec<u8>, tips: &[Oid]) -> Result<(), ReceiveError> {
        // On the same file system as the objects, so that what is sound can be moved.
        let folder = self.objects().join(format!("lattice-quarantine-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let received = self.git.receive_pack(pack, tips, &folder, &self.objects());
        let removed = std::fs::remove_dir_all(&folder);
        received?;
        Ok(removed?)
    }

    /// Name and address that the user commits with.
    pub fn identity(&self) -> (Option<String>, Option<String>) {
        let option = |name| self.git.option(name).ok().flatten();
        (option("user.name"), option("user.email"))
    }
}
