//! Go: `go.mod`, which says itself what is indirect.

use super::{Declared, Ecosystem, Use};

pub(super) const GO: Ecosystem = Ecosystem { name: "go", manifests: &["go.mod"], locks: &[], declared, locked };

fn declared(_: &str, text: &str) -> Vec<Declared> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let entry = match line.strip_prefix("require ") {
            Some("(") => {
                inside = true;
                continue;
            }
            Some(entry) => entry,
            None if line == ")" => {
                inside = false;
                continue;
            }
            None if inside => line,
            None => continue,
        };
        let (entry, comment) = entry.split_once("//").unwrap_or((entry, ""));
        if let Some((name, version)) = entry.trim().split_once(' ') {
            let use_for = if comment.trim() == "indirect" { Use::Indirect } else { Use::Runtime };
            found.push(Declared { name: name.to_owned(), wanted: version.trim().to_owned(), use_for });
        }
    }
    found
}

/// The versions of `go.mod` are exact already.
fn locked(_: &str, _: &str) -> Vec<(String, String)> {
    Vec::new()
}
