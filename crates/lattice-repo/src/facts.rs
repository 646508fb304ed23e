//! What a scan learns from objects: history, metadata, and the newest record of the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use lattice_model::id::{ContentDigest, Oid};
use lattice_model::name::{BranchName, RefName};
use lattice_model::snapshot::{LedgerReading, MetadataProblem, MetadataReading};

use crate::Repo;
use crate::defect::Defect;
use crate::format;
use crate::git::GitError;
use crate::git::commits::RawCommit;
use crate::git::history::Walk;
use crate::git::objects::Blob;
use crate::recall::Recalled;
use crate::scan::RefsRead;

const NO_COMMIT: &str = "it is no commit";

/// Larger records of the ledger are not read.
const RECORD_LIMIT: u64 = 256 * 1024 * 1024;

/// What a scan learns from objects.
pub(crate) struct Facts {
    pub(crate) metadata: BTreeMap<BranchName, MetadataReading>,
    pub(crate) walked: Walked,
    pub(crate) ledger: LedgerReading,
}

/// The commits of the stacks, and the branches whose commits cannot be walked.
pub(crate) struct Walked {
    pub(crate) parents: BTreeMap<Oid, Vec<Oid>>,
    pub(crate) unreadable: BTreeMap<BranchName, String>,
}

impl Repo {
    /// Starts the processes that read history and objects.
    pub(crate) fn start_reading(&self) -> Result<Walk, GitError> {
        let walk = self.git.start_walk()?;
        self.with_objects(|_| Ok(()))?;
        Ok(walk)
    }

    /// Reads what the refs lead to, and keeps it under the key. `meanwhile` is computed while git works.
    pub(crate) fn read_facts<T: Send>(
        &self,
        walk: Walk,
        (read, branches, trunk): (&RefsRead, &BTreeMap<BranchName, Oid>, Option<Oid>),
        meanwhile: impl FnOnce() -> T + Send,
        key: Option<&ContentDigest>,
    ) -> Result<(Facts, T), GitError> {
        let tips: BTreeSet<Oid> =
            read.refs.keys().filter_map(RefName::as_metadata_of).filter_map(|b| branches.get(&b).copied()).collect();
        let mut recalled = key.map(|_| Recalled::default());
        // The two processes answer independent questions; on two cores they overlap.
        let (metadata, parents, meanwhile) = thread::scope(|scope| {
            let walk = scope.spawn(move || walk.parents_of(tips, trunk));
            let meanwhile = scope.spawn(meanwhile);
            let metadata = self.read_metadata(read, recalled.as_mut());
            let (parents, meanwhile) = (walk.join(), meanwhile.join());
            (metadata, parents.expect("bug: reading history does not panic"), meanwhile.expect("bug: no panic there"))
        });
        let metadata = metadata?;
        let walked = match parents {
            Ok(parents) => Walked { parents, unreadable: BTreeMap::new() },
            Err(GitError::Failed { .. }) => self.walk_one_by_one(branches, &metadata, trunk)?,
            Err(error) => return Err(error),
        };
        let record = read.ledger.map(|commit| self.record_text(commit)).transpose()?;
        let ledger = ledger_reading(read.ledger, record.as_ref());
        let sound = metadata.values().all(|reading| reading.content.is_ok())
            && walked.unreadable.is_empty()
            && !matches!(ledger, LedgerReading::Damaged { .. });
        if let (Some(key), Some(mut recalled), true) = (key, recalled, sound) {
            recalled.parents.clone_from(&walked.parents);
            recalled.ledger = record.and_then(Result::ok);
            self.remember(key, &recalled);
        }
        Ok((Facts { metadata, walked, ledger }, meanwhile))
    }

    /// The same from what an earlier look kept.
    pub(crate) fn recalled_facts(&self, key: &ContentDigest, read: &RefsRead) -> Option<Facts> {
        let recalled = self.recall(key)?;
        let mut metadata = BTreeMap::new();
        for (branch, oid) in read.metadata() {
            let content = format::metadata::parse(recalled.metadata.get(&oid)?, &branch, oid.hex_len());
            metadata.insert(branch, MetadataReading { oid, content });
        }
        let record = recalled.ledger.map(Ok);
        let ledger = ledger_reading(read.ledger, record.as_ref());
        let walked = Walked { parents: recalled.parents, unreadable: BTreeMap::new() };
        Some(Facts { metadata, walked, ledger })
    }

    /// Walks each branch by itself, after a walk of all of them failed: one that is damaged must neither hide the
    /// others nor look like a branch without commits, which a restack would then throw away.
    fn walk_one_by_one(
        &self,
        branches: &BTreeMap<BranchName, Oid>,
        metadata: &BTreeMap<BranchName, MetadataReading>,
        trunk: Option<Oid>,
    ) -> Result<Walked, GitError> {
        let mut walked = Walked { parents: BTreeMap::new(), unreadable: BTreeMap::new() };
        for branch in metadata.keys() {
            let Some(tip) = branches.get(branch) else { continue };
            match self.git.parents_of([*tip], trunk) {
                Ok(parents) => walked.parents.extend(parents),
                Err(GitError::Failed { stderr, .. }) => {
                    let said: Vec<_> = stderr.lines().map(str::trim).collect();
                    walked.unreadable.insert(branch.clone(), said.join("; "));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(walked)
    }

    fn read_metadata(
        &self,
        read: &RefsRead,
        mut recalled: Option<&mut Recalled>,
    ) -> Result<BTreeMap<BranchName, MetadataReading>, GitError> {
        let found: Vec<_> = read.metadata().collect();
        if found.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<_> = found.iter().map(|(_, oid)| oid.to_string()).collect();
        let mut readings = BTreeMap::new();
        self.with_objects(|objects| {
            objects.each_blob(&names, format::metadata::SIZE_LIMIT, |at, blob| {
                let (branch, oid) = &found[at];
                if let (Some(recalled), Blob::Content(bytes)) = (&mut recalled, &blob) {
                    recalled.metadata.insert(*oid, bytes.to_vec());
                }
                let content = match blob {
                    Blob::Missing => Err(MetadataProblem::Missing(*oid)),
                    Blob::Content(bytes) => format::metadata::parse(bytes, branch, oid.hex_len()),
                    Blob::Other(info) if info.kind == "blob" => {
                        Err(MetadataProblem::TooLarge { size: info.size, limit: format::metadata::SIZE_LIMIT })
                    }
                    Blob::Other(info) => Err(MetadataProblem::NotABlob(info.kind.clone())),
                };
                if content.is_ok() || !self.git.has(Defect::UnreadableIgnored) {
                    readings.insert(branch.clone(), MetadataReading { oid: *oid, content });
                }
            })
        })?;
        Ok(readings)
    }

    pub(crate) fn read_ledger_tip(&self, tip: Option<Oid>) -> Result<LedgerReading, GitError> {
        let record = tip.map(|commit| self.record_text(commit)).transpose()?;
        Ok(ledger_reading(tip, record.as_ref()))
    }

    /// The commit of a record; the inner `Err` says why there is none.
    pub(crate) fn read_record(&self, commit: Oid) -> Result<Result<RawCommit, &'static str>, GitError> {
        let text = self.record_text(commit)?;
        Ok(text.and_then(|text| RawCommit::parse(&text).ok_or(NO_COMMIT)))
    }

    /// As above, as git has it.
    fn record_text(&self, commit: Oid) -> Result<Result<Vec<u8>, &'static str>, GitError> {
        let info = self.with_objects(|objects| objects.info(&[commit.to_string()]))?.pop().flatten();
        // A blob may have the text of a commit, and be of any size.
        if info.is_some_and(|info| info.kind != "commit" || info.size > RECORD_LIMIT) {
            return Ok(Err("it is no commit of a sensible size"));
        }
        let bytes = self.with_objects(|objects| objects.contents(&[commit.to_string()]))?.pop().flatten();
        Ok(bytes.ok_or("the object is missing"))
    }
}

/// What the newest record of the ledger says.
fn ledger_reading(tip: Option<Oid>, record: Option<&Result<Vec<u8>, &'static str>>) -> LedgerReading {
    let (Some(commit), Some(record)) = (tip, record) else { return LedgerReading::Absent };
    let damaged = |reason: &str, below| LedgerReading::Damaged { commit, below, reason: reason.to_owned() };
    let raw = match record.as_ref().map(|bytes| RawCommit::parse(bytes)) {
        Ok(Some(raw)) => raw,
        Ok(None) => return damaged(NO_COMMIT, None),
        Err(reason) => return damaged(reason, None),
    };
    if raw.parents.len() > 1 {
        return damaged("it is a merge", Some(commit));
    }
    match format::event::parse(&raw.message) {
        Ok(event) => LedgerReading::Tip { commit, tree: raw.tree, event: Box::new(event) },
        Err(error) => damaged(&error.to_string(), Some(commit)),
    }
}
