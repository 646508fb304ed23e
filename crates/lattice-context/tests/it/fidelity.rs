//! Outlines of published projects, judged by parsers that the engine does not use.
//!
//! A judge compares a file with its outline after it has taken all bodies of functions out of both: what is left has to
//! be the same, token by token, which is more than that imports and signatures are there.

mod rust;

use std::path::{Path, PathBuf};
use std::process::Command;

use lattice_context::chunk::ContextPriority;
use lattice_context::compress::truncate;
use lattice_context::tokens::{TokenCounter, Tokenizer, estimate_tokens};
use lattice_testkit::fetched;
use serde::Deserialize;

use crate::file;
use crate::outline::has_errors;

/// What a judge found.
#[derive(Debug, Default, Deserialize)]
struct Judgement {
    files: usize,
    imports: usize,
    signatures: usize,
    problems: Vec<String>,
}

impl Judgement {
    /// Everything was kept, and there was enough to keep.
    #[track_caller]
    fn is_flawless(&self, project: &str, written: &Outlines) {
        assert_eq!(self.problems, [""; 0], "{project}");
        assert_eq!(self.files, written.files, "{project}: all outlines were judged");
        assert!(self.imports > 20 && self.signatures > 100, "{project}: {self:?}");
        assert!(written.shortened >= 10, "{project}: {} of {} are shorter", written.shortened, written.files);
    }
}

/// Outlines in a folder of their own, under the names of their files.
struct Outlines {
    folder: tempfile::TempDir,
    files: usize,
    shortened: usize,
    /// Tokens of the files, and of their outlines.
    tokens: (usize, usize),
}

/// Files below a folder with one of these endings, in order.
fn sources(root: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) && !name.ends_with(".d.ts") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a source")
}

fn outlines(root: &Path, endings: &[&str], counter: Tokenizer) -> Outlines {
    let folder = tempfile::tempdir().expect("a folder");
    let mut written = Outlines { folder, files: 0, shortened: 0, tokens: (0, 0) };
    for path in sources(root, endings) {
        let name = path.strip_prefix(root).expect("below its root");
        let mut chunk = file(&name.to_string_lossy(), &text_of(&path), ContextPriority::Medium);
        chunk.tokens = counter.count(&chunk.content);
        let shown = truncate(&chunk, &counter);
        written.files += 1;
        written.shortened += usize::from(shown.is_some());
        let shown = shown.unwrap_or_else(|| chunk.clone());
        written.tokens = (written.tokens.0 + chunk.tokens, written.tokens.1 + shown.tokens);
        let to = written.folder.path().join(name);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::write(to, shown.content).expect("an outline");
    }
    written
}

/// Asks a judge that is a program.
fn judged(program: &str, arguments: &[&Path]) -> Judgement {
    let output = Command::new(program).args(arguments).output().expect("a judge that is installed");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a judgement")
}

fn judge(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fidelity").join(name)
}

#[test]
fn python_projects_keep_all_but_bodies_and_more_than_half_of_their_tokens_are_saved() {
    let mut tokens = (0, 0);
    for project in ["black", "jsonschema", "starlette"] {
        let root = fetched::package(project);
        let written = outlines(&root, &[".py"], Tokenizer::O200k);
        judged("python3", &[&judge("judge.py"), &root, written.folder.path()]).is_flawless(project, &written);
        tokens = (tokens.0 + written.tokens.0, tokens.1 + written.tokens.1);
    }
    let (before, after) = tokens;
    assert!(after * 100 <= before * 46, "{after} of {before} tokens are left");
}

#[test]
fn typescript_projects_keep_all_but_bodies() {
    let compiler = fetched::package("typescript").join("lib/typescript.js");
    for project in ["rxjs", "immer", "zod"] {
        let root = fetched::package(project).join("src");
        let written = outlines(&root, &[".ts", ".tsx"], Tokenizer::Estimate);
        let judgement = judged("node", &[&judge("judge.js"), &compiler, &root, written.folder.path()]);
        judgement.is_flawless(project, &written);
    }
}

#[test]
fn rust_projects_keep_all_but_bodies() {
    for project in rust::PROJECTS {
        let root = rust::project(project).join("src");
        let written = outlines(&root, &[".rs"], Tokenizer::Estimate);
        rust::judge(&root, written.folder.path()).is_flawless(project, &written);
    }
}

#[test]
fn outlines_in_other_languages_parse_wherever_their_files_do() {
    let mut compared = 0;
    for (package, ending) in [
        ("golang-github-spf13-cobra-dev", ".go"),
        ("@capacitor/android", ".java"),
        ("libstb-dev", ".h"),
        ("nlohmann-json3-dev", ".hpp"),
        ("ruby-rack", ".rb"),
    ] {
        let root = fetched::package(package);
        let written = outlines(&root, &[ending], Tokenizer::Estimate);
        for path in sources(&root, &[ending]) {
            let outline = written.folder.path().join(path.strip_prefix(&root).expect("below its root"));
            let name = path.to_string_lossy();
            // Of macros in C and C++ a grammar makes what it can.
            if !has_errors(&name, &text_of(&path)) {
                compared += 1;
                assert!(!has_errors(&name, &text_of(&outline)), "{package}: the outline of {name} parses");
            }
        }
        assert!(written.tokens.1 * 10 < written.tokens.0 * 8, "{package}: {:?} tokens", written.tokens);
    }
    assert!(compared > 100, "{compared} files");
}

// proves: BU-79
#[test]
fn the_estimate_is_within_a_fifth_of_the_exact_count_for_four_languages() {
    let corpora = [
        ("rust", rust::project(rust::PROJECTS[0]), ".rs"),
        ("python", fetched::package("starlette"), ".py"),
        ("typescript", fetched::package("rxjs").join("src"), ".ts"),
        ("go", fetched::package("golang-github-spf13-cobra-dev"), ".go"),
    ];
    for (language, root, ending) in corpora {
        let texts: Vec<String> = sources(&root, &[ending]).iter().map(|path| text_of(path)).collect();
        let estimate: usize = texts.iter().map(|text| estimate_tokens(text)).sum();
        let exact: usize = texts.iter().map(|text| Tokenizer::O200k.count(text)).sum();
        let ratio = estimate as f64 / exact as f64;
        assert!(exact > 10_000 && (0.8..=1.2).contains(&ratio), "{language}: {estimate} estimated, {exact} counted");
    }
}
