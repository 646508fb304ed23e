//! Every file is part of a crate: a file that no module declares is never compiled.

use std::collections::BTreeMap;

use xtask::source::Source;

use super::{assert_kept, sources};

#[test]
fn every_source_file_is_declared_as_a_module() {
    let mut sources = sources();
    sources.retain(|source| source.path.starts_with("crates/") || source.path.starts_with("xtask/"));
    assert_kept("a file is declared as a module", &undeclared_files(&sources));
}

#[test]
fn files_are_declared_by_their_parent_module() {
    let declared = [
        ("crates/a/src/lib.rs", "pub mod b;\n#[cfg(test)]\nmod tests;"),
        ("crates/a/src/b.rs", "mod c;"),
        ("crates/a/src/b/c.rs", ""),
        ("crates/a/src/bin/d.rs", ""),
        ("crates/a/src/tests.rs", ""),
        ("crates/a/tests/it/main.rs", "mod e;"),
        ("crates/a/tests/it/e/mod.rs", "mod f;"),
        ("crates/a/tests/it/e/f.rs", ""),
    ];
    let forgotten =
        [("crates/a/src/b/g.rs", ""), ("crates/a/tests/it/h.rs", "// mod h;"), ("crates/a/tests/it/e/i/mod.rs", "")];
    let sources: Vec<Source> =
        declared.iter().chain(&forgotten).map(|(path, content)| Source::new(path, content)).collect();
    let expected: Vec<String> = forgotten.iter().map(|(path, _)| format!("{path}:1")).collect();
    assert_eq!(undeclared_files(&sources), expected);
}

fn undeclared_files(sources: &[Source]) -> Vec<String> {
    let files: BTreeMap<&str, &Source> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let is_declared = |source: &&Source| {
        let Some((folder, name)) = module(&source.path) else {
            return true;
        };
        let parents = [
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
            format!("{folder}/mod.rs"),
            format!("{folder}.rs"),
        ];
        parents.iter().filter_map(|path| files.get(path.as_str())).any(|parent| declares(parent, name))
    };
    sources.iter().filter(|source| !is_declared(source)).map(|source| format!("{}:1", source.path)).collect()
}

/// The folder of the parent module and the module's name; none for the root of a target.
fn module(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    let is_target_folder =
        ["src/bin", "tests", "benches", "examples"].iter().any(|kind| folder.ends_with(&format!("/{kind}")));
    match file {
        "lib.rs" | "main.rs" | "build.rs" => None,
        "mod.rs" => folder.rsplit_once('/'),
        _ if is_target_folder => None,
        _ => Some((folder, file.trim_end_matches(".rs"))),
    }
}

fn declares(parent: &Source, name: &str) -> bool {
    let declaration = format!("mod {name};");
    parent.lines.iter().any(|line| line.code.trim_end().ends_with(&declaration))
}
