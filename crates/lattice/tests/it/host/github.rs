//! What is special about GitHub: few requests, pages, drafts, forks, the App.

use serde_json::{Value, json};

use super::World;

fn drawing(branches: usize) -> String {
    let names: Vec<_> = (1..=branches).map(|number| format!("b{number:03}")).collect();
    format!("main <- {}*", names.join(" <- "))
}

#[test]
fn a_stack_of_a_hundred_branches_is_one_push_and_one_request_for_each_pull_request_and_three_more() {
    let world = World::github(&drawing(100));
    let github = world.github.as_ref().expect("a GitHub");
    github.forget();
    world.run("submit --stack --no-restack");
    let pushes = github.log().iter().filter(|r| r.method == "POST" && r.path.ends_with("git-receive-pack")).count();
    assert_eq!(pushes, 1, "one push");
    let requests = github.requests();
    assert!(requests.len() <= 103, "{} requests: {:?}", requests.len(), &requests[requests.len().saturating_sub(5)..]);
    assert_eq!(github.items("acme/tools"), 100);
    let last = github.pull("acme/tools", 100);
    assert_eq!(last["base"]["ref"], json!("b099"), "the base is the branch below");
    assert!(last["body"].as_str().is_some_and(|body| body.contains("- #1\n") && body.contains("- #100 (this one)")));
    github.forget();
    world.run("submit --stack --no-restack");
    assert!(github.requests().len() <= 2, "unchanged: {:?}", github.requests());
}

#[test]
fn drafts_are_published_and_reviewers_asked() {
    let world = World::github("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --stack --draft --reviewers ann,bob");
    assert_eq!(github.pull("acme/tools", 1)["draft"], json!(true));
    assert_eq!(github.pull("acme/tools", 2)["requested_reviewers"][1]["login"], json!("bob"));
    let refused = world.lattice().args(["merge", "--confirm", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("draft"), "{refused:#}");
    world.run("submit --stack --publish");
    assert_eq!(github.pull("acme/tools", 1)["draft"], json!(false));
}

#[test]
fn lists_are_read_to_their_last_page_and_what_has_not_changed_is_not_sent_again() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    for number in 1..=230 {
        github.add_issue("acme/tools", &format!("issue {number}"), "text");
    }
    let listed = world.run("issue list");
    assert_eq!(listed["issues"].as_array().map(Vec::len), Some(230));
    world.run("issue show 7");
    github.forget();
    let again = world.run("issue show 7");
    assert_eq!(again["issue"]["title"], json!("issue 7"));
    let asked = github.log();
    assert!(asked.iter().any(|request| request.header("if-none-match").is_some()), "it is asked whether it changed");
}

#[test]
fn the_list_of_a_stack_can_stand_in_one_comment_that_is_kept_up_to_date() {
    let world = World::github("main <- a <- b*");
    world.run("config set submit.overview comment");
    world.run("submit --stack");
    world.repo.write("c.txt", "c\n");
    world.run("create c -a -m third");
    world.run("submit --stack");
    let shown = world.run("pr show --branch a");
    let comments = shown["comments"].as_array().expect("a list");
    assert_eq!(comments.len(), 1, "one comment, however often it is submitted: {shown:#}");
    assert!(comments[0]["body"].as_str().is_some_and(|body| body.contains("#3")), "{shown:#}");
    assert_eq!(shown["body"], json!(""), "and the body is left alone");
}

// proves: ST-8.2-13, ST-5.2-14, ST-5.2-21, ST-5.2-22
#[test]
fn access_through_the_app_is_asked_for_once_in_ten_minutes() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    super::auth::log_in_with_app(&world);
    let submit = |at: &str| {
        let output = crate::lattice(&world.repo).env("LATTICE_NOW", at).args(["submit", "--json"]).run();
        (output.code, output.json())
    };
    let asked = || github.requests().iter().filter(|line| line.contains("/user/installations")).count();
    github.forget();
    assert_eq!(submit("2026-01-02T04:00:00Z").0, Some(0));
    assert_eq!(asked(), 2, "the installations and the repositories of one: {:?}", github.requests());
    assert_eq!(submit("2026-01-02T04:09:00Z").0, Some(0));
    assert_eq!(asked(), 2, "remembered");
    github.uninstall();
    let (code, document) = submit("2026-01-02T04:11:00Z");
    assert_eq!(code, Some(1), "asked again after ten minutes");
    let message = document["issues"][0]["summary"].as_str().expect("a text").to_owned();
    let url = format!("{}/apps/lattice/installations/new", github.web_url());
    assert_eq!(message, format!("GitHub App not installed for acme/tools. Install at: {url}"));
    assert_eq!(document["issues"][0]["fixes"][0]["plan"], json!(null), "only the user can do that: {document:#}");
}

// proves: ST-9.3-5
#[test]
fn an_explainer_learns_the_address_that_the_user_needs_and_no_other() {
    let world = World::github("main <- a*; main <- b");
    let github = world.github.as_ref().expect("a GitHub");
    github.uninstall();
    super::auth::log_in_with_app(&world);
    let heard = world.repo.sandbox().root().join("heard");
    let script = format!("cat >'{}'; echo said", heard.display());
    let own = world.repo.sandbox().root().join("home/.config/lattice/config.toml");
    let settings = std::fs::read_to_string(&own).unwrap_or_default();
    let command = json!(["sh", "-c", script]);
    std::fs::create_dir_all(own.parent().expect("it has a folder")).expect("the sandbox can be written");
    std::fs::write(&own, format!("{settings}\n[explain]\ncommand = {command}\n")).expect("the sandbox can be written");
    let explained = |id: &Value| {
        let id = id.as_str().expect("an id");
        let document = crate::lattice(&world.repo).args(["explain", id, "--json"]).ok().json();
        assert_eq!(document["issue"]["explanation"]["added"], json!("said"), "{document:#}");
        std::fs::read_to_string(&heard).expect("the explainer was asked")
    };
    let refused = crate::lattice(&world.repo).args(["submit", "--json"]).fails(1).json();
    let address = format!("{}/apps/lattice/installations/new", github.web_url());
    assert!(explained(&refused["issues"][0]["id"]).contains(&address), "the user has to go there");
    crate::doctor::states::edit(&world.repo, "b", |metadata| {
        metadata["parent"] = json!({"kind": "branch", "name": "b"})
    });
    let report = crate::doctor::report(&world.repo);
    let cycle = crate::doctor::issue(&report, "cycle");
    assert!(!explained(&cycle["id"]).contains("://"), "a cycle has nothing to do with an address");
}

#[test]
fn a_token_that_may_only_read_is_told_apart() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    github.make_read_only("acme/tools");
    github.forget();
    let document = world.lattice().args(["submit", "--json"]).fails(1).json();
    assert_eq!(document["issues"][0]["id"].as_str().map(|id| id.starts_with("push-not-allowed")), Some(true));
    assert!(world.remote_tip("a").is_none(), "nothing was pushed");
}

// proves: ST-5.3-5
#[test]
fn submit_without_anything_that_it_requires_asks_github_for_nothing_that_changes_it() {
    type Break = fn(&World);
    let ways: [(&str, Break); 9] = [
        ("TrunkKnown", |world| world.repo.write_config("")),
        ("NoLatticeOpInProgress", |world| std::fs::write(world.repo.op_state_path(), "").expect("it can be written")),
        ("NoExternalGitOpInProgress", |world| drop(world.repo.git(&["bisect", "start"]))),
        ("MetadataReadable", |world| world.repo.set_metadata_raw("a", b"{")),
        ("GraphValid", |world| {
            let mut metadata = world.repo.metadata("a");
            metadata["parent"] = json!({ "kind": "branch", "name": "b" });
            world.repo.set_metadata_raw("a", metadata.to_string().as_bytes());
        }),
        ("FrozenPolicySatisfied", |world| {
            world.run("freeze b");
            world.repo.git(&["checkout", "--quiet", "a"]);
            world.repo.commit_file("more.txt", "more\n", "a moves");
            world.repo.git(&["checkout", "--quiet", "b"]);
        }),
        ("RemoteResolved", |world| drop(world.repo.git(&["remote", "remove", "origin"]))),
        ("AuthAvailable", |world| world.github.as_ref().expect("a GitHub").revoke("ghp_marked")),
        ("RepoAuthorized", |world| world.github.as_ref().expect("a GitHub").make_read_only("acme/tools")),
    ];
    for (capability, damage) in ways {
        let world = World::github("main <- a <- b*");
        damage(&world);
        let github = world.github.as_ref().expect("a GitHub");
        github.forget();
        let program = if capability == "AuthAvailable" { crate::lattice(&world.repo) } else { world.lattice() };
        let output = program.args(["submit", "--stack", "--debug"]).run();
        assert!(matches!(output.code, Some(1 | 3)), "{capability}: {}", output.snapshot());
        assert!(output.stderr.contains("cannot run"), "{capability}: {}", output.snapshot());
        let changes = github.log().into_iter().filter(|request| request.method != "GET").count();
        assert_eq!(changes, 0, "{capability}: {:?}", github.requests());
    }
}

// proves: ST-5.2-13
#[test]
fn owner_and_repository_are_resolved_from_every_form_of_address() {
    let world = World::github("main <- a*");
    let host = world.github.as_ref().expect("a GitHub").web_url().replace("http://", "");
    let name = host.split(':').next().expect("a name").to_owned();
    let summary = || crate::lattice(&world.repo).args(["submit"]).json()["issues"][0]["summary"].clone();
    for url in [
        format!("http://{host}/acme/tools.git"),
        format!("http://{host}/acme/tools"),
        format!("http://user:password@{host}/acme/tools"),
        format!("ssh://git@{name}/acme/tools.git"),
        format!("git@{name}:acme/tools.git"),
        format!("git@{name}:acme/tools"),
    ] {
        world.repo.git(&["remote", "set-url", "origin", &url]);
        assert_eq!(summary(), json!("Not authenticated. Run `lattice auth login`."), "{url} is on GitHub");
    }
    world.repo.git(&["remote", "remove", "origin"]);
    assert_eq!(summary(), json!("there is no remote `origin`"));
}

#[test]
fn a_stack_reaches_github_by_http_by_ssh_and_by_an_address_that_git_rewrites() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    let (web, root) = (github.web_url(), world.repo.sandbox().root().to_owned());
    let script = root.join("ssh");
    // What stands before the command is the host; the paths of the command are below one folder.
    let served = world.remote.dir().ancestors().nth(2).expect("a folder of repositories").display().to_string();
    let text = format!("#!/bin/sh\nshift\ncd '{served}' && exec sh -c \"$(echo \"$*\" | sed \"s,'/*,',\")\"\n");
    std::fs::write(&script, text).expect("the sandbox can be written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    world.repo.git(&["config", "core.sshCommand", script.to_str().expect("text")]);
    world.repo.git(&["config", "ssh.variant", "simple"]);
    world.repo.git(&["config", &format!("url.{web}/.insteadOf"), "work:"]);
    let name = web.replace("http://", "").split(':').next().expect("a name").to_owned();
    for (at, url) in [
        format!("{web}/acme/tools.git"),
        format!("git@{name}:acme/tools.git"),
        format!("ssh://git@{name}/acme/tools.git"),
        "work:acme/tools".to_owned() + ".git",
    ]
    .into_iter()
    .enumerate()
    {
        world.repo.git(&["remote", "set-url", "origin", &url]);
        let tip = world.repo.commit_file("more.txt", format!("{at}\n"), "more");
        world.run("submit");
        assert_eq!(world.remote_tip("a"), Some(tip), "{url}: pushed");
        assert_eq!(github.items("acme/tools"), 1, "{url}: the same repository");
        assert_eq!(github.pull("acme/tools", 1)["head"]["sha"], json!(world.repo.rev("a")));
    }
}

#[test]
fn a_fork_is_a_remote_like_any_other_and_the_original_stays_as_it_is() {
    let world = World::github("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    let fork = github.create("octocat/tools");
    github.make_read_only("acme/tools");
    let refused = world.lattice().args(["submit", "--stack", "--json"]).fails(1).json();
    let fixes = refused["issues"][0]["fixes"].to_string();
    assert!(fixes.contains("lattice config set forge.remote"), "a fork is offered: {fixes}");
    world.repo.git(&["remote", "add", "mine", &fork]);
    world.repo.git(&["push", "--quiet", "mine", "main"]);
    world.run("config set forge.remote mine");
    world.run("submit --stack");
    assert_eq!((github.items("octocat/tools"), github.items("acme/tools")), (2, 0));
    assert_eq!(github.pull("octocat/tools", 2)["base"]["ref"], json!("a"));
    assert_eq!(world.remote.branch_refs().len(), 1, "nothing reached the original");
}

#[test]
fn beside_an_original_it_is_not_guessed_where_a_stack_belongs() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    let original = github.create("upstream/tools");
    world.repo.git(&["remote", "add", "upstream", &original]);
    github.forget();
    let refused = world.lattice().args(["submit", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("fork"), "{refused}");
    let said = refused["error"].to_string();
    for choice in ["acme/tools", "upstream/tools", "config set forge.remote origin", "config set forge.remote upstream"]
    {
        assert!(said.contains(choice), "{choice}: {said}");
    }
    assert!(github.log().is_empty(), "nobody was asked: {:?}", github.requests());
    world.run("config set forge.remote origin");
    world.run("submit");
    assert_eq!((github.items("acme/tools"), github.items("upstream/tools")), (1, 0));
}

#[test]
fn doctor_lists_what_is_known_of_the_host_and_asks_nobody() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    let report = |program: lattice_testkit::Lattice| {
        github.forget();
        let document = program.args(["doctor", "--json"]).ok().json();
        assert!(github.log().is_empty(), "{:?}", github.requests());
        let of_host = ["RemoteResolved", "AuthAvailable", "RepoAuthorized"];
        let all = document["capabilities"].as_array().expect("a list").clone();
        let holds: Vec<_> = of_host.into_iter().filter(|name| all.contains(&json!(name))).collect();
        (holds.join(" "), document["host"].clone())
    };
    let (holds, host) = report(crate::lattice(&world.repo));
    assert_eq!(holds, "RemoteResolved", "without a token: {host:#}");
    assert_eq!([&host["repository"], &host["forge"]], [&json!("acme/tools"), &json!("github")]);
    assert_eq!(host["issues"][0]["summary"], json!("Not authenticated. Run `lattice auth login`."));
    assert_eq!(report(world.lattice()).0, "RemoteResolved AuthAvailable", "with one that nobody was asked about");
    world.run("submit");
    let (holds, host) = report(world.lattice());
    assert_eq!(holds, "RemoteResolved AuthAvailable RepoAuthorized", "{host:#}");
    assert_eq!(host["issues"], json!([]));
    world.repo.git(&["remote", "set-url", "origin", world.remote.dir().to_str().expect("text")]);
    let (holds, host) = report(crate::lattice(&world.repo));
    assert_eq!((holds.as_str(), &host["forge"]), ("RemoteResolved AuthAvailable RepoAuthorized", &json!("git")));
    world.repo.git(&["remote", "remove", "origin"]);
    assert_eq!(report(crate::lattice(&world.repo)), (String::new(), Value::Null), "and it is no issue of the stack");
}

#[test]
fn a_pull_request_from_a_fork_with_the_name_of_a_local_branch_overwrites_nothing() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    let theirs = world.repo.git(&["commit-tree", "-p", "main", "-m", "theirs", "main^{tree}"]);
    world.repo.git(&["push", "--quiet", "origin", &format!("{theirs}:refs/heads/elsewhere")]);
    let number = github.add_fork_pull("acme/tools", ("mallory/tools", "a"), &theirs).to_string();
    let (a, main) = (world.repo.rev("a"), world.repo.rev("main"));
    world.lattice().args(["get", &number]).ok();
    assert_eq!((world.repo.rev("a"), world.repo.rev("main")), (a, main), "what is here stays");
    assert_eq!(world.repo.rev(&format!("pr-{number}/a")), theirs, "it has a name of its own");
    world.run("checkout a");
    world.run("submit");
    assert_eq!(github.items("acme/tools"), 2, "and is not taken for ours");
    assert_ne!(world.repo.metadata("a")["pr"]["number"].to_string(), number);
}

#[test]
fn names_that_look_like_options_are_refused_and_no_file_appears() {
    let world = World::github("main <- a*");
    let file = world.repo.sandbox().root().join("appeared");
    for name in [format!("--output={}", file.display()), "-h".to_owned(), "--upload-pack=x".to_owned()] {
        let output = world.lattice().args(["get", "--", &name]).run();
        assert_eq!(output.code, Some(1), "{name}: {}", output.snapshot());
        let tip = world.remote.rev("main");
        world.remote.git(&["update-ref", &format!("refs/heads/{name}"), &tip]);
    }
    world.run("sync");
    world.run("submit");
    assert!(!file.exists());
}
