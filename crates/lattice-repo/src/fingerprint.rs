//! The fingerprint: one hash over every ref value that Lattice depends on.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use lattice_model::event::RefChange;
use lattice_model::id::{ContentDigest, Fingerprint, Oid};
use lattice_model::name::{BranchName, RefName};

/// Name of the entry for the configuration, which is no ref.
const CONFIG: &str = "lattice/config.toml";

/// The values that the fingerprint covers: trunk, tracked branches, their metadata, the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Covered {
    refs: BTreeMap<RefName, Oid>,
    config: Option<ContentDigest>,
}

impl Covered {
    /// Picks from all branch and metadata refs.
    pub(crate) fn new(
        refs: &BTreeMap<RefName, Oid>,
        trunk: Option<&BranchName>,
        config: Option<ContentDigest>,
    ) -> Self {
        let tracked: HashSet<_> = refs.keys().filter_map(RefName::metadata_of).collect();
        let trunk = trunk.map(BranchName::as_str);
        let covers = |name: &RefName| {
            let branch = name.branch();
            name.metadata_of().is_some()
                || branch.is_some_and(|branch| Some(branch) == trunk || tracked.contains(branch))
        };
        let refs = refs.iter().filter(|(name, _)| covers(name)).map(|(name, oid)| (name.clone(), *oid)).collect();
        Self { refs, config }
    }

    /// One line per entry, sorted by name: `<value> <name>`. The ledger stores this text.
    pub(crate) fn text(&self) -> String {
        // `lattice/…` sorts before `refs/…`, and the map is sorted already.
        let mut text = String::with_capacity(self.refs.len() * 80);
        if let Some(config) = &self.config {
            text.extend([config.as_str(), " ", CONFIG, "\n"]);
        }
        for (name, oid) in &self.refs {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{oid} {name}");
        }
        text
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.text().as_bytes())
    }

    /// What changed since the text that the ledger stored.
    ///
    /// A ref may be covered no longer and still be there, such as a trunk that the configuration does not name any more:
    /// `refs` has them all.
    pub(crate) fn changes_since(&self, stored: &str, refs: &BTreeMap<RefName, Oid>) -> Vec<RefChange> {
        let parse = |line: &str| {
            let (value, name) = line.split_once(' ')?;
            Some((RefName::new(name).ok()?, Oid::new(value).ok()?))
        };
        let old: BTreeMap<_, _> = stored.lines().filter_map(parse).collect();
        let names: BTreeSet<_> = old.keys().chain(self.refs.keys()).collect();
        let change = |name: &RefName| RefChange {
            name: name.clone(),
            old: old.get(name).copied(),
            new: refs.get(name).copied(),
        };
        names.into_iter().map(change).filter(|change| change.old != change.new).collect()
    }

    /// What changed since then and is no ref.
    pub(crate) fn files_since(&self, stored: &str) -> Vec<&'static str> {
        let old = stored.lines().find_map(|line| line.strip_suffix(CONFIG)).map(str::trim_end);
        let same = old == self.config.as_ref().map(ContentDigest::as_str);
        if same { Vec::new() } else { vec![CONFIG] }
    }
}
