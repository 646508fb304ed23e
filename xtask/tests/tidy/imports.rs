//! The paths that a file imports, with groups in braces written out.

use xtask::source::Source;

/// One imported path and the line its `use` begins on.
pub(super) struct Import {
    pub(super) line: usize,
    pub(super) path: String,
}

/// All imports outside of tests.
pub(super) fn imports(source: &Source) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut statement: Option<(usize, String)> = None;
    for line in source.production() {
        let code = line.code.trim();
        if statement.is_none() {
            statement = use_tree(code).map(|tree| (line.number, tree.to_owned()));
        } else if let Some((_, tree)) = &mut statement {
            tree.push_str(code);
        }
        if let Some((line, tree)) = statement.take_if(|(_, tree)| tree.contains(';')) {
            let tree = tree.split(';').next().unwrap_or_default();
            let paths = expand(tree).into_iter();
            imports.extend(paths.map(|path| Import { line, path }));
        }
    }
    imports
}

/// What follows `use` at the start of a line, whatever its visibility.
fn use_tree(code: &str) -> Option<&str> {
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => code,
    };
    code.strip_prefix("use ")
}

fn expand(tree: &str) -> Vec<String> {
    let Some((prefix, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        return vec![path.trim_end_matches("::self").to_owned()];
    };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    parts(group).into_iter().flat_map(|part| expand(&format!("{}{}", prefix.trim(), part.trim()))).collect()
}

/// Splits at the commas that are not inside of an inner group.
fn parts(group: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[test]
fn groups_over_several_lines_are_written_out() {
    let content = "
use std::fmt;
pub(crate) use a::b as c;
pub use std::{
    fs::{self, File},
    io,
};
";
    let found: Vec<String> = imports(&Source::new("crates/a/src/lib.rs", content))
        .into_iter()
        .map(|import| format!("{} {}", import.line, import.path))
        .collect();
    assert_eq!(found, ["2 std::fmt", "3 a::b", "4 std::fs", "4 std::fs::File", "4 std::io"]);
}
