//! Kills while git moves the files of the working tree.

use lattice_testkit::{Action, GitWrapper, Output, TestRepo};

use super::{Case, check};
use crate::lattice;

/// A restack that brings every kind of change to the files of the branch that is checked out.
fn every_kind_of_file() -> Case {
    let repo = TestRepo::draw("main <- api <- ui*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("sub/kept", "so that the folder exists\n");
    repo.write("gone", "will be removed\n");
    repo.write("sub/gone", "will be removed\n");
    repo.write("folder-to-file/inner", "a folder that becomes a file\n");
    repo.write("file-to-folder", "a file that becomes a folder\n");
    repo.write("program", "#!/bin/sh\n");
    repo.write("edited name \u{e4}\n", "old\n");
    std::os::unix::fs::symlink("README", repo.dir().join("link")).expect("a link can be made");
    std::os::unix::fs::symlink("nowhere", repo.dir().join("link-to-file")).expect("a link can be made");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", "what there was"]);
    lattice(&repo).arg("restack").ok();
    change_every_kind(&repo);
    repo.git(&["checkout", "--quiet", "ui"]);
    // The same names, but not the files that go.
    repo.write("sub/gone2", "untracked\n");
    Case::new(repo, &["restack"])
}

fn change_every_kind(repo: &TestRepo) {
    let dir = repo.dir();
    repo.git(&["rm", "--quiet", "-r", "gone", "sub/gone", "folder-to-file", "file-to-folder", "link", "link-to-file"]);
    repo.write("folder-to-file", "now a file\n");
    repo.write("file-to-folder/inner", "now in a folder\n");
    repo.write("edited name \u{e4}\n", "new\n");
    repo.write("added", "new\n");
    repo.write("link-to-file", "now a file\n");
    std::os::unix::fs::symlink("sub/kept", dir.join("link")).expect("a link can be made");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("program"), mode).expect("the file is ours");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", "every kind of change"]);
}

/// Kills git and the program when only some of the files have moved, as a kill inside `read-tree` does: files are
/// written before the index.
fn half_way(case: &Case, files: &str) -> Option<Output> {
    let output = half_way_by(case, files, Action::KillParent);
    assert_eq!(output.signal, Some(9), "the program was killed: {}", output.snapshot());
    Some(output)
}

fn half_way_by(case: &Case, files: &str, kill: Action) -> Output {
    let mut wrapper = GitWrapper::new(&case.repo);
    let text = format!("git --work-tree=\"$PWD\" restore --source=main --worktree -- {files}");
    wrapper.on("read-tree -m -u", 1, Action::Run(text));
    wrapper.on("read-tree -m -u", 1, kill);
    lattice(&case.repo).args(&case.args).wrapper(&wrapper).run()
}

#[test]
fn files_that_were_moved_half_way_are_brought_to_either_end() {
    let parts = ["program", "link", "link-to-file", "added 'edited name \u{e4}\n'", "folder-to-file"];
    let whole = every_kind_of_file().whole();
    for files in parts.into_iter().chain([parts.join(" ").as_str()]) {
        check((&every_kind_of_file, &whole), &format!("a move of {files:?} alone"), &|case| half_way(case, files));
    }
}

#[test]
fn a_git_that_dies_or_fails_half_way_through_the_files_leaves_an_operation_to_be_ended() {
    let whole = every_kind_of_file().whole();
    for kill in [Action::KillSelf, Action::Fail(128)] {
        let interrupt = |case: &Case| {
            let output = half_way_by(case, "added link program", kill.clone());
            assert_eq!(output.code, Some(1), "{}", output.snapshot());
            assert!(case.repo.op_state_path().exists(), "files have moved, so somebody has to know of it");
            Some(output)
        };
        check((&every_kind_of_file, &whole), &format!("{kill:?} in the middle"), &interrupt);
    }
}

#[test]
fn a_kill_before_files_move_and_a_continue_from_a_folder_below_touch_only_the_right_files() {
    let case = every_kind_of_file();
    let repo = &case.repo;
    // Under the same names as files at the top that go or come, seen from the folder where the user is.
    repo.write("sub/file-to-folder", "of the user\n");
    repo.write("sub/link-to-file", "of the user\n");
    half_way(&case, "program");
    lattice(repo).arg("continue").cwd("sub").ok();
    assert_eq!(repo.read("sub/file-to-folder"), "of the user\n");
    assert_eq!(repo.read("sub/link-to-file"), "of the user\n");
    let status = repo.git(&["status", "--porcelain"]);
    let untracked = "?? sub/file-to-folder\n?? sub/gone2\n?? sub/link-to-file";
    assert_eq!(status, untracked, "everything else is as the branch has it");
}

#[test]
fn what_the_user_put_in_the_way_after_a_kill_is_never_removed() {
    let case = every_kind_of_file();
    let repo = &case.repo;
    half_way(&case, "program");
    repo.write("folder-to-file/mine", "untracked, in a folder that becomes a file\n");
    repo.write("edited name \u{e4}\n", "edited by the user\n");
    repo.write("added", "untracked, where a file comes\n");
    for way in ["continue", "abort", "continue"] {
        lattice(repo).arg(way).run();
        assert_eq!(repo.read("folder-to-file/mine"), "untracked, in a folder that becomes a file\n", "{way}");
        assert_eq!(repo.read("edited name \u{e4}\n"), "edited by the user\n", "{way}");
        assert_eq!(repo.read("added"), "untracked, where a file comes\n", "{way}");
    }
}

#[test]
fn line_ends_that_git_converts_are_no_edits() {
    let case = || {
        let repo = TestRepo::draw("main <- api <- ui*");
        repo.git(&["config", "core.autocrlf", "true"]);
        repo.git(&["checkout", "--quiet", "main"]);
        repo.commit_file("text", "one\r\n", "text with line ends of another system");
        repo.commit_file("more", "one\r\n", "more of it");
        lattice(&repo).arg("restack").ok();
        repo.commit_file("text", "one\r\ntwo\r\n", "a second line");
        repo.commit_file("more", "one\r\ntwo\r\n", "a second line of it");
        repo.git(&["checkout", "--quiet", "ui"]);
        Case::new(repo, &["restack"])
    };
    check((&case, &case().whole()), "a move of one of two files", &|case| half_way(case, "text"));
}
