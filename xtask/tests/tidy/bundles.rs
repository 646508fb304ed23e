//! Bundles: rendering is pure, and nothing of them speaks the protocol of sprites.

use super::imports::imports;
use super::{assert_kept, offenders, product};

const BUNDLE: &str = "crates/lattice-context/src/bundle/";

/// The modules that turn data into files.
const PURE: [&str; 6] = ["data.rs", "manifest.rs", "references.rs", "renderer.rs", "table.rs", "untrusted.rs"];

/// What leads to files, networks, processes, clocks and hosts.
const OUTSIDE: [&str; 13] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::path",
    "std::process",
    "std::thread",
    "std::time",
    "tokio",
    "futures_util",
    "rustix",
    "lattice_",
];

// proves: CB-92
#[test]
fn renderers_of_bundles_reach_nothing_but_data() {
    let mut sources = product();
    sources.retain(|source| PURE.iter().any(|name| source.path == format!("{BUNDLE}{name}")));
    assert_eq!(sources.len(), PURE.len(), "each of them is a module");
    let impure = |path: &str| {
        let asks = path.starts_with("super::capability") || path.starts_with("super::gatherer");
        let outside = OUTSIDE.iter().any(|outside| path.starts_with(outside));
        asks || outside && path != "lattice_model::time::Timestamp"
    };
    let mut found = Vec::new();
    for source in &sources {
        let bad = imports(source).into_iter().filter(|import| impure(&import.path));
        found.extend(bad.map(|import| format!("{}:{}: imports {}", source.path, import.line, import.path)));
    }
    found.extend(offenders(&sources, &[], |line| line.code.contains("async ") || line.code.contains("::now(")));
    assert_kept("rendering is pure", &found);
}

// proves: CB-2
#[test]
fn bundles_know_nothing_of_the_protocol_of_sprites() {
    let mut sources = product();
    sources.retain(|source| source.path.starts_with("crates/lattice-context/"));
    let speaks = offenders(&sources, &[], |line| {
        line.text.contains("LATTICE_EVENT")
            || line.text.contains("outbox.jsonl")
            || line.code.contains("lattice_sprites")
    });
    assert_kept("gathering, rendering and delivery neither emit nor parse events", &speaks);
}
