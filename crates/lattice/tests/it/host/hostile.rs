//! Hosts, tokens and texts at their worst: each case leaves the repository valid and says what to do.

use std::sync::{Arc, Mutex};

use lattice_testkit::github::{Fault, GitHub};
use lattice_testkit::http::{Reply, Request, Response, Server};
use lattice_testkit::tracer::{self, Victim};
use serde_json::{Value, json};

use super::World;
use super::auth::{FUTURE, PAST, refreshes, store, token_file};
use crate::lattice;

fn fault(github: &GitHub, on: &str, carried_out: bool, reply: Reply) {
    github.fault(Fault { on: on.to_owned(), times: 1, carried_out, reply });
}

fn nothing_found() -> Reply {
    Reply::Answer(Response::json(200, &json!({ "data": { "repository": { "h0": { "nodes": [] } } } })))
}

#[test]
fn a_host_that_refuses_connections_or_speaks_no_tls_is_unreachable_and_nothing_is_lost() {
    let world = World::github("main <- a*");
    let host = world.github.as_ref().expect("a GitHub").web_url().replace("http://", "");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a free port");
    for url in [format!("http://{closed}"), format!("https://{host}")] {
        world.run(&format!("config set github.api_url {url}"));
        let before = world.repo.branch_refs();
        let document = world.lattice().args(["submit", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!("host-unreachable"), "{url}: {document:#}");
        assert_eq!((world.repo.branch_refs(), world.remote_tip("a")), (before, None), "{url}");
    }
}

#[test]
fn a_pull_request_that_exists_already_is_taken_and_not_opened_again() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit");
    world.run("unlink");
    // The host does not show it when it is asked first, and then refuses to make another one.
    fault(github, "POST /api/graphql", false, nothing_found());
    world.run("submit");
    assert_eq!((github.items("acme/tools"), &world.repo.metadata("a")["pr"]["number"]), (1, &json!(1)));
}

#[test]
fn a_pull_request_that_cannot_be_seen_right_after_it_was_opened_is_found_by_the_next_run() {
    let world = World::github("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    fault(github, "POST /api/graphql", false, nothing_found());
    fault(github, "POST /repos/acme/tools/pulls", true, Reply::Drop);
    fault(github, "POST /api/graphql", false, nothing_found());
    let document = world.lattice().args(["submit", "--stack", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("host-unreachable"), "{document:#}");
    let missing = json!({ "data": null, "errors": [{ "type": "NOT_FOUND", "message": "no such node" }] });
    world.run("submit --stack");
    assert_eq!(github.items("acme/tools"), 2, "one for each branch");
    // What was just made may also be missing for whoever wants to change it.
    world.repo.write("c.txt", "c\n");
    world.run("create c -a -m third");
    fault(github, "POST /repos/acme/tools/pulls", true, Reply::Answer(Response::json(502, &json!({}))));
    fault(github, "GET /repos/acme/tools/stacks", false, Reply::Answer(Response::json(404, &json!({}))));
    world.lattice().args(["submit", "--stack"]).run();
    fault(github, "POST /api/graphql", false, Reply::Answer(Response::json(200, &missing)));
    let document = world.lattice().args(["submit", "--stack", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("host-missing"), "{document:#}");
    world.run("submit --stack");
    assert_eq!(github.items("acme/tools"), 3, "and still one for each branch");
}

#[test]
fn new_tokens_that_were_lost_on_their_way_lead_to_a_clear_log_in_again() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    store(&world, "ghu_old", PAST, FUTURE);
    let before = std::fs::read(token_file(&world)).expect("stored");
    fault(github, "POST /login/oauth/access_token", true, Reply::Drop);
    for _ in 0..2 {
        let document = lattice(&world.repo).args(["issue", "list", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!("refresh-failed"), "{document:#}");
        assert!(document["error"]["hints"].to_string().contains("lattice auth login"), "{document:#}");
        assert_eq!(std::fs::read(token_file(&world)).expect("stored"), before, "what is there stays whole");
    }
    super::auth::log_in_with_app(&world);
    lattice(&world.repo).args(["issue", "list"]).ok();
}

#[test]
fn a_kill_at_any_call_of_a_refresh_leaves_whole_tokens_and_at_most_asks_to_log_in() {
    let world = World::github("main*");
    let list = || lattice(&world.repo).args(["issue", "list", "--json"]);
    store(&world, "ghu_old", PAST, FUTURE);
    let whole = list().traced(tracer::Fault::None);
    assert_eq!(whole.output.code, Some(0), "{}", whole.output.snapshot());
    let (mut refreshed, mut lost) = (0, 0);
    for at in 0..whole.points.len() {
        store(&world, "ghu_old", PAST, FUTURE);
        let asked = refreshes(&world);
        let killed = list().traced(tracer::Fault::Kill(at, Victim::Program));
        if !killed.struck {
            // What is left writes down answers of the host, and has done so by now.
            break;
        }
        let text = std::fs::read(token_file(&world)).expect("there is always a file");
        let stored: Value = serde_json::from_slice(&text).expect("and it is whole");
        let is_old = stored["access_token"] == json!("ghu_old");
        let next = list().run();
        match (next.code, refreshes(&world) - asked) {
            (Some(0), 1) => refreshed += 1,
            (Some(1), 2) if is_old && next.json()["error"]["code"] == json!("refresh-failed") => lost += 1,
            (code, times) => panic!("{at}: ended with {code:?} after {times} refreshes\n{}", next.snapshot()),
        }
    }
    assert!(refreshed > 0 && lost > 0, "kills before, between and after: {refreshed} and {lost}");
    lattice(&world.repo).args(["auth", "logout"]).ok();
    for entry in std::fs::read_dir(token_file(&world).parent().expect("a folder")).expect("it is there").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        assert!(!text.contains("ghu_"), "no token is left in {}", entry.path().display());
    }
}

#[test]
fn no_token_of_git_follows_a_redirect_to_another_host() {
    let world = World::github("main <- a*");
    let heard: Arc<Mutex<Vec<Request>>> = Arc::default();
    let hearing = Arc::clone(&heard);
    let other = Server::start(Arc::new(move |request: &Request| {
        hearing.lock().expect("no test panics with it").push(request.clone());
        Reply::Answer(Response::json(404, &json!({})))
    }));
    let github = world.github.as_ref().expect("a GitHub");
    github.redirect_git(&format!("http://{}", other.host().replace("127.0.0.1", "localhost")));
    let before = world.repo.branch_refs();
    let output = world.lattice().args(["submit", "--json"]).fails(1);
    assert_eq!(output.json()["error"]["code"], json!("remote-unreachable"), "{}", output.snapshot());
    let heard = heard.lock().expect("no test panics with it");
    assert!(!heard.is_empty(), "git did follow");
    let told = heard.iter().filter(|request| request.header("authorization").is_some()).count();
    assert_eq!(told, 0, "{:?}", heard.iter().map(|request| &request.path).collect::<Vec<_>>());
    assert_eq!(world.repo.branch_refs(), before);
}

#[test]
fn a_commit_message_of_a_megabyte_with_escapes_becomes_a_pull_request_that_the_host_takes() {
    let world = World::github("main*");
    let body = format!("\u{1b}]0;owned\u{7}\u{1b}[2J ]]> \n```\n{}\n", "x".repeat(1024 * 1024));
    world.repo.write("a.txt", "a\n");
    world.repo.git(&["add", "a.txt"]);
    world.repo.git(&["checkout", "--quiet", "-b", "a"]);
    let message = world.repo.sandbox().root().join("message");
    std::fs::write(&message, format!("title \u{1b}[31m]]> ```\n\n{body}")).expect("the sandbox can be written");
    world.repo.git(&["commit", "--quiet", "--file", message.to_str().expect("text")]);
    world.run("track a --parent main");
    world.run("submit");
    let pull = world.github.as_ref().expect("a GitHub").pull("acme/tools", 1);
    assert!(pull["body"].as_str().is_some_and(|body| body.ends_with("(shortened; the commits say more)")));
    for line in ["pr show", "pr show --stack", "log", "info"] {
        let shown = world.lattice().args(line.split(' ')).ok();
        let raw = shown.stdout.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        assert!(!raw, "{line}: nothing that a terminal obeys");
    }
}
