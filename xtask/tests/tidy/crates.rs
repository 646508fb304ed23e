//! Which crate may use which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml_edit::{DocumentMut, Item, TableLike};

use super::{assert_kept, offenders, product};

const MODEL: &str = "lattice-model";
const REPO: &str = "lattice-repo";
const FORGE: &str = "lattice-forge";
const ENGINE: &str = "lattice-engine";
const CONTEXT: &str = "lattice-context";
const SPRITES: &str = "lattice-sprites";
const SERVE: &str = "lattice-serve";
const TESTKIT: &str = "lattice-testkit";

/// Each crate and the crates of this workspace that it may use; nothing may use the program.
const MAY_USE: [(&str, &[&str]); 10] = [
    (MODEL, &[]),
    (TESTKIT, &[]),
    (REPO, &[MODEL]),
    (FORGE, &[MODEL]),
    (ENGINE, &[MODEL, REPO, FORGE]),
    (CONTEXT, &[MODEL, REPO, FORGE]),
    (SPRITES, &[MODEL, REPO, FORGE, CONTEXT, ENGINE]),
    (SERVE, &[MODEL, REPO, FORGE, ENGINE, CONTEXT, SPRITES]),
    ("lattice", &[MODEL, REPO, FORGE, ENGINE, CONTEXT, SPRITES, SERVE]),
    ("xtask", &[MODEL, REPO, ENGINE, TESTKIT]),
];

/// Clients of the network, and what every such client is built on.
const NETWORK: [&str; 16] = [
    "async-std",
    "curl",
    "h2",
    "hyper",
    "isahc",
    "mio",
    "native-tls",
    "octocrab",
    "openssl",
    "quinn",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "ureq",
];

/// A dependency as a manifest has it.
struct Edge {
    to: String,
    for_tests: bool,
}

// proves: ST-4-1
#[test]
fn crates_use_only_the_crates_that_the_architecture_allows() {
    let mut offenders = Vec::new();
    for name in workspace_crates() {
        let Some((_, may_use)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            offenders.push(format!("{}: no row in MAY_USE", manifest_path(&name)));
            continue;
        };
        for edge in edges(&manifest(&name)) {
            let is_ours = edge.to == "lattice" || edge.to.starts_with("lattice-");
            let is_allowed = may_use.contains(&edge.to.as_str());
            let is_test_helper = edge.for_tests && edge.to == TESTKIT;
            if is_ours && !is_allowed && !is_test_helper {
                offenders.push(format!("{}: uses {}", manifest_path(&name), edge.to));
            }
        }
    }
    assert_kept("crate edges follow the architecture", &offenders);
}

#[test]
fn of_the_repository_crate_sprites_use_the_workspace_module_only() {
    let mut sources = product();
    sources.retain(|source| source.path.starts_with("crates/lattice-sprites/"));
    let found = offenders(&sources, &[], |line| {
        line.code
            .match_indices("lattice_repo")
            .any(|(at, name)| !line.code[at + name.len()..].starts_with("::workspace"))
    });
    assert_kept("sprites reach repositories through workspaces", &found);
}

/// Scanner, executor, gate, planner and doctor live in these two crates.
// proves: ST-1.3-2
#[test]
fn nothing_that_decides_can_reach_the_network() {
    let uses = locked_dependencies();
    for name in [MODEL, REPO] {
        let direct = edges(&manifest(name));
        let mut waiting: Vec<String> = direct.into_iter().filter(|edge| !edge.for_tests).map(|edge| edge.to).collect();
        let mut seen = BTreeSet::new();
        while let Some(one) = waiting.pop() {
            // The lock file also lists what our own crates need for tests; those crates
            // are followed through their manifests instead.
            let is_foreign = !one.starts_with("lattice-");
            if seen.insert(one.clone()) && is_foreign {
                waiting.extend(uses.get(&one).into_iter().flatten().cloned());
            }
        }
        let found: Vec<String> = NETWORK
            .iter()
            .filter(|client| seen.contains(**client))
            .map(|client| format!("{}: reaches {client}", manifest_path(name)))
            .collect();
        assert_kept("decisions are made without network", &found);
    }
}

#[test]
fn manifests_are_read_in_all_their_forms() {
    let manifest = "
        [dependencies]
        lattice-model.workspace = true
        short = { package = \"lattice-repo\", path = \"x\" }
        [dependencies.lattice-forge]
        path = \"y\"
        [dev-dependencies]
        lattice-testkit.workspace = true
        [target.'cfg(unix)'.dependencies]
        lattice-engine = { path = \"z\" }
    ";
    let document = manifest.parse().expect("this text is a manifest");
    let mut found: Vec<String> =
        edges(&document).into_iter().map(|edge| format!("{} {}", edge.to, edge.for_tests)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "lattice-engine false",
            "lattice-forge false",
            "lattice-model false",
            "lattice-repo false",
            "lattice-testkit true"
        ]
    );
}

fn workspace_crates() -> Vec<String> {
    let folders = std::fs::read_dir(xtask::root().join("crates")).expect("the folder of crates");
    let mut names: Vec<String> = folders
        .map(|entry| entry.expect("an entry of the folder of crates"))
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.push(String::from("xtask"));
    names.sort();
    names
}

fn manifest_path(name: &str) -> String {
    match name {
        "xtask" => String::from("xtask/Cargo.toml"),
        _ => format!("crates/{name}/Cargo.toml"),
    }
}

fn manifest(name: &str) -> DocumentMut {
    document(Path::new(&manifest_path(name)))
}

fn document(path: &Path) -> DocumentMut {
    let content = std::fs::read_to_string(xtask::root().join(path)).expect("a file of cargo");
    content.parse().expect("cargo reads this file as well")
}

/// The dependencies of a manifest, those for one platform included.
fn edges(manifest: &DocumentMut) -> Vec<Edge> {
    let mut edges = edges_of_table(manifest.as_table());
    let targets = manifest.get("target").and_then(Item::as_table_like);
    for (_, target) in targets.into_iter().flat_map(TableLike::iter) {
        edges.extend(target.as_table_like().into_iter().flat_map(edges_of_table));
    }
    edges
}

fn edges_of_table(table: &dyn TableLike) -> Vec<Edge> {
    let kinds = [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];
    let mut edges = Vec::new();
    for (kind, for_tests) in kinds {
        let entries = table.get(kind).and_then(Item::as_table_like);
        for (key, entry) in entries.into_iter().flat_map(TableLike::iter) {
            edges.push(Edge { to: package_name(key, entry), for_tests });
        }
    }
    edges
}

/// A dependency can have another name in the code than its package.
fn package_name(key: &str, entry: &Item) -> String {
    entry.as_table_like().and_then(|table| table.get("package")).and_then(Item::as_str).unwrap_or(key).to_owned()
}

/// The direct dependencies of each package by name; versions are thrown together.
fn locked_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let lock = document(Path::new("Cargo.lock"));
    let packages = lock.get("package").and_then(Item::as_array_of_tables).expect("the lock file lists packages");
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        let name = package.get("name").and_then(Item::as_str);
        let listed = package.get("dependencies").and_then(Item::as_array);
        let names =
            listed.into_iter().flatten().filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_owned));
        uses.entry(name.expect("a package has a name").to_owned()).or_default().extend(names);
    }
    uses
}
