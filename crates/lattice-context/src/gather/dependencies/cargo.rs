//! Cargo: `Cargo.toml` and `Cargo.lock`.

use toml_edit::{DocumentMut, Item, TableLike};

use super::{Declared, Ecosystem, Use};

pub(super) const CARGO: Ecosystem =
    Ecosystem { name: "cargo", manifests: &["Cargo.toml"], locks: &["Cargo.lock"], declared, locked };

fn declared(_: &str, text: &str) -> Vec<Declared> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let root = document.as_table();
    let mut found = of_table(root);
    if let Some(workspace) = root.get("workspace").and_then(Item::as_table_like) {
        found.extend(of_table(workspace));
    }
    for (_, target) in root.get("target").and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
        found.extend(target.as_table_like().into_iter().flat_map(of_table));
    }
    found
}

fn of_table(table: &dyn TableLike) -> Vec<Declared> {
    let kinds = [
        ("dependencies", Use::Runtime),
        ("build-dependencies", Use::Development),
        ("dev-dependencies", Use::Development),
    ];
    let mut found = Vec::new();
    for (kind, use_for) in kinds {
        for (key, entry) in table.get(kind).and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
            let field = |name: &str| entry.as_table_like()?.get(name)?.as_str();
            let name = field("package").unwrap_or(key).to_owned();
            let wanted = entry.as_str().or_else(|| field("version")).or_else(|| field("path")).unwrap_or_default();
            found.push(Declared { name, wanted: wanted.to_owned(), use_for });
        }
    }
    found
}

fn locked(_: &str, text: &str) -> Vec<(String, String)> {
    super::python::toml_packages(text)
}
