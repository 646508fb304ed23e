//! Tests of dialogues on a terminal: what is shown before a question, and that only an explicit yes changes anything.

use lattice_testkit::{Action, GitWrapper, TestRepo, assert_same};

use crate::doctor::states;
use crate::doctor::{fix_named, issue, list, plans, report, text};
use crate::lattice;

const CHOICE: &str = "Which fixes? [numbers, empty: none] ";
const PICK: &str = " [a number, or letters of the name; empty: none] ";
const APPLY: &str = "Apply this? [apply/no] ";

/// Two unreadable documents, each with one fix, after the ledger saw the first: three choices.
fn damaged() -> TestRepo {
    let repo = states::recorded(|repo| repo.set_metadata_raw("b", b"{}"));
    repo.git(&["branch", "stray"]);
    repo.set_metadata_raw("stray", b"garbage");
    repo
}

/// The numbers under which the dialogue offers fixes, by id.
fn number(repo: &TestRepo, id: &str) -> String {
    let found = report(repo);
    let offered: Vec<_> =
        list(&found["issues"]).iter().flat_map(plans).map(|fix| text(&fix["id"]).to_owned()).collect();
    (offered.iter().position(|offered| offered == id).expect("the fix is offered") + 1).to_string()
}

/// The ids of the fixes for `b` (restore, remove) and for `stray`.
fn ids(repo: &TestRepo) -> [String; 3] {
    let found = report(repo);
    let of = |branch: &str, name: &str| {
        let about = |issue: &&serde_json::Value| text(&issue["evidence"]["ref"][0]).ends_with(&format!("/{branch}"));
        let issue = list(&found["issues"]).iter().find(about).expect("the document is unreadable");
        let fix = plans(issue).into_iter().find(|fix| text(&fix["id"]).starts_with(name)).expect("the fix is offered");
        text(&fix["id"]).to_owned()
    };
    [of("b", "restore-metadata"), of("b", "remove-metadata"), of("stray", "remove-metadata")]
}

// proves: ST-8.3-2, ST-8.3-3, ST-4.1-15
#[test]
fn the_second_option_is_chosen_previewed_confirmed_and_applied_alone() {
    let repo = damaged();
    let [restore, remove, stray] = ids(&repo);
    let before = repo.refs();
    let terminal = lattice(&repo).arg("doctor").terminal();
    let output = terminal.answer(CHOICE, &format!("{}\r", number(&repo, &remove))).answer(APPLY, "apply\r").run();
    let (lists, dialogue) = output.stdout.split_once(CHOICE).expect("the question is asked");
    for shown in [&restore, &remove, &stray] {
        assert!(lists.contains(shown.as_str()), "{shown} is listed before any question:\n{lists}");
    }
    let preview = dialogue.split(APPLY).next().unwrap_or_default();
    assert!(preview.contains("delete refs/branch-metadata/b"), "the choice is previewed:\n{preview}");
    assert!(!preview.contains("stray") && !preview.contains("move refs"), "and nothing else:\n{preview}");
    let mut expected = before;
    expected.remove("refs/branch-metadata/b");
    let own = |refs: &std::collections::BTreeMap<String, String>| -> Vec<_> {
        refs.iter().filter(|(name, _)| !name.starts_with("refs/lattice")).map(|(a, b)| (a.clone(), b.clone())).collect()
    };
    assert_eq!(own(&repo.refs()), own(&expected), "only the chosen fix is applied");
    assert_eq!(repo.ledger()[0]["detail"]["fixes"], serde_json::json!([remove]));
}

// proves: ST-8.3-4
#[test]
fn two_choices_have_one_preview_and_one_confirmation() {
    let repo = damaged();
    let [restore, _, stray] = ids(&repo);
    let both = format!("{} {}\r", number(&repo, &restore), number(&repo, &stray));
    let output = lattice(&repo).arg("doctor").terminal().answer(CHOICE, &both).answer(APPLY, "apply\r").run();
    let preview = output.stdout.split(CHOICE).nth(1).and_then(|rest| rest.split(APPLY).next()).unwrap_or_default();
    for line in ["move refs/branch-metadata/b", "delete refs/branch-metadata/stray"] {
        assert!(preview.contains(line), "{line} is in the combined preview:\n{preview}");
    }
    assert_eq!(output.code, Some(0), "nothing blocks any more:\n{}", output.snapshot());
    lattice(&repo).arg("verify").ok();
}

// proves: ST-8.3-5
#[test]
fn no_an_empty_line_and_the_end_of_input_change_nothing() {
    let repo = damaged();
    let before = repo.state();
    let [_, remove, _] = ids(&repo);
    let choice = format!("{}\r", number(&repo, &remove));
    for refusal in ["no\r", "\r", "\x04", "y\r", "yes\r", "Apply\r", "apply this\r"] {
        let output = lattice(&repo).arg("doctor").terminal().answer(CHOICE, &choice).answer(APPLY, refusal).run();
        assert!(output.stdout.contains("nothing was changed"), "{refusal:?}:\n{}", output.snapshot());
        assert_same(&before, &repo.state());
    }
    for nothing in ["\r", "\x04", "none\r", "0\r", "99\r", "1 99\r", "-1\r"] {
        let asked = lattice(&repo).arg("doctor").terminal().answer(CHOICE, nothing);
        // What names no fix is asked again.
        let output = if nothing.len() > 1 { asked.answer(CHOICE, "\r").run() } else { asked.run() };
        assert!(!output.stdout.contains(APPLY), "{nothing:?} chooses nothing:\n{}", output.snapshot());
        assert_same(&before, &repo.state());
    }
    let output = lattice(&repo).arg("doctor").terminal().answer(CHOICE, "\x03").run();
    assert!(output.code == Some(130) || output.signal == Some(2), "Ctrl-C ends it:\n{}", output.snapshot());
    assert_same(&before, &repo.state());
}

// proves: ST-8.3-1, ST-14.2-3
#[test]
fn both_modes_show_the_same_issues_fixes_and_previews() {
    for state in states::ALL {
        let repo = (state.make)();
        let before = repo.state();
        let found = report(&repo);
        let terminal = lattice(&repo).arg("doctor").terminal();
        let asks = list(&found["issues"]).iter().any(|issue| !plans(issue).is_empty());
        let output = if asks { terminal.answer(CHOICE, "\r").run() } else { terminal.run() };
        let expected = issue(&found, state.kind);
        assert!(output.stdout.contains(text(&expected["id"])), "{}:\n{}", state.name, output.snapshot());
        for fix in list(&expected["fixes"]) {
            // What only the user can do has no id to choose it by.
            let named = if fix["user_action"].is_null() { &fix["id"] } else { &fix["user_action"] };
            let lines = list(&fix["preview"]).iter().chain([named]);
            for line in lines {
                assert!(output.stdout.contains(text(line)), "{line} of {}:\n{}", state.name, output.snapshot());
            }
        }
        assert_same(&before, &repo.state());
    }
}

// proves: ST-12-4
#[test]
fn a_gated_restack_is_repaired_on_the_spot_and_then_performed() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("new", "x\n", "advance");
    repo.git(&["branch", "stray"]);
    repo.set_metadata_raw("stray", b"garbage");
    let terminal = lattice(&repo).args(["--debug", "restack"]).terminal();
    let output = terminal.answer("Which fix? [1-1, empty: none] ", "1\r").answer(APPLY, "apply\r").run();
    assert_eq!(output.code, Some(0), "{}", output.snapshot());
    let stages: Vec<_> = output.stdout.lines().filter_map(|line| line.strip_prefix("debug: ")).collect();
    let repaired = stages.iter().position(|stage| stage.starts_with("gate: repair")).expect("the first gate");
    let ready = stages.iter().position(|stage| *stage == "gate: ready").expect("the second gate");
    let scanned = stages[repaired..ready].iter().filter(|stage| stage.starts_with("scan:")).count();
    assert!(repaired < ready && scanned > 0, "the lifecycle begins again with a scan:\n{}", output.snapshot());
    assert_eq!(repo.rev("a~1"), repo.rev("main"), "the restack happened");
    assert_eq!(repo.rev("b~1"), repo.rev("a"), "all of it");
    assert!(!repo.metadata_refs().contains_key("stray"), "and the repair");
}

#[test]
fn a_gated_restack_whose_repair_is_declined_changes_nothing() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.commit_file("new", "x\n", "advance");
    repo.set_metadata_raw("b", b"garbage");
    let before = repo.state();
    let question = "Which fix? [1-1, empty: none] ";
    for (choice, confirmation) in [("\r", None), ("7\r", None), ("1\r", Some("no\r")), ("1\r", Some("\x04"))] {
        let mut terminal = lattice(&repo).arg("restack").terminal().answer(question, choice);
        if let Some(confirmation) = confirmation {
            terminal = terminal.answer(APPLY, confirmation);
        }
        let output = terminal.run();
        assert_eq!(output.code, Some(1), "{choice:?} {confirmation:?}:\n{}", output.snapshot());
        assert_same(&before, &repo.state());
    }
}

#[test]
fn checkout_track_and_init_ask_for_what_is_missing() {
    let repo = TestRepo::draw("main* <- a <- b");
    repo.git(&["branch", "stray", "b"]);
    lattice(&repo).arg("checkout").terminal().answer(&format!("Which branch?{PICK}"), "3\r").run();
    assert_eq!(repo.git(&["symbolic-ref", "--short", "HEAD"]), "b", "the third is b");
    let terminal = lattice(&repo).arg("checkout").terminal();
    terminal.answer(PICK, "A\r").answer(PICK, "2\r").run();
    assert_eq!(
        repo.git(&["symbolic-ref", "--short", "HEAD"]),
        "a",
        "letters leave main and a, of which a is the second"
    );
    let terminal = lattice(&repo).args(["track", "stray"]).terminal();
    terminal.answer(&format!("On which branch does it stand?{PICK}"), "2\r").run();
    assert_eq!(repo.metadata("stray")["parent"]["name"], "a", "the second is a");
    let fresh = TestRepo::new();
    fresh.git(&["branch", "master"]);
    let terminal = lattice(&fresh).arg("init").terminal();
    terminal.answer(&format!("Which branch is the trunk?{PICK}"), "2\r").run();
    assert_eq!(lattice(&fresh).arg("trunk").ok().stdout.trim(), "master");
}

#[test]
fn questions_that_are_not_answered_change_nothing() {
    let repo = TestRepo::draw("main* <- a");
    repo.git(&["branch", "stray", "a"]);
    let before = repo.state();
    for (args, question) in [
        (&["checkout"][..], &*format!("Which branch?{PICK}")),
        (&["track", "stray"], &format!("On which branch does it stand?{PICK}")),
        (&["init", "--reset"], "Remove all metadata and configuration? [remove/no] "),
    ] {
        for answer in ["\r", "\x04", "9\r", "no\r"] {
            let mut terminal = lattice(&repo).args(args).terminal().answer(question, answer);
            if question.ends_with(PICK) && answer.len() > 1 {
                // What means no name is said to, and the question is asked again.
                terminal = terminal.answer("no name has these letters", "").answer(question, "\r");
            }
            let output = terminal.run();
            assert!(matches!(output.code, Some(1 | 2)), "{args:?} {answer:?}:\n{}", output.snapshot());
            assert_same(&before, &repo.state());
        }
    }
    lattice(&repo).args(["init", "--reset"]).terminal().answer("[remove/no] ", "remove\r").run();
    assert!(repo.metadata_refs().is_empty(), "the word itself is a yes");
}

#[test]
fn nobody_is_asked_without_a_terminal_or_when_told_not_to() {
    let repo = damaged();
    let before = repo.state();
    let [restore, ..] = ids(&repo);
    for args in [&["doctor", "--no-interactive"][..], &["doctor", "--quiet"], &["doctor", "--json"]] {
        let output = lattice(&repo).args(args).terminal().run();
        assert!(!output.stdout.contains(CHOICE), "{args:?} asks nothing:\n{}", output.snapshot());
    }
    let output = lattice(&repo).arg("doctor").stdin("1\napply\n").run();
    assert!(!output.stderr.contains(CHOICE), "a pipe is no person:\n{}", output.snapshot());
    assert_same(&before, &repo.state());
    assert_eq!(fix_named(&report(&repo), "restore-metadata"), restore, "and the fix is still there");
}

#[test]
fn whoever_waits_on_a_terminal_is_told_for_what_and_nobody_else_is() {
    let repo = TestRepo::draw("main <- a*");
    crate::host::with_remote(&repo);
    let slow = |what: &str| {
        let mut wrapper = GitWrapper::new(&repo);
        wrapper.on("ls-remote", 1, Action::Run(what.to_owned()));
        lattice(&repo).wrapper(&wrapper).arg("sync")
    };
    let shown = slow("sleep 2").terminal().run();
    assert!(shown.stdout.contains("waiting for the remote\n"), "a line of its own: {}", shown.snapshot());
    let asked = slow("stty -echo < /dev/tty; sleep 2; stty echo < /dev/tty").terminal().run();
    assert!(!asked.stdout.contains("waiting"), "not while a password is typed: {}", asked.snapshot());
    let piped = slow("sleep 2").ok();
    assert!(!(piped.stdout.clone() + &piped.stderr).contains("waiting"), "{}", piped.snapshot());

    for number in 0..2_000 {
        repo.write(&format!("many/{number}.txt"), format!("{number}\n"));
    }
    let pack = || lattice(&repo).args(["context", "pack", "many things", "--budget", "400", "--out", "../prompt"]);
    let piped = pack().ok();
    assert!(!piped.stderr.contains("reading files"), "{}", piped.snapshot());
    std::fs::remove_dir_all(repo.lattice_dir().join("cache")).expect("the index is there");
    let shown = pack().terminal().run();
    assert!(shown.stdout.contains("reading files"), "{}", shown.snapshot());
}
