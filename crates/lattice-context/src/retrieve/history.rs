//! What recent commits say: files that change often, lately, and together.

use std::collections::HashMap;

use lattice_repo::{CommitPaths, Reader, publish_cache_file};

/// How many commits are looked at.
const COMMITS: usize = 400;

/// A commit that touches more files than this says nothing about any two of them.
const MOST_TOUCHED: usize = 30;

/// Recent commits, newest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    commits: Vec<Vec<String>>,
}

impl History {
    /// Reads the history of HEAD; from the cache if HEAD was seen before.
    pub fn read(reader: &Reader) -> Self {
        let Ok(Some(head)) = reader.resolve("HEAD") else { return Self::default() };
        let path = reader.cache_dir().join(format!("history-1-{head}"));
        let limit = 16 << 20;
        if let Ok(Some(bytes)) = lattice_repo::read_own_file(&path, limit)
            && let Some(found) = String::from_utf8(bytes).ok().and_then(|text| Self::from_text(&text))
        {
            return found;
        }
        let Ok(commits) = reader.recent_paths(COMMITS) else { return Self::default() };
        let history = Self::of(&commits);
        // A cache that cannot be written only costs time.
        let _ = publish_cache_file(&path, history.to_text().as_bytes());
        history
    }

    fn of(commits: &[CommitPaths]) -> Self {
        let text = |path: &Vec<u8>| String::from_utf8(path.clone()).ok().filter(|path| !path.contains('\n'));
        let paths = |commit: &CommitPaths| commit.paths.iter().take(MOST_TOUCHED + 1).filter_map(text).collect();
        Self { commits: commits.iter().map(paths).collect() }
    }

    fn to_text(&self) -> String {
        let commit = |paths: &Vec<String>| format!("{}\n", paths.join("\n"));
        let body: Vec<String> = self.commits.iter().map(commit).collect();
        format!("{}\nend\n", body.join("\n"))
    }

    /// A file that was cut off has no end and counts as none.
    fn from_text(text: &str) -> Option<Self> {
        let body = text.strip_suffix("\nend\n")?;
        let commit = |part: &str| part.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Some(Self { commits: body.split("\n\n").map(commit).collect() })
    }

    /// How much each file changed lately, from 0 to 1.
    pub fn recency(&self) -> HashMap<&str, f64> {
        let mut recency: HashMap<&str, f64> = HashMap::new();
        for (age, commit) in self.commits.iter().enumerate() {
            if commit.len() > MOST_TOUCHED {
                continue;
            }
            let weight = 1.0 / (1.0 + age as f64 / 20.0);
            for path in commit {
                *recency.entry(path).or_default() += weight;
            }
        }
        let most = recency.values().copied().fold(1.0, f64::max);
        recency.values_mut().for_each(|value| *value /= most);
        recency
    }

    /// Files that change together with `path`, and in how many of its commits.
    pub fn together_with(&self, path: &str) -> HashMap<&str, f64> {
        let mut counts: HashMap<&str, f64> = HashMap::new();
        let mut own = 0.0;
        for commit in self.commits.iter().filter(|commit| commit.len() <= MOST_TOUCHED) {
            if commit.iter().any(|touched| touched == path) {
                own += 1.0;
                for other in commit.iter().filter(|other| *other != path) {
                    *counts.entry(other).or_default() += 1.0;
                }
            }
        }
        counts.values_mut().for_each(|count| *count /= own + 1.0);
        counts
    }

    /// Paths of the newest `count` commits, newest first, each once.
    pub fn recent(&self, count: usize) -> Vec<&str> {
        let mut seen = Vec::new();
        for path in self.commits.iter().take(count).filter(|commit| commit.len() <= MOST_TOUCHED).flatten() {
            if !seen.contains(&path.as_str()) {
                seen.push(path);
            }
        }
        seen
    }
}
