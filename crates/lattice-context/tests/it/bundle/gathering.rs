//! What is asked of a host, in which cases, and what becomes of the answers.

use lattice_context::bundle::{
    Amendment, Bundle, Call, FileKind, Gathered, ItemType, Manifest, Trigger, TriggerError, references, render,
};
use lattice_context::pack::Secrets;
use serde_json::{Value, json};

use super::{MadeUp, comment, content, issue, item, linked, options, pull};
use crate::now;

// proves: CB-14, CB-18, CB-91
#[test]
fn a_trigger_has_ten_fields_of_which_three_are_needed() {
    let whole = json!({
        "type": "pull_request", "number": 7, "repo": "acme/tools", "title": "T", "body": "B", "author": "alice",
        "labels": ["bug", "p1"], "head_branch": "fix", "base_branch": "main",
        "thread_context": [{ "author": "bob", "body": "hi", "created_at": "2026-01-01T00:00:00Z" }],
    });
    let trigger: Trigger = serde_json::from_value(whole.clone()).expect("a trigger");
    assert_eq!(serde_json::to_value(&trigger).expect("a document"), whole, "every field survives");
    let short = json!({ "type": "issue", "number": 7, "repo": "acme/tools" });
    let trigger: Trigger = serde_json::from_value(short.clone()).expect("three fields are enough");
    assert_eq!(serde_json::to_value(&trigger).expect("a document"), short);
    let bundle: Bundle = MadeUp::with(&[(7, "")]).gather(trigger);
    let document = serde_json::to_value(&bundle).expect("a document");
    assert_eq!(document["manifest"]["trigger_number"], json!(7));
    assert_eq!(document["files"][0]["content"], json!(content(&bundle, "trigger.md")));
}

#[test]
fn what_is_no_trigger_is_refused_by_the_name_of_its_field() {
    let check = |field: &str, value: Value, expected: &str| {
        let mut document = json!({ "type": "issue", "number": 7, "repo": "acme/tools" });
        document[field] = value;
        let error = Trigger::try_from(document).expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
    };
    check("type", json!("discussion"), "`type` must be `issue` or `pull_request`");
    check("type", Value::Null, "`type` is missing");
    for number in [json!(0), json!(-1), json!("abc"), json!(1.5)] {
        check("number", number, "`number` must be a whole number from 1 on");
    }
    for repo in ["name", "a/b/c", "/name", "owner/", "../x", "a/..", "a/b\u{1b}"] {
        check("repo", json!(repo), "`repo` must be a repository as owner/name");
    }
    check("labels", json!("bug"), "`labels` must be a list of texts");
    check("title", json!(7), "`title` must be a text");
    check("depth", json!(2), "`depth` is no field of a trigger");
    assert_eq!(Trigger::try_from(json!([])), Err(TriggerError::NotAnObject));
}

// proves: CB-7, CB-46, CB-53, CB-58, CB-61, CB-62, CB-74, CB-93
#[test]
fn each_kind_of_item_is_asked_for_by_its_own_questions() {
    let host = MadeUp::pull_request();
    let bundle = host.gather(pull(1));
    let mut asked = host.asked();
    asked.sort();
    assert_eq!(
        asked,
        [
            "get_issue 1",
            "get_issue 2",
            "get_issue 3",
            "get_pull_request 1",
            "list_comments 1",
            "list_pr_files 1",
            "list_review_comments 1",
            "list_reviews 1"
        ]
    );
    let kinds: Vec<_> = bundle.manifest.files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("trigger.md", FileKind::Trigger),
            ("thread.md", FileKind::Thread),
            ("diff_stats.md", FileKind::DiffStats),
            ("reviews.md", FileKind::Reviews),
            ("linked/issue_2.md", FileKind::LinkedIssue),
            ("linked/issue_3.md", FileKind::LinkedIssue),
        ]
    );
    let host = MadeUp::pull_request();
    let bundle = host.gather(issue(1));
    assert_eq!(host.asked(), ["get_issue 1", "list_comments 1", "get_issue 2", "get_issue 3"]);
    assert_eq!(bundle.files.len(), 4, "no file of a pull request");
}

// proves: CB-19, CB-20, CB-21
#[test]
fn what_the_host_says_counts_and_the_trigger_fills_in() {
    let mut known = issue(1);
    known.title = Some("Known title".to_owned());
    known.body = Some("Known body, see #2".to_owned());
    known.author = Some("known-author".to_owned());
    known.labels = Some(vec!["known-label".to_owned()]);
    let bundle = MadeUp::with(&[(1, "Fetched body"), (2, "")]).gather(known.clone());
    let text = content(&bundle, "trigger.md");
    for fetched in ["Title of 1", "Fetched body", "alice", "bug"] {
        assert!(text.contains(fetched), "{fetched}:\n{text}");
    }
    assert!(!text.to_lowercase().contains("known"), "{text}");
    let mut host = MadeUp::with(&[(1, ""), (2, "")]);
    host.items.insert(1, lattice_context::bundle::data::Item { title: String::new(), ..item(1, "") });
    let empty = host.items.get_mut(&1).expect("it was made");
    (empty.author, empty.labels) = (String::new(), Vec::new());
    let bundle = host.gather(known);
    let text = content(&bundle, "trigger.md");
    for filled in ["Known title", "Known body, see #2", "known-author", "known-label"] {
        assert!(text.contains(filled), "{filled}:\n{text}");
    }
    assert_eq!(bundle.manifest.title, "Known title");
    assert_eq!(linked(&bundle), [2], "references are searched in the body that is shown");
}

// proves: CB-23, CB-24, CB-25
#[test]
fn branches_concern_pull_requests_only_and_a_head_branch_means_amending() {
    let branches = |trigger: Trigger| Trigger {
        head_branch: Some("their-branch".to_owned()),
        base_branch: Some("their-base".to_owned()),
        ..trigger
    };
    let mut host = MadeUp::pull_request();
    let fetched = host.gather(branches(pull(1)));
    assert!(content(&fetched, "trigger.md").contains("- Head branch: fix-total\n- Base branch: main\n"));
    assert_eq!(fetched.amends, Some(Amendment { number: 1, branch: "their-branch".to_owned() }));
    assert_eq!(host.gather(pull(1)).amends, None);
    let empty = host.pull.as_mut().expect("it was made");
    (empty.head_branch, empty.base_branch) = (String::new(), String::new());
    let filled = host.gather(branches(pull(1)));
    assert!(content(&filled, "trigger.md").contains("- Head branch: their-branch\n- Base branch: their-base\n"));
    let plain = host.gather(issue(1));
    let with = host.gather(branches(issue(1)));
    let texts = |bundle: &Bundle| -> Vec<String> {
        // The mark of a bundle depends on all that was gathered, the trigger included.
        let lines = bundle.files.iter().flat_map(|file| file.content.lines());
        lines.filter(|line| !line.starts_with("```text untrusted")).map(str::to_owned).collect()
    };
    assert_eq!((texts(&with), &with.manifest, &with.amends), (texts(&plain), &plain.manifest, &None));
}

// proves: CB-26, CB-55
#[test]
fn comments_that_are_known_already_are_not_asked_for() {
    let host = MadeUp::pull_request();
    let given = vec![comment("second", "2026-02-02T00:00:00Z"), comment("first #3", "2026-02-01T00:00:00Z")];
    let bundle = host.gather(Trigger { thread_context: Some(given), ..issue(1) });
    assert!(!host.asked().iter().any(|call| call.starts_with("list_comments")), "{:?}", host.asked());
    let thread = content(&bundle, "thread.md");
    assert!(thread.find("first #3") < thread.find("second"), "{thread}");
    assert!(!thread.contains("Looks right"), "{thread}");
    let none = host.gather(Trigger { thread_context: Some(Vec::new()), ..issue(1) });
    assert_eq!(content(&none, "thread.md"), "", "an empty list is a list");
}

// proves partly: CB-87 — through the program
#[test]
fn a_question_that_is_not_answered_is_an_error_that_names_it() {
    let calls = [
        (Call::GetIssue, "get_issue"),
        (Call::ListComments, "list_comments"),
        (Call::GetPullRequest, "get_pull_request"),
        (Call::ListPrFiles, "list_pr_files"),
        (Call::ListReviews, "list_reviews"),
        (Call::ListReviewComments, "list_review_comments"),
    ];
    for (call, name) in calls {
        let host = MadeUp { fails: Some(call), ..MadeUp::pull_request() };
        let error = host.try_gather(pull(1), &options()).expect_err("a question failed");
        assert_eq!((error.call, error.to_string()), (call, format!("{name} for #1 failed")));
    }
}

// proves: CB-8, CB-9, CB-51, CB-59, CB-71, CB-73, CB-78, CB-79
#[test]
fn references_are_expanded_one_step_in_their_order_within_the_budget() {
    let bodies: Vec<(u64, &str)> = (2..10).map(|number| (number, "see #50")).chain([(1, "#9 #3 #7, #2")]).collect();
    let mut host = MadeUp::with(&bodies);
    host.comments = vec![comment("#5 #6", "2026-01-03T00:00:00Z"), comment("#4 #9", "2026-01-02T00:00:00Z")];
    let bundle = host.gather(issue(1));
    assert_eq!(linked(&bundle), [9, 3, 7, 2, 4]);
    let budget = serde_json::to_value(bundle.manifest.expansion_budget).expect("a document");
    assert_eq!(budget, json!({ "used": 5, "max": 5 }));
    assert_eq!(bundle.manifest.warnings, ["not expanded, since the budget of 5 was used up: #5, #6"]);
    assert!(!host.asked().contains(&"get_issue 50".to_owned()), "linked items are not searched");
    let mut two = options();
    two.max_expansions = 2;
    let bundle = host.try_gather(issue(1), &two).expect("the host answers");
    assert_eq!(linked(&bundle), [9, 3]);
    assert_eq!((bundle.manifest.expansion_budget.used, bundle.manifest.expansion_budget.max), (2, 2));
    let clean = MadeUp::with(&[(1, "nothing")]).gather(issue(1));
    assert_eq!((clean.manifest.expansion_budget.used, clean.manifest.warnings.len()), (0, 0));
}

// proves: CB-10, CB-52, CB-75, CB-76, CB-77, CB-88
#[test]
fn references_that_fail_count_and_become_warnings() {
    let host = MadeUp::with(&[(1, "#5 #5 #1 acme/tools#12 #6"), (6, "")]);
    let bundle = host.gather(issue(1));
    assert_eq!(host.asked(), ["get_issue 1", "list_comments 1", "get_issue 5", "get_issue 6"]);
    assert_eq!(linked(&bundle), [6]);
    assert_eq!(bundle.manifest.warnings, ["#5 was not expanded: there is no issue or pull request #5"]);
    let dead: String = (2..22).map(|number| format!("#{number} ")).collect();
    let host = MadeUp::with(&[(1, dead.as_str())]);
    let bundle = host.gather(issue(1));
    assert_eq!(host.asked().len(), 2 + 5, "a failed look-up is one of the budget");
    assert_eq!(bundle.manifest.expansion_budget.used, 5);
    assert_eq!(bundle.manifest.warnings.len(), 5 + 1);
}

// proves: CB-69, CB-70
#[test]
fn references_are_those_that_the_author_meant() {
    let check = |text: &str, expected: &[u64]| assert_eq!(references([text], 1), expected, "{text:?}");
    check("#7, (#8) and fixes #9.", &[7, 8, 9]);
    check("# 10\n#x #", &[]);
    check(
        "> quoted #2\n\n- item #3\n\n| a |\n|---|\n| #4 |\n\n**bold #5** ~~#6~~ [link #7](https://x.invalid/#8)",
        &[2, 3, 4, 5, 6, 7],
    );
    check("```\n#2\n```\n~~~\n#3\n~~~\n`#4` ``#5 ` #6``\n\n    #7\n\n#8", &[8]);
    check("a#2 a_#3 ä#4 o/r#5 https://x.invalid/a#6 www.x.invalid/#7 &#35; #1a2b3c x/#8", &[]);
    check("<!-- #2 -->\n\n<div title=\"#3\">#4</div>\n\n<details>\n<summary>x</summary>\n\n#5\n\n</details>", &[4, 5]);
    check("#0 #1 #99999999999999999999 \u{ff03}\u{ff11} #\u{0663}", &[]);
    check("#18446744073709551615", &[u64::MAX]);
    assert_eq!(references(["#3 #2", "#4 #3"], 9), [3, 2, 4]);
}

// proves: CB-11, CB-12
#[test]
fn rendering_needs_nothing_but_the_data() {
    let host = MadeUp::pull_request();
    let stored = serde_json::to_string(&host.fetch(pull(1))).expect("a document");
    let data: Gathered = serde_json::from_str(&stored).expect("it was just written");
    let first = render(&data, &now(), Secrets::Warn);
    let second = render(&data, &now(), Secrets::Warn);
    assert_eq!(first, second);
    assert_eq!(first, host.gather(pull(1)), "as if it had been asked for at once");
}

// proves: CB-90
#[test]
fn what_is_missing_gives_empty_files() {
    let mut host = MadeUp::with(&[(1, "")]);
    host.pull = MadeUp::pull_request().pull;
    let bundle = host.gather(pull(1));
    for path in ["thread.md", "diff_stats.md", "reviews.md"] {
        assert_eq!(content(&bundle, path), "");
        assert!(bundle.manifest.files.iter().any(|file| file.path == path), "{path} is listed");
    }
}

#[test]
fn a_manifest_names_only_files_of_a_bundle() {
    let manifest = MadeUp::pull_request().gather(pull(1)).manifest;
    let parsed = Manifest::parse(manifest.render().as_bytes()).expect("it was just written");
    assert_eq!(parsed, manifest);
    for path in ["../x", "/etc/passwd", "linked/issue_01.md", "linked/issue_x.md", "linked/../trigger.md", "a.md"] {
        let mut broken = manifest.clone();
        broken.files[4].path = path.to_owned();
        assert!(Manifest::parse(broken.render().as_bytes()).is_err(), "{path}");
    }
    let mut other = manifest.clone();
    other.version = "v2".to_owned();
    assert!(Manifest::parse(other.render().as_bytes()).is_err());
    assert_eq!(manifest.trigger_type, ItemType::PullRequest);
}
