//! Every path that rewrites commits, with every git of this machine.

use std::os::unix::fs::PermissionsExt as _;

use lattice_testkit::{Setup, TestRepo, assert_same, git_versions};

use crate::lattice;

#[track_caller]
fn each_git(check: impl Fn(&Setup)) {
    for git in git_versions::gits() {
        check(&Setup::default().git(&git));
    }
}

/// The trunk goes on; `disputed` is a file that it takes over.
fn advance(repo: &TestRepo, file: &str) {
    let current = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file(file, "the trunk's own\n", "trunk goes on");
    repo.git(&["checkout", "--quiet", &current]);
}

/// The trunk goes on in a file that `api` changes too, in another place: only git can merge that.
fn advance_in_a_shared_file(repo: &TestRepo) {
    let current = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    for (branch, first, last) in [("main", "1", "8"), ("api", "1", "eight"), ("main", "one", "8")] {
        repo.git(&["checkout", "--quiet", branch]);
        repo.commit_file("shared", lines(first, last), "change the shared file");
        if first == "1" {
            lattice(repo).arg("restack").ok();
        }
    }
    repo.git(&["checkout", "--quiet", &current]);
}

/// A stack with a commit that the trunk has taken over; `shared` has git merge a file of another commit.
fn with_a_landed_commit(setup: &Setup, shared: bool) -> (TestRepo, String) {
    let repo = setup.draw("main <- api* <- ui");
    repo.commit_file("landed", "reviewed alone\n", "lands alone");
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", "changes nothing"]);
    lattice(&repo).arg("restack").ok();
    if shared {
        advance_in_a_shared_file(&repo);
    }
    let landed = repo.git(&["log", "--format=%H", "--grep=lands alone", "main..api"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["cherry-pick", &landed]);
    repo.git(&["checkout", "--quiet", "ui"]);
    (repo, landed)
}

#[test]
fn a_commit_whose_change_the_parent_has_already_is_dropped_and_named() {
    each_git(|setup| {
        for shared in [false, true] {
            let (repo, landed) = with_a_landed_commit(setup, shared);
            repo.git(&["notes", "add", "-m", "about the last one", "api"]);
            let (before, tip) = (repo.state(), repo.rev("api"));
            let preview = lattice(&repo).args(["restack", "--dry-run"]).ok();
            let line = format!("{} of api (lands alone): what it stands on has the change already", &landed[..8]);
            assert!(preview.stdout.contains(&format!("drop {line}")), "{}", preview.snapshot());
            assert_same(&before, &repo.state());
            let output = lattice(&repo).arg("restack").ok();
            assert!(output.stdout.contains(&format!("dropped {line}")), "{}", output.snapshot());
            let subjects = own(&repo, "main", "api");
            assert!(!subjects.contains("lands alone"), "{subjects}");
            assert!(subjects.contains("changes nothing"), "what never changed anything stays: {subjects}");
            assert_eq!(repo.git(&["notes", "show", "api"]), "about the last one");
            own(&repo, "api", "ui");
            lattice(&repo).arg("undo").ok();
            assert_eq!(repo.rev("api"), tip, "it is back");
        }
    });
}

/// Subjects of a branch above its parent.
fn own(repo: &TestRepo, parent: &str, branch: &str) -> String {
    assert_eq!(repo.git(&["merge-base", parent, branch]), repo.rev(parent), "{branch} stands on {parent}");
    repo.git(&["log", "--format=%an %s", &format!("{parent}..{branch}")])
}

#[test]
fn every_rewriting_command_works_and_is_undone_with_every_git() {
    let commands: [&[&str]; 6] = [
        &["restack"],
        &["modify", "-a"],
        &["modify", "-a", "-c", "-m", "more"],
        &["create", "new", "-a", "-m", "new", "--insert"],
        &["move", "--onto", "db"],
        &["modify", "-a", "--into", "api"],
    ];
    each_git(|setup| {
        for args in commands {
            let repo = setup.draw("main <- api(2) <- ui(3)* <- top; ui <- docs; main <- db");
            match args[0] {
                "restack" => advance_in_a_shared_file(&repo),
                "move" => {}
                _ => repo.write("README", "edited\n"),
            }
            let before = repo.state();
            lattice(&repo).args(args).ok();
            lattice(&repo).args(["verify", "--full"]).ok();
            let parent = if args.contains(&"--insert") { "new" } else { "ui" };
            assert_eq!(own(&repo, parent, "top"), "Ada Tester top 1", "{args:?}");
            assert_eq!(own(&repo, parent, "docs"), "Ada Tester docs 1", "{args:?}");
            assert_eq!(repo.git(&["status", "--porcelain"]), "", "{args:?}");
            if args[0] == "restack" {
                assert_eq!(repo.read("shared"), "one\n2\n3\n4\n5\n6\n7\neight\n", "both changes are there");
            }
            lattice(&repo).arg("undo").ok();
            assert_same(&before, &repo.state());
        }
    });
}

#[test]
fn conflicts_are_continued_and_given_up_with_every_git() {
    each_git(|setup| {
        let repo = setup.draw("main <- api(2) <- ui(2) <- top*");
        advance(&repo, "ui.txt");
        let before = repo.state();
        lattice(&repo).arg("restack").fails(4);
        lattice(&repo).arg("abort").ok();
        assert_same(&before, &repo.state());
        lattice(&repo).arg("restack").fails(4);
        repo.write("ui.txt", "resolved\n");
        // The second commit of the branch changes the same file once more.
        lattice(&repo).args(["continue", "-a"]).fails(4);
        repo.write("ui.txt", "resolved twice\n");
        lattice(&repo).args(["continue", "-a"]).ok();
        assert_eq!(own(&repo, "api", "ui"), "Ada Tester ui 2\nAda Tester ui 1");
        assert_eq!(repo.git(&["show", "top:ui.txt"]), "resolved twice");
        lattice(&repo).args(["verify", "--full"]).ok();
        lattice(&repo).arg("undo").ok();
        assert_same(&before, &repo.state());
    });
}

#[test]
fn author_date_and_message_survive_with_every_git() {
    each_git(|setup| {
        let repo = setup.draw("main <- api*");
        repo.write("latin", "x\n");
        repo.git(&["add", "latin"]);
        let author = "--author=Somebody Else <else@example.invalid>";
        let date = "--date=2001-02-03T04:05:06+0700";
        let message = "gr\u{fc}\u{df}e\n\nbody\n\n# no comment";
        repo.git(&["commit", "-q", author, date, "--cleanup=verbatim", "-m", message]);
        let read = |repo: &TestRepo| repo.git(&["log", "-1", "--format=%an <%ae> %aI%n%B", "api"]);
        let before = read(&repo);
        assert!(before.contains("2001-02-03T04:05:06+07:00\ngr\u{fc}\u{df}e"), "{before}");
        advance(&repo, "README");
        lattice(&repo).arg("restack").ok();
        assert_eq!(read(&repo), before, "only place and committer change");
        repo.write("more", "x\n");
        lattice(&repo).args(["modify", "-a"]).ok();
        assert_eq!(read(&repo), before, "an amended commit keeps them too");
    });
}

#[test]
fn a_commit_in_another_encoding_keeps_its_words_and_the_name_of_its_author() {
    each_git(|setup| {
        let repo = setup.draw("main <- api*");
        let parts = [repo.git(&["rev-parse", "HEAD^{tree}"]), repo.rev("main")];
        let mut commit = format!("tree {}\nparent {}\n", parts[0], parts[1]).into_bytes();
        commit.extend_from_slice(b"author Jos\xe9 <jose@example.invalid> 981173106 +0700\n");
        commit.extend_from_slice(b"committer Ada <ada@example.invalid> 981173106 +0700\n");
        commit.extend_from_slice(b"encoding ISO-8859-1\n\ngr\xfc\xdfe\n");
        let id = repo.git_with_input(&["hash-object", "-t", "commit", "-w", "--stdin"], &commit);
        repo.git(&["update-ref", "refs/heads/api", String::from_utf8_lossy(&id).trim()]);
        // Whoever writes another encoding has it in his configuration.
        repo.git(&["config", "i18n.commitEncoding", "ISO-8859-1"]);
        let format = "--format=%an <%ae> %aI%n%B";
        let read = || repo.git(&["log", "-1", "--encoding=UTF-8", format, "api"]).trim_end().to_owned();
        let author = "Jos\u{e9} <jose@example.invalid> 2001-02-03T11:05:06+07:00";
        assert_eq!(read(), format!("{author}\ngr\u{fc}\u{df}e"));
        advance(&repo, "README");
        lattice(&repo).arg("restack").ok();
        assert_eq!(read(), format!("{author}\ngr\u{fc}\u{df}e"), "moved");
        repo.write("more", "x\n");
        lattice(&repo).args(["modify", "-a"]).ok();
        assert_eq!(read(), format!("{author}\ngr\u{fc}\u{df}e"), "amended");
        lattice(&repo).args(["modify", "-m", "\u{fc}ber"]).ok();
        assert_eq!(read(), format!("{author}\n\u{fc}ber"), "amended with other words");
        repo.write("more", "y\n");
        lattice(&repo).args(["modify", "-c", "-a", "-m", "\u{e9}t\u{e9}"]).ok();
        lattice(&repo).arg("squash").ok();
        assert_eq!(read(), format!("{author}\n\u{fc}ber\n\n\u{e9}t\u{e9}"), "squashed");
    });
}

#[test]
fn a_git_that_moves_refs_itself_is_noticed_and_no_success_is_claimed() {
    // From 2.53 on `git replay` does this unless it is told to print.
    let repo = TestRepo::draw("main <- api <- ui*");
    advance_in_a_shared_file(&repo);
    let git = repo.sandbox().root().join("git-2.53");
    let real = git_versions::first_in_path();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *\" replay \"*)\nout=$({real} \"$@\") || exit $?\n\
         printf '%s\\n' \"$out\" | {real} \"$1\" \"$2\" update-ref --stdin; exit 0;; esac\nexec {real} \"$@\"\n",
        real = real.display()
    );
    std::io::Write::write_all(&mut std::fs::File::create(&git).expect("the sandbox can be written"), script.as_bytes())
        .expect("there is space");
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).expect("the script is ours");
    let output = lattice(&repo).args(["--json", "restack"]).env("LATTICE_GIT", &git).fails(1).json();
    assert_eq!(output["error"]["code"], "git-moved-refs", "{output}");
    let told = output.to_string();
    assert!(told.contains("refs/heads/api") && told.contains("refs/heads/ui"), "the refs are named: {told}");
    let events: Vec<_> = repo.ledger().into_iter().map(|event| event["event"].clone()).collect();
    assert_eq!(events[0], "Aborted", "nothing is recorded as done: {events:?}");
    assert!(!repo.op_state_path().exists(), "and nothing is in progress");
}
