//! Talks to remotes: lists and fetches refs, pushes with leases, and computes what landing gives.

use std::collections::{BTreeMap, BTreeSet};

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::Expected;
use lattice_model::remote::{FileChange, RemoteUpdate};

use super::commits::{NewCommit, RawCommit, Sign};
use super::error::GitError;
use super::objects::ObjectReader;
use super::picker::{Pick, Picker};
use super::process::{Call, Git};
use super::rewrite::Picked;

/// Transports that Git may use. Others, such as `ext::`, start programs that a URL names.
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// How many seconds a server may say nothing over HTTP; while it works, Git's own sends a sign of life every five.
const SILENCE_S: &str = "60";

/// How many bytes of arguments a run of git may have. Linux takes two megabytes, the environment included.
pub(crate) const ARGUMENT_BYTES: usize = 1024 * 1024;

/// A header that authenticates Git over HTTP. It travels in the environment, never as an argument.
#[derive(Clone)]
pub struct Credential {
    /// The beginning of the URLs that the header is for.
    pub url: String,
    pub header: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("url", &self.url).finish_non_exhaustive()
    }
}

/// How a push ended for each ref: the names of those that were not taken, with what the remote said.
pub(crate) type NotTaken = BTreeMap<RefName, String>;

impl Git {
    /// A run of git that may talk to a remote.
    fn remote_call(&self, command: &'static str, credential: Option<&Credential>) -> Call<'_> {
        let call = self.call(command).env("GIT_ALLOW_PROTOCOL", PROTOCOLS).env("GIT_PROTOCOL_FROM_USER", "0");
        // A server that accepts the connection and says nothing must not hold us for ever.
        let call = call.env("GIT_HTTP_LOW_SPEED_LIMIT", "1").env("GIT_HTTP_LOW_SPEED_TIME", SILENCE_S);
        match credential {
            None => call,
            Some(credential) => call
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", format!("http.{}.extraHeader", credential.url))
                .env("GIT_CONFIG_VALUE_0", credential.header.clone()),
        }
    }

    /// The URL of a remote after `insteadOf`; `None` if there is no such remote.
    pub(crate) fn remote_url(&self, name: &str) -> Result<Option<String>, GitError> {
        let finished = self.call("remote").args(["get-url", "--push", "--", name]).finish()?;
        if finished.code != 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        Ok(text.lines().next().map(str::to_owned))
    }

    /// What the remote's own HEAD was when it was cloned, as the name of a branch.
    pub(crate) fn remote_head(&self, remote: &str) -> Result<Option<BranchName>, GitError> {
        let finished = self.call("symbolic-ref").args(["-q"]).arg(format!("refs/remotes/{remote}/HEAD")).finish()?;
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        let name = text.trim_end().strip_prefix(&format!("refs/remotes/{remote}/"));
        Ok(name.and_then(|name| BranchName::new(name).ok()))
    }

    pub(crate) fn remote_names(&self) -> Result<Vec<String>, GitError> {
        let stdout = self.call("remote").run()?;
        Ok(String::from_utf8_lossy(&stdout).lines().map(str::to_owned).collect())
    }

    /// The refs of a remote that match; names that Lattice does not use are left out.
    pub(crate) fn list_remote(
        &self,
        remote: &str,
        patterns: &[String],
        credential: Option<&Credential>,
    ) -> Result<BTreeMap<RefName, Oid>, GitError> {
        let call = self.remote_call("ls-remote", credential).args(["--quiet", "--end-of-options", remote]);
        let fits = patterns.iter().map(String::len).sum::<usize>() < ARGUMENT_BYTES;
        // Everything there is, if that is shorter to ask for: callers look up the names that they want.
        let stdout = call.args(patterns.iter().filter(|_| fits).map(String::as_str)).run()?;
        let line = |line: &str| {
            let (oid, name) = line.split_once('\t')?;
            Some((RefName::new(name).ok()?, Oid::new(oid).ok()?))
        };
        Ok(String::from_utf8_lossy(&stdout).lines().filter_map(line).collect())
    }

    /// Fetches objects that refs of the remote lead to. No ref of this repository moves.
    pub(crate) fn fetch_objects(
        &self,
        remote: &str,
        names: &[RefName],
        credential: Option<&Credential>,
    ) -> Result<(), GitError> {
        let input: String = names.iter().map(|name| format!("{name}\n")).collect();
        let options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap="];
        let call = self.remote_call("fetch", credential).args(options).args(["--stdin", "--end-of-options", remote]);
        call.stdin(input.into_bytes()).run().map(drop)
    }

    /// Brings the remote-tracking refs up to date, and nothing else.
    pub(crate) fn fetch_tracking(&self, remote: &str, credential: Option<&Credential>) -> Result<(), GitError> {
        let refspec = format!("+refs/heads/*:refs/remotes/{remote}/*");
        let options = ["--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--no-auto-maintenance"];
        let call = self.remote_call("fetch", credential).args(options).args(["--refmap=", "--end-of-options", remote]);
        call.arg(refspec).run().map(drop)
    }

    /// Pushes all updates or none, each with the value that the remote must have.
    pub(crate) fn push(
        &self,
        remote: &str,
        updates: &[RemoteUpdate],
        credential: Option<&Credential>,
    ) -> Result<NotTaken, GitError> {
        const COMMAND: &str = "push";
        let mut call = self.remote_call(COMMAND, credential).args(["--porcelain", "--atomic", "--quiet"]);
        call = call.args(["--no-recurse-submodules", "--no-follow-tags", "--no-signed"]);
        let (leases, refspecs) = push_arguments(updates);
        let finished = call.args(leases).args(["--end-of-options", remote]).args(refspecs).finish()?;
        let refused = not_taken(&finished.stdout);
        if finished.code != 0 && refused.is_empty() {
            return finished.check(COMMAND).map(|_| refused);
        }
        let said = finished.stderr;
        Ok(refused.into_iter().map(|(name, reason)| (name, format!("{reason}\n{said}").trim().to_owned())).collect())
    }

    /// The files that differ between two commits.
    pub(crate) fn changed_files(&self, from: Oid, to: Oid) -> Result<Vec<FileChange>, GitError> {
        let options = ["-r", "-z", "--raw", "--numstat", "--no-renames"];
        let stdout = self.call("diff-tree").args(options).args([from.to_string(), to.to_string()]).run()?;
        let text = String::from_utf8_lossy(&stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        let mut files: BTreeMap<String, FileChange> = BTreeMap::new();
        while let Some(part) = parts.next() {
            if let Some(raw) = part.strip_prefix(':') {
                let status = raw.split(' ').next_back().and_then(|word| word.chars().next()).unwrap_or('M');
                let path = parts.next().unwrap_or_default().to_owned();
                files.insert(path.clone(), FileChange { path, status, additions: 0, deletions: 0 });
            } else {
                let mut words = part.splitn(3, '\t');
                let (added, removed) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                if let Some(file) = files.get_mut(words.next().unwrap_or_default()) {
                    // Binary files have a dash in the place of numbers.
                    (file.additions, file.deletions) = (added.parse().unwrap_or(0), removed.parse().unwrap_or(0));
                }
            }
        }
        Ok(files.into_values().collect())
    }

    /// A commit with the user as its author.
    pub(crate) fn plain_commit(&self, tree: Oid, parents: Vec<Oid>, message: &str) -> Result<Oid, GitError> {
        let message = format!("{}\n", message.trim_end()).into_bytes();
        self.commit_tree(NewCommit { tree, parents, message, authored_by: None, sign: Sign::No })
    }

    /// One commit for all of `head` that `base` does not have. Its author is that of the first one, if Git takes that name.
    pub(crate) fn squashed(&self, tree: Oid, (base, head): (Oid, Oid), message: &str) -> Result<Oid, GitError> {
        let mut objects = self.object_reader()?;
        let read = |commit| self.readable_commit(&mut objects, commit);
        let commits: Vec<_> = self.between(base, head)?.into_iter().map(read).collect::<Result<_, _>>()?;
        let message = with_authors(message, &commits).into_bytes();
        let first = commits.into_iter().next().filter(RawCommit::has_author_name);
        let (parents, authored_by) = (vec![base], first.as_ref());
        self.commit_tree(NewCommit { tree, parents, message, authored_by, sign: Sign::No })
    }

    /// The commits of `head` that `base` does not have, oldest first, without merges.
    pub(crate) fn between(&self, base: Oid, head: Oid) -> Result<Vec<Oid>, GitError> {
        let range = [format!("^{base}"), head.to_string()];
        let listed = self.call("rev-list").args(["--reverse", "--topo-order", "--no-merges"]).args(range).run()?;
        Ok(listed.split(|byte| *byte == b'\n').filter_map(Oid::from_hex).collect())
    }

    /// The commits of `head` that `base` does not have, picked one by one onto it; `None` on a conflict.
    pub(crate) fn picked_onto(&self, mut picker: Picker, base: Oid, head: Oid) -> Result<Option<Oid>, GitError> {
        let committer = self.committer()?;
        let mut objects: ObjectReader = self.object_reader()?;
        let mut tip = base;
        for commit in self.between(base, head)? {
            match self.pick(&mut objects, &mut picker, Pick { commit, onto: tip, committer: &committer })? {
                Picked::Done(new) => tip = new,
                Picked::Conflict(_) => return Ok(None),
            }
        }
        picker.flush(self)?;
        Ok(Some(tip))
    }

    /// Every commit that one of these branches was at, as far as reflogs remember.
    pub(crate) fn former_tips(&self, names: &[RefName]) -> Result<Vec<Oid>, GitError> {
        let mut tips = Vec::new();
        // Names of five hundred bytes each would still fit.
        for names in names.chunks(2000) {
            let call = self.call("log").args(["--walk-reflogs", "--format=%H", "--no-show-signature"]);
            let stdout = call.args(names.iter().map(RefName::as_str)).arg("--").run()?;
            tips.extend(stdout.split(|byte| *byte == b'\n').filter_map(Oid::from_hex));
        }
        Ok(tips)
    }
}

const CO_AUTHOR: &str = "Co-authored-by: ";

/// A message that names everybody at its end, where Git looks for it: who is named in it, and whoever made one of the
/// commits and is not the author of all.
fn with_authors(message: &str, commits: &[RawCommit]) -> String {
    let is_named = |line: &&str| line.get(..CO_AUTHOR.len()).is_some_and(|start| start.eq_ignore_ascii_case(CO_AUTHOR));
    let rest: Vec<_> = message.lines().filter(|line| !is_named(line)).collect();
    let messages = commits.iter().map(|commit| String::from_utf8_lossy(&commit.message));
    let said: Vec<_> = messages.chain([message.into()]).collect();
    let named = said.iter().flat_map(|text| text.lines().filter(is_named)).map(|line| line[CO_AUTHOR.len()..].trim());
    let author = commits.first().map(RawCommit::author_name).unwrap_or_default();
    let mut others: Vec<_> = commits.iter().map(RawCommit::author_name).chain(named.map(str::to_owned)).collect();
    others.retain(|name| *name != author);
    let mut seen = BTreeSet::new();
    let lines: String =
        others.iter().filter(|name| seen.insert(*name)).map(|name| format!("{CO_AUTHOR}{name}\n")).collect();
    let rest = rest.join("\n");
    let rest = rest.trim_end();
    // Only the last paragraph counts, and only if nothing else is in it.
    let is_trailer = |line: &str| line.split_once(": ").is_some_and(|(key, _)| is_token(key));
    let ends_with_trailers = rest.rsplit_once("\n\n").is_some_and(|(_, last)| last.lines().all(is_trailer));
    let gap = if lines.is_empty() || ends_with_trailers { "" } else { "\n" };
    format!("{rest}\n{gap}{lines}")
}

/// Whether Git takes this for the key of a trailer.
fn is_token(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether one push can name all of these.
pub(crate) fn fits(updates: &[RemoteUpdate]) -> bool {
    let (leases, refspecs) = push_arguments(updates);
    leases.iter().chain(&refspecs).map(|argument| argument.len() + 1).sum::<usize>() < ARGUMENT_BYTES
}

/// For each ref the value that it must have, and the one that it gets.
fn push_arguments(updates: &[RemoteUpdate]) -> (Vec<String>, Vec<String>) {
    let text = |value: Option<Oid>| value.map(|oid| oid.to_string()).unwrap_or_default();
    let lease = |update: &RemoteUpdate| format!("--force-with-lease={}:{}", update.name, text(update.expected.value()));
    let refspec = |update: &RemoteUpdate| format!("{}:{}", text(update.to), update.name);
    (updates.iter().map(lease).collect(), updates.iter().map(refspec).collect())
}

/// The lines of refused refs in what `push --porcelain` prints: a flag, `from:to`, and a remark.
fn not_taken(stdout: &[u8]) -> NotTaken {
    let text = String::from_utf8_lossy(stdout);
    let refused = text.lines().filter_map(|line| line.strip_prefix("!\t"));
    let entry = |line: &str| {
        let (refs, remark) = line.split_once('\t')?;
        let (_, to) = refs.rsplit_once(':')?;
        Some((RefName::new(to).ok()?, remark.to_owned()))
    };
    refused.filter_map(entry).collect()
}

/// What must be there, as a lease reads it.
pub(crate) fn matches(expected: Expected, found: Option<Oid>) -> bool {
    expected.value() == found
}
