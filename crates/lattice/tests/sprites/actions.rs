//! Actions: what an agent asks for is decided, done once, and answered.

use lattice_testkit::github::GitHub;
use lattice_testkit::{Lattice, Output, TestRepo};
use serde_json::{Value, json};

use crate::{lattice, log, look, rules, validated};

/// A repository with a host and an issue.
struct World {
    repo: TestRepo,
    remote: TestRepo,
    github: Option<GitHub>,
}

impl World {
    fn git() -> Self {
        let repo = TestRepo::draw("main*");
        let dir = repo.sandbox().root().join("remote/acme/tools.git");
        std::fs::create_dir_all(&dir).expect("the sandbox can be written");
        let remote = repo.beside(&dir);
        remote.git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        repo.git(&["remote", "add", "origin", dir.to_str().expect("text")]);
        repo.git(&["push", "--quiet", "origin", "main"]);
        let world = Self { repo, remote, github: None };
        world.run(&["issue", "new", "--title", "The cache is stale", "--body", "It never forgets."]);
        world
    }

    fn github() -> Self {
        let repo = TestRepo::draw("main*");
        let github = GitHub::start(&repo);
        let url = github.create("acme/tools");
        github.accept("ghp_marked", "octocat");
        let remote = github.bare(&repo, "acme/tools");
        repo.git(&["remote", "add", "origin", &url]);
        repo.git(&["push", "--quiet", "origin", "main"]);
        let config = format!("[github]\nweb_url = \"{}\"\napi_url = \"{}\"\n", github.web_url(), github.api_url());
        let folder = repo.sandbox().root().join("home/.config/lattice");
        std::fs::create_dir_all(&folder).expect("the sandbox can be written");
        std::fs::write(folder.join("config.toml"), config).expect("the sandbox can be written");
        github.add_issue("acme/tools", "The cache is stale", "It never forgets.");
        Self { repo, remote, github: Some(github) }
    }

    fn lattice(&self) -> Lattice {
        let program = lattice(&self.repo);
        if self.github.is_some() { program.env("GH_TOKEN", "ghp_marked") } else { program }
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> Value {
        let output = self.lattice().args(words).arg("--json").run();
        assert_eq!(output.code, Some(0), "{words:?}: {}", output.snapshot());
        output.json()
    }

    fn agent(&self, what: &[&str], name: &str, script: &str) -> Output {
        self.agent_in("bash", what, name, script)
    }

    /// The agent as a script in a language: the name of its program.
    fn agent_in(&self, language: &str, what: &[&str], name: &str, script: &str) -> Output {
        self.lattice().arg("run").args(what).args(["--name", name, "--", language, "-c", script]).run()
    }

    fn configure(&self, text: &str) {
        let path = self.repo.dir().join(".git/lattice/config.toml");
        let before = std::fs::read_to_string(&path).expect("a configuration");
        std::fs::write(path, format!("{before}\n{text}")).expect("a configuration");
    }

    fn comments(&self, number: &str) -> Vec<String> {
        let shown = self.run(&["issue", "show", number]);
        let comments = shown["comments"].as_array().expect("a list");
        comments.iter().map(|comment| comment["body"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn state(&self, name: &str) -> Value {
        look(&self.repo, &["show", name])["sprite"]["state"].clone()
    }
}

/// Asks for a pull request, waits for it, and says what came of it.
const OPENS: &str = r#"
    set -e
    if [ -e .lattice/resume.json ]; then
        test "$(lattice sprite resume-check)" = new
        lattice emit info "resumed"
        cat .lattice/resume.json
        lattice emit completed --status success --summary "$(grep -o '"status": "[a-z]*"' .lattice/resume.json)"
        exit 0
    fi
    lattice emit phase-started implement
    lattice emit info "reading the issue" --kind observation
    echo fixed > cache.txt; git add -A
    git diff --cached --quiet || git commit --quiet -m "Forget after an hour"
    lattice emit phase-finished implement --success true
    lattice emit action-request POST_COMMENT --param body="On it, @all."
    lattice emit action-request LABEL_ISSUE --param 'labels=["bug","agent"]'
    lattice emit action-request OPEN_PR --param title="Fix cache" --param body="Resolves #1" \
        --param base=main --param head="$(git branch --show-current)" --blocking
    id=$(lattice checkpoint)
    lattice emit waiting --reason OPEN_PR --checkpoint "$id" --expect pr_number=integer --expect pr_url=string
"#;

/// Amends the pull request that it was started for.
const AMENDS: &str = r##"
    set -e
    grep -q "#2" .lattice/prompt.md; grep -rq "An hour is too short." .lattice/context
    echo "an hour and a minute" > cache.txt; git commit --quiet -am "As the review says"
    lattice emit action-request PUSH_TO_BRANCH --param branch="$(git branch --show-current)"
    lattice emit action-request NOTIFY_USER --param message="pushed"
    lattice emit completed --status success --summary "Amended."
"##;

/// The same agent twice over: both halves of the loop, in two languages.
struct Scripted {
    language: &'static str,
    opens: &'static str,
    amends: &'static str,
}

const BASH: Scripted = Scripted { language: "bash", opens: OPENS, amends: AMENDS };

/// This one speaks the protocol itself: nothing but its own lines, and the mailbox.
const PYTHON: Scripted =
    Scripted { language: "/usr/bin/python3", opens: include_str!("agent.py"), amends: include_str!("agent.py") };

#[track_caller]
fn from_an_issue_to_an_amended_pull_request(world: &World, agent: &Scripted) {
    let out = world.agent_in(agent.language, &["issue", "1"], "fix", agent.opens);
    assert_eq!(out.code, Some(4), "{}\n{}", out.snapshot(), log(&world.repo, "fix"));
    let comments = world.comments("1");
    assert!(comments.len() == 1 && comments[0].starts_with("On it, @\u{200b}all."), "{comments:?}");
    assert_eq!(world.run(&["issue", "show", "1"])["issue"]["labels"], json!(["bug", "agent"]));
    let listed = world.run(&["approvals"]);
    validated(&world.repo, &listed);
    let [asked] = listed["approvals"].as_array().expect("a list").as_slice() else { panic!("{listed:#}") };
    assert_eq!(
        (&asked["action"], &asked["policy"], &asked["blocking"]),
        (&json!("OPEN_PR"), &json!("ask"), &json!(true))
    );
    assert_eq!(world.repo.git(&["branch", "--list", "sprite/*"]), "", "nothing happens before somebody agrees");
    let id = asked["id"].as_str().expect("an id");
    let early = world.lattice().args(["resume", "fix"]).fails(1);
    assert!(early.stderr.contains("waits for OPEN_PR"), "{}", early.snapshot());
    let done = world.run(&["approve", id]);
    validated(&world.repo, &done);
    assert_eq!((&done["state"], &done["result"]["pr_number"]), (&json!("done"), &json!(2)), "{done:#}");
    assert_eq!(done["run"]["outcome"], json!("\"status\": \"done\""));
    assert!(log(&world.repo, "fix").contains("\"pr_number\": 2"), "{}", log(&world.repo, "fix"));
    let pull = world.run(&["pr", "show", "2"]);
    assert_eq!(pull["pulls"][0]["title"], json!("Fix cache"), "{pull:#}");
    assert_eq!((&pull["pulls"][0]["base"], &pull["pulls"][0]["branch"]), (&json!("main"), &json!("sprite/fix")));
    assert_eq!(world.repo.metadata("sprite/fix")["pr"]["number"], json!(2), "the branch is on the stack with its link");
    assert_eq!(rules(&world.repo, "fix"), [""; 0]);
    assert_eq!(world.run(&["approve", id])["run"], json!(null), "a second time nothing is started");
    assert_eq!(world.run(&["approvals"])["approvals"], json!([]));

    world.run(&["pr", "review", "2", "--verdict", "request-changes", "--body", "An hour is too short."]);
    let out = world.agent_in(agent.language, &["pr", "2", "--allow", "push_to_branch"], "amend", agent.amends);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&world.repo, "amend"));
    assert!(out.stderr.contains("amend says: pushed"), "{}", out.snapshot());
    let shown = look(&world.repo, &["show", "amend"]);
    assert_eq!(shown["notices"][0]["message"], json!("pushed"));
    assert_eq!(shown["sprite"]["work_item_id"], json!("pr-2"));
    assert_eq!(shown["actions"][0]["result"]["sha"], json!(world.remote.git(&["rev-parse", "sprite/fix"])));
    assert_eq!(
        world.remote.git(&["log", "--format=%s", "main..sprite/fix"]),
        "As the review says\nForget after an hour"
    );
    world.run(&["verify"]);
}

// proves: SP-28, SP-31, SP-33, SP-34, SP-35, SP-36, SP-38, SP-80
#[test]
fn an_issue_becomes_a_pull_request_and_a_review_becomes_a_push_on_github() {
    from_an_issue_to_an_amended_pull_request(&World::github(), &BASH);
}

#[test]
fn an_agent_in_python_gets_from_an_issue_to_an_amended_pull_request_on_github() {
    from_an_issue_to_an_amended_pull_request(&World::github(), &PYTHON);
}

#[test]
fn an_agent_in_python_gets_from_an_issue_to_an_amended_pull_request_on_any_git_remote() {
    from_an_issue_to_an_amended_pull_request(&World::git(), &PYTHON);
}

// proves: SP-16, SP-21, SP-79, SP-87, SP-88, SP-94
#[test]
fn an_issue_becomes_a_pull_request_and_a_review_becomes_a_push_on_any_git_remote() {
    from_an_issue_to_an_amended_pull_request(&World::git(), &BASH);
}

#[test]
fn a_run_that_may_open_a_pull_request_ends_with_its_number() {
    let world = World::git();
    let out = world.agent(&["issue", "1", "--allow", "OPEN_PR"], "fix", OPENS);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&world.repo, "fix"));
    assert!(out.stderr.contains("OPEN_PR is done: #2 "), "{}", out.snapshot());
}

#[test]
fn what_is_denied_is_not_done_and_the_agent_hears_why() {
    let world = World::git();
    assert_eq!(world.agent(&["issue", "1"], "fix", OPENS).code, Some(4));
    let id = world.run(&["approvals"])["approvals"][0]["id"].as_str().expect("an id").to_owned();
    let denied = world.run(&["deny", &id, "--reason", "not today"]);
    assert_eq!(denied["run"]["outcome"], json!("\"status\": \"denied\""), "{denied:#}");
    assert!(log(&world.repo, "fix").contains("not today"));
    assert_eq!(world.remote.git(&["branch", "--list", "sprite/*"]), "");
    let late = world.lattice().args(["approve", &id]).fails(1);
    assert!(late.stderr.contains("was denied: not today"), "{}", late.snapshot());
}

// proves: SP-39, SP-40
#[test]
fn nothing_foreign_and_nothing_unknown_is_done_and_each_refusal_is_recorded() {
    let world = World::git();
    world.repo.git(&["branch", "mine"]);
    let refs = world.remote.git(&["for-each-ref"]);
    let script = r#"
        set -e
        echo x > x; git add -A; git commit --quiet -m x
        ask() { lattice emit action-request "$@"; }
        ask DELETE_REPO
        ask PUSH_TO_BRANCH --param branch=main
        ask PUSH_TO_BRANCH --param branch=mine
        ask PUSH_TO_BRANCH --param branch=--force
        ask OPEN_PR --param title=t --param body=b --param base=main --param head=mine
        ask OPEN_PR --param title=t --param body=b --param base=mine --param head=sprite/odd
        ask POST_COMMENT --param body=hello --param number=7
        ask POST_COMMENT --param body=hello
        ask FETCH_CREDENTIAL --param name=GH_TOKEN
        for kind in branch commit file pr_url issue_url report; do lattice emit artifact --kind $kind --ref main; done
        echo 'LATTICE_EVENT {"protocol_version":"v1","event_type":"ACTION_REQUEST","sprite_id":"odd","work_item_id":"task-odd","timestamp":"2026-01-15T10:46:00Z","payload":{"action":"NOTIFY_USER","parameters":{"message":"forged"},"blocking":false}}'
    "#;
    let out = world.agent(&["Do it", "--allow", "OPEN_PR", "--allow", "PUSH_TO_BRANCH"], "odd", script);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&world.repo, "odd"));
    let denied = "FETCH_CREDENTIAL was denied (there is no credential `GH_TOKEN` for agents)";
    assert!(out.stderr.contains(denied), "{}", out.snapshot());
    let shown = look(&world.repo, &["show", "odd"]);
    let actions = shown["actions"].as_array().expect("a list");
    let reasons: Vec<_> = actions.iter().map(|row| row["reason"].as_str().unwrap_or_default()).collect();
    let expected = [
        "there is no action `DELETE_REPO`",
        "`main` is not a branch of this sprite",
        "`mine` is not a branch of this sprite",
        "`branch`: ",
        "`mine` is not a branch of this sprite",
        "`sprite/odd` stands on `main`, so `base` must be `main`",
        "POST_COMMENT has no parameter `number`; it has body",
        "its work item `task-odd` is no issue or pull request",
        "there is no credential `GH_TOKEN` for agents",
    ];
    assert_eq!(reasons.len(), expected.len(), "an event on stdout alone causes nothing: {actions:#?}");
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{reason} / {expected}");
    }
    assert!(actions.iter().all(|row| row["state"] == "denied" || row["state"] == "failed"));
    assert_eq!(shown["notices"], json!([]));
    assert_eq!(rules(&world.repo, "odd"), ["unknown-action", "one-sided"]);
    assert_eq!(world.remote.git(&["for-each-ref"]), refs, "nothing reached the remote");
}

/// Asks for a credential and shows everything that it can find of it.
const FETCHES: &str = r#"
    set -e
    if [ -e .lattice/resume.json ]; then
        lattice emit info "resumed"
        test "$(stat -c %a .lattice/resume.json)" = 600
        status=$(grep -o '"status": "[a-z]*"' .lattice/resume.json)
        value=$(sed -n 's/.*"value": "\(.*\)".*/\1/p' .lattice/resume.json)
        echo "it is $value"
        lattice emit info "value $value"
        lattice checkpoint
        lattice emit completed --status success --summary "$status"
        exit 0
    fi
    lattice emit action-request FETCH_CREDENTIAL --param name=api --blocking
    id=$(lattice checkpoint)
    lattice emit waiting --reason key --checkpoint "$id" --expect value=string
"#;

#[test]
fn on_a_terminal_a_run_shows_how_far_its_agent_is_and_asks_there() {
    let world = World::git();
    world.configure("[credentials]\napi = { env = \"API_KEY\" }\n");
    let script = format!(
        "if [ ! -e .lattice/resume.json ]; then lattice emit phase-started build\n\
         lattice emit info halfway --metadata '{{\"percent\": 50}}'; fi\n{}",
        FETCHES.replace("\"$status\"", "\"$status $value\"")
    );
    let run = |name: &str| {
        let words = ["run", "Do it", "--name", name, "--", "bash", "-c", script.as_str()];
        world.lattice().env("API_KEY", "sekret-value-1234").args(words).terminal()
    };
    let yes = run("yes").answer("Do it? [y/n, empty: later] ", "yes\r").run();
    assert_eq!(yes.code, Some(0), "{}", yes.stdout);
    for part in ["build  ##########----------  50%  halfway", "yes asks for FETCH_CREDENTIAL"] {
        let shown = yes.stdout.replace('█', "#").replace('░', "-");
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!yes.stdout.contains("sekret-value-1234"), "{}", yes.stdout);
    let outcome = look(&world.repo, &["show", "yes"])["sprite"]["outcome"].clone();
    assert_eq!(outcome, json!("\"status\": \"done\" [masked]"), "what it ended with is masked too");
    let question = "Do it? [y/n, empty: later] ";
    let no = run("no").answer(question, "lattice approve 1\r").answer(question, "no\r").run();
    for part in ["\"status\": \"denied\"", "FETCH_CREDENTIAL was denied (a person said no)"] {
        assert!(no.stdout.contains(part), "{part}: {}", no.stdout);
    }
    let later = run("later").answer(question, "\r").run();
    assert_eq!(later.code, Some(4), "{}", later.stdout);
    assert!(later.stdout.contains("it waits: lattice approve 3"), "nothing was decided: {}", later.stdout);
}

// proves: SP-37
#[test]
fn a_credential_reaches_the_agent_and_no_record() {
    let world = World::git();
    world.configure("[credentials]\napi = { env = \"API_KEY\" }\nother = { command = [\"printf\", \"x\"] }\n");
    let run =
        |words: &[&str]| world.lattice().env("API_KEY", "sekret-value-1234").args(words).arg("--json").run().json();
    assert_eq!(world.agent(&["Do it"], "keys", FETCHES).code, Some(4));
    let done = run(&["approve", "1"]);
    assert_eq!(done["run"]["outcome"], json!("\"status\": \"done\""), "{done:#}\n{}", log(&world.repo, "keys"));
    assert!(log(&world.repo, "keys").contains("it is [masked]"), "{}", log(&world.repo, "keys"));
    let folder = world.repo.dir().join(".git/lattice");
    let found = std::process::Command::new("grep").args(["-rl", "sekret-value-1234"]).arg(&folder).output();
    let found = String::from_utf8(found.expect("grep runs").stdout).expect("paths");
    let outbox = folder.join("sprites/keys/mail/outbox.jsonl");
    assert_eq!(found.trim(), outbox.display().to_string(), "only the agent's own outbox, which it wrote itself");
}

#[test]
fn a_credential_in_commits_is_named_and_not_pushed() {
    let world = World::git();
    world.configure("[credentials]\napi = { env = \"API_KEY\" }\n");
    let commits = "lattice emit info resumed\n\
        sed -n 's/.*\"value\": \"\\(.*\\)\".*/\\1/p' .lattice/resume.json > key.txt\n\
        git add key.txt && git commit -q -m 'Add a key'\n\
        git rm -q key.txt && git commit -q -m 'Take it out again'\n\
        lattice emit action-request PUSH_TO_BRANCH --param branch=sprite/leak\n\
        lattice emit completed --status success --summary done\nexit 0\n";
    let script = format!("if [ -e .lattice/resume.json ]; then\n{commits}fi\n{FETCHES}");
    let words = ["run", "Do it", "--name", "leak", "--allow", "fetch_credential", "--allow", "push_to_branch"];
    let refs = world.remote.git(&["for-each-ref"]);
    let program = world.lattice().env("API_KEY", "sekret-value-1234").args(words);
    let out = program.args(["--", "bash", "-c", script.as_str()]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&world.repo, "leak"));
    for part in
        ["warning: a credential that it was given is in the commits of `sprite/leak`", "PUSH_TO_BRANCH failed ("]
    {
        assert!(out.stderr.contains(part), "{part}: {}", out.snapshot());
    }
    assert_eq!(rules(&world.repo, "leak"), ["secret-committed"]);
    assert_eq!(world.remote.git(&["for-each-ref"]), refs, "nothing reached the remote");
}

#[test]
fn whoever_is_killed_at_whichever_step_the_effect_comes_once() {
    for step in ["decided", "approved", "intent", "effect", "receipt", "delivered"] {
        let world = World::git();
        let run = |words: &[&str], kill: &str| world.lattice().env("LATTICE_KILL_AFTER", kill).args(words).run();
        run(&["run", "issue", "1", "--name", "fix", "--", "bash", "-c", OPENS], step);
        // A person approves and resumes; that is cut off too, and then goes through.
        for kill in [step, step, "", "", ""] {
            let open = world.run(&["approvals"]);
            let ids = open["approvals"].as_array().expect("a list").iter().filter_map(|open| open["id"].as_str());
            ids.for_each(|id| drop(run(&["approve", id], kill)));
            if world.state("fix") != json!("completed") {
                run(&["resume", "fix"], kill);
            }
        }
        assert_eq!(world.state("fix"), json!("completed"), "{step}");
        assert_eq!(world.comments("1").len(), 1, "{step}: one comment");
        assert_eq!(world.run(&["issue", "show", "1"])["issue"]["labels"], json!(["bug", "agent"]), "{step}");
        let items = world.remote.git(&["for-each-ref", "refs/lattice/forge/items"]);
        assert_eq!(items.lines().count(), 2, "{step}: the issue and one pull request");
        let resumed = log(&world.repo, "fix").matches("\"status\": \"done\"").count();
        assert_eq!(resumed, 1, "{step}: {}", log(&world.repo, "fix"));
    }
}

#[test]
fn an_action_that_meets_a_paused_operation_waits_for_it() {
    let world = World::git();
    world.configure("[lock]\ntimeout_ms = 100\n");
    assert_eq!(world.agent(&["issue", "1"], "fix", OPENS).code, Some(4));
    let repo = &world.repo;
    repo.write("a.txt", "one\n");
    world.run(&["create", "a", "-a", "-m", "a"]);
    repo.write("a.txt", "two\n");
    world.run(&["create", "b", "-a", "-m", "b"]);
    repo.git(&["checkout", "--quiet", "a"]);
    repo.write("a.txt", "three\n");
    assert_eq!(world.lattice().args(["modify", "-a", "-m", "other"]).run().code, Some(4), "a conflict");
    let waits = world.lattice().args(["approve", "3"]).run();
    assert_eq!(waits.code, Some(4), "{}", waits.snapshot());
    assert!(waits.stderr.contains("OPEN_PR of fix waits: "), "{}", waits.snapshot());
    assert_eq!(world.run(&["approvals"])["approvals"][0]["state"], json!("approved"));
    world.run(&["abort"]);
    assert_eq!(world.run(&["approve", "3"])["state"], json!("done"));
    assert_eq!(world.state("fix"), json!("completed"));
}
