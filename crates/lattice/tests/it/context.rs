//! Tests of the context commands through the built program.

mod builders;
mod bundle;
mod kill;
mod session;
mod stages;

use std::collections::BTreeSet;

use lattice_testkit::{Lattice, TestRepo};
use serde_json::{Value, json};

use crate::lattice;

/// Sources in several languages, tests, documentation and a manifest.
fn sample() -> TestRepo {
    let repo = TestRepo::new();
    let body = |n: usize| format!("    value_{n} = compute(value, {n})\n");
    let long: String = (0..40)
        .map(|n| format!("def step_{n}(value):\n{}    return value\n\n\n", (0..12).map(body).collect::<String>()))
        .collect();
    let files = [
        (
            "src/cart.py",
            "from src.base import Priced\n\n\nclass Cart(Priced):\n    \"\"\"What is bought.\"\"\"\n\n    def total(self, rate: float) -> float:\n        \"\"\"The sum of all prices.\"\"\"\n        return sum(item.price for item in self.items) * rate\n",
        ),
        ("src/base.py", "class Priced:\n    price = 0\n"),
        ("src/steps.py", long.as_str()),
        (
            "src/app.ts",
            "import { Cart } from './cart';\n\nexport function show(cart: Cart): string {\n  return cart.toString();\n}\n",
        ),
        ("tests/test_cart.py", "from src.cart import Cart\n\n\ndef test_total():\n    assert Cart().total(1.0) == 0\n"),
        ("docs/guide.md", "# Guide\n\nA cart has a total.\n"),
        ("requirements.txt", "flask>=2.0\n"),
    ];
    for (path, content) in files {
        repo.commit_file(path, content, path);
    }
    repo
}

// proves: CE-1, CE-118, CE-119, CE-107
#[test]
fn packing_goes_through_four_stages_and_logs_each_as_json() {
    let repo = sample();
    let out = lattice(&repo).args(["--debug", "context", "pack", "the total of a Cart ignores the rate"]).ok();
    assert!(out.stdout.starts_with("Here is the relevant context for your task:\n"), "{}", out.snapshot());
    let events: Vec<Value> = out
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let stages: Vec<&str> = events.iter().filter_map(|event| event["stage"].as_str()).collect();
    assert_eq!(stages, ["gatherer", "prioritizer", "compressor", "prompt"]);
    let compressed = events.iter().find(|event| event["event"] == "context_compressed").expect("it is logged");
    let json = lattice(&repo)
        .args(["context", "pack", "the total of a Cart ignores the rate", "--format", "envelope", "--explain"])
        .json();
    let context = &json["result"]["context"];
    assert_eq!(compressed["utilization"], context["utilization"]);
    assert_eq!(compressed["chunks_out"], json!(context["chunks"].as_array().expect("a list").len()));
    assert_eq!(compressed["chunks_in"], json!(context["decisions"].as_array().expect("a list").len()));
}

// proves: CE-120, CE-2
#[test]
fn the_prompt_alone_is_on_stdout_and_holds_only_what_was_chosen() {
    let repo = sample();
    let out =
        lattice(&repo).args(["context", "pack", "the total of a Cart", "--budget", "700", "--exclude", "docs/**"]).ok();
    assert!(!out.stderr.contains("context_compressed"), "{}", out.stderr);
    assert!(out.stderr.contains("of 700 tokens") && out.stderr.contains("sha256 "), "{}", out.stderr);
    assert!(
        out.stdout.contains("## src/cart.py\n```python\n") && !out.stdout.contains("docs/guide.md\n```"),
        "{}",
        out.stdout
    );
    let json = lattice(&repo)
        .args(["context", "pack", "the total of a Cart", "--budget", "700", "--exclude", "docs/**", "--explain"])
        .json();
    let decisions = json["explain"]["decisions"].as_array().expect("decisions");
    for decision in decisions {
        let heading = format!("\n## {}\n", decision["source"].as_str().expect("a source"));
        let is_in = json["result"].as_str().expect("a prompt").contains(&heading);
        let is_file = decision["source"].as_str().expect("a source").contains('/');
        assert!(!is_file || is_in == (decision["verdict"] != "skipped"), "{decision}");
        assert!(decision["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
    let signals = &json["explain"]["files"][0]["signals"];
    for signal in ["text", "path", "symbol", "frame", "imports", "history", "neighbour", "kind"] {
        assert!(signals[signal].is_number(), "{signal} in {signals}");
    }
}

#[test]
fn the_same_state_gives_the_same_bytes_in_any_locale_and_with_any_number_of_threads() {
    let repo = sample();
    let now = "2026-02-01T00:00:00Z";
    let run = |threads: &str, locale: &str| {
        let out = lattice(&repo)
            .args(["context", "pack", "the total of a Cart", "--budget", "900", "--threads", threads])
            .env("LATTICE_NOW", now)
            .env("LC_ALL", locale)
            .ok();
        out.stdout
    };
    let first = run("1", "C");
    for n in 0..100 {
        let (threads, locale) = (["1", "2", "8"][n % 3], ["C", "de_DE.UTF-8", "tr_TR.UTF-8"][n / 3 % 3]);
        assert!(run(threads, locale) == first, "run {n} with {threads} threads in {locale}");
    }
}

// proves: CE-114, CE-115, CE-116, CE-117
#[test]
fn budget_files_priorities_and_paths_can_be_steered() {
    let repo = sample();
    let pack = |extra: &[&str]| {
        lattice(&repo).args(["context", "pack", "the total of a Cart", "--explain"]).args(extra).json()
    };
    let verdict = |json: &Value, source: &str| {
        let decisions = json["explain"]["decisions"].as_array().expect("decisions").clone();
        let found = decisions.into_iter().find(|decision| decision["source"] == source);
        found.map(|decision| decision["verdict"].as_str().expect("a verdict").to_owned())
    };
    let tokens = |json: &Value| json["tokens"].as_u64().expect("a number");
    assert!(tokens(&pack(&["--total", "16000"])) > tokens(&pack(&["--total", "500"])));
    assert!(tokens(&pack(&["--max-files", "1"])) < tokens(&pack(&[])));
    assert_eq!(verdict(&pack(&[]), "src/base.py").as_deref(), Some("included"));
    let plain = pack(&["--budget", "4000"]);
    assert_ne!(verdict(&plain, "src/steps.py").as_deref(), Some("included"), "too large to be whole by chance");
    let critical = pack(&["--budget", "9000", "--focus", "src/steps.py"]);
    assert_eq!(verdict(&critical, "src/steps.py").as_deref(), Some("included"));
    repo.write(".gitignore", "notes.txt\n");
    repo.write("notes.txt", "what the total should be\n");
    assert_eq!(verdict(&pack(&[]), "notes.txt"), None, "ignored");
    assert_eq!(verdict(&pack(&["--focus", "notes.txt"]), "notes.txt").as_deref(), Some("included"));
    let boosted = pack(&["--boost", "docs=900"]);
    assert_eq!(boosted["explain"]["decisions"][0]["source"], "docs/guide.md");
}

// proves: CE-106, CE-111
#[test]
fn every_piece_names_its_source_and_what_was_left_out_can_be_fetched() {
    let repo = sample();
    let json = lattice(&repo)
        .args(["context", "pack", "change step_7 and step_31", "--budget", "1500", "--format", "envelope"])
        .json();
    let chunks = json["result"]["context"]["chunks"].as_array().expect("chunks");
    let parts: Vec<&Value> = chunks
        .iter()
        .filter(|chunk| chunk["source"].as_str().is_some_and(|source| source.starts_with("src/steps.py:")))
        .collect();
    assert!(!parts.is_empty(), "{chunks:?}");
    let whole = std::fs::read_to_string(repo.dir().join("src/steps.py")).expect("the file");
    for chunk in chunks {
        assert!(!chunk["source"].as_str().expect("a source").is_empty());
        for elision in chunk["metadata"]["elisions"].as_array().into_iter().flatten() {
            let handle = elision["handle"].as_str().expect("a handle");
            let out = lattice(&repo).args(["context", "expand", handle]).ok();
            let (first, last) = (elision["first"].as_u64().expect("a line"), elision["last"].as_u64().expect("a line"));
            if handle.starts_with("src/steps.py@") {
                let lines: String =
                    whole.split_inclusive('\n').skip(first as usize - 1).take((last + 1 - first) as usize).collect();
                assert_eq!(out.stdout, lines, "{handle}");
            }
        }
    }
    let blob = repo.git(&["rev-parse", "HEAD:src/cart.py"]);
    repo.write("src/cart.py", "something else\n");
    let kept = lattice(&repo).args(["context", "expand", &format!("src/cart.py@{}:Cart.total", &blob[..10])]).ok();
    assert!(kept.stdout.starts_with("    def total(self, rate: float)"), "Git still has it: {}", kept.stdout);
    for handle in ["src/cart.py", "../x@abcdef0:1-2", "src/cart.py@000000000000:1-2", "src/base.py@zz:1-2"] {
        lattice(&repo).args(["context", "expand", handle]).fails(1);
    }
}

// proves: CE-109
#[test]
fn a_request_on_one_file_of_ten_thousand_reads_no_more_than_it_may() {
    let repo = TestRepo::new();
    for n in 0..10_000 {
        repo.write(&format!("src/d{}/file_{n}.py", n % 100), format!("def function_{n}():\n    return {n}\n"));
    }
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "many"]);
    let words = ["context", "pack", "change function_7", "--max-files", "5"];
    // The index has read everything after this.
    lattice(&repo).args(words).ok();
    let file = repo.sandbox().root().join("trace");
    let options = ["-f", "-qq", "-e", "trace=open,openat,openat2", "-e", "signal=none", "-o"];
    let traced = Lattice::new("strace", &repo).args(options).arg(&file);
    traced.arg(env!("CARGO_BIN_EXE_lattice")).args(words).ok();
    let trace = std::fs::read_to_string(&file).expect("strace writes it");
    let opened: BTreeSet<&str> = trace
        .lines()
        .filter(|line| !line.contains(" = -1 "))
        .filter_map(|line| line.split('"').nth(1))
        .filter(|path| path.ends_with(".py"))
        .collect();
    assert!((1..=5).contains(&opened.len()), "{opened:?}");
    assert!(opened.iter().any(|path| path.ends_with("file_7.py")), "{opened:?}");
}

// proves: CE-127
#[test]
fn the_version_of_the_protocol_is_told_by_the_program_and_by_envelopes() {
    let repo = sample();
    assert_eq!(lattice(&repo).arg("--version").json()["context_protocol"], "1.0.0");
    let json = lattice(&repo).args(["context", "pack", "x", "--format", "envelope"]).json();
    assert_eq!(json["result"]["protocol_version"], "1.0.0");
}

#[test]
fn every_context_command_prints_a_document_that_its_schema_describes() {
    let repo = sample();
    repo.write(
        "issue.json",
        r#"{"number":1,"title":"t","body":"b","labels":[],"state":"open","assignees":[],"url":"u"}"#,
    );
    repo.write("errors.txt", "src/cart.py:3: error: wrong\n");
    crate::host::with_remote(&repo);
    lattice(&repo).args(["issue", "new", "--title", "The total is wrong"]).ok();
    repo.write("chunks.json", lattice(&repo).args(["context", "gather", "files", "src"]).ok().stdout);
    repo.write("envelope.json", lattice(&repo).args(["context", "pack", "x", "--format", "envelope"]).ok().stdout);
    repo.write("sections.json", "{\"a\":\"text\"}");
    repo.write("state.json", r#"{"task_type":"debug","user_request":"x"}"#);
    let handle = format!("src/cart.py@{}:1-2", &repo.git(&["rev-parse", "HEAD:src/cart.py"])[..10]);
    let listed = lattice(&repo).arg("schema").json();
    let names: Vec<String> = serde_json::from_value(listed["commands"].clone()).expect("names");
    let mut untested: std::collections::BTreeSet<&str> =
        names.iter().filter_map(|name| name.strip_prefix("context-")).collect();
    for line in [
        "pack cart --explain",
        "implement --task-file docs/guide.md",
        "review --base main",
        "fix --errors errors.txt",
        "issue --from issue.json",
        "bundle issue 1",
        "truncate src/cart.py --max-lines 3",
        "fit sections.json",
        "tokens src",
        &format!("expand {handle}"),
        "map",
        "gather structure",
        "score --chunks chunks.json",
        "compress --chunks chunks.json",
        "prompt --envelope envelope.json",
        "budget",
        "session save s --from state.json",
        "session list",
        "session show s",
    ] {
        let document = lattice(&repo).arg("context").args(line.split_whitespace()).json();
        let name = crate::output::validated(&repo, &document);
        assert!(name.starts_with("context-"), "{line}: {document:#}");
        untested.retain(|untested| name != format!("context-{untested}"));
    }
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn wrong_requests_are_refused_with_what_to_do() {
    let repo = sample();
    for (arguments, code, text) in [
        (&["--task", "deploy", "x"][..], 2, "is no task type"),
        (&["x", "--budget", "1"], 1, "the request alone needs"),
        (&["x", "--total", "0"], 2, "--total"),
        (&["x", "--input-allocation-pct", "1.2"], 2, "--input-allocation-pct"),
        (&["x", "--input-allocation-pct", "-0.1"], 2, "--input-allocation-pct"),
        (&["x", "--boost", "nothing"], 2, "PATTERN=NUMBER"),
        (&["x", "--focus", "../../etc/passwd"], 1, "it leads out of the folder"),
        (&["x", "--focus", "absent.py"], 1, "there is no such file"),
        (&["x", "--diff", "no-such"], 1, "`no-such` is no branch, tag or commit"),
        (&["x", "--errors", "absent.json"], 1, "could not be read"),
        (&["x", "--include", "["], 2, "is no pattern"),
        (&["x", "--session", "../x"], 1, "is no session id"),
    ] {
        let out = lattice(&repo).args(["context", "pack"]).args(arguments).fails(code);
        assert!(out.stderr.contains(text), "{arguments:?}:\n{}", out.snapshot());
    }
    let bare = TestRepo::bare();
    let out = lattice(&bare).args(["context", "pack", "x"]).fails(1);
    assert!(out.stderr.contains("a bare repository has no files"), "{}", out.snapshot());
}

#[test]
fn tokens_are_drawn_as_a_tree_and_counted_exactly_where_asked() {
    let repo = sample();
    let out = lattice(&repo).args(["context", "tokens"]).ok();
    assert!(out.stdout.contains("100.0%") && out.stdout.contains("src/ (4 files)"), "{}", out.stdout);
    let number = |arguments: &[&str]| {
        let out = lattice(&repo).args(["context", "tokens"]).args(arguments).stdin("hello world").ok();
        out.stdout.trim().parse::<usize>().expect("a number")
    };
    assert_eq!(number(&["-"]), 2);
    assert_eq!(number(&["-", "--tokenizer", "o200k"]), 2);
    let json = lattice(&repo).args(["context", "tokens", "src", "--tokenizer", "cl100k"]).json();
    assert_eq!(json["result"]["tokenizer"], "cl100k");
    let files = json["result"]["files"].as_object().expect("files");
    assert_eq!(files.len(), 4);
    let again = lattice(&repo).args(["context", "tokens", "src", "--tokenizer", "cl100k"]).json();
    assert_eq!(again["result"], json["result"], "what was counted before is the same");
    let map = lattice(&repo).args(["context", "map", "--budget", "60"]).ok();
    assert!(map.stdout.contains("src/base.py: Priced\n") && map.stdout.len() <= 60 * 4 + 3, "{}", map.stdout);
}

#[test]
fn one_thing_is_told_as_one_and_a_folder_without_text_by_its_name() {
    let repo = TestRepo::new();
    let folder = repo.sandbox().root().join("nothing");
    std::fs::create_dir(&folder).expect("a folder");
    let none = lattice(&repo).cwd(&folder).args(["context", "tokens"]).fails(1);
    assert!(none.stderr.contains("nothing`"), "{}", none.snapshot());
    repo.commit_file("one.py", "def one():\n    return 1\n", "one");
    let packed = lattice(&repo).args(["context", "pack", "one", "--include", "one.py"]).ok();
    let pieces: Vec<_> = packed.stderr.split(", ").filter(|part| part.contains(" piece")).collect();
    assert!(pieces.iter().all(|part| (*part == "1 piece") == part.starts_with("1 ")), "{}", packed.snapshot());
}
