//! Issues and pull requests of a Git remote: unique numbers, hostile text, many writers.

use serde_json::json;

use super::World;
use crate::lattice;

#[test]
fn numbers_are_unique_when_many_open_issues_at_once() {
    let world = World::path("main*");
    let open =
        |at: usize| lattice(&world.repo).args(["issue", "new", "--title", &format!("issue {at}"), "--json"]).spawn();
    let running: Vec<_> = (0..6).map(open).collect();
    let mut numbers: Vec<_> = running
        .into_iter()
        .map(|running| {
            let output = running.wait();
            assert_eq!(output.code, Some(0), "{}", output.snapshot());
            output.json()["issue"]["number"].as_u64().expect("a number")
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let comment = |at: usize| lattice(&world.repo).args(["issue", "comment", "1", &format!("word {at}")]).spawn();
    let running: Vec<_> = (0..4).map(comment).collect();
    for running in running {
        assert_eq!(running.wait().code, Some(0));
    }
    assert_eq!(world.run("issue show 1")["comments"].as_array().map(Vec::len), Some(4), "no comment is lost");
}

#[test]
fn hostile_text_reaches_neither_the_terminal_nor_another_field() {
    let world = World::path("main*");
    let title = "\u{1b}]0;owned\u{7}\u{1b}[2J]]> ``` \u{202e}txt";
    let body = format!("{}\n```\n# trigger\n]]>\u{9b}31m\r\n", "x".repeat(1024 * 1024));
    world.lattice().args(["issue", "new", "--title", title, "--body", "-"]).stdin(&body).ok();
    let shown = world.lattice().args(["issue", "show", "1"]).ok();
    let listed = world.lattice().args(["issue", "list"]).ok();
    for output in [&shown, &listed] {
        let raw = output.stdout.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}');
        assert!(!raw, "nothing that a terminal obeys");
    }
    let document = world.run("issue show 1");
    assert_eq!(document["issue"]["title"], json!(title), "and nothing is lost");
    assert_eq!(document["issue"]["body"], json!(body));
}

#[test]
fn an_item_that_somebody_damaged_does_not_hide_the_others() {
    let world = World::path("main*");
    world.run("issue new --title one");
    world.run("issue new --title two");
    let blob = world.remote.git_with_input(&["hash-object", "-w", "--stdin"], b"{}");
    let blob = String::from_utf8(blob).expect("an id");
    world.remote.git(&["update-ref", "refs/lattice/forge/items/1", blob.trim()]);
    let listed = world.run("issue list");
    assert_eq!(listed["issues"].as_array().map(Vec::len), Some(1), "{listed:#}");
    let broken = world.lattice().args(["issue", "show", "1", "--json"]).fails(1).json();
    assert_eq!(broken["error"]["code"], json!("item-damaged"), "{broken:#}");
}

// proves: ST-11.2-4
#[test]
fn the_pull_request_of_a_branch_is_found_by_its_link_or_by_its_head() {
    let world = World::path("main <- a <- b*");
    let none = world.lattice().args(["pr", "--json"]).fails(1).json();
    assert_eq!(none["error"]["code"], json!("no-pull-request"), "{none:#}");
    world.run("submit --stack");
    let linked = world.run("pr")["urls"][0].clone();
    world.run("unlink");
    assert_eq!(world.run("pr")["urls"][0], linked, "found by its head");
    world.run("submit --stack");
    world.repo.git(&["remote", "set-url", "origin", "/nowhere/at/all"]);
    assert_eq!(world.run("pr")["urls"][0], linked, "the link alone is enough when nobody can be asked");
}

// proves: ST-3.2.1-4, ST-11.2-1, ST-11.2-2, ST-11.2-3
#[test]
fn links_that_are_missing_or_stale_block_nothing() {
    let world = World::path("main <- a <- b*");
    world.run("submit --stack");
    let mut metadata = world.repo.metadata("a");
    metadata["pr"]["number"] = json!(4711);
    metadata["pr"]["last_known"] = json!({ "state": "closed", "is_draft": true });
    world.repo.set_metadata_raw("a", metadata.to_string().as_bytes());
    world.run("unlink b");
    world.repo.git(&["checkout", "--quiet", "main"]);
    world.repo.commit_file("more.txt", "more\n", "trunk moves");
    world.run("restack");
    assert_eq!(world.repo.rev("a~1"), world.repo.rev("main"));
    assert_eq!(world.lattice().arg("doctor").run().code, Some(0), "no blocking issue");
}

#[test]
fn remarks_on_lines_are_made_and_shown_on_every_kind_of_host() {
    for world in [World::path("main <- a*"), World::github("main <- a*")] {
        world.repo.write("x:y.txt", "odd\n".repeat(30));
        world.run("modify -a");
        world.run("submit");
        let review = world.lattice().args(["pr", "review", "--verdict", "request-changes", "--body", "see below"]);
        review.args(["--remark", "a.txt:1:why: so?", "--remark", "x:y.txt:22:\u{1b}[2Jodd"]).ok();
        let shown = world.run("pr show");
        let remarks: Vec<_> = shown["remarks"].as_array().expect("a list").iter().collect();
        assert_eq!(remarks.len(), 2, "{shown:#}");
        assert_eq!([&remarks[0]["path"], &remarks[0]["line"]], [&json!("a.txt"), &json!(1)]);
        assert_eq!(remarks[0]["body"], json!("why: so?"));
        assert_eq!([&remarks[1]["path"], &remarks[1]["line"]], [&json!("x:y.txt"), &json!(22)]);
        let text = world.lattice().args(["pr", "show"]).ok().stdout;
        assert!(text.contains("a.txt:1 ") && text.contains("  why: so?"), "{text}");
        assert!(!text.contains('\u{1b}'), "nothing that a terminal obeys");
        let wrong = world.lattice().args(["pr", "review", "--remark", "a.txt:first:no"]).run();
        assert_eq!(wrong.code, Some(2), "{}", wrong.snapshot());
        let stranger = world.lattice().args(["pr", "review", "--remark", "other.txt:1:why?", "--json"]).fails(1).json();
        assert_eq!(stranger["error"]["code"], json!("not-changed"), "{stranger:#}");
        assert_eq!(world.run("pr show")["reviews"].as_array().map(Vec::len), Some(1), "and nothing was said");
    }
}

#[test]
fn pull_requests_are_listed_by_state_on_every_kind_of_host() {
    for world in [World::path("main <- a <- b*; main <- c"), World::github("main <- a <- b*; main <- c")] {
        let listed = |line: &str| -> Vec<_> {
            let listed = world.run(line);
            let pulls = listed["pulls"].as_array().expect("a list").iter();
            pulls.map(|pull| (pull["branch"].clone(), pull["state"].clone())).collect()
        };
        assert_eq!(listed("pr list"), [], "none are there yet");
        world.run("submit --stack");
        world.run("submit --branch c --draft");
        let open = json!("open");
        let (a, b, c) = (json!("a"), json!("b"), json!("c"));
        assert_eq!(listed("pr list"), [(c.clone(), open.clone()), (b.clone(), open.clone()), (a, open.clone())]);
        let text = world.lattice().args(["pr", "list"]).ok().stdout;
        assert!(text.contains("#2  open") && text.contains("b -> a") && text.contains("open, draft"), "{text}");
        world.run("pr close --branch c");
        world.run("checkout a");
        world.run("merge --confirm");
        assert_eq!(listed("pr list"), [(b, open)]);
        assert_eq!(listed("pr list --state closed"), [(c, json!("closed")), (json!("a"), json!("merged"))]);
        assert_eq!(listed("pr list --state all").len(), 3);
    }
}

#[test]
fn a_dry_run_says_what_it_would_ask_for_and_asks_for_nothing() {
    let world = World::path("main <- a*");
    world.run("submit");
    world.run("issue new --title one");
    let before = world.remote.refs();
    for line in [
        "issue new --title two",
        "issue comment 2 words",
        "issue label 2 --add bug",
        "issue close 2",
        "pr review --verdict approve",
        "pr comment --body words",
        "pr close 1",
        "submit --draft",
        "merge",
        "unlink",
    ] {
        let output = world.lattice().args(line.split(' ')).arg("--dry-run").ok();
        assert!(!output.stdout.trim().is_empty(), "{line} says what it would do");
        assert!(output.stderr.contains("dry run"), "{line}: {}", output.snapshot());
        assert_eq!(world.remote.refs(), before, "{line}");
    }
}

#[test]
fn log_says_what_reviewers_and_checks_said_when_the_host_was_last_asked() {
    let shown = |world: &World| world.lattice().arg("log").ok().stdout;
    for world in [World::path("main <- a*"), World::github("main <- a*")] {
        world.run("submit --no-edit");
        assert!(shown(&world).contains("#1 open\n") || shown(&world).contains("#1 open  "), "{}", shown(&world));
        world.run("pr review 1 --verdict request-changes --body no");
        world.run("sync");
        assert!(shown(&world).contains("#1 open, changes requested"), "{}", shown(&world));
        world.run("pr review 1 --verdict approve --body yes");
        world.run("submit --no-edit");
        assert!(shown(&world).contains("#1 open, approved"), "the last word counts: {}", shown(&world));
        assert_eq!(world.run("log")["branches"][0]["pr"]["review"], json!("approved"));
    }
}

#[test]
fn checks_of_github_are_shown_and_a_token_that_may_not_see_them_does_not_fail() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    world.run("submit --no-edit");
    for (state, said) in [("FAILURE", "checks failed"), ("PENDING", "checks running"), ("SUCCESS", "checks passed")] {
        github.set_checks("acme/tools", 1, Some(state));
        world.run("submit --no-edit");
        let shown = world.lattice().arg("info").ok().stdout;
        assert!(shown.contains(&format!("#1 open, {said}")), "{shown}");
    }
    github.set_checks("acme/tools", 1, None);
    world.run("submit --no-edit");
    let shown = world.lattice().arg("log").ok().stdout;
    assert!(shown.contains("#1 open") && !shown.contains("checks"), "{shown}");
}

#[test]
fn a_number_that_nothing_has_is_answered_with_what_can_be_asked_for() {
    let world = World::path("main*");
    let got = world.lattice().args(["get", "99"]).fails(1);
    assert!(got.stderr.contains("lattice get <branch>"), "{}", got.snapshot());
    assert!(!got.stderr.contains("issue list"), "it lists no pull requests: {}", got.snapshot());
    let shown = world.lattice().args(["pr", "show", "99"]).fails(1);
    assert!(shown.stderr.contains("lattice pr list"), "{}", shown.snapshot());
}

#[test]
fn issues_and_pull_requests_are_closed_each_by_its_own_command() {
    for world in [World::path("main <- a*"), World::github("main <- a*")] {
        world.run("issue new --title one");
        world.run("submit --no-edit");
        for (line, code) in [("pr close 1", "not-a-pull-request"), ("issue close 2", "not-an-issue")] {
            let refused = world.lattice().args(line.split(' ')).arg("--json").fails(1).json();
            // GitHub knows no pull request under the number of an issue.
            let code = if world.github.is_some() && line.starts_with("pr") { "not-found" } else { code };
            assert_eq!(refused["error"]["code"], json!(code), "{line}: {refused:#}");
        }
        assert_eq!(world.run("issue list")["issues"].as_array().map(Vec::len), Some(1));
        assert_eq!(world.run("pr list")["pulls"].as_array().map(Vec::len), Some(1));
        for line in [&["pr", "comment", "--body", " "][..], &["issue", "comment", "1", ""], &["pr", "review"]] {
            let empty = world.lattice().args(line).arg("--json").fails(2).json();
            assert_eq!(empty["error"]["message"], json!("there is nothing to say"), "{line:?}");
        }
    }
}

#[test]
fn a_pull_request_without_a_branch_or_a_page_can_still_be_shown() {
    let world = World::path("main <- a*");
    let viewed = world.lattice().args(["submit", "--no-edit", "--view"]).ok();
    assert!(viewed.stdout.contains("#1 ") && viewed.stderr.contains("no page"), "{}", viewed.snapshot());
    world.lattice().args(["pr", "comment", "--body", "what was said"]).ok();
    let renamed = world.lattice().args(["rename", "other"]).ok();
    assert!(renamed.stderr.contains("#1 stays with a"), "{}", renamed.snapshot());
    world.run("pr close 1");
    world.repo.git(&["push", "--quiet", "origin", "--delete", "a"]);
    assert!(world.lattice().args(["pr", "show", "1"]).ok().stdout.contains("what was said"));
}
