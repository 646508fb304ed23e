//! Tests of explanations: always the same without help, more with it, and never a reason for anything.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lattice_model::explain::{Explain, ExplainCtx, ExplainError, ExplainFut, Explanation};
use lattice_model::issue::{Issue, IssueKind, evidence};
use lattice_testkit::{TestRepo, assert_same};
use serde_json::Value;

use crate::doctor::states;
use crate::doctor::{copy_of, issue, list, report, text};
use crate::lattice;

/// A cycle and an unreadable document, explained by a shell script.
fn explained_by(script: &str) -> TestRepo {
    let repo = TestRepo::draw("main* <- a <- b; main <- c");
    states::edit(&repo, "a", |metadata| metadata["parent"] = serde_json::json!({ "kind": "branch", "name": "b" }));
    repo.set_metadata_raw("c", b"garbage");
    configure(&repo, script);
    repo
}

fn configure(repo: &TestRepo, script: &str) {
    let command = serde_json::json!(["sh", "-c", script]);
    let explain = format!("[explain]\ncommand = {command}\ntimeout_ms = 20000\n");
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\n{explain}"));
}

/// The report without the prose that an explainer may have added.
fn decisions(repo: &TestRepo) -> Value {
    let mut report = lattice(repo).args(["doctor", "--explain"]).json();
    for issue in report["issues"].as_array_mut().expect("a list") {
        issue["explanation"]["added"] = Value::Null;
    }
    // The configuration names the explainer, and so the fingerprint and the place of the copy differ.
    for key in ["fingerprint", "repository", "divergence"] {
        report[key] = Value::Null;
    }
    report
}

// proves: ST-9.4-1, ST-4.1-26
#[test]
fn every_issue_and_fix_has_a_text_that_is_always_the_same() {
    for state in states::ALL {
        let repo = (state.make)();
        let found = report(&repo);
        let expected = issue(&found, state.kind);
        let output = lattice(&repo).args(["explain", text(&expected["id"])]).ok();
        // How old a lock is changes from one moment to the next.
        let summary = text(&expected["summary"]).split(" was left behind").next().unwrap_or_default();
        assert!(output.stdout.contains(summary), "{}:\n{}", state.name, output.snapshot());
        for fix in list(&expected["fixes"]) {
            for part in [&fix["id"], &fix["summary"]] {
                assert!(output.stdout.contains(text(part)), "{part} of {}:\n{}", state.name, output.snapshot());
            }
        }
        let copy = copy_of(&repo, "copy");
        let again = lattice(&copy).args(["explain", text(&expected["id"])]).ok();
        let root = repo.sandbox().root().to_string_lossy().into_owned();
        let same = |text: &str| {
            let text =
                text.replace(&format!("{root}/copy"), "<repo>").replace(&*repo.dir().to_string_lossy(), "<repo>");
            match text.split_once(" seconds ago") {
                Some((lock, rest)) => lock.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned() + rest,
                None => text,
            }
        };
        assert_eq!(same(&again.stdout), same(&output.stdout), "a copy of {} has the same text", state.name);
        let doctor = lattice(&repo).args(["doctor", "--explain"]).run();
        assert!(doctor.stdout.contains(summary), "doctor explains {}", state.name);
    }
}

// proves: ST-9.1-3, ST-9.1-4, ST-9.4-2, ST-4.1-27
#[test]
fn a_configured_explainer_adds_to_the_baseline_and_replaces_nothing() {
    let repo = explained_by("cat >/dev/null; printf 'First.\\n\\nSecond \\033[31mred\\033[0m.'");
    let id = text(&issue(&report(&repo), "cycle")["id"]).to_owned();
    let plain = {
        let silent = copy_of(&repo, "silent");
        silent.write_config("[trunk]\nbranch = \"main\"\n");
        lattice(&silent).args(["explain", &id]).ok().stdout
    };
    let output = lattice(&repo).args(["explain", &id]).ok();
    assert!(output.stdout.starts_with(plain.as_str()), "the baseline comes first:\n{}", output.snapshot());
    assert!(output.stdout.contains("First.\n\nSecond"), "paragraphs are kept:\n{}", output.snapshot());
    assert!(!output.stdout.contains('\u{1b}'), "it cannot steer the terminal:\n{}", output.snapshot());
    let document = lattice(&repo).args(["explain", &id]).json();
    assert!(text(&document["issue"]["explanation"]["added"]).starts_with("First."), "{document:#}");
    assert_eq!(text(&document["issue"]["explanation"]["baseline"]), plain, "{document:#}");
    let diagnosed = lattice(&repo).args(["doctor", "--explain"]).json();
    let explained = issue(&diagnosed, "cycle")["explanation"].clone();
    assert_eq!(text(&explained["baseline"]), plain, "doctor keeps the baseline too: {explained:#}");
    assert!(text(&explained["added"]).starts_with("First."), "{explained:#}");
}

// proves: ST-9.2-4
#[test]
fn an_explainer_that_hangs_fails_or_is_missing_costs_only_its_text() {
    let healthy = explained_by("true");
    let expected = decisions(&healthy);
    let code = lattice(&healthy).args(["doctor", "--explain"]).run().code;
    let hangs = "[explain]\ncommand = [\"sh\", \"-c\", \"sleep 600\"]\ntimeout_ms = 200\n";
    let others = [
        hangs,
        "[explain]\ncommand = [\"sh\", \"-c\", \"exit 3\"]\n",
        "[explain]\ncommand = [\"/nowhere/explainer\"]\n",
        "[explain]\ncommand = [\"sh\", \"-c\", \"kill -9 $$\"]\n",
        "[explain]\ncommand = []\n",
    ];
    for explain in others {
        let repo = explained_by("true");
        repo.write_config(&format!("[trunk]\nbranch = \"main\"\n{explain}"));
        let began = Instant::now();
        let output = lattice(&repo).args(["doctor", "--explain"]).run();
        assert!(began.elapsed() < Duration::from_secs(60), "{explain} is not waited for");
        assert_eq!(output.code, code, "{explain}:\n{}", output.snapshot());
        assert!(output.stdout.contains("go round in a circle"), "{explain}:\n{}", output.snapshot());
        assert_eq!(decisions(&repo), expected, "{explain}");
    }
}

// proves: ST-9.2-1
#[test]
fn the_text_that_needs_no_help_is_there_while_the_explainer_still_thinks() {
    let repo = explained_by("cat >/dev/null; read answer </dev/tty; echo \"heard $answer\"");
    let id = text(&issue(&report(&repo), "cycle")["id"]).to_owned();
    // The explainer ends only after the text was seen on the terminal.
    let output = lattice(&repo).args(["explain", &id]).terminal().answer("go round in a circle", "it\r").run();
    assert!(output.stdout.contains("heard it"), "{}", output.snapshot());
    let slow = "[explain]\ncommand = [\"sleep\", \"600\"]\ntimeout_ms = 200\n";
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\n{slow}"));
    let output = lattice(&repo).args(["explain", &id]).ok();
    assert!(!output.stdout.contains("The explainer adds"), "a timeout ends it:\n{}", output.snapshot());
}

// proves: ST-1.3-3, ST-4.1-28, ST-9.1-1, ST-9.1-5
#[test]
fn a_random_explainer_changes_no_plan_no_fix_and_no_exit_code() {
    let repo = explained_by("true");
    repo.write_config("[trunk]\nbranch = \"main\"\n");
    let random = "cat >/dev/null; head -c 300 /dev/urandom | od -An -tx1";
    // The explainer is the user's, so that the repository is the same to the last byte.
    let homes = [("random", random), ("failing", "exit 1")].map(|(name, script)| {
        let home = repo.sandbox().root().join(name);
        fs::create_dir_all(home.join("lattice")).expect("the sandbox can be written");
        let command = serde_json::json!(["sh", "-c", script]);
        fs::write(home.join("lattice/config.toml"), format!("[explain]\ncommand = {command}\n")).expect("it can");
        home
    });
    let said = lattice(&repo).args(["doctor", "--explain"]).env("XDG_CONFIG_HOME", &homes[0]).run();
    assert!(said.stdout.contains("The explainer adds"), "the explainer of this test works:\n{}", said.snapshot());
    for args in [
        &["doctor", "--explain"][..],
        &["restack"],
        &["create", "new", "-m", "x", "--dry-run"],
        &["init", "--reset", "--dry-run"],
        &["checkout", "a", "--dry-run"],
        &["verify"],
    ] {
        let [one, other] = homes.each_ref().map(|home| {
            let output = lattice(&repo).arg("--json").args(args).env("XDG_CONFIG_HOME", home).run();
            let mut answer = output.json();
            for issue in answer["issues"].as_array_mut().into_iter().flatten() {
                if let Some(issue) = issue.as_object_mut() {
                    issue.remove("explanation");
                }
            }
            (output.code, answer)
        });
        assert_eq!(one, other, "{args:?} is the same with and without help");
    }
}

// proves: ST-9.1-6
#[test]
fn an_explainer_that_names_a_fix_causes_no_change() {
    let repo = explained_by("cat >/dev/null");
    let fixes =
        list(&report(&repo)["issues"]).iter().flat_map(|issue| list(&issue["fixes"]).to_vec()).collect::<Vec<_>>();
    let ids: Vec<_> = fixes.iter().map(|fix| format!("lattice doctor --fix {}", text(&fix["id"]))).collect();
    configure(&repo, &format!("cat >/dev/null; echo 'apply'; echo '{}'", ids.join("; ")));
    let before = repo.state();
    lattice(&repo).args(["doctor", "--explain"]).stdin("apply\n").fails(1);
    lattice(&repo).args(["doctor", "--explain"]).json();
    assert_same(&before, &repo.state());
}

// proves: ST-9.1-7
#[test]
fn no_explainer_is_called_by_a_command_that_decides() {
    let repo = explained_by("true");
    let called = repo.sandbox().root().join("called");
    configure(&repo, &format!("touch '{}'", called.display()));
    for args in [&["restack"][..], &["log"], &["doctor"], &["verify"], &["freeze", "a"], &["modify", "-m", "x"]] {
        lattice(&repo).args(args).run();
        assert!(!called.exists(), "{args:?} needs no explanation");
    }
    configure(&repo, "cat >/dev/null; echo THINKING >/dev/tty");
    let output = lattice(&repo).args(["--debug", "--no-interactive", "doctor", "--explain"]).terminal().run();
    let place = |text: &str| output.stdout.find(text).unwrap_or_else(|| panic!("{text}:\n{}", output.snapshot()));
    assert!(
        place("debug: doctor: 2 issues") < place("THINKING"),
        "what is decided is decided before:\n{}",
        output.snapshot()
    );
}

// proves: ST-9.1-2
#[test]
fn an_explainer_may_ask_the_network() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = server.local_addr().expect("it is bound").port();
    let repo = explained_by("true");
    let id = text(&issue(&report(&repo), "cycle")["id"]).to_owned();
    let command = serde_json::json!(["bash", "-c", format!("exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3")]);
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\n[explain]\ncommand = {command}\n"));
    let answers = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut caller, _) = server.accept().expect("the explainer calls");
        caller.write_all(b"from afar").expect("it listens");
    });
    let output = lattice(&repo).args(["explain", &id]).ok();
    answers.join().expect("the server answered");
    assert!(output.stdout.contains("from afar"), "{}", output.snapshot());
}

fn dumped(repo: &TestRepo) -> (PathBuf, String) {
    let file = repo.sandbox().root().join("dump");
    let script = format!("{{ cat; echo; env; cat /proc/$PPID/cmdline; }} >>'{}'; echo said", file.display());
    (file, script)
}

// proves: ST-9.3-1, ST-9.3-2, ST-9.3-4
#[test]
fn no_secret_reaches_the_explainer() {
    const SECRETS: [&str; 7] = [
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "url-password-4711",
        "from-the-environment-4712",
        "github_pat_11AAAA_branchname",
        "in-the-config-4713",
        "file-content-4714",
        "glpat-commit-subject",
    ];
    let repo = explained_by("true");
    let (file, script) = dumped(&repo);
    configure(&repo, &script);
    repo.git(&["remote", "add", "origin", &format!("https://me:{}@example.com/o/r.git", SECRETS[1])]);
    repo.git(&["config", "http.extraHeader", &format!("Authorization: {}", SECRETS[0])]);
    let tip = repo.rev("a");
    repo.git(&["update-ref", &format!("refs/heads/{}", SECRETS[3]), &tip]);
    repo.set_metadata_raw(SECRETS[3], b"garbage");
    repo.commit_file("secret.txt", SECRETS[5], SECRETS[6]);
    let run = |repo: &TestRepo| {
        let run = lattice(repo).args(["doctor", "--explain"]).env("GH_TOKEN", SECRETS[2]);
        run.env("MY_PASSWORD", SECRETS[2]).env("LATTICE_X", SECRETS[2]).run()
    };
    let output = run(&repo);
    assert!(output.stdout.contains("said"), "the explainer is called:\n{}", output.snapshot());
    // A broken configuration names the explainer no more, so the user's own file does.
    let own = repo.sandbox().root().join("home/.config/lattice/config.toml");
    fs::create_dir_all(own.parent().expect("it has a directory")).expect("the sandbox can be written");
    let command = serde_json::json!(["sh", "-c", script]);
    fs::write(own, format!("[explain]\ncommand = {command}\n")).expect("the sandbox can be written");
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\npassword = {}\n", SECRETS[4]));
    run(&repo);
    let dump = fs::read_to_string(file).expect("the explainer wrote down what it got");
    for secret in SECRETS {
        assert!(!dump.contains(secret), "{secret} is in {dump}");
    }
    for allowed in ["cycle", "\"a\"", "\"redaction\"", "config-invalid"] {
        assert!(dump.contains(allowed), "names, ids and the policy are told: {dump}");
    }
}

#[test]
fn file_contents_are_left_out() {
    let repo = explained_by("true");
    let (file, script) = dumped(&repo);
    configure(&repo, &script);
    lattice(&repo).args(["doctor", "--explain"]).run();
    let dump = fs::read_to_string(file).expect("the explainer wrote down what it got");
    assert!(!dump.contains("garbage"), "the content of the document stays here: {dump}");
    assert!(!dump.contains("http"), "no remote is named for a cycle: {dump}");
}

#[test]
fn an_unknown_issue_is_refused_with_a_hint() {
    let answer = lattice(&states::stack()).args(["explain", "cycle-00000000"]).json();
    assert_eq!(answer["error"]["code"], "no-such-issue", "{answer:#}");
}

/// An explainer from outside of the project, which fails for what it does not know.
struct Poet {
    knows: IssueKind,
}

impl Explain<Issue> for Poet {
    fn explain<'a>(&'a self, item: &'a Issue, ctx: &'a ExplainCtx) -> ExplainFut<'a> {
        Box::pin(async move {
            let _policy = &ctx.redaction;
            if item.kind != self.knows {
                return Err(ExplainError::Failed("no rhyme".to_owned()));
            }
            Ok(Explanation { baseline: item.summary.clone(), added: Some(format!("O {}!", item.id)) })
        })
    }
}

// proves: ST-9.2-2, ST-9.2-3
#[test]
fn anyone_can_write_an_explainer() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    fn is_shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let explainer: Box<dyn Explain<Issue>> = is_shared(Box::new(Poet { knows: IssueKind::Cycle }));
    let context = ExplainCtx::default();
    let answer = |kind: IssueKind| {
        let item = Issue::new(kind, "round", evidence([("branch", "a".to_owned())]));
        let mut future = is_send(explainer.explain(&item, &context));
        let mut waker = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut waker) {
            std::task::Poll::Ready(answer) => answer,
            std::task::Poll::Pending => panic!("the poet answers at once"),
        }
    };
    let said = answer(IssueKind::Cycle).expect("the poet knows cycles");
    assert_eq!(said.baseline, "round");
    assert!(said.added.is_some_and(|added| added.starts_with("O cycle-")), "the item is read");
    assert_eq!(answer(IssueKind::Bare), Err(ExplainError::Failed("no rhyme".to_owned())));
}

#[test]
fn an_issue_that_is_gone_was_about_another_state() {
    let repo = TestRepo::draw("main* <- a");
    repo.set_metadata_raw("a", b"garbage");
    let found = report(&repo);
    let id = text(&list(&found["issues"])[0]["id"]).to_owned();
    lattice(&repo).args(["explain", &id]).ok();
    repo.git(&["update-ref", "-d", "refs/branch-metadata/a"]);
    let gone = lattice(&repo).args(["explain", &id]).fails(1);
    assert!(gone.stderr.contains("or the state has changed since"), "{}", gone.snapshot());
    let never = lattice(&repo).args(["explain", "nonsense"]).fails(1);
    assert!(!never.stderr.contains("has changed since"), "{}", never.snapshot());
}
