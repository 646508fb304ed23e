//! A GitHub that fails in every way: the local part stays valid, nothing is doubled, no token goes astray.

use std::sync::{Arc, Mutex};

use lattice_testkit::github::Fault;
use lattice_testkit::http::{Reply, Request, Response, Server};
use serde_json::json;

use super::World;

fn status(code: u16) -> Reply {
    Reply::Answer(Response::json(code, &json!({ "message": "because" })))
}

fn page(text: &str) -> Reply {
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    Reply::Answer(Response { status: 200, headers, body: text.as_bytes().to_vec() })
}

/// Submits while every request that begins so fails in this way.
#[track_caller]
fn submit_with(on: &str, reply: Reply) -> (World, serde_json::Value) {
    let world = World::github("main <- a <- b*");
    let github = world.github.as_ref().expect("a GitHub");
    github.fault(Fault { on: on.to_owned(), times: 1000, carried_out: false, reply });
    let before = (world.repo.branch_refs(), world.repo.metadata_refs());
    let output = world.lattice().env("LATTICE_HTTP_TIMEOUT_MS", "700").args(["submit", "--stack", "--json"]).fails(1);
    assert_eq!((world.repo.branch_refs(), world.repo.metadata_refs()), before, "{on}: {}", output.snapshot());
    assert!(!world.repo.op_state_path().exists(), "{on}: nothing is in progress");
    assert_eq!(world.lattice().arg("doctor").run().code, Some(0), "{on}: local invariants hold");
    let document = output.json();
    (world, document)
}

// proves: ST-6.1-10, ST-11.1-3
#[test]
fn whatever_the_host_answers_the_local_state_stays_valid_and_the_error_has_a_name() {
    let odd = Reply::Half(Response::json(200, &json!({ "data": { "repository": { "h0": { "nodes": [] } } } })));
    let cases = [
        ("POST /api/graphql", status(401), "unauthorized"),
        ("POST /api/graphql", status(403), "forbidden"),
        ("POST /api/graphql", status(404), "host-missing"),
        ("POST /repos/acme/tools/pulls", status(409), "host-conflict"),
        ("POST /repos/acme/tools/pulls", status(422), "host-refused"),
        ("POST /api/graphql", status(500), "host-failed"),
        ("POST /api/graphql", Reply::Drop, "host-unreachable"),
        ("POST /api/graphql", odd, "host-unreachable"),
        ("POST /api/graphql", Reply::Hang, "host-timeout"),
        ("POST /api/graphql", page("<html>Sign in</html>"), "host-odd"),
        ("POST /api/graphql", page("{\"data\": {\"rep"), "host-odd"),
        ("POST /repos/acme/tools/pulls", page("[]"), "host-odd"),
    ];
    for (on, reply, code) in cases {
        let described = format!("{on} {reply:?}");
        let (_, document) = submit_with(on, reply);
        assert_eq!(document["error"]["code"], json!(code), "{described}: {document:#}");
        let hints = document["error"]["hints"].as_array().expect("a list");
        assert!(!hints.is_empty() || code == "host-refused", "{described}: says what to do");
    }
}

#[test]
fn a_merge_that_fails_on_its_way_says_what_landed_before() {
    let world = World::github("main <- a <- b*");
    world.run("submit --stack");
    let github = world.github.as_ref().expect("a GitHub");
    let on = "PUT /repos/acme/tools/pulls/2/merge".to_owned();
    github.fault(Fault { on, times: 1, carried_out: false, reply: status(405) });
    let failed = world.lattice().args(["merge", "--confirm", "--json"]).fails(1).json();
    assert_eq!(failed["landed"], json!(["a"]), "{failed:#}");
    let message = failed["error"]["message"].as_str().expect("a text");
    assert!(message.contains("before that: landed #1 (a)"), "{message}");
    assert!(!world.repo.branch_refs().contains_key("a"));
    world.run("merge --confirm");
    assert_eq!(world.pull("b")["state"], json!("merged"), "and the rest lands when it is tried again");
}

#[test]
fn a_limit_is_sat_out_where_it_is_short_and_reported_where_it_is_long() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    let limited = Response::json(429, &json!({ "message": "slow down" })).with("retry-after", "1");
    github.fault(Fault {
        on: "POST /api/graphql".to_owned(),
        times: 1,
        carried_out: false,
        reply: Reply::Answer(limited),
    });
    let output = world.lattice().arg("submit").ok();
    assert!(output.stderr.contains("GitHub asks to wait 1 s"), "the wait is visible:\n{}", output.snapshot());
    let long = Response::json(403, &json!({ "message": "limit" })).with("retry-after", "3600");
    github.fault(Fault {
        on: "POST /api/graphql".to_owned(),
        times: 1,
        carried_out: false,
        reply: Reply::Answer(long),
    });
    let document = world.lattice().args(["submit", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("rate-limited"), "{document:#}");
    // The limit of the hour says when it ends, not for how long: ten minutes after the clock of this run.
    let spent =
        Response::json(403, &json!({})).with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", "1767323400");
    github.fault(Fault {
        on: "POST /api/graphql".to_owned(),
        times: 9,
        carried_out: false,
        reply: Reply::Answer(spent),
    });
    let program = world.lattice().env("LATTICE_NOW", "2026-01-02T03:00:00Z");
    let document = program.args(["issue", "list", "--json"]).run().json();
    assert_eq!(document["ok"], json!(true), "what is not limited works: {document:#}");
    let program = world.lattice().env("LATTICE_NOW", "2026-01-02T03:00:00Z");
    let message = program.args(["pr", "show", "--json"]).fails(1).json()["error"]["message"].to_string();
    assert!(message.contains(" 600 s"), "{message}");
}

#[test]
fn a_pull_request_that_was_opened_before_the_connection_broke_is_found_and_not_opened_twice() {
    for reply in [Reply::Drop, Reply::Hang, status(502)] {
        let world = World::github("main <- a*");
        let github = world.github.as_ref().expect("a GitHub");
        github.fault(Fault { on: "POST /repos/acme/tools/pulls".to_owned(), times: 1, carried_out: true, reply });
        world.lattice().env("LATTICE_HTTP_TIMEOUT_MS", "700").arg("submit").ok();
        assert_eq!(github.items("acme/tools"), 1);
        assert_eq!(world.repo.metadata("a")["pr"]["number"], json!(1));
        world.run("submit");
        assert_eq!(github.items("acme/tools"), 1);
    }
}

#[test]
fn no_token_follows_a_redirect_or_a_link_to_another_host() {
    let heard: Arc<Mutex<Vec<Request>>> = Arc::default();
    let hearing = Arc::clone(&heard);
    let other = Server::start(Arc::new(move |request: &Request| {
        hearing.lock().expect("no test panics with it").push(request.clone());
        status(200)
    }));
    let elsewhere = format!("http://{}/stolen", other.host());
    let redirect = Response::json(302, &json!({})).with("location", &elsewhere);
    let (_, document) = submit_with("POST /api/graphql", Reply::Answer(redirect));
    assert_eq!(document["error"]["code"], json!("host-redirects"), "{document:#}");
    let world = World::github("main <- a*");
    let link = Response::json(200, &json!([])).with("link", &format!("<{elsewhere}>; rel=\"next\""));
    let github = world.github.as_ref().expect("a GitHub");
    github.fault(Fault { on: "GET /repos".to_owned(), times: 1, carried_out: false, reply: Reply::Answer(link) });
    let document = world.lattice().args(["issue", "list", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("host-odd"), "{document:#}");
    assert!(heard.lock().expect("no test panics with it").is_empty(), "nobody else heard of it");
}

#[test]
fn a_list_without_an_end_is_read_to_a_limit() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    let next = format!("<{}/repos/acme/tools/issues?page=2>; rel=\"next\"", github.api_url());
    let endless = Response::json(200, &json!([])).with("link", &next);
    github.fault(Fault {
        on: "GET /repos".to_owned(),
        times: 100_000,
        carried_out: false,
        reply: Reply::Answer(endless),
    });
    world.lattice().args(["issue", "list"]).ok();
    let asked = github.requests().len();
    assert!((50..=200).contains(&asked), "{asked} requests");
}

#[test]
fn a_push_whose_answer_was_lost_is_looked_up_and_not_called_a_failure() {
    let world = World::path("main <- a <- b*");
    let root = world.repo.sandbox().root().join("remote");
    let lost = Arc::new(Mutex::new(0));
    let losing = Arc::clone(&lost);
    let server = Server::start(Arc::new(move |request: &Request| {
        let answer = lattice_testkit::github::http_backend(&root, request);
        let mut lost = losing.lock().expect("no test panics with it");
        if request.method == "POST" && request.path.ends_with("git-receive-pack") && *lost == 0 {
            *lost += 1;
            return Reply::Drop;
        }
        Reply::Answer(answer)
    }));
    world.repo.git(&["remote", "set-url", "origin", &format!("http://{}/acme/tools.git", server.host())]);
    world.run("submit --stack");
    assert_eq!(*lost.lock().expect("no test panics with it"), 1);
    assert_eq!(world.remote_tip("b"), Some(world.repo.rev("b")));
    assert_eq!(world.remote.refs_below("refs/lattice/forge/items/").len(), 2);
}

#[test]
fn hooks_look_at_branches_alone_and_are_named_where_they_refuse() {
    let world = World::path("main <- a*");
    let hook = world.repo.git_dir().join("hooks/pre-push");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(&hook, "#!/bin/sh\necho tests failed >&2\nexit 1\n").expect("a hook can be written");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    world.run("issue new --title one");
    let refused = world.lattice().args(["submit", "--no-edit"]).fails(1).stderr;
    assert!(refused.contains("tests failed") && refused.contains("--no-verify"), "{refused}");
    assert_eq!(world.remote_tip("a"), None);
    world.run("submit --no-edit --no-verify");
    world.run("merge --confirm");
}
