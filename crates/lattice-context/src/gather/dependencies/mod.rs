//! What a project depends on, from its manifests and lock files: one file and one row per ecosystem.

mod cargo;
mod go;
mod npm;
mod python;

use std::collections::BTreeMap;

use super::{Gathered, chunk, skipped};
use crate::chunk::{ChunkType, ContextPriority};
use crate::workspace::{Cut, Skip, Workspace};

/// A package that a manifest asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declared {
    pub name: String,
    /// The versions that are allowed, as it is written.
    pub wanted: String,
    pub use_for: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    Runtime,
    Development,
    Indirect,
}

/// A package manager: its files and how to read them.
pub struct Ecosystem {
    pub name: &'static str,
    pub manifests: &'static [&'static str],
    pub locks: &'static [&'static str],
    /// From the name and text of a manifest.
    pub declared: fn(&str, &str) -> Vec<Declared>,
    /// Names and versions, from the name and text of a lock file.
    pub locked: fn(&str, &str) -> Vec<(String, String)>,
}

pub static ECOSYSTEMS: &[Ecosystem] = &[cargo::CARGO, npm::NPM, python::PYTHON, go::GO];

/// Manifests beyond this many are not read.
const MOST_MANIFESTS: usize = 40;

/// Lock files are long.
const LIMIT: u64 = 16 << 20;

/// Packages that are listed for one manifest.
const MOST_LISTED: usize = 200;

pub(super) fn gather(workspace: &Workspace) -> Gathered {
    let entries = match workspace.entries() {
        Ok(entries) => entries,
        Err(error) => return Gathered::nothing(format!("the dependencies are missing: {error}")),
    };
    let mut warnings = Vec::new();
    let mut text = String::new();
    for ecosystem in ECOSYSTEMS {
        let named = |names: &[&str]| -> Vec<&str> {
            let fits = |path: &&str| names.contains(&path.rsplit('/').next().unwrap_or(path));
            let mut paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).filter(fits).collect();
            paths.sort_by_key(|path| (path.matches('/').count(), *path));
            paths.truncate(MOST_MANIFESTS);
            paths
        };
        let mut read = |path: &str| match workspace.read(path, LIMIT) {
            Ok(file) if file.cut == Cut::Whole => Some(file.text),
            Ok(_) => {
                warnings.push(skipped(path, &Skip::TooLarge { size: LIMIT, limit: LIMIT }));
                None
            }
            Err(skip) => {
                warnings.push(skipped(path, &skip));
                None
            }
        };
        let mut locked = BTreeMap::new();
        for path in named(ecosystem.locks) {
            let text = read(path).unwrap_or_default();
            locked.extend((ecosystem.locked)(path.rsplit('/').next().unwrap_or(path), &text));
        }
        for path in named(ecosystem.manifests) {
            let manifest = read(path).unwrap_or_default();
            let declared = (ecosystem.declared)(path.rsplit('/').next().unwrap_or(path), &manifest);
            text.push_str(&section(ecosystem.name, path, declared, &locked));
        }
    }
    if text.is_empty() {
        return Gathered { chunks: Vec::new(), warnings };
    }
    let made = chunk(workspace, text, "workspace", ChunkType::Dependency, ContextPriority::Medium);
    Gathered { chunks: vec![made], warnings }
}

fn section(name: &str, path: &str, mut declared: Vec<Declared>, locked: &BTreeMap<String, String>) -> String {
    declared.sort_by(|one, other| (one.use_for, &one.name).cmp(&(other.use_for, &other.name)));
    declared.dedup_by(|one, other| one.name == other.name);
    if declared.is_empty() {
        return String::new();
    }
    let mut text = format!("{path} ({name}):\n");
    for package in declared.iter().take(MOST_LISTED) {
        let wanted = if package.wanted.is_empty() { String::new() } else { format!(" {}", package.wanted) };
        let version = locked.get(&package.name).map(|version| format!(" = {version}")).unwrap_or_default();
        let use_for = match package.use_for {
            Use::Runtime => "",
            Use::Development => " (development)",
            Use::Indirect => " (indirect)",
        };
        text.push_str(&format!("- {}{wanted}{version}{use_for}\n", package.name));
    }
    if declared.len() > MOST_LISTED {
        text.push_str(&format!("- and {} more\n", declared.len() - MOST_LISTED));
    }
    let direct = |name: &&String| declared.iter().any(|package| package.name == **name);
    let indirect = locked.keys().filter(|name| !direct(name)).count();
    if indirect > 0 {
        text.push_str(&format!("- and {indirect} that these need\n"));
    }
    text
}
