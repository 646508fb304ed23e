//! What reviewers and checks said when the host was last asked: kept for commands that ask nobody.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lattice_model::host::{Pull, Standing};
use lattice_model::name::BranchName;
use lattice_repo::{publish_cache_file, read_own_file};

use crate::Engine;

/// A larger file is not ours.
const SIZE_LIMIT: u64 = 16 << 20;

impl Engine {
    /// By the addresses of pull requests. What cannot be read is not known.
    pub fn standings(&self) -> BTreeMap<String, Standing> {
        let Ok(Some(bytes)) = read_own_file(&self.standings_file(), SIZE_LIMIT) else { return BTreeMap::new() };
        let entry = |line: &str| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), Standing::of_words(words)))
        };
        String::from_utf8_lossy(&bytes).lines().filter_map(entry).collect()
    }

    pub(super) fn remember_standings(&self, pulls: &BTreeMap<BranchName, Pull>) {
        let before = self.standings();
        let mut known = before.clone();
        for pull in pulls.values() {
            known.insert(pull.url.clone(), pull.standing);
        }
        known.retain(|_, standing| *standing != Standing::default());
        let line = |(url, standing): (&String, &Standing)| format!("{url} {}\n", standing.words().join(" "));
        if known != before {
            // It is asked for again by whatever asks the host next.
            let _ = publish_cache_file(&self.standings_file(), known.iter().map(line).collect::<String>().as_bytes());
        }
    }

    fn standings_file(&self) -> PathBuf {
        self.repository().common_dir.join("lattice").join("cache").join("pulls-1")
    }
}
