//! Tests of what scripts rely on: documents with schemas, exit codes, streams, colours, no questions.

use std::collections::BTreeSet;

use expect_test::expect;
use lattice_testkit::{Lattice, Output, TestRepo, assert_same};
use serde_json::{Value, json};

use crate::lattice;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lattice");

/// Runs shell text with the program as `$0` and the arguments as `$@`.
#[track_caller]
fn shell(repo: &TestRepo, text: &str, args: &[&str]) -> Output {
    Lattice::new("/bin/sh", repo).args(["-c", text, PROGRAM]).args(args).run()
}

/// Checks a document against the schema that it names, and gives the command that it names.
#[track_caller]
pub(crate) fn validated(repo: &TestRepo, document: &Value) -> String {
    let name = document["schema"].as_str().unwrap_or_default();
    let command = name.strip_prefix("lattice.").and_then(|name| name.strip_suffix("/v1"));
    let command = command.unwrap_or_else(|| panic!("no name of a schema: {document:#}"));
    let schema = lattice(repo).args(["schema", command]).ok().json();
    let validator = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("schema of {command}: {error}"));
    let problems: Vec<_> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{command}: {problems:#?}\n{document:#}");
    assert_eq!(document["ok"], json!(command != "error"), "{document:#}");
    command.to_owned()
}

#[track_caller]
fn sample() -> TestRepo {
    let repo = TestRepo::draw("main <- a <- b* <- c; main <- d");
    repo.git(&["branch", "loose"]);
    repo
}

/// Schemas whose documents other tests make: below, and with the sprites.
const ELSEWHERE: [&str; 36] = [
    "abort",
    "absorb",
    "approvals",
    "approve",
    "auth",
    "checkpoint",
    "continue",
    "delete",
    "explain",
    "fold",
    "get",
    "issue",
    "merge",
    "ops-show",
    "pop",
    "pr",
    "proposals",
    "rename",
    "reorder",
    "resume",
    "revert",
    "run",
    "split",
    "sprite-artifacts",
    "sprite-diff",
    "sprite-events",
    "sprite-gc",
    "sprite-ingest",
    "sprite-logs",
    "sprite-manage",
    "sprite-resume-check",
    "sprite-show",
    "squash",
    "submit",
    "sync",
    "unlink",
];

// proves: ST-13.4-4
#[test]
fn every_command_prints_one_document_that_its_schema_describes() {
    for state in crate::doctor::states::ALL {
        let repo = (state.make)();
        let document = lattice(&repo).args(["doctor", "--json"]).run().json();
        assert_eq!(validated(&repo, &document), "doctor", "{}: {document:#}", state.name);
    }
    let repo = sample();
    repo.write("new.txt", "new\n");
    let listed = lattice(&repo).arg("schema").json();
    let mut untested: BTreeSet<String> = serde_json::from_value(listed["commands"].clone()).expect("names");
    let calls: [(&str, &str); 48] = [
        ("log --long", "log"),
        ("ls", "log"),
        ("", "log"),
        ("info --diff", "info"),
        ("info main", "info"),
        ("parent", "parent"),
        ("children", "children"),
        ("trunk", "trunk"),
        ("trunk set main", "trunk"),
        ("trunk set main --dry-run", "trunk"),
        ("init", "init"),
        ("init --reset --dry-run", "init"),
        ("track loose --parent main", "track"),
        ("untrack loose --dry-run", "untrack"),
        ("untrack loose", "untrack"),
        ("create x -a -m message --dry-run", "create"),
        ("create x -a -m message", "create"),
        ("modify -m words", "modify"),
        ("restack --dry-run", "restack"),
        ("restack", "restack"),
        ("move --source d --onto a", "move"),
        ("freeze d", "freeze"),
        ("unfreeze d", "unfreeze"),
        ("checkout main", "checkout"),
        ("up --to b", "up"),
        ("down", "down"),
        ("top --to x", "top"),
        ("bottom", "bottom"),
        ("undo", "undo"),
        ("redo", "redo"),
        ("ops", "ops"),
        ("verify --full", "verify"),
        ("doctor --events --explain", "doctor"),
        ("config list", "config"),
        ("config set undo.keep_days 3 --dry-run", "config"),
        ("config set undo.keep_days 3", "config"),
        ("config get undo.keep_days", "config"),
        ("config set --global undo.keep_days 4", "config"),
        ("plan freeze c --out ../p.json", "plan"),
        ("apply ../p.json", "freeze"),
        ("sprite list", "sprite-list"),
        ("completion bash", "completion"),
        ("man", "man"),
        ("schema", "schema"),
        ("schema log", "schema"),
        ("--version", "version"),
        ("nonsense", "error"),
        ("checkout missing", "error"),
    ];
    for (line, expected) in calls {
        let document = lattice(&repo).args(line.split_whitespace()).json();
        assert_eq!(validated(&repo, &document), expected, "lattice {line}: {document:#}");
        untested.remove(expected);
    }
    let newest = lattice(&repo).arg("ops").json()["operations"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(validated(&repo, &lattice(&repo).args(["ops", "show", &newest]).json()), "ops-show");
    // The demo starts the program many times, and each run needs a seed of its own.
    let demo = shell(&repo, "unset LATTICE_SEED; exec \"$0\" \"$@\"", &["demo", "--json", "--dir", "../demo"]);
    untested.remove(&validated(&repo, &demo.json()));
    // Those of the context commands are tested with them.
    let untested: Vec<_> = untested.iter().map(String::as_str).filter(|name| !name.starts_with("context-")).collect();
    assert_eq!(untested, ELSEWHERE, "every schema has a document here or in another test");
}

#[test]
fn every_edit_prints_a_document_that_its_schema_describes() {
    let repo = TestRepo::draw("main <- a(2)* <- b");
    for line in ["split --by-commit", "squash", "rename z", "reorder --order b,a", "delete b", "revert HEAD", "pop"] {
        let document = lattice(&repo).args(line.split(' ')).args(["--dry-run", "--json"]).run().json();
        assert_eq!(Some(validated(&repo, &document).as_str()), line.split(' ').next(), "{line}: {document:#}");
    }
    repo.git(&["checkout", "--quiet", "b"]);
    repo.write("b.txt", "absorbed\n");
    repo.git(&["add", "b.txt"]);
    for command in ["absorb", "fold"] {
        let document = lattice(&repo).args([command, "--json"]).run().json();
        assert_eq!(validated(&repo, &document), command, "{document:#}");
    }
}

#[test]
fn every_command_that_concerns_a_host_prints_a_document_that_its_schema_describes() {
    let repo = sample();
    crate::host::with_remote(&repo);
    let calls = [
        ("submit --stack --dry-run", "submit"),
        ("submit --stack", "submit"),
        ("submit --stack", "submit"),
        ("get a --no-checkout", "get"),
        ("pr", "pr"),
        ("pr show", "pr"),
        ("pr show --stack", "pr"),
        ("pr review --verdict approve --body fine", "pr"),
        ("pr comment --body words", "pr"),
        ("issue new --title one --body text", "issue"),
        ("issue list", "issue"),
        ("issue show 4", "issue"),
        ("issue comment 4 words", "issue"),
        ("issue label 4 --add bug", "issue"),
        ("issue close 4", "issue"),
        ("issue show 99", "error"),
        ("unlink", "unlink"),
        ("merge", "error"),
        ("merge --dry-run", "merge"),
        ("merge --confirm", "merge"),
        ("sync", "sync"),
    ];
    for (line, expected) in calls {
        let document = lattice(&repo).args(line.split_whitespace()).json();
        assert_eq!(validated(&repo, &document), expected, "lattice {line}: {document:#}");
    }
}

// proves: ST-12-8
#[test]
fn exit_codes_and_documents_of_an_operation_in_its_troubles() {
    let repo = TestRepo::draw("main* <- a <- b");
    let run = |code: i32, args: &[&str]| {
        let document = lattice(&repo).arg("--json").args(args).fails(code).json();
        validated(&repo, &document);
        document
    };
    assert_eq!(run(0, &["log"])["ok"], json!(true), "done");
    assert_eq!(run(1, &["freeze", "main"])["error"]["code"], json!("gated"), "refused");
    assert_eq!(run(2, &["freeze", "--nonsense"])["error"]["code"], json!("usage"), "usage");
    repo.commit_file("a.txt", "in conflict\n", "trunk touches the same file");
    let paused = run(4, &["restack"]);
    assert_eq!(paused["error"]["code"], json!("conflict"), "{paused:#}");
    assert_eq!([&paused["paused"]["branch"], &paused["paused"]["files"]], [&json!("a"), &json!(["a.txt"])]);
    let busy = run(3, &["freeze", "b"]);
    assert_eq!(busy["error"]["code"], json!("operation-in-progress"), "{busy:#}");
    assert!(run(0, &["log"])["operation"].is_string(), "looking is always allowed");
    run(1, &["doctor"]);
    run(4, &["continue"]);
    assert_eq!(run(0, &["abort"])["schema"], json!("lattice.abort/v1"));
    assert_eq!(run(1, &["abort"])["error"]["code"], json!("nothing-in-progress"));
    run(4, &["restack"]);
    repo.write("a.txt", "resolved\n");
    assert_eq!(run(0, &["continue", "-a"])["schema"], json!("lattice.continue/v1"));
    repo.set_metadata_raw("b", b"{");
    let issue = run(1, &["doctor"])["issues"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(run(0, &["explain", &issue])["schema"], json!("lattice.explain/v1"));
    assert_eq!(run(1, &["verify"])["holds"], json!(false), "an invariant that does not hold");
    let before = repo.state();
    let bug = lattice(&repo).env("LATTICE_DEFECT", "panic").args(["--json", "restack"]).fails(70);
    assert_eq!(validated(&repo, &bug.json()), "error", "{}", bug.snapshot());
    assert!(bug.stderr.contains("this is a bug, please report it"), "{}", bug.snapshot());
    assert_same(&before, &repo.state());
}

/// Every command that users see.
const COMMANDS: [&str; 44] = [
    "init",
    "track",
    "untrack",
    "create",
    "modify",
    "restack",
    "move",
    "freeze",
    "unfreeze",
    "checkout",
    "up",
    "down",
    "top",
    "bottom",
    "log",
    "ls",
    "info",
    "parent",
    "children",
    "trunk",
    "continue",
    "abort",
    "undo",
    "redo",
    "ops",
    "doctor",
    "verify",
    "plan",
    "apply",
    "config",
    "explain",
    "run",
    "resume",
    "sprite",
    "approvals",
    "approve",
    "deny",
    "proposals",
    "emit",
    "checkpoint",
    "completion",
    "man",
    "schema",
    "demo",
];

// proves: ST-4.1-1
#[test]
fn help_shows_the_options_and_unknown_ones_are_usage_errors() {
    let repo = sample();
    let top = lattice(&repo).arg("--help").ok().stdout;
    for command in COMMANDS {
        assert!(top.contains(&format!("  {command} ")), "{command} is listed:\n{top}");
        let help = lattice(&repo).args([command, "--help"]).ok().stdout;
        for flag in [
            "--cwd",
            "--json",
            "--quiet",
            "--debug",
            "--interactive",
            "--no-interactive",
            "--verify",
            "--no-verify",
            "--color",
        ] {
            assert!(help.contains(flag), "{command} --help shows {flag}");
        }
        let unknown = lattice(&repo).args([command, "--no-such-flag", "--json"]).fails(2).json();
        assert_eq!(unknown["error"]["code"], json!("usage"), "{command}: {unknown:#}");
    }
    for args in [&["config"][..], &["no-such-command"], &["move"], &["completion"], &["--color", "pink", "log"]] {
        let document = lattice(&repo).arg("--json").args(args).fails(2).json();
        assert_eq!(document["error"]["code"], json!("usage"), "{args:?}");
        let text = lattice(&repo).args(args).fails(2);
        assert!(!(text.stdout + &text.stderr).is_empty(), "{args:?} is told to people too");
    }
}

// proves: ST-13.4-3
#[test]
fn nothing_ever_asks_without_a_terminal_even_with_stdin_closed() {
    let repo = sample();
    repo.write("new.txt", "new\n");
    let before = repo.state();
    let lines = [
        "init --reset",
        "track loose",
        "checkout",
        "create x -a",
        "create",
        "create x -a -p -m m",
        "modify -p",
        "config edit",
        "config edit --global",
        "doctor",
        "continue",
        "abort",
        "explain x",
        "trunk",
        "log",
        "info",
        "apply",
        "plan",
        "untrack a",
        "move",
        "undo",
        "redo",
    ];
    for line in lines {
        let args: Vec<_> = line.split_whitespace().collect();
        let out = shell(&repo, "exec \"$0\" \"$@\" <&-", &args);
        assert!(matches!(out.code, Some(0..=2)), "lattice {line}:\n{}", out.snapshot());
        assert!(!out.stderr.contains("? ["), "lattice {line} asks nothing:\n{}", out.snapshot());
    }
    assert_same(&before, &repo.state());
    // A person insists, and nobody answers: the end of input is an empty answer.
    let insisted = lattice(&repo).args(["--interactive", "init", "--reset"]).fails(1);
    assert!(insisted.stderr.contains("[remove/no]"), "{}", insisted.snapshot());
    let quiet = lattice(&repo).args(["--interactive", "--quiet", "init", "--reset"]).fails(1);
    assert!(!quiet.stderr.contains("[remove/no]"), "--quiet never asks:\n{}", quiet.snapshot());
    assert_same(&before, &repo.state());
}

// proves: ST-4.1-4
#[test]
fn quiet_says_less_and_debug_says_more_on_stderr_alone() {
    let repo = TestRepo::draw("main* <- a");
    let normal = lattice(&repo).arg("restack").ok();
    assert_eq!((normal.stdout.as_str(), normal.stderr.as_str()), ("", "nothing to do\n"));
    assert_eq!(lattice(&repo).args(["restack", "--quiet"]).ok().stderr, "");
    let debug = lattice(&repo).args(["restack", "--debug", "--json"]).ok();
    assert!(debug.stderr.lines().all(|line| line.starts_with("debug: ")), "{}", debug.snapshot());
    assert_eq!(debug.json()["ok"], json!(true), "stdout holds the document and nothing else");
    let failed = lattice(&repo).args(["freeze", "main", "--quiet"]).fails(1);
    assert!(failed.stderr.contains("is the trunk"), "a refusal is told in any case:\n{}", failed.snapshot());
    let asked = lattice(&repo).arg("checkout").terminal().answer("Which", "\x03").run();
    assert_ne!(asked.code, Some(0), "{}", asked.snapshot());
    let untold = lattice(&repo).args(["checkout", "--no-interactive"]).terminal().run();
    assert!(!untold.stdout.contains("Which"), "told not to ask:\n{}", untold.snapshot());
    let hooks = repo.common_dir().join("hooks");
    std::fs::create_dir_all(&hooks).expect("a folder for hooks");
    std::fs::write(hooks.join("pre-commit"), "#!/bin/sh\nexit 1\n").expect("a hook");
    shell(&repo, &format!("chmod +x '{}'", hooks.join("pre-commit").display()), &[]);
    repo.write("more.txt", "more\n");
    lattice(&repo).args(["create", "more", "-a", "-m", "more"]).fails(1);
    lattice(&repo).args(["create", "more", "-a", "-m", "more", "--no-verify"]).ok();
}

#[test]
fn colour_is_used_on_terminals_or_on_demand() {
    let repo = sample();
    let coloured = |out: &Output| out.stdout.contains('\u{1b}') || out.stderr.contains('\u{1b}');
    assert!(!coloured(&lattice(&repo).arg("log").ok()), "not in a pipe");
    assert!(coloured(&lattice(&repo).args(["log", "--color", "always"]).ok()), "on demand");
    assert!(coloured(&lattice(&repo).args(["freeze", "main", "--color", "always"]).fails(1)), "in errors too");
    assert!(!coloured(&lattice(&repo).args(["log", "--color", "never"]).ok()));
    // `script` runs its command on a terminal and hands on what is shown there, escape sequences and all.
    let terminal = |text: &str| shell(&repo, &format!("exec script -qec \"$0 {text}\" /dev/null"), &[]);
    assert!(coloured(&terminal("log")), "on a terminal");
    assert!(!coloured(&terminal("log --color never")));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = Lattice::new("/bin/sh", &repo).env(name, value);
        let plain = plain.args(["-c", "exec script -qec \"$0 log\" /dev/null", PROGRAM]).run();
        assert!(!coloured(&plain), "{name}={value} is honoured: {}", plain.snapshot());
    }
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
    let repo = sample();
    // The script is longer than a pipe holds, so the writer is still writing when the reader is gone.
    let out = shell(&repo, "{ \"$0\" completion zsh; echo $? >&2; } | head -c 1 >/dev/null", &[]);
    assert_eq!(out.stderr, "0\n", "a reader that has seen enough");
    for args in [&["log"][..], &["log", "--json"], &["--help"], &["schema", "log"]] {
        let full = shell(&repo, "exec \"$0\" \"$@\" >/dev/full", args);
        assert_eq!(full.code, Some(1), "what could not be written is no success:\n{}", full.snapshot());
        assert!(full.stderr.contains("could not be written"), "{}", full.snapshot());
    }
    let lost = shell(&repo, "mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$0\" \"$@\"", &["log", "--json"]);
    assert_eq!(lost.code, Some(1));
    validated(&repo, &lost.json());
}

#[test]
fn the_program_tells_about_itself() {
    let repo = sample();
    let version = lattice(&repo).arg("--version").ok().stdout;
    assert_eq!(version, format!("lattice {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(lattice(&repo).arg("--version").json()["version"], json!(env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = lattice(&repo).args(["completion", shell]).ok().stdout;
        assert!(script.contains("LATTICE_COMPLETE") && script.contains("lt"), "{shell}");
    }
    lattice(&repo).args(["completion", "tcsh"]).fails(2);
    assert!(lattice(&repo).arg("man").ok().stdout.contains(".TH lattice 1"));
    lattice(&repo).args(["man", "--out", "../man"]).ok();
    let page = repo.read("../man/lattice-restack.1");
    assert!(page.contains("downstack"), "{page}");
    for page in [repo.read("../man/lattice.1"), lattice(&repo).arg("man").ok().stdout] {
        let named = page.lines().filter_map(|line| line.strip_suffix("(1)")).map(|name| name.replace('\\', ""));
        for name in named {
            assert!(repo.dir().join(format!("../man/{name}.1")).exists(), "{name} has a page");
        }
    }
    let unknown = lattice(&repo).args(["schema", "nothing", "--json"]).fails(1).json();
    assert_eq!(unknown["error"]["code"], json!("no-such-schema"));
    let short = Lattice::new(env!("CARGO_BIN_EXE_lt"), &repo);
    assert_eq!(short.clone().arg("log").ok().stdout, lattice(&repo).arg("log").ok().stdout, "lt is the same program");
    for (alias, command) in [("c", "create"), ("m", "modify"), ("r", "restack"), ("co", "checkout")] {
        let help = |word: &str| lattice(&repo).args([word, "--help"]).ok().stdout;
        assert_eq!(help(alias), help(command), "{alias} is {command}");
    }
}

#[test]
fn a_shell_is_offered_the_names_that_there_are() {
    let repo = TestRepo::draw("main <- api <- ui*");
    let offered = |line: &str| {
        let words = ["--", "lattice"].into_iter().chain(line.split(' '));
        lattice(&repo).env("LATTICE_COMPLETE", "fish").args(words).ok().stdout
    };
    for (line, expected) in [
        ("checkout ", &["api", "main", "ui"][..]),
        ("checkout a", &["api"]),
        ("co a", &["api"]),
        ("move --onto u", &["ui"]),
        ("config get merge.m", &["merge.method\thow to land: merge, squash, rebase"]),
        ("config set lock.", &["lock.timeout_ms\thow long a writer waits for another"]),
        ("freez", &["freeze\tProtect a branch, and everything below it, from being rewritten"]),
    ] {
        let offered = offered(line);
        let names: Vec<_> = offered.lines().filter(|line| !line.starts_with('-')).collect();
        assert_eq!(names, expected, "{line}");
    }
    for name in ["create", "checkout", "modify", "restack", "submit"] {
        let offered = offered(&name[..1]);
        assert!(offered.lines().any(|line| line.starts_with(&format!("{name}\t"))), "{name}: {offered}");
    }
}

#[test]
fn a_refusal_is_readable() {
    let repo = TestRepo::draw("main* <- a!");
    repo.commit_file("more.txt", "more\n", "trunk moves");
    expect![[r#"
        exit code 1
        --- stderr
        error: `restack` cannot run: `a` is frozen and would be rewritten
          issue frozen-6eb58fb3
          fix unfreeze-4ffcb506  unfreeze a
              update a: parent main, base cdc1be7e
        hint: apply a fix by its id, for example: lattice doctor --fix unfreeze-4ffcb506
    "#]]
    .assert_eq(&lattice(&repo).args(["restack", "a"]).fails(1).snapshot());
}

#[test]
fn quiet_leaves_out_the_story_and_keeps_the_data() {
    let repo = TestRepo::draw("main <- api*");
    let frozen = lattice(&repo).args(["-q", "freeze"]).ok();
    assert_eq!((frozen.stdout.as_str(), frozen.stderr.as_str()), ("", ""), "what was done is not data");
    let log = lattice(&repo).args(["-q", "log"]).ok();
    assert!(log.stdout.contains("api") && log.stderr.is_empty(), "what was asked for is printed:\n{}", log.stdout);
    let planned = lattice(&repo).args(["-q", "unfreeze", "--dry-run"]).ok();
    assert!(planned.stdout.contains("api"), "a plan was asked for");
}

#[test]
fn a_shell_completes_the_names_of_the_repository() {
    let repo = TestRepo::draw("main <- feature/login <- feature/logout*");
    let offered = |words: &str| {
        let line = format!(
            "source <(\"$0\" completion bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             PATH=\"$(dirname \"$0\"):$PATH\"; _clap_complete_lattice lattice \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let program = env!("CARGO_BIN_EXE_lattice");
        Lattice::new("bash", &repo).args(["-c", &line, program]).ok().stdout
    };
    assert_eq!(offered("lattice checkout feat"), "feature/login\nfeature/logout\n");
    assert_eq!(offered("lattice move --onto ma"), "main\n");
    assert_eq!(offered("lattice rest"), "restack\n");
    assert_eq!(offered("lattice sprite show x"), "\n", "there is no sprite, and that is no error");
    let before = repo.state();
    offered("lattice checkout feat");
    assert_same(&before, &repo.state());
}

#[test]
fn whoever_mistypes_a_name_is_told_which_one_is_near() {
    let repo = TestRepo::draw("main <- feature/login*");
    for args in [&["info", "login"][..], &["parent", "feature/logn"], &["checkout", "login"], &["restack", "login"]] {
        let output = lattice(&repo).args(args).fails(1);
        assert!(output.stderr.contains("did you mean `feature/login`?"), "{}", output.snapshot());
    }
    let stranger = lattice(&repo).args(["info", "zebra"]).fails(1);
    assert!(!stranger.stderr.contains("did you mean"), "{}", stranger.snapshot());
}

#[test]
fn of_similar_commands_the_closest_is_named_first_and_abbreviations_are_not() {
    let output = lattice(&TestRepo::new()).arg("restak").fails(2);
    let tip = output.stderr.lines().find(|line| line.contains("similar")).unwrap_or_default();
    let names: Vec<_> = tip.split('\'').skip(1).step_by(2).collect();
    assert_eq!(names.first(), Some(&"restack"), "{}", output.snapshot());
    assert!(names.iter().all(|name| name.len() > 1), "{}", output.snapshot());
}
