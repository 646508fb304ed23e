//! Lists refs: names, values, and where branches are checked out.

use std::path::PathBuf;

use lattice_model::id::Oid;
use lattice_model::name::RefName;

use super::error::GitError;
use super::process::{Git, Started};

/// One ref as git lists it.
#[derive(Debug, Clone)]
pub(crate) struct ListedRef {
    /// Bytes, since git does not promise text.
    pub(crate) name: Vec<u8>,
    pub(crate) oid: Oid,
    pub(crate) worktree: Option<PathBuf>,
}

/// The refs and what git complained about while it listed them.
pub(crate) struct Listing {
    pub(crate) refs: Vec<ListedRef>,
    pub(crate) warnings: Vec<String>,
    /// What git said.
    pub(crate) text: Vec<u8>,
}

/// Objects are not looked at, so that a ref to a missing one is still listed.
const FORMAT: &str = "%(refname)%00%(objectname)%00%(worktreepath)%00";

impl Git {
    /// All refs below `patterns`.
    pub(crate) fn list_refs(&self, patterns: &[&str]) -> Result<Listing, GitError> {
        self.start_listing(patterns)?.finish()
    }

    /// As `list_refs`, to be asked for its result later.
    pub(crate) fn start_listing(&self, patterns: &[&str]) -> Result<StartedListing, GitError> {
        let call = self.call(LISTING).arg(format!("--format={FORMAT}")).args(patterns.iter().copied());
        Ok(StartedListing(call.start()?))
    }
}

const LISTING: &str = "for-each-ref";

/// A git that lists refs.
pub(crate) struct StartedListing(Started);

impl StartedListing {
    pub(crate) fn finish(self) -> Result<Listing, GitError> {
        let finished = self.0.finish(None)?;
        let warnings = finished.stderr.lines().map(str::to_owned).collect();
        let stdout = finished.check(LISTING)?;
        Ok(Listing { refs: parse(&stdout)?, warnings, text: stdout })
    }
}

/// A ref with the time of the commit it points to.
pub(crate) struct DatedRef {
    pub(crate) name: RefName,
    pub(crate) oid: Oid,
    pub(crate) seconds: i64,
}

impl Git {
    /// All refs below `prefix` with the times of their commits.
    pub(crate) fn dated_refs(&self, prefix: &str) -> Result<Vec<DatedRef>, GitError> {
        let format = "--format=%(refname) %(objectname) %(committerdate:unix)";
        let stdout = self.call("for-each-ref").args([format, prefix]).run()?;
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (name, oid, seconds) = (words.next()?, words.next()?, words.next()?);
            Some(DatedRef { name: RefName::new(name).ok()?, oid: Oid::new(oid).ok()?, seconds: seconds.parse().ok()? })
        };
        Ok(String::from_utf8_lossy(&stdout).lines().filter_map(line).collect())
    }
}

/// Three fields that end in NUL, then a newline. A path may contain a newline, a NUL never.
fn parse(mut rest: &[u8]) -> Result<Vec<ListedRef>, GitError> {
    let unexpected = || GitError::unexpected("for-each-ref", "a record that is not in the format asked for");
    let mut refs = Vec::new();
    while !rest.is_empty() {
        let mut fields = [&rest[..0]; 3];
        for field in &mut fields {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(unexpected)?;
            *field = &rest[..end];
            rest = &rest[end + 1..];
        }
        rest = rest.strip_prefix(b"\n").ok_or_else(unexpected)?;
        let oid = Oid::from_hex(fields[1]).ok_or_else(unexpected)?;
        refs.push(ListedRef { name: fields[0].to_owned(), oid, worktree: path(fields[2]) });
    }
    Ok(refs)
}

pub(crate) fn path(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    (!bytes.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}
