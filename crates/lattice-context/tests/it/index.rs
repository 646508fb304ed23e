//! The index: the same answer with and without it, after damage, and beside other processes.

use std::path::PathBuf;
use std::sync::Arc;

use lattice_context::index::Index;
use lattice_context::log::Log;
use lattice_context::pack::{Packed, pack};
use lattice_context::task::TaskType;
use lattice_context::workspace::Workspace;
use lattice_testkit::TestRepo;

use crate::extension::request;
use crate::workspace;

fn sources() -> TestRepo {
    let repo = TestRepo::new();
    for n in 0..150 {
        let body = format!("# helper number {n}\n\ndef helper_{n}(value):\n    return value + {n}\n");
        repo.write(&format!("src/part_{}/helper_{n}.py", n % 7), body);
    }
    repo.write("src/cart.py", "class Cart:\n    def total(self):\n        return 0\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--message", "sources"]);
    repo
}

fn packed(shared: &Arc<Workspace>, threads: usize) -> Packed {
    let mut wanted = request(TaskType::Implement, "the total of the Cart is wrong, see helper_7", 3000);
    wanted.threads = threads;
    lattice_context::drive(pack(Arc::clone(shared), wanted, Log::SILENT)).expect("a prompt")
}

fn segments(repo: &TestRepo) -> Vec<PathBuf> {
    let folder = repo.dir().join(".git/lattice/cache/context-1");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).map(|all| all.flatten().map(|one| one.path()).collect()).unwrap_or_default();
    found.sort();
    found
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads_and_without_an_index() {
    let repo = sources();
    let first = packed(&workspace(&repo), 1);
    assert!(first.scanned > 100 && first.ranked[..2].iter().any(|ranked| ranked.path == "src/cart.py"));
    assert_eq!(packed(&workspace(&repo), 1).scanned, 0, "what is known is not read again");
    let alone = Arc::new(Arc::into_inner(workspace(&repo)).expect("one owner").without_cache());
    assert_eq!(packed(&alone, 2).digest, first.digest);
    for threads in [1, 2, 8] {
        std::fs::remove_dir_all(repo.dir().join(".git/lattice/cache")).expect("it is safe to delete");
        let again = packed(&workspace(&repo), threads);
        assert_eq!(
            (again.digest.as_str(), again.prompt == first.prompt),
            (first.digest.as_str(), true),
            "{threads} threads"
        );
    }
}

#[test]
fn one_changed_file_is_the_only_one_that_is_read_again() {
    let repo = sources();
    packed(&workspace(&repo), 2);
    repo.write("src/cart.py", "class Cart:\n    def total(self):\n        return sum(self.items)\n");
    let changed = packed(&workspace(&repo), 2);
    assert_eq!(changed.scanned, 1);
    assert!(changed.prompt.contains("sum(self.items)"));
    for n in 0..12 {
        repo.write("src/cart.py", format!("class Cart:\n    size = {n}\n"));
        packed(&workspace(&repo), 1);
    }
    assert!(segments(&repo).len() <= 9, "small files are merged: {}", segments(&repo).len());
    assert_eq!(packed(&workspace(&repo), 1).scanned, 0, "nothing is lost by a merge");
}

#[test]
fn a_damaged_index_is_rebuilt_and_never_believed() {
    let repo = sources();
    let expected = packed(&workspace(&repo), 1).digest;
    let all = segments(&repo);
    let whole = std::fs::read(&all[0]).expect("a segment");
    let mut damages: Vec<Vec<u8>> = vec![Vec::new(), b"garbage".to_vec(), whole[..whole.len() / 2].to_vec()];
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        damages.push(flipped);
    }
    for damage in damages {
        for path in segments(&repo) {
            std::fs::remove_file(path).expect("a file of ours");
        }
        std::fs::write(&all[0], &damage).expect("a damaged file");
        let shared = workspace(&repo);
        let entries = shared.entries().expect("files").to_vec();
        let index = Index::open(&shared, entries, 1);
        // A damaged list is empty; nothing may panic, and names are never made up.
        for number in 0..index.files.len() {
            let record = index.record(u32::try_from(number).expect("few files")).unwrap_or_default();
            assert!(record.symbols.len() <= 10, "{record:?}");
        }
        assert_eq!(packed(&shared, 1).prompt_tokens.min(3000), packed(&shared, 1).prompt_tokens);
    }
    std::fs::remove_dir_all(repo.dir().join(".git/lattice/cache")).expect("it is safe to delete");
    assert_eq!(packed(&workspace(&repo), 1).digest, expected);
}

#[test]
fn damage_to_any_file_of_the_cache_changes_nothing() {
    let repo = sources();
    let function =
        |n: usize| format!("def total_{n}(cart):\n    value = cart.sum() + {n}\n    return value * {n}\n\n\n");
    repo.write("src/totals.py", (0..300).map(function).collect::<String>());
    let expected = packed(&workspace(&repo), 1);
    let folder = repo.dir().join(".git/lattice/cache");
    let files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("a cache")
        .flatten()
        .map(|file| file.path())
        .filter(|path| path.is_file() && path.metadata().is_ok_and(|found| found.len() > 0))
        .collect();
    assert!(files.len() >= 3, "a list of files, outlines and the history: {files:?}");
    for path in files {
        let whole = std::fs::read(&path).expect("a file");
        let mut damages: Vec<Vec<u8>> = vec![Vec::new(), b"garbage".to_vec(), whole[..whole.len() / 2].to_vec()];
        if !path.to_string_lossy().contains("history") {
            for at in (0..whole.len()).step_by((whole.len() / 50).max(1)) {
                let mut flipped = whole.clone();
                flipped[at] ^= 0x55;
                damages.push(flipped);
            }
        }
        for (number, damage) in damages.iter().enumerate() {
            std::fs::write(&path, damage).expect("a damaged file");
            let again = packed(&workspace(&repo), 1);
            assert!(again.prompt == expected.prompt, "damage {number} of {}", path.display());
        }
    }
}

#[test]
fn several_processes_can_build_it_at_once_and_a_folder_without_git_has_one_too() {
    let repo = sources();
    let expected = packed(&workspace(&repo), 1).digest;
    std::fs::remove_dir_all(repo.dir().join(".git/lattice/cache")).expect("it is safe to delete");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| packed(&workspace(&repo), 2).digest)).collect();
        for run in runs {
            assert_eq!(run.join().expect("no panic"), expected);
        }
    });
    let plain = repo.dir().parent().expect("a parent").join("plain");
    std::fs::create_dir_all(plain.join("src")).expect("a folder");
    std::fs::write(plain.join("src/cart.py"), "class Cart:\n    pass\n").expect("a file");
    std::fs::write(plain.join(".gitignore"), "ignored\n").expect("a file");
    std::fs::write(plain.join("ignored"), "Cart Cart Cart\n").expect("a file");
    let there = workspace(&repo.beside(&plain));
    assert!(there.reader().is_none());
    let first = packed(&there, 1);
    assert!(first.ranked.iter().all(|ranked| ranked.path != "ignored") && first.ranked[0].path == "src/cart.py");
    assert_eq!(packed(&workspace(&repo.beside(&plain)), 1).scanned, 0, "the user's cache folder has it");
}
