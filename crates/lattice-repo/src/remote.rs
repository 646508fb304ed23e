//! One remote of a repository: its URL, its refs, and what a forge may ask of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};
use lattice_model::remote::{
    FileChange, GitRemote, Landed, Landing, MergeMethod, Pushed, Refused, RefusedRef, RemoteError, RemoteTip,
    RemoteUpdate,
};

use crate::Repo;
use crate::defect::Defect;
use crate::git::picker::Picker;
use crate::git::{Git, GitError};

pub use crate::git::remote::Credential;

/// A remote that Git knows, ready to be talked to.
#[derive(Debug, Clone)]
pub struct Remote {
    git: Git,
    common_dir: PathBuf,
    name: String,
    location: String,
    credential: Option<Credential>,
}

/// A URL that Git pushes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl(pub String);

impl Repo {
    /// The URL that pushes to a remote go to, after Git's own rewriting; `None` if there is no such remote.
    pub fn remote_url(&self, name: &str) -> Result<Option<RemoteUrl>, GitError> {
        Ok(self.git.remote_url(name)?.map(RemoteUrl))
    }

    /// The branch that a remote calls its main one, as far as the last fetch tells.
    pub fn main_branch_of(&self, remote: &str) -> Result<Option<BranchName>, GitError> {
        match self.git.remote_head(remote)? {
            Some(branch) if self.remote_has(remote, &branch)? => Ok(Some(branch)),
            Some(_) | None => Ok(None),
        }
    }

    /// Whether a remote had a branch when it was last fetched.
    pub fn remote_has(&self, remote: &str, branch: &BranchName) -> Result<bool, GitError> {
        Ok(self.find_commit(&format!("refs/remotes/{remote}/{branch}"))?.is_some())
    }

    pub fn remote_names(&self) -> Result<Vec<String>, GitError> {
        self.git.remote_names()
    }

    /// The remote with this name; `location` is how it is shown.
    pub fn remote(&self, name: &str, location: &str) -> Remote {
        let (name, location) = (name.to_owned(), location.to_owned());
        Remote { git: self.git.clone(), common_dir: self.paths.common_dir.clone(), name, location, credential: None }
    }

    /// Remote-tracking branches of a remote.
    pub fn tracking(&self, remote: &str) -> Result<BTreeMap<BranchName, Oid>, GitError> {
        let prefix = format!("refs/remotes/{remote}/");
        let listing = self.git.list_refs(&[&prefix])?;
        let branch = |name: &[u8]| BranchName::new(std::str::from_utf8(name).ok()?.strip_prefix(&prefix)?).ok();
        Ok(listing.refs.iter().filter_map(|listed| Some((branch(&listed.name)?, listed.oid))).collect())
    }

    /// Whether the remote once had this commit as the tip of a branch, as far as was seen here.
    pub fn was_at(&self, remote: &str, branch: &BranchName, commit: Oid) -> bool {
        let Ok(name) = RefName::new(format!("refs/remotes/{remote}/{branch}")) else { return false };
        let former = self.git.former_tips(std::slice::from_ref(&name)).unwrap_or_default();
        // Before the first change that is written down it was where a clone had put it.
        let first = || self.find_commit(&format!("{name}@{{{}}}", former.len())).ok().flatten();
        former.contains(&commit) || first() == Some(commit)
    }

    /// Which of these branches were once, or contain, what the remote has.
    pub fn ours(&self, pairs: &[(BranchName, Oid, Oid)]) -> Result<Vec<BranchName>, GitError> {
        let differing: Vec<_> = pairs.iter().filter(|(_, here, there)| here != there).collect();
        let mut ours: Vec<_> = pairs.iter().filter(|(_, here, there)| here == there).map(|p| p.0.clone()).collect();
        if differing.is_empty() {
            return Ok(ours);
        }
        let names: Vec<_> = differing.iter().map(|(branch, ..)| branch.branch_ref()).collect();
        let former = self.git.former_tips(&names).unwrap_or_default();
        for (branch, here, there) in differing {
            let contained = || {
                let known = self.with_objects(|objects| objects.info(&[there.to_string()]))?.pop().flatten().is_some();
                Ok::<_, GitError>(
                    known && self.git.ancestry(*there, *here)? == lattice_model::history::Ancestry::Ancestor,
                )
            };
            if former.contains(there) || contained()? || self.git.has(Defect::StrangersAreOurs) {
                ours.push(branch.clone());
            }
        }
        Ok(ours)
    }

    /// How many of these commits, from the first on, add nothing to `trunk`.
    pub fn landed(&self, trunk: Oid, commits: &[Oid]) -> Result<usize, GitError> {
        if self.git.has(Defect::LandedTooSoon) {
            return Ok(commits.len());
        }
        let tree = self.with_objects(|objects| objects.tree_of(trunk))?;
        let (Some(first), Some(tip)) = (commits.first(), commits.last()) else { return Ok(0) };
        // The whole branch first: a squash has all of it, and none of its commits alone. What changes nothing is in every
        // trunk, and says nothing.
        if self.changes_something(*first, *tip)? && self.git.merged_tree(trunk, *tip)? == Some(tree) {
            return Ok(commits.len());
        }
        let mut landed = 0;
        for (at, commit) in commits.iter().enumerate() {
            if self.git.merged_tree(trunk, *commit)? != Some(tree) {
                break;
            }
            if self.changes_something(*commit, *commit)? {
                landed = at + 1;
            }
        }
        Ok(landed)
    }

    /// Whether the files are others after these commits than before the first of them.
    fn changes_something(&self, first: Oid, last: Oid) -> Result<bool, GitError> {
        let before = self.with_objects(|objects| objects.commit(first))?.parents.first().copied();
        let Some(before) = before else { return Ok(true) };
        let tree_of = |commit| self.with_objects(|objects| objects.tree_of(commit));
        Ok(tree_of(before)? != tree_of(last)?)
    }

    /// Whether `ancestor` is an ancestor of `tip`.
    pub fn is_ancestor(&self, ancestor: Oid, tip: Oid) -> Result<bool, GitError> {
        Ok(self.git.ancestry(ancestor, tip)? == lattice_model::history::Ancestry::Ancestor)
    }

    /// Subject and body of commits.
    pub fn messages(&self, ids: &[Oid]) -> Result<Vec<String>, GitError> {
        let read = |id: &Oid| self.with_objects(|objects| objects.commit(*id));
        ids.iter().map(|id| Ok(String::from_utf8_lossy(&read(id)?.message).into_owned())).collect()
    }

    /// The text of a file in the tree of a commit.
    pub fn text_at(&self, commit: Oid, path: &str) -> Result<Option<String>, GitError> {
        let found = self.with_objects(|objects| objects.contents(&[format!("{commit}:{path}")]))?.pop().flatten();
        Ok(found.and_then(|bytes| String::from_utf8(bytes).ok()))
    }
}

impl Remote {
    fn failed(&self, error: GitError) -> RemoteError {
        match error {
            GitError::Failed { stderr, .. } => {
                RemoteError::Unreachable { location: self.location.clone(), detail: stderr.trim().to_owned() }
            }
            other => RemoteError::Git(other.to_string()),
        }
    }

    fn local(error: GitError) -> RemoteError {
        let said = error.stderr().map(|text| format!(": {text}")).unwrap_or_default();
        RemoteError::Git(format!("{error}{said}"))
    }

    /// Makes sure that the commits of the remote are here.
    fn bring(&self, tips: &[&RemoteTip]) -> Result<(), RemoteError> {
        let mut objects = self.git.object_reader().map_err(Self::local)?;
        let ids: Vec<_> = tips.iter().map(|tip| tip.at.to_string()).collect();
        let infos = objects.info(&ids).map_err(Self::local)?;
        let missing = tips.iter().zip(infos).filter(|(_, info)| info.is_none());
        let names: Vec<_> = missing.map(|(tip, _)| tip.branch.branch_ref()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.git.fetch_objects(&self.name, &names, self.credential.as_ref()).map_err(|error| self.failed(error))
    }

    /// The commit that a ref of the remote points to, with its objects here.
    pub fn commit_at(&self, name: &RefName) -> Result<Option<Oid>, RemoteError> {
        let Some(at) = self.refs(&[name.to_string()])?.remove(name) else { return Ok(None) };
        let fetched = self.git.fetch_objects(&self.name, std::slice::from_ref(name), self.credential.as_ref());
        fetched.map_err(|error| self.failed(error))?;
        Ok(Some(at))
    }

    /// The same remote, with a header that authenticates Git over HTTP.
    #[must_use]
    pub fn with_credential(&self, credential: Credential) -> Self {
        Self { credential: Some(credential), ..self.clone() }
    }

    /// Brings the remote-tracking refs up to date.
    pub(crate) fn fetch(&self) -> Result<(), RemoteError> {
        self.git.fetch_tracking(&self.name, self.credential.as_ref()).map_err(|error| self.failed(error))
    }

    /// The same remote for what is no work of anybody's: no hook has to look at it.
    #[must_use]
    pub fn without_hooks(&self) -> Self {
        self.with_hooks(lattice_model::plan::Hooks::Skip)
    }

    pub(crate) fn with_hooks(&self, hooks: lattice_model::plan::Hooks) -> Self {
        Self { git: self.git.with_hooks(hooks), ..self.clone() }
    }

    /// What the remote has in the place of refs that it did not take.
    fn blame(&self, updates: &[RemoteUpdate], said: &BTreeMap<RefName, String>) -> Result<Pushed, RemoteError> {
        let names: Vec<_> = updates.iter().map(|update| update.name.to_string()).collect();
        let now = self.refs(&names)?;
        let mut refused = Vec::new();
        for update in updates {
            let found = now.get(&update.name).copied();
            let expected = update.expected.value();
            if !crate::git::remote::matches(update.expected, found) {
                refused.push(RefusedRef { name: update.name.clone(), why: Refused::Moved { expected, found } });
            }
        }
        if refused.is_empty() {
            let rejected = |(name, reason): (&RefName, &String)| RefusedRef {
                name: name.clone(),
                why: Refused::Rejected(reason.clone()),
            };
            refused = said.iter().map(rejected).collect();
        }
        // The connection may have broken after the remote had taken everything.
        let all_there = updates.iter().all(|update| now.get(&update.name).copied() == update.to);
        Ok(if all_there { Pushed::Done } else { Pushed::Refused(refused) })
    }
}

impl GitRemote for Remote {
    fn refs(&self, patterns: &[String]) -> Result<BTreeMap<RefName, Oid>, RemoteError> {
        let found = self.git.list_remote(&self.name, patterns, self.credential.as_ref());
        found.map_err(|error| self.failed(error))
    }

    fn blobs(&self, wanted: &[(RefName, Oid)]) -> Result<Vec<Vec<u8>>, RemoteError> {
        let ids: Vec<_> = wanted.iter().map(|(_, oid)| oid.to_string()).collect();
        let infos = self.git.object_reader().and_then(|mut objects| objects.info(&ids)).map_err(Self::local)?;
        let missing: Vec<_> =
            wanted.iter().zip(infos).filter(|(_, info)| info.is_none()).map(|((name, _), _)| name.clone()).collect();
        if !missing.is_empty() {
            let fetched = self.git.fetch_objects(&self.name, &missing, self.credential.as_ref());
            fetched.map_err(|error| self.failed(error))?;
        }
        let contents = self.git.object_reader().and_then(|mut objects| objects.contents(&ids)).map_err(Self::local)?;
        let gone = || RemoteError::Unexpected("an item that changed while it was read".to_owned());
        contents.into_iter().map(|content| content.ok_or_else(gone)).collect()
    }

    fn write_blob(&self, content: &[u8]) -> Result<Oid, RemoteError> {
        self.git.write_blob(content).map_err(Self::local)
    }

    fn land(&self, landing: &Landing) -> Result<Landed, RemoteError> {
        self.bring(&[&landing.base, &landing.head])?;
        let (base, head) = (landing.base.at, landing.head.at);
        let landed = match landing.method {
            MergeMethod::Rebase => self.git.picked_onto(Picker::new(&self.common_dir), base, head),
            MergeMethod::Merge => self.git.merged_tree(base, head).and_then(|tree| {
                tree.map(|tree| self.git.plain_commit(tree, vec![base, head], &landing.message)).transpose()
            }),
            MergeMethod::Squash => self
                .git
                .merged_tree(base, head)
                .and_then(|tree| tree.map(|tree| self.git.squashed(tree, (base, head), &landing.message)).transpose()),
        };
        Ok(landed.map_err(Self::local)?.map_or(Landed::Conflict, Landed::At))
    }

    fn files(&self, base: &RemoteTip, head: &RemoteTip) -> Result<Vec<FileChange>, RemoteError> {
        self.bring(&[base, head])?;
        let fork = self.git.merge_base(base.at, head.at).map_err(Self::local)?.unwrap_or(base.at);
        self.git.changed_files(fork, head.at).map_err(Self::local)
    }

    fn push(&self, updates: &[RemoteUpdate]) -> Result<Pushed, RemoteError> {
        if updates.is_empty() {
            return Ok(Pushed::Done);
        }
        if !crate::git::remote::fits(updates) {
            return Err(RemoteError::TooManyRefs { count: updates.len() });
        }
        match self.git.push(&self.name, updates, self.credential.as_ref()) {
            Ok(refused) if refused.is_empty() => Ok(Pushed::Done),
            Ok(refused) => self.blame(updates, &refused),
            Err(error) => match self.blame(updates, &BTreeMap::new()) {
                Ok(Pushed::Done) => Ok(Pushed::Done),
                Ok(Pushed::Refused(refused)) if !refused.is_empty() => Ok(Pushed::Refused(refused)),
                Ok(Pushed::Refused(_)) => {
                    Err(RemoteError::NotSent { detail: error.stderr().unwrap_or_default().to_owned() })
                }
                Err(_) => Err(self.failed(error)),
            },
        }
    }

    fn identity(&self) -> Result<String, RemoteError> {
        let line = self.git.committer().map_err(Self::local)?;
        Ok(line.split('<').next().unwrap_or_default().trim().to_owned())
    }

    fn location(&self) -> &str {
        &self.location
    }
}

#[cfg(test)]
mod tests;
