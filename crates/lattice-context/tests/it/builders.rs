//! The four builders and their utilities on real repositories.

use lattice_context::builders::validation::ValidationOutput;
use lattice_context::builders::{
    ContextDict, FitError, GitHubIssue, build_fix_context, build_implementation_context, build_issue_context,
    build_review_context, fit_to_budget, truncate_file,
};
use lattice_context::git::GitOperations;
use lattice_context::tokens::{TokenCounter, Tokenizer};
use lattice_testkit::{TestRepo, assert_same};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workspace;

fn keys(context: &ContextDict) -> Vec<&str> {
    context.keys().collect()
}

fn metadata<'c>(context: &'c ContextDict, key: &str) -> &'c Value {
    &context.get("_metadata").expect("builders always have it")[key]
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

fn errors(places: &[(&str, u32)]) -> ValidationOutput {
    let lines: String = places.iter().map(|(file, line)| format!("{file}:{line}: error: wrong\n")).collect();
    ValidationOutput::parse(&lines).expect("lines")
}

// proves: BU-2, BU-11, BU-12, BU-13, BU-16, BU-17, BU-18, BU-22
#[test]
fn the_implementation_context_has_tasks_and_where_the_repository_stands() {
    let repo = TestRepo::new();
    for n in 1..12 {
        repo.commit_file("a.txt", n.to_string(), &format!("change {n}\n\nand a body"));
    }
    repo.write("tasks.md", "- [ ] do it\r\n- [ ] and that\n");
    repo.write("CLAUDE.md", "be kind\n");
    let before = repo.state();
    let context = build_implementation_context(&workspace(&repo), "tasks.md").expect("a context");
    assert_eq!(context, build_implementation_context(&workspace(&repo), "tasks.md").expect("the same again"));
    assert_same(&before, &repo.state());
    assert_eq!(keys(&context), ["tasks", "conventions", "branch", "recent_commits", "_metadata"]);
    assert_eq!(context.get("tasks"), Some(&json!("- [ ] do it\r\n- [ ] and that\n")));
    assert_eq!(context.get("conventions"), Some(&json!("be kind\n")));
    let commits = context.get("recent_commits").and_then(Value::as_array).expect("a list");
    assert_eq!(commits.len(), 10);
    for commit in commits {
        let fields: Vec<&String> = commit.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["author", "date", "hash", "message"]);
    }
    assert_eq!(commits[0]["hash"], repo.git(&["rev-parse", "--short", "HEAD"]));
    assert_eq!(metadata(&context, "truncated"), &json!(false));
}

// proves: BU-14, BU-15, BU-19, BU-20, BU-21, BU-27, BU-70, BU-77
#[test]
fn conventions_branch_and_commits_are_as_git_and_the_files_say() {
    let repo = TestRepo::new();
    repo.commit_file("a.txt", "1", "the subject\n\nthe body");
    repo.git(&["checkout", "--quiet", "-b", "feature/x"]);
    let shared = workspace(&repo);
    let context = build_implementation_context(&shared, "absent.md").expect("a missing file is no failure");
    assert_eq!((context.get("tasks"), context.get("conventions")), (Some(&json!("")), Some(&json!(""))));
    assert_eq!(metadata(&context, "missing"), &json!(["absent.md"]));
    assert!(metadata(&context, "warnings").to_string().contains("CLAUDE.md"));
    assert_eq!(context.get("branch"), Some(&json!("feature/x")));
    let newest = &context.get("recent_commits").expect("commits")[0];
    assert_eq!(newest["message"], "the subject");
    assert_eq!(newest["author"], repo.git(&["log", "-1", "--format=%an"]));
    assert_eq!(newest["date"], repo.git(&["log", "-1", "--format=%aI"]));
    assert_eq!(
        GitOperations::new(shared.reader().expect("git")).current_branch().expect("a branch"),
        repo.git(&["branch", "--show-current"])
    );
    repo.write("AGENTS.md", "agents\n");
    let context = build_review_context(&workspace(&repo), "main").expect("a context");
    assert_eq!(context.get("conventions"), Some(&json!("agents\n")));
    repo.write("CLAUDE.md", "claude\n");
    let context = build_review_context(&workspace(&repo), "main").expect("a context");
    assert_eq!(context.get("conventions"), Some(&json!("# CLAUDE.md\n\nclaude\n\n# AGENTS.md\n\nagents\n")));
    repo.git(&["checkout", "--quiet", "--detach"]);
    let context = build_implementation_context(&workspace(&repo), "absent.md").expect("a context");
    assert_eq!(context.get("branch"), Some(&json!("HEAD")));
}

// proves: BU-23, BU-24, BU-25, BU-26, BU-28, BU-71, BU-72, BU-73
#[test]
fn the_review_context_is_what_git_says_of_the_branch() {
    let repo = TestRepo::new();
    repo.commit_file("changed.txt", numbered(30), "one");
    repo.commit_file("renamed.txt", numbered(40), "two");
    repo.commit_file("gone.txt", "bye\n", "three");
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    repo.write("changed.txt", numbered(30).replace("line 7\n", "line seven\n"));
    repo.write("added.txt", "new\n");
    repo.write("picture.png", b"\x89PNG\x00\x00".as_slice());
    repo.git(&["mv", "renamed.txt", "moved.txt"]);
    repo.git(&["rm", "--quiet", "gone.txt"]);
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--message", "work"]);
    for setting in [["diff.noprefix", "true"], ["diff.context", "9"], ["diff.renames", "false"], ["color.ui", "always"]]
    {
        repo.git(&["config", setting[0], setting[1]]);
    }
    let context = build_review_context(&workspace(&repo), "main").expect("a context");
    assert_eq!(keys(&context), ["diff", "changed_files", "conventions", "stats", "_metadata"]);
    let plain =
        ["-c", "diff.noprefix=false", "-c", "diff.context=3", "-c", "diff.renames=true", "-c", "color.ui=false"];
    let git = |rest: &[&str]| repo.git(&[plain.as_slice(), rest].concat());
    assert_eq!(context.get("diff"), Some(&json!(git(&["diff", "main", "feature"]) + "\n")));
    let files = context.get("changed_files").and_then(Value::as_object).expect("an object");
    assert_eq!(files.keys().collect::<Vec<_>>(), ["added.txt", "changed.txt", "gone.txt", "moved.txt"]);
    assert_eq!(files["gone.txt"], "");
    assert_eq!(files["moved.txt"], numbered(40));
    assert_eq!(metadata(&context, "missing"), &json!(["gone.txt"]));
    assert_eq!(metadata(&context, "skipped_binary"), &json!(["picture.png"]));
    let stats = context.get("stats").expect("stats");
    let short = git(&["diff", "--shortstat", "main", "feature"]);
    let said = format!(
        " {} files changed, {} insertions(+), {} deletions(-)",
        stats["files_changed"], stats["insertions"], stats["deletions"]
    );
    assert_eq!(said, short);
    let shared = workspace(&repo);
    let operations = GitOperations::new(shared.reader().expect("git"));
    assert_eq!(operations.log(10).expect("a log").len(), 5);
    assert_eq!(operations.log(3).expect("a log").len(), 3);
    repo.write("added.txt", "newer\n");
    assert_eq!(operations.diff("HEAD", None).expect("a diff"), git(&["diff", "HEAD"]) + "\n");
    assert_eq!(operations.diff("main", Some("feature")).expect("a diff"), git(&["diff", "main", "feature"]) + "\n");
    let now = operations.diff_stats("HEAD").expect("numbers");
    assert_eq!((now.files_changed, now.insertions, now.deletions), (1, 1, 1));
    assert!(
        build_review_context(&workspace(&repo), "no-such-branch")
            .expect_err("unknown")
            .to_string()
            .contains("no-such-branch")
    );
}

// proves: BU-3, BU-4, BU-5, BU-6, BU-7, BU-29, BU-30
#[test]
fn changed_files_of_five_hundred_lines_are_cut_around_the_change() {
    let repo = TestRepo::new();
    for (name, lines) in [("short.txt", 499), ("edge.txt", 500), ("long.txt", 2000)] {
        repo.commit_file(name, numbered(lines), name);
    }
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    repo.commit_file("short.txt", numbered(499).replace("line 9\n", "line nine\n"), "short");
    let context = build_review_context(&workspace(&repo), "main").expect("a context");
    assert_eq!(
        context.get("changed_files").expect("files")["short.txt"],
        numbered(499).replace("line 9\n", "line nine\n")
    );
    assert_eq!((metadata(&context, "truncated"), metadata(&context, "sections_affected")), (&json!(false), &json!([])));
    repo.commit_file("edge.txt", numbered(500).replace("line 9\n", "line nine\n"), "edge");
    repo.commit_file("long.txt", numbered(2000).replace("line 1500\n", "line fifteen\n"), "long");
    let context = build_review_context(&workspace(&repo), "main").expect("a context");
    let files = context.get("changed_files").expect("files");
    for (name, wanted) in [("edge.txt", "line nine"), ("long.txt", "line fifteen")] {
        let text = files[name].as_str().expect("text");
        assert!(text.lines().any(|line| line == "...") && text.contains(wanted), "{name}");
    }
    assert_eq!(metadata(&context, "sections_affected"), &json!(["changed_files"]));
    assert_eq!(metadata(&context, "truncated"), &json!(true));
    let all: usize = ["short.txt", "edge.txt", "long.txt"]
        .iter()
        .map(|name| files[*name].as_str().expect("text"))
        .map(|text| text.lines().filter(|line| *line != "...").count())
        .sum();
    let diff = context.get("diff").and_then(Value::as_str).expect("text").lines().count();
    assert_eq!(metadata(&context, "kept_lines"), &json!(all + diff));
    assert_eq!(metadata(&context, "original_lines"), &json!(499 + 500 + 2000 + diff));
}

// proves: BU-31, BU-32, BU-33, BU-34, BU-35, BU-38, BU-39
#[test]
fn the_fix_context_shows_errors_in_order_and_the_files_they_are_in() {
    let repo = TestRepo::new();
    repo.write("src/a.rs", numbered(100));
    repo.write("clean.rs", numbered(5));
    let text = r#"{"success":false,"total_duration_ms":1,"stages":[
        {"stage_name":"one","passed":false,"errors":[{"file":"./src/a.rs","line":50,"message":"x"},{"file":"b.rs","line":1,"message":"y","code":"E1"}]},
        {"stage_name":"two","passed":false,"errors":[{"file":"src/a.rs","line":55,"message":"z"}]}]}"#;
    let validation = ValidationOutput::parse(text).expect("the specification's form");
    let files = ["src/a.rs", "clean.rs", "absent.rs"].map(str::to_owned);
    let context = build_fix_context(&workspace(&repo), &validation, &files);
    assert_eq!(keys(&context), ["errors", "source_files", "error_summary", "_metadata"]);
    let errors = context.get("errors").and_then(Value::as_array).expect("a list");
    assert_eq!(errors.iter().map(|error| &error["message"]).collect::<Vec<_>>(), ["x", "y", "z"]);
    for error in errors {
        assert_eq!(
            error.as_object().expect("an object").keys().collect::<Vec<_>>(),
            ["code", "file", "line", "message", "severity"]
        );
        assert!(error["line"].is_u64() && error["file"].is_string());
    }
    let sources = context.get("source_files").expect("files");
    let expected: String = (40..=65).map(|n| format!("line {n}\n")).collect();
    assert_eq!(sources["src/a.rs"], format!("...\n{expected}...\n"), "`./src/a.rs` is the same file");
    assert_eq!((&sources["clean.rs"], &sources["absent.rs"]), (&json!(numbered(5)), &json!("")));
    assert_eq!(metadata(&context, "missing"), &json!(["absent.rs"]));
    assert_eq!(context.get("error_summary"), Some(&json!("3 errors in 2 files")));
    let none = build_fix_context(&workspace(&repo), &crate::builders::errors(&[]), &[]);
    assert_eq!(none.get("error_summary"), Some(&json!("no errors were reported")));
}

// proves: BU-40, BU-41, BU-42
#[test]
fn ten_lines_around_each_error_are_shown() {
    let repo = TestRepo::new();
    repo.write("a.txt", numbered(100));
    let shown = |lines: &[u32]| {
        let places: Vec<(&str, u32)> = lines.iter().map(|line| ("a.txt", *line)).collect();
        let context = build_fix_context(&workspace(&repo), &errors(&places), &["a.txt".to_owned()]);
        context.get("source_files").expect("files")["a.txt"].as_str().expect("text").to_owned()
    };
    let lines = |from: usize, to: usize| (from..=to).map(|n| format!("line {n}\n")).collect::<String>();
    assert_eq!(shown(&[50]), format!("...\n{}...\n", lines(40, 60)));
    assert_eq!(shown(&[3]), format!("{}...\n", lines(1, 13)));
    assert_eq!(shown(&[50, 55]), format!("...\n{}...\n", lines(40, 65)));
    assert_eq!(shown(&[20, 80]), format!("...\n{}...\n{}...\n", lines(10, 30), lines(70, 90)));
}

fn issue(body: &str) -> GitHubIssue {
    let text = json!({ "number": 7, "title": "t", "body": body, "labels": ["bug"], "state": "open", "assignees": ["a"], "url": "u" });
    serde_json::from_value(text).expect("an issue")
}

// proves: BU-43, BU-44, BU-45, BU-46, BU-47, BU-48, BU-49, BU-75
#[test]
fn the_issue_context_has_the_files_that_the_body_names() {
    let repo = TestRepo::new();
    for n in 0..7 {
        repo.commit_file("src/foo.py", format!("x = {n}\n"), &format!("change {n}"));
    }
    for path in ["bar/baz.ts", "lib/end.rb", "docs/list.md"] {
        repo.write(path, format!("{path}\n"));
    }
    let body =
        "See `src/foo.py` and ./bar/baz.ts, also src/foo.py.\n- docs/list.md\nIt ends in lib/end.rb. Not src/absent.py";
    let context = build_issue_context(&workspace(&repo), &issue(body)).expect("a context");
    assert_eq!(keys(&context), ["issue", "related_files", "recent_changes", "_metadata"]);
    let fields: Vec<&String> = context.get("issue").and_then(Value::as_object).expect("an object").keys().collect();
    assert_eq!(fields, ["body", "labels", "number", "state", "title", "url"]);
    let files = context.get("related_files").and_then(Value::as_object).expect("an object");
    assert_eq!(files.keys().collect::<Vec<_>>(), ["bar/baz.ts", "docs/list.md", "lib/end.rb", "src/foo.py"]);
    assert_eq!(files["src/foo.py"], "x = 6\n");
    let changes = context.get("recent_changes").and_then(Value::as_array).expect("a list");
    assert_eq!((changes.len(), &changes[0]["message"]), (5, &json!("change 6")));
    let error = serde_json::from_value::<GitHubIssue>(json!({ "number": 1 })).expect_err("keys are missing");
    assert!(error.to_string().contains("title"), "{error}");
}

// proves: BU-50, BU-51
#[test]
fn paths_of_an_issue_that_lead_out_or_to_binaries_are_not_followed() {
    let repo = TestRepo::new();
    let secret = repo.dir().parent().expect("a parent").join("secret.txt");
    std::fs::write(&secret, "OUTSIDE").expect("a file beside the repository");
    repo.write("img/logo.png", b"\x89PNG\x00".as_slice());
    std::os::unix::fs::symlink(&secret, repo.dir().join("link.txt")).expect("a link");
    let body =
        format!("../secret.txt {} link.txt img/logo.png .git/config ./.git/HEAD /etc/passwd ~/x", secret.display());
    let context = build_issue_context(&workspace(&repo), &issue(&body)).expect("a context");
    assert_eq!(context.get("related_files"), Some(&json!({})));
    assert_eq!(metadata(&context, "skipped_binary"), &json!(["img/logo.png"]));
    assert!(!serde_json::to_string(&context).expect("JSON").contains("OUTSIDE"));
}

// proves: BU-52, BU-53, BU-54, BU-55, BU-56, BU-58
#[test]
fn truncation_keeps_windows_and_line_ends() {
    let text = numbered(100);
    let lines = |from: usize, to: usize| (from..=to).map(|n| format!("line {n}\n")).collect::<String>();
    assert_eq!(truncate_file(&text, 30, &[50]), format!("...\n{}...\n", lines(40, 60)));
    assert_eq!(truncate_file(&text, 60, &[50, 60]), format!("...\n{}...\n", lines(40, 70)));
    assert_eq!(truncate_file(&text, 60, &[20, 80]), format!("...\n{}...\n{}...\n", lines(10, 30), lines(70, 90)));
    assert_eq!(truncate_file(&text, 60, &[20, 41]), format!("...\n{}...\n", lines(10, 51)), "windows that touch");
    assert_eq!(truncate_file(&text, 10, &[0, 10_000]), truncate_file(&text, 10, &[]));
    assert_eq!(truncate_file(&text, 10, &[]), format!("{}...\n", lines(1, 10)));
    assert_eq!(truncate_file("a\r\nb\r\nc", 2, &[]), "a\r\nb\r\n...\r\n");
    assert_eq!(truncate_file("a\nb", 2, &[]), "a\nb");
}

proptest! {
    // proves: BU-57
    #[test]
    fn truncation_keeps_its_promise_and_its_targets(
        lines in 0_usize..200,
        max in 0_usize..120,
        targets in prop::collection::vec(0_usize..250, 0..6),
    ) {
        let cut = truncate_file(&numbered(lines), max, &targets);
        let kept: Vec<&str> = cut.lines().filter(|line| *line != "...").collect();
        prop_assert!(kept.len() <= max, "{} of {}", kept.len(), max);
        let mut valid: Vec<usize> = targets.into_iter().filter(|target| (1..=lines).contains(target)).collect();
        valid.sort_unstable();
        valid.dedup();
        for target in valid.into_iter().take(max) {
            let wanted = format!("line {target}");
            prop_assert!(kept.contains(&wanted.as_str()), "{} is kept", wanted);
        }
    }
}

fn sections(texts: &[(&str, String)]) -> ContextDict {
    let mut sections = ContextDict::default();
    texts.iter().for_each(|(name, text)| sections.insert(name, text.as_str()));
    sections
}

// proves: BU-61, BU-62, BU-63, BU-64, BU-65, BU-66, BU-68
#[test]
fn sections_that_fit_are_unchanged_and_others_shrink_in_proportion() {
    let made = sections(&[("zeta", "abc\n".repeat(3000)), ("alpha", "abc\n".repeat(1000))]);
    for budget in [4000, 4001, 32_000] {
        assert_eq!(fit_to_budget(&made, budget, &Tokenizer::Estimate), Ok(made.clone()));
    }
    let fitted = fit_to_budget(&made, 1000, &Tokenizer::Estimate).expect("texts");
    assert_eq!(keys(&fitted), ["zeta", "alpha", "_metadata"], "in the order of the input");
    let tokens = |name: &str| Tokenizer::Estimate.count(fitted.get(name).and_then(Value::as_str).expect("text"));
    assert_eq!((tokens("zeta"), tokens("alpha")), (750, 250));
    let fields: Vec<&String> = fitted.get("_metadata").and_then(Value::as_object).expect("an object").keys().collect();
    assert_eq!(fields, ["kept_lines", "original_lines", "sections_affected", "truncated"]);
    let shown = lattice_context::builders::fit::explain(&made, 1000, &Tokenizer::Estimate).expect("texts");
    assert_eq!(shown.iter().map(|one| (one.tokens, one.allocation)).collect::<Vec<_>>(), [(3000, 750), (1000, 250)]);
    let big = sections(&[("only", "abc\n".repeat(40_000))]);
    let fitted = fit_to_budget(&big, lattice_context::builders::DEFAULT_BUDGET, &Tokenizer::Estimate).expect("texts");
    assert_eq!(Tokenizer::Estimate.count(fitted.get("only").and_then(Value::as_str).expect("text")), 32_000);
    assert_eq!(
        fit_to_budget(&sections(&[("_metadata", String::new())]), 1, &Tokenizer::Estimate),
        Err(FitError::Reserved)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // proves: BU-8, BU-9, BU-10, BU-67, BU-69, BU-76, BU-80
    #[test]
    fn fitted_sections_keep_the_budget_and_say_what_was_cut(
        texts in prop::collection::vec(prop_oneof!["[a-zé🦀 \n]{0,600}", "[x]{0,900}"], 1..6),
        budget in 0_usize..400,
    ) {
        let named: Vec<(String, String)> = texts.into_iter().enumerate().map(|(n, text)| (format!("s{n}"), text)).collect();
        let made = sections(&named.iter().map(|(name, text)| (name.as_str(), text.clone())).collect::<Vec<_>>());
        let before: usize = named.iter().map(|(_, text)| Tokenizer::Estimate.count(text)).sum();
        let fitted = fit_to_budget(&made, budget, &Tokenizer::Estimate).expect("texts");
        let shares = lattice_context::builders::fit::explain(&made, budget, &Tokenizer::Estimate).expect("texts");
        let mut after = 0;
        for ((name, text), share) in named.iter().zip(&shares) {
            let kept = fitted.get(name).and_then(Value::as_str).expect("every section is there");
            prop_assert!(text.starts_with(kept));
            prop_assert!(Tokenizer::Estimate.count(kept) <= share.allocation);
            after += Tokenizer::Estimate.count(kept);
        }
        prop_assert!(after <= budget.max(before.min(budget)));
        if before > budget {
            prop_assert!(after * 100 + 99 >= budget * 95, "{} of {}", after, budget);
            let metadata = fitted.get("_metadata").expect("something was cut");
            let number = |key: &str| metadata[key].as_u64().expect("a number");
            prop_assert_eq!(metadata["truncated"].as_bool(), Some(number("original_lines") > number("kept_lines")));
            prop_assert!(number("kept_lines") <= number("original_lines"));
            for section in metadata["sections_affected"].as_array().expect("a list") {
                let name = section.as_str().expect("a name");
                prop_assert!(name != "_metadata" && made.get(name).is_some());
            }
        } else {
            prop_assert!(fitted.get("_metadata").is_none());
        }
    }
}

// proves: BU-81
#[test]
fn secrets_are_warned_of_by_place_and_not_by_value() {
    let repo = TestRepo::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    repo.write("tasks.md", format!("one\ntoken = {token}\n"));
    let context = build_implementation_context(&workspace(&repo), "tasks.md").expect("a context");
    let warnings = metadata(&context, "warnings").to_string();
    assert!(warnings.contains("tasks.md:2 looks like a secret (access token)"), "{warnings}");
    assert!(!warnings.contains(&token));
}
