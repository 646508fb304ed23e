//! Python: `pyproject.toml`, requirements files, and the locks of uv and poetry.

use toml_edit::{DocumentMut, Item, TableLike};

use super::{Declared, Ecosystem, Use};

pub(super) const PYTHON: Ecosystem = Ecosystem {
    name: "python",
    manifests: &["pyproject.toml", "requirements.txt", "requirements-dev.txt", "dev-requirements.txt"],
    locks: &["uv.lock", "poetry.lock", "pdm.lock"],
    declared,
    locked,
};

fn declared(name: &str, text: &str) -> Vec<Declared> {
    if name.ends_with(".txt") {
        let use_for = if name.contains("dev") { Use::Development } else { Use::Runtime };
        return text.lines().filter_map(|line| requirement(line, use_for)).collect();
    }
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let mut found = Vec::new();
    let project = document.get("project").and_then(Item::as_table_like);
    if let Some(list) = project.and_then(|project| project.get("dependencies")) {
        found.extend(of_list(list, Use::Runtime));
    }
    let extra = project.and_then(|project| project.get("optional-dependencies"));
    for groups in [extra, document.get("dependency-groups")].into_iter().flatten() {
        for (_, list) in groups.as_table_like().into_iter().flat_map(TableLike::iter) {
            found.extend(of_list(list, Use::Development));
        }
    }
    found.extend(poetry(&document).unwrap_or_default());
    found
}

fn of_list(list: &Item, use_for: Use) -> Vec<Declared> {
    let entries = list.as_array().into_iter().flatten();
    entries.filter_map(|entry| requirement(entry.as_str()?, use_for)).collect()
}

fn poetry(document: &DocumentMut) -> Option<Vec<Declared>> {
    let poetry = document.get("tool")?.as_table_like()?.get("poetry")?.as_table_like()?;
    let mut found = Vec::new();
    let mut add = |table: Option<&Item>, use_for: Use| {
        for (name, entry) in table.and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
            let version = entry.as_str().or_else(|| entry.as_table_like()?.get("version")?.as_str());
            found.push(Declared { name: name.to_owned(), wanted: version.unwrap_or_default().to_owned(), use_for });
        }
    };
    add(poetry.get("dependencies"), Use::Runtime);
    add(poetry.get("dev-dependencies"), Use::Development);
    for (_, group) in poetry.get("group").and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
        add(group.as_table_like().and_then(|group| group.get("dependencies")), Use::Development);
    }
    Some(found)
}

/// `name[extra] >= 1.0 ; marker  # comment`.
fn requirement(line: &str, use_for: Use) -> Option<Declared> {
    let line = line.split(['#', ';']).next()?.trim();
    if line.is_empty() || line.starts_with('-') {
        return None;
    }
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest);
    (!name.is_empty()).then(|| Declared { name: name.to_owned(), wanted: rest.trim().to_owned(), use_for })
}

fn locked(_: &str, text: &str) -> Vec<(String, String)> {
    toml_packages(text)
}

/// The `[[package]]` tables that the lock files of Cargo, uv and poetry share.
pub(super) fn toml_packages(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut name = None;
    for line in text.lines() {
        let value = |key: &str| Some(line.strip_prefix(key)?.trim().trim_matches('"').to_owned());
        if line == "[[package]]" {
            name = None;
        } else if let Some(found_name) = value("name = ") {
            name = name.or(Some(found_name));
        } else if let (Some(version), Some(name)) = (value("version = "), name.take()) {
            found.push((name, version));
        }
    }
    found
}
