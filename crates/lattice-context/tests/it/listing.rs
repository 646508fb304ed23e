//! The list of files that is kept between runs: Git's own answer after every kind of change.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use lattice_context::index::Index;
use lattice_testkit::TestRepo;

use crate::{workspace, workspace_with};

/// Paths with the ids of their contents, by a workspace that keeps what it learns.
fn listed(repo: &TestRepo) -> BTreeMap<String, Option<String>> {
    let shared = workspace(repo);
    let entries = shared.entries().expect("files").to_vec();
    Index::open(&shared, entries.clone(), 1);
    entries.into_iter().map(|entry| (entry.path, entry.blob.map(|blob| blob.to_string()))).collect()
}

/// The same by a workspace that keeps nothing, with the ids that Git computes from the files themselves.
fn asked(repo: &TestRepo) -> BTreeMap<String, String> {
    let alone = Arc::into_inner(workspace_with(repo, lattice_context::tokens::Tokenizer::Estimate));
    let alone = alone.expect("one owner").without_cache();
    let paths: Vec<String> = alone.entries().expect("files").iter().map(|entry| entry.path.clone()).collect();
    let mut arguments = vec!["hash-object", "--"];
    arguments.extend(paths.iter().map(String::as_str));
    let ids = repo.git(&arguments);
    paths.clone().into_iter().zip(ids.lines().map(str::to_owned)).collect()
}

#[track_caller]
fn check(repo: &TestRepo, what: &str) {
    for round in ["first", "second"] {
        let (listed, asked) = (listed(repo), asked(repo));
        assert_eq!(listed.keys().collect::<Vec<_>>(), asked.keys().collect::<Vec<_>>(), "{what}, {round} look");
        for (path, blob) in &listed {
            assert!(
                blob.as_ref().is_none_or(|blob| *blob == asked[path]),
                "{what}: {path} is another file, {round} look"
            );
        }
    }
}

/// Replaces a file by one of the same length, and gives it back the time that it had.
fn replace_in_secret(path: &Path, content: &str) {
    let before = std::fs::metadata(path).expect("a file").modified().expect("a time");
    std::fs::write(path, content).expect("a file");
    std::fs::File::options().write(true).open(path).expect("a file").set_modified(before).expect("a time");
}

type Step<'a> = (&'static str, Box<dyn Fn() + 'a>);

fn edits(repo: &TestRepo) -> Vec<Step<'_>> {
    let at = |path: &str| repo.dir().join(path);
    vec![
        ("nothing", Box::new(|| {})),
        ("a change", Box::new(|| repo.write("src/a.py", "a = 22\n"))),
        ("a change that keeps size and time", Box::new(move || replace_in_secret(&at("src/b.py"), "b = 2\n"))),
        ("a new file", Box::new(|| repo.write("src/c.py", "c = 1\n"))),
        ("a new file in a new folder", Box::new(|| repo.write("src/deep/er/d.py", "d = 1\n"))),
        ("an ignored file", Box::new(|| repo.write("src/x.o", "x\n"))),
        ("an ignored file in an ignored folder", Box::new(|| repo.write("build/more.txt", "x\n"))),
        ("a file beside ignored ones", Box::new(|| repo.write("objects/e.py", "e = 1\n"))),
        ("an empty folder", Box::new(move || std::fs::create_dir(at("empty")).expect("a folder"))),
        ("a file in what was empty", Box::new(|| repo.write("empty/f.py", "f = 1\n"))),
    ]
}

fn rules(repo: &TestRepo) -> Vec<Step<'_>> {
    let of_the_user = || {
        repo.write(".git/rules", "*.py\n");
        repo.git(&["config", "core.excludesFile", ".git/rules"]);
    };
    vec![
        ("other rules", Box::new(|| repo.write(".gitignore", "build/\n"))),
        ("rules of a folder", Box::new(|| repo.write("src/.gitignore", "c.py\n"))),
        ("rules that change", Box::new(|| repo.write("src/.gitignore", "x.o\n"))),
        ("rules of the repository", Box::new(|| repo.write(".git/info/exclude", "/empty\n"))),
        ("a folder that is ignored no more", Box::new(|| repo.write(".git/info/exclude", "\n"))),
        ("rules of the user", Box::new(of_the_user)),
        ("other rules of the user", Box::new(|| repo.write(".git/rules", "f.py\n"))),
    ]
}

fn shapes(repo: &TestRepo) -> Vec<Step<'_>> {
    let at = |path: &str| repo.dir().join(path);
    let remove = move |path: &str| std::fs::remove_file(at(path)).expect("a file");
    let link = move || {
        remove("src/c.py");
        symlink("b.py", at("src/c.py")).expect("a link");
    };
    let folder = move || {
        remove("objects/e.py");
        repo.write("objects/e.py/inside.py", "g = 1\n");
    };
    let replace = move || {
        repo.write("src/new", "b = 333\n");
        std::fs::rename(at("src/new"), at("src/b.py")).expect("a file");
    };
    let nested = || {
        repo.write("inner/h.py", "h = 1\n");
        repo.git(&["init", "--quiet", "inner"]);
    };
    let commit = || {
        repo.git(&["add", "--all", "src"]);
        repo.git(&["commit", "--quiet", "--message", "more"]);
    };
    vec![
        ("a file that goes", Box::new(move || remove("src/a.py"))),
        ("a file that becomes a link", Box::new(link)),
        ("a file that becomes a folder", Box::new(folder)),
        ("an editor that replaces", Box::new(replace)),
        ("another repository inside", Box::new(nested)),
        ("a commit", Box::new(commit)),
        ("another commit checked out", Box::new(|| drop(repo.git(&["checkout", "--quiet", "--force", "HEAD~1"])))),
    ]
}

#[test]
fn the_kept_list_is_gits_after_every_kind_of_change() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "build/\n*.o\n");
    repo.write("src/a.py", "a = 1\n");
    repo.write("src/b.py", "b = 1\n");
    repo.write("objects/only.o", "ignored\n");
    repo.write("build/out.txt", "ignored\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--message", "files"]);
    for (what, step) in edits(&repo).iter().chain(&rules(&repo)).chain(&shapes(&repo)) {
        step();
        check(&repo, what);
    }
}

#[test]
fn a_folder_without_git_is_listed_anew_when_it_changes() {
    let repo = TestRepo::new();
    let plain = repo.dir().parent().expect("a parent").join("plain");
    std::fs::create_dir_all(plain.join("src")).expect("a folder");
    std::fs::write(plain.join(".gitignore"), "*.log\n").expect("a file");
    std::fs::write(plain.join("src/a.py"), "a = 1\n").expect("a file");
    let there = repo.beside(&plain);
    let paths = || listed(&there).into_keys().collect::<Vec<_>>();
    assert_eq!(paths(), [".gitignore", "src/a.py"]);
    std::fs::write(plain.join("src/b.py"), "b = 1\n").expect("a file");
    std::fs::write(plain.join("src/b.log"), "b\n").expect("a file");
    assert_eq!(paths(), [".gitignore", "src/a.py", "src/b.py"]);
    std::fs::write(plain.join(".gitignore"), "*.py\n").expect("a file");
    assert_eq!(paths(), [".gitignore", "src/b.log"]);
    std::fs::write(plain.join(".ignore"), "*.log\n").expect("a file");
    assert_eq!(paths(), [".gitignore", ".ignore", "src/b.log"], "rules of other programs are not Git's");
}
