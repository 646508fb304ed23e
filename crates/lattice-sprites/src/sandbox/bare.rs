//! A command without a sandbox, because a person asked for that by name. It runs on the host, in a clone of its own; what
//! is left is that it ends with its supervisor, can be checkpointed, and is nobody's root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::init;
use super::launcher::{At as _, Control, Refusal, place};
use super::root::Layers;
use super::spec::{Spec, Stage, Tree};
use super::{confine, sys};

/// Becomes the first process of the command and watches over it.
pub(super) fn make(spec: &Spec, control: &mut Control) -> Result<i32, Refusal> {
    let (workspace, home) = (folder(&spec.workspace)?, folder(&spec.home)?);
    let checkpoints = spec.checkpoints.as_deref().map(place).transpose()?;
    let layers = Layers { workspace: Some(place(workspace)?), home: Some(place(home)?), checkpoints };
    if let Some(id) = spec.host_id {
        // Root's agents are never root, with a sandbox or without.
        sys::become_id(id).at(Stage::Ids, "the user that agents of root are")?;
        for path in [workspace, home].into_iter().chain(spec.binds.iter().map(|bind| bind.from.as_path())) {
            let what = format!("{} is closed to the user {id}, which agents of root are", path.display());
            rustix::fs::access(path, Access::READ_OK).at(Stage::Folders, what)?;
        }
    }
    // What loses its parent comes here, where it is found and ended.
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1).at(Stage::Command, "the processes of the agent")?;
    let agent = init::start(spec, control)?;
    Ok(init::watch(spec, agent, layers, control))
}

/// What the agent's process still gives up.
pub(super) fn enter(spec: &Spec) -> Result<(), Refusal> {
    let workspace = folder(&spec.workspace)?;
    rustix::process::chdir(workspace).at(Stage::Command, workspace.display().to_string())?;
    confine::limit_bare(&spec.limits).at(Stage::Limits, "limits of resources")?;
    sys::close_others_on_exec().at(Stage::Privileges, "open files")?;
    rustix::thread::set_no_new_privs(true).at(Stage::Privileges, "no_new_privs")
}

/// Files of workspace and home by the names that they have in a sandbox, which checkpoints know them by.
pub(super) fn as_inside(spec: &Spec, files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let places = [(&spec.workspace, "/workspace"), (&spec.home, "/home/agent")];
    let places = places.map(|(tree, inside)| (folder(tree).ok().and_then(|path| path.canonicalize().ok()), inside));
    let renamed = |file: PathBuf| {
        let found = places.iter().find_map(|(place, inside)| Some((file.strip_prefix(place.as_ref()?).ok()?, inside)));
        found.map(|(rest, inside)| Path::new(inside).join(rest))
    };
    files.into_iter().filter_map(renamed).collect()
}

fn folder(tree: &Tree) -> Result<&Path, Refusal> {
    match tree {
        Tree::Plain(path) => Ok(path),
        Tree::Overlay { .. } | Tree::View { .. } => {
            Err(Refusal { stage: Stage::Overlay, detail: "layers need a sandbox".to_owned(), errno: libc::EINVAL })
        }
    }
}
