//! Chooses the files that become candidates, and says what each is to the task.

use std::collections::BTreeMap;

use crate::chunk::ContextPriority;
use crate::gather::{Patterns, priority_of};
use crate::index::Index;
use crate::prioritize::Role;
use crate::retrieve::files::{FileKind, stem, tested_stem};
use crate::retrieve::history::History;
use crate::retrieve::imports::ModuleMap;
use crate::retrieve::rank::Ranked;
use crate::retrieve::terms;
use crate::task::TaskType;

/// A file that may be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub path: String,
    pub priority: ContextPriority,
    pub role: Option<Role>,
    /// From 0 to 1.
    pub relevance: f64,
}

/// What the choice is made from.
pub(super) struct Selection<'a> {
    pub index: &'a Index,
    pub history: &'a History,
    pub modules: &'a ModuleMap,
    pub ranked: &'a [Ranked],
    pub task: TaskType,
    /// Files that the user put in front.
    pub focus: &'a [String],
    /// Where errors are.
    pub error_places: &'a [String],
    /// Files that a diff touches.
    pub changed: &'a [String],
    pub critical: Option<&'a Patterns>,
    pub include: Option<&'a Patterns>,
    pub exclude: Option<&'a Patterns>,
    pub max_files: usize,
}

/// So many files are strongly related by retrieval alone.
const STRONG: usize = 10;

/// And only if they are this near to the best of them.
const STRONG_RELEVANCE: f64 = 0.3;

/// Files of one role, at most.
const MOST_OF_ROLE: usize = 4;

/// Where a target is known, what retrieval alone found comes after what belongs to the target.
const BEHIND_ROLES: f64 = 0.7;

/// Commits whose files count as recent changes.
const RECENT_COMMITS: usize = 5;

/// The roles of each task in their order, with the relevance that keeps this order.
fn roles(task: TaskType) -> &'static [(Role, f64)] {
    match task {
        TaskType::Implement => {
            &[(Role::Target, 1.0), (Role::Interface, 0.95), (Role::Importer, 0.9), (Role::Test, 0.85)]
        }
        TaskType::Debug => &[(Role::Target, 1.0), (Role::Trace, 0.95), (Role::Recent, 0.8)],
        TaskType::Refactor => {
            &[(Role::Target, 1.0), (Role::Importer, 0.95), (Role::Test, 0.9), (Role::Dependency, 0.8)]
        }
        TaskType::Test => &[(Role::Target, 1.0), (Role::Test, 0.9), (Role::Fixture, 0.85)],
        TaskType::Analyze => &[(Role::Target, 1.0)],
    }
}

impl Selection<'_> {
    /// The candidates, best first, at most `max_files`.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut chosen: BTreeMap<String, Candidate> = BTreeMap::new();
        let targets = self.targets();
        let scale = if targets.is_empty() { 1.0 } else { BEHIND_ROLES };
        for path in self.focus.iter().chain(self.error_places) {
            self.choose(&mut chosen, path, (ContextPriority::Critical, Some(Role::Target), 1.0));
        }
        for (role, relevance) in roles(self.task) {
            for (place, path) in self.with_role(*role, &targets).into_iter().enumerate() {
                let relevance = relevance - 0.005 * place as f64;
                self.choose(&mut chosen, &path, (ContextPriority::High, Some(*role), relevance));
            }
        }
        for path in self.changed {
            self.choose(&mut chosen, path, (ContextPriority::High, Some(Role::Recent), 0.75));
        }
        let weak = |path: &str| {
            let found = self.ranked.iter().take(STRONG).find(|ranked| ranked.path == path);
            found.is_none_or(|ranked| ranked.relevance < STRONG_RELEVANCE)
        };
        for path in self.indirect(&targets).iter().filter(|path| weak(path)) {
            self.choose(&mut chosen, path, (ContextPriority::Minimal, None, 0.0));
        }
        let explicit = chosen.len();
        for (rank, ranked) in self.ranked.iter().enumerate() {
            // Those that follow are behind; only a pattern could put one in front.
            if self.critical.is_none() && chosen.len() >= explicit + self.max_files {
                break;
            }
            let usual = priority_of(&ranked.path);
            let is_strong = rank < STRONG && ranked.relevance >= STRONG_RELEVANCE;
            let priority = if is_strong { ContextPriority::High.max(usual) } else { usual };
            self.choose(&mut chosen, &ranked.path, (priority, None, ranked.relevance * scale));
        }
        self.fill_up(&mut chosen);
        let mut candidates: Vec<Candidate> = chosen.into_values().collect();
        candidates.sort_by(|one, other| {
            let strength = |candidate: &Candidate| {
                let explicit = candidate.priority == ContextPriority::Critical || candidate.role.is_some();
                (u8::from(explicit), candidate.relevance)
            };
            let (one_key, other_key) = (strength(one), strength(other));
            let by_relevance = || other_key.1.total_cmp(&one_key.1);
            other_key.0.cmp(&one_key.0).then_with(by_relevance).then_with(|| one.path.cmp(&other.path))
        });
        candidates.truncate(self.max_files);
        candidates
    }

    /// Where few files have to do with the request, there is room for others: sources first.
    fn fill_up(&self, chosen: &mut BTreeMap<String, Candidate>) {
        if chosen.len() >= self.max_files {
            return;
        }
        let others = self.index.files.iter().map(|file| (FileKind::of(&file.path), file.path.as_str()));
        let is_text = |(kind, _): &(FileKind, &str)| !matches!(kind, FileKind::Generated | FileKind::Data);
        let mut others: Vec<_> = others.filter(is_text).collect();
        others.sort();
        for (_, path) in others {
            if chosen.len() >= self.max_files {
                break;
            }
            self.choose(chosen, path, (ContextPriority::Minimal, None, 0.0));
        }
    }

    /// Takes a file in unless it is there already, with the strongest reason that comes first.
    fn choose(
        &self,
        chosen: &mut BTreeMap<String, Candidate>,
        path: &str,
        (priority, role, relevance): (ContextPriority, Option<Role>, f64),
    ) {
        let is_named = self.focus.iter().any(|named| named == path);
        let fits = self.include.is_none_or(|patterns| patterns.fits(path));
        let is_excluded = self.exclude.is_some_and(|patterns| patterns.fits(path));
        if chosen.contains_key(path) || (!is_named && (!fits || is_excluded)) {
            return;
        }
        let is_critical = self.critical.is_some_and(|patterns| patterns.fits(path));
        let priority = if is_critical { ContextPriority::Critical } else { priority };
        chosen.insert(path.to_owned(), Candidate { path: path.to_owned(), priority, role, relevance });
    }

    /// The files that the request is about in so many words.
    fn targets(&self) -> Vec<String> {
        let mut targets: Vec<String> = self.focus.to_vec();
        let named = self.ranked.iter().filter(|ranked| ranked.signals.path >= 1.0);
        targets.extend(named.map(|ranked| ranked.path.clone()).take(MOST_OF_ROLE));
        targets.dedup();
        targets
    }

    fn with_role(&self, role: Role, targets: &[String]) -> Vec<String> {
        let mut paths = match role {
            Role::Target => targets.to_vec(),
            Role::Interface | Role::Dependency => self.by_relevance(self.imported_by(targets)),
            Role::Importer => self.by_relevance(self.importers(targets)),
            Role::Test => self.by_relevance(self.tests(targets)),
            Role::Fixture => self.fixtures(targets),
            Role::Trace => {
                let on_trace = self.ranked.iter().filter(|ranked| ranked.signals.frame > 0.0);
                let mut on_trace: Vec<_> = on_trace.collect();
                on_trace.sort_by(|one, other| other.signals.frame.total_cmp(&one.signals.frame));
                on_trace.into_iter().map(|ranked| ranked.path.clone()).collect()
            }
            Role::Recent => self.history.recent(RECENT_COMMITS).into_iter().map(str::to_owned).collect(),
        };
        paths.retain(|path| role == Role::Target || !targets.contains(path));
        paths.truncate(MOST_OF_ROLE);
        paths
    }

    /// Those that retrieval likes best first.
    fn by_relevance(&self, mut paths: Vec<String>) -> Vec<String> {
        if paths.is_empty() {
            return paths;
        }
        let rank: BTreeMap<&str, usize> =
            self.ranked.iter().enumerate().map(|(rank, ranked)| (ranked.path.as_str(), rank)).collect();
        paths.sort_by_key(|path| (rank.get(path.as_str()).copied().unwrap_or(usize::MAX), path.clone()));
        paths.dedup();
        paths
    }

    fn imported_by(&self, targets: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for target in targets {
            let record = self.index.number_of(target).and_then(|number| self.index.record(number)).unwrap_or_default();
            let files = record.imports.iter().flat_map(|import| self.modules.resolve(target, import));
            found.extend(files.map(|file| self.index.files[file as usize].path.clone()));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Files that bring a target in; only those that contain its name are looked at.
    fn importers(&self, targets: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for target in targets {
            let Some(number) = self.index.number_of(target) else { continue };
            let mut name = stem(target).to_owned();
            if matches!(name.as_str(), "__init__" | "mod" | "index" | "lib") {
                let folder = target.rsplit_once('/').map_or("", |(folder, _)| folder);
                stem(folder).clone_into(&mut name);
            }
            let mut hashes = Vec::new();
            terms::of_word(&name, |term| hashes.push(terms::hash(term)));
            let Some(last) = hashes.pop() else { continue };
            let mentioning = self.index.occurrences(&[last]);
            for occurrence in mentioning.iter().flatten().take(2000) {
                let path = &self.index.files[occurrence.file as usize].path;
                let record = self.index.record(occurrence.file).unwrap_or_default();
                if record.imports.iter().any(|import| self.modules.resolve(path, import).contains(&number)) {
                    found.push(path.clone());
                }
            }
        }
        found.retain(|path| FileKind::of(path) != FileKind::Test || self.task == TaskType::Test);
        found
    }

    fn tests(&self, targets: &[String]) -> Vec<String> {
        let stems: Vec<&str> = targets.iter().map(|target| stem(target)).collect();
        let is_test_of = |path: &str| tested_stem(path).is_some_and(|tested| stems.contains(&tested));
        let paths = self.index.files.iter().map(|file| file.path.as_str());
        let mut found: Vec<String> = paths.filter(|path| is_test_of(path)).map(str::to_owned).collect();
        if found.is_empty() {
            let wider = Selection { task: TaskType::Test, ..*self };
            found = wider.importers(targets);
            found.retain(|path| FileKind::of(path) == FileKind::Test);
        }
        found
    }

    /// Data of tests, that nearest to the target first.
    fn fixtures(&self, targets: &[String]) -> Vec<String> {
        let top = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        let tops: Vec<String> = targets.iter().map(|target| top(target)).collect();
        let is_fixture = |path: &&str| FileKind::of(path) == FileKind::Fixture;
        let mut found: Vec<&str> = self.index.files.iter().map(|file| file.path.as_str()).filter(is_fixture).collect();
        found.sort_by_key(|path| (!tops.contains(&top(path)), *path));
        found.into_iter().take(MOST_OF_ROLE).map(str::to_owned).collect()
    }

    /// What the target's own imports bring in.
    fn indirect(&self, targets: &[String]) -> Vec<String> {
        if targets.is_empty() {
            return Vec::new();
        }
        let direct = self.imported_by(targets);
        let mut indirect = self.imported_by(&direct);
        indirect.retain(|path| !direct.contains(path) && !targets.contains(path));
        indirect.truncate(MOST_OF_ROLE * 2);
        indirect
    }
}
