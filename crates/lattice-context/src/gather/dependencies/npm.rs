//! npm, pnpm and yarn: `package.json` and the lock file of each.

use serde_json::Value;

use super::{Declared, Ecosystem, Use};

pub(super) const NPM: Ecosystem = Ecosystem {
    name: "npm",
    manifests: &["package.json"],
    locks: &["package-lock.json", "pnpm-lock.yaml", "yarn.lock"],
    declared,
    locked,
};

fn declared(_: &str, text: &str) -> Vec<Declared> {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let kinds = [
        ("dependencies", Use::Runtime),
        ("peerDependencies", Use::Runtime),
        ("optionalDependencies", Use::Runtime),
        ("devDependencies", Use::Development),
    ];
    let mut found = Vec::new();
    for (kind, use_for) in kinds {
        for (name, wanted) in document.get(kind).and_then(Value::as_object).into_iter().flatten() {
            let wanted = wanted.as_str().unwrap_or_default().to_owned();
            found.push(Declared { name: name.clone(), wanted, use_for });
        }
    }
    found
}

fn locked(name: &str, text: &str) -> Vec<(String, String)> {
    match name {
        "package-lock.json" => package_lock(text),
        "yarn.lock" => yarn_lock(text),
        _ => pnpm_lock(text),
    }
}

fn package_lock(text: &str) -> Vec<(String, String)> {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let packages = document.get("packages").and_then(Value::as_object).into_iter().flatten();
    let package = |(path, package): (&String, &Value)| {
        let name = path.strip_prefix("node_modules/").filter(|name| !name.contains("node_modules/"))?;
        Some((name.to_owned(), package.get("version")?.as_str()?.to_owned()))
    };
    packages.filter_map(package).collect()
}

/// `"name@range", "name@other":` with `version "1.2.3"` below it.
fn yarn_lock(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut name: Option<String> = None;
    for line in text.lines() {
        if !line.starts_with([' ', '#']) && line.ends_with(':') {
            let first = line.trim_end_matches(':').split(',').next().unwrap_or_default().trim().trim_matches('"');
            name = first.get(1..).and_then(|rest| rest.find('@')).map(|at| first[..at + 1].to_owned());
        } else if let Some(version) = line.trim().strip_prefix("version") {
            let version = version.trim_start_matches(':').trim().trim_matches('"').to_owned();
            found.extend(name.take().map(|name| (name, version)));
        }
    }
    found
}

/// Keys below `packages:` such as `name@1.2.3:` or `/name@1.2.3(peer):`.
fn pnpm_lock(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            inside = line == "packages:";
        }
        let key = line.strip_prefix("  ").filter(|rest| inside && !rest.starts_with(' ') && rest.ends_with(':'));
        let Some(key) = key else { continue };
        let key = key.trim_end_matches(':').trim_matches('\'').trim_start_matches('/');
        let key = key.split('(').next().unwrap_or(key);
        if let Some((name, version)) = key.rsplit_once('@').filter(|(name, _)| !name.is_empty()) {
            found.push((name.to_owned(), version.to_owned()));
        }
    }
    found
}
