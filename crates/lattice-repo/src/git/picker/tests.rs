//! What is decided without git must be what git decides, for any three trees.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use lattice_model::id::Oid;
use lattice_testkit::{TestRepo, git_versions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Merge, Picker};
use crate::git::process::{Git, GitProgram};

type Files = BTreeMap<String, String>;

const NAMES: &[&str] = &["a", "b", "x", "x.txt", "d/a", "d/b", "d/e/a", "d/e/b", "d/e/c", "f/a", "f/g/a", "x/y"];

/// One change of one side.
#[derive(Debug, Clone)]
enum Change {
    Edit(usize),
    Remove(usize),
    Write(usize, u8),
    Rename(usize, usize),
    RenameFolder(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let name = || 0..NAMES.len();
    let change = prop_oneof![
        3 => name().prop_map(Change::Edit),
        2 => name().prop_map(Change::Remove),
        3 => (name(), 0..3_u8).prop_map(|(at, text)| Change::Write(at, text)),
        2 => (name(), name()).prop_map(|(from, to)| Change::Rename(from, to)),
        1 => (name(), name()).prop_map(|(from, to)| Change::RenameFolder(from, to)),
    ];
    prop::collection::vec(change, 0..4)
}

/// Long enough for git to recognise a file under another name.
fn text(of: &str) -> String {
    (0..8).map(|line| format!("line {line} of {of}\n")).collect()
}

fn folder_of(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(folder, _)| folder)
}

/// Writes a file, in the place of whatever cannot be beside it.
fn put(files: &mut Files, name: &str, content: String) {
    let inside = format!("{name}/");
    files.retain(|other, _| !other.starts_with(&inside) && !name.starts_with(&format!("{other}/")));
    files.insert(name.to_owned(), content);
}

fn apply(files: &Files, changes: &[Change]) -> Files {
    let mut files = files.clone();
    for change in changes {
        match change {
            Change::Edit(at) => {
                if let Some(content) = files.get_mut(NAMES[*at]) {
                    content.push_str("an edit\n");
                }
            }
            Change::Remove(at) => drop(files.remove(NAMES[*at])),
            Change::Write(at, number) => put(&mut files, NAMES[*at], text(&format!("new {number}"))),
            Change::Rename(from, to) => {
                if let Some(content) = files.remove(NAMES[*from]) {
                    put(&mut files, NAMES[*to], content);
                }
            }
            Change::RenameFolder(from, to) => {
                let (Some(from), Some(to)) = (folder_of(NAMES[*from]), folder_of(NAMES[*to])) else { continue };
                let inside = format!("{from}/");
                let moved: Vec<_> = files.keys().filter(|name| name.starts_with(&inside)).cloned().collect();
                for name in moved {
                    let content = files.remove(&name).expect("it is there");
                    put(&mut files, &format!("{to}/{}", &name[inside.len()..]), content);
                }
            }
        }
    }
    files
}

/// Three commits, the second and third on top of the first; their ids and those of their trees.
fn commits(repo: &TestRepo, trees: [&Files; 3]) -> ([Oid; 3], [Oid; 3]) {
    let mut stream = String::new();
    for (mark, files) in (1..).zip(trees) {
        let from = if mark == 1 { "" } else { "from :1\n" };
        write!(stream, "commit refs/heads/m{mark}\nmark :{mark}\ncommitter T <t@example.invalid> 1 +0000\ndata 0\n{from}deleteall\n")
            .expect("memory takes everything");
        for (name, content) in files {
            write!(stream, "M 100644 inline {name}\ndata {}\n{content}\n", content.len())
                .expect("memory takes everything");
        }
    }
    repo.git_with_input(&["fast-import", "--quiet", "--force"], stream.as_bytes());
    let names = ["m1", "m2", "m3", "m1^{tree}", "m2^{tree}", "m3^{tree}"];
    let ids = repo.git(&[&["rev-parse"][..], &names[..]].concat());
    let ids: Vec<_> = ids.lines().map(|id| Oid::new(id).expect("git prints ids")).collect();
    ([ids[0], ids[1], ids[2]], [ids[3], ids[4], ids[5]])
}

fn git_of(repo: &TestRepo) -> Git {
    let program = GitProgram { program: git_versions::first_in_path(), environment: Vec::new() };
    program.in_repository(&repo.git_dir(), Some(repo.dir()))
}

fn decided(git: &Git, common_dir: &Path, trees: [Oid; 3]) -> Option<Oid> {
    let [base, ours, theirs] = trees;
    let mut picker = Picker::new(common_dir);
    let mut objects = git.object_reader().expect("git reads objects");
    let merged = picker.merge(&mut objects, Merge { base, ours, theirs }).expect("every tree can be read");
    picker.flush(git).expect("what was made can be written");
    merged
}

#[test]
fn a_merge_that_is_decided_without_git_is_the_one_that_git_makes() {
    let repo = TestRepo::new();
    let git = git_of(&repo);
    let (all, without_git) = (Cell::new(0), Cell::new(0));
    let base: Files =
        ["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f/a"].map(|name| (name.to_owned(), text(name))).into();
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(changes(), changes()), |(ours, theirs)| {
        let (ours, theirs) = (apply(&base, &ours), apply(&base, &theirs));
        let (commits, trees) = commits(&repo, [&base, &ours, &theirs]);
        all.set(all.get() + 1);
        if let Some(tree) = decided(&git, &repo.common_dir(), trees) {
            without_git.set(without_git.get() + 1);
            let [_, ours, theirs] = commits.map(|commit| commit.to_string());
            let merged = repo.try_git(&["merge-tree", "--write-tree", &ours, &theirs]);
            let merged = merged.map_err(|_| TestCaseError::fail("git finds a conflict"))?;
            let tree = tree.to_string();
            prop_assert_eq!(merged.lines().next(), Some(tree.as_str()));
            prop_assert!(repo.try_git(&["ls-tree", "-r", &tree]).is_ok(), "the tree is there to be read");
        }
        Ok(())
    });
    outcome.expect("git agrees");
    assert!(without_git.get() * 4 > all.get(), "git was asked in all but {} of {}", without_git.get(), all.get());
}

#[test]
fn a_pack_written_without_git_is_one_that_git_accepts() {
    for format in ["sha1", "sha256"] {
        let repo = TestRepo::with_format(format);
        let git = git_of(&repo);
        let mut pack = crate::git::pack::Pack::new(if format == "sha1" { 40 } else { 64 });
        let blobs: Vec<_> = (0..300).map(|number| pack.blob(format!("{number}\n").repeat(number).as_bytes())).collect();
        // The same once more: a pack has every object once.
        pack.blob(b"7\n7\n7\n7\n7\n7\n7\n");
        pack.write(&git, &repo.common_dir()).expect("it can be written");
        let index: Vec<_> = std::fs::read_dir(repo.common_dir().join("objects/pack"))
            .expect("there is a pack")
            .map(|entry| entry.expect("it can be listed").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "idx"))
            .collect();
        assert_eq!(index.len(), 1, "all objects are in one pack");
        repo.git(&["verify-pack", "--object-format", format, &index[0].display().to_string()]);
        repo.git(&["fsck", "--full", "--strict"]);
        for (number, blob) in blobs.iter().enumerate() {
            let content = repo.git(&["cat-file", "blob", &blob.to_string()]);
            assert_eq!(content.lines().count(), number, "{blob}");
        }
    }
}
