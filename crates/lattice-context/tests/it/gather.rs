//! What gatherers find, in which order, and what they leave alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lattice_context::chunk::{ChunkType, ContextPriority};
use lattice_context::gather::ContextGatherer;
use lattice_context::log::Log;
use lattice_context::pack::{Packed, pack};
use lattice_context::task::TaskType;
use lattice_testkit::TestRepo;

use crate::extension::request;
use crate::workspace;

fn shop() -> TestRepo {
    let repo = TestRepo::new();
    let files = [
        (
            "src/cart.py",
            "from src.base import Priced\nfrom src.money import round_up\n\nclass Cart(Priced):\n    def total(self):\n        return round_up(sum(self.items))\n",
        ),
        ("src/base.py", "from src.deep import Root\n\nclass Priced(Root):\n    def price(self):\n        return 0\n"),
        ("src/money.py", "def round_up(amount):\n    return amount\n"),
        ("src/deep.py", "class Root:\n    pass\n"),
        ("src/checkout.py", "from src.cart import Cart\n\ndef pay(cart: Cart):\n    return cart.total()\n"),
        ("src/mailer.py", "def send(letter):\n    return letter\n"),
        ("tests/test_cart.py", "from src.cart import Cart\n\ndef test_total():\n    assert Cart().total() == 0\n"),
        ("tests/fixtures/carts.json", "[]\n"),
        ("docs/guide.md", "# Guide\n\nHow to send a letter.\n"),
        ("setup.cfg", "[tool]\nname = shop\n"),
    ];
    for (path, content) in files {
        repo.commit_file(path, content, path);
    }
    repo
}

fn packed(repo: &TestRepo, task: TaskType, input: &str) -> Packed {
    lattice_context::drive(pack(workspace(repo), request(task, input, 6000), Log::SILENT)).expect("a prompt")
}

fn file_sources(packed: &Packed) -> Vec<&str> {
    let files = packed.envelope.context.decisions.iter().map(|decision| decision.source.as_str());
    files.filter(|source| source.contains('/')).collect()
}

// proves: CE-39, CE-41, CE-42
#[test]
fn named_files_come_first_then_what_the_task_needs_beside_them() {
    let repo = shop();
    let implement = packed(&repo, TaskType::Implement, "give src/cart.py a discount");
    assert_eq!(
        file_sources(&implement)[..5],
        ["src/cart.py", "src/base.py", "src/money.py", "src/checkout.py", "tests/test_cart.py"]
    );
    let refactor = packed(&repo, TaskType::Refactor, "simplify src/cart.py");
    let first: Vec<&str> = file_sources(&refactor)[..5].to_vec();
    assert_eq!(first[0], "src/cart.py");
    let place = |path: &str| file_sources(&refactor).iter().position(|source| *source == path).expect("a candidate");
    assert!(place("src/checkout.py") < place("tests/test_cart.py"), "{first:?}");
    assert!(place("tests/test_cart.py") < place("src/mailer.py"));
    let test = packed(&repo, TaskType::Test, "cover src/cart.py");
    assert_eq!(file_sources(&test)[..3], ["src/cart.py", "tests/test_cart.py", "tests/fixtures/carts.json"]);
}

// proves: CE-40
#[test]
fn debugging_starts_at_the_place_of_the_error_then_the_trace_then_recent_changes() {
    let repo = shop();
    let trace = "Traceback (most recent call last):\n  File \"src/checkout.py\", line 4, in pay\n    return cart.total()\n  File \"src/cart.py\", line 6, in total\nTypeError: unsupported\n";
    let debug = packed(&repo, TaskType::Debug, trace);
    let sources = file_sources(&debug);
    let place = |path: &str| sources.iter().position(|source| *source == path).unwrap_or(usize::MAX);
    assert!(place("src/cart.py") < 2 && place("src/checkout.py") < 2, "{sources:?}");
    assert!(place("docs/guide.md") < place("src/mailer.py"), "the last commits come next: {sources:?}");
}

// proves: CE-38, CE-43
#[test]
fn analysis_has_structure_dependencies_and_patterns_and_each_task_its_own_choice() {
    let repo = shop();
    repo.commit_file("requirements.txt", "flask>=2.0\n", "needs");
    let analyze = packed(&repo, TaskType::Analyze, "");
    let kinds: Vec<&str> = analyze.envelope.context.chunks.iter().map(|chunk| chunk.chunk_type.as_str()).collect();
    for kind in ["structure", "dependency", "pattern", "history"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let scores = |task| {
        let made = packed(&repo, task, "the total of src/cart.py raises an error");
        let decisions = made.envelope.context.decisions.iter();
        decisions.map(|decision| format!("{} {}", decision.source, decision.parts.final_score)).collect::<Vec<_>>()
    };
    let all: std::collections::BTreeSet<Vec<String>> = TaskType::ALL.into_iter().map(scores).collect();
    assert_eq!(all.len(), 5, "five tasks, five rankings");
}

// proves partly: CE-34, CE-35, CE-36, CE-37 — which files are which is shown for one repository
#[test]
fn priorities_follow_what_a_file_is_to_the_task() {
    let repo = shop();
    let made = packed(&repo, TaskType::Implement, "give src/cart.py a discount and send a letter, as setup.cfg says");
    let base = |path: &str| {
        let decision = made.envelope.context.decisions.iter().find(|decision| decision.source == path);
        decision.map(|decision| decision.parts.base_score)
    };
    assert_eq!(base("src/checkout.py"), Some(800.0), "related");
    assert_eq!(base("src/deep.py"), Some(100.0), "what the target's imports import");
    let gathered = lattice_context::drive(ContextGatherer::new(workspace(&repo)).gather_files(&["**".to_owned()], 50));
    let priority = |path: &str| gathered.chunks.iter().find(|chunk| chunk.source == path).map(|chunk| chunk.priority);
    assert_eq!(priority("setup.cfg"), Some(ContextPriority::Medium));
    assert_eq!(priority("docs/guide.md"), Some(ContextPriority::Low));
}

// proves: CE-26, CE-27, CE-28, CE-30, CE-31, CE-32, CE-112
#[test]
fn a_file_chunk_is_the_file_with_its_facts() {
    let repo = shop();
    let shared = workspace(&repo);
    let found =
        lattice_context::drive(ContextGatherer::new(Arc::clone(&shared)).gather_files(&["src/**/*.py".to_owned()], 50));
    assert_eq!(
        found.chunks.iter().map(|chunk| chunk.source.as_str()).collect::<Vec<_>>(),
        ["src/base.py", "src/cart.py", "src/checkout.py", "src/deep.py", "src/mailer.py", "src/money.py"]
    );
    for chunk in &found.chunks {
        let text = std::fs::read_to_string(repo.dir().join(&chunk.source)).expect("the file");
        assert_eq!(chunk.content, text);
        assert_eq!(chunk.tokens, lattice_context::tokens::estimate_tokens(&text));
        assert_eq!(chunk.metadata["language"], "python");
        assert!(chunk.last_modified().is_some_and(|time| time > 0));
        let json = serde_json::to_value(chunk).expect("JSON");
        let keys: Vec<&String> = json.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["chunk_type", "content", "metadata", "priority", "source", "tokens"]);
        assert_eq!(json["priority"], "MEDIUM");
    }
}

// proves: CE-44, CE-45, CE-50
#[test]
fn files_are_limited_and_what_is_ignored_or_binary_is_in_no_chunk() {
    let repo = TestRepo::new();
    for n in 0..60 {
        repo.write(&format!("src/f{n:02}.rs"), format!("fn f{n}() {{}}\n"));
    }
    repo.write(".gitignore", "target/\n");
    repo.write("target/made.rs", "fn made() {}\n");
    repo.write("src/picture.rs", b"\x00\x01\x02".as_slice());
    let gatherer = ContextGatherer::new(workspace(&repo));
    let names = |max: usize| -> Vec<String> {
        let found = lattice_context::drive(gatherer.gather_files(&["**/*.rs".to_owned(), ".git/**".to_owned()], max));
        found.chunks.into_iter().map(|chunk| chunk.source).collect()
    };
    let fifty = names(50);
    assert_eq!(fifty.len(), 50);
    assert_eq!(fifty, names(50), "the same ones on every run");
    assert!(fifty.is_sorted());
    assert_eq!(names(3), ["src/f00.rs", "src/f01.rs", "src/f02.rs"]);
    assert_eq!(names(500).len(), 60, "neither ignored nor binary nor Git's own");
    let explicit = lattice_context::drive(gatherer.gather_files(&["target/made.rs".to_owned()], 5));
    assert_eq!(explicit.chunks.len(), 1, "a path that is named is wanted");
}

// proves: CE-46
#[test]
fn the_structure_goes_as_deep_as_asked() {
    let repo = TestRepo::new();
    repo.write("a/b/three.txt", "x");
    repo.write("a/b/c/four.txt", "x");
    let gatherer = ContextGatherer::new(workspace(&repo));
    let tree = |depth| lattice_context::drive(gatherer.gather_structure(depth)).chunks.remove(0);
    let three = tree(3);
    assert_eq!((three.chunk_type.clone(), three.source.as_str()), (ChunkType::Structure, "workspace"));
    assert!(three.content.contains("three.txt") && !three.content.contains("four.txt"), "{}", three.content);
    assert_eq!(tree(1).content, "a/ (2 files)\nREADME\n");
}

// proves: CE-47
#[test]
fn dependencies_are_read_from_manifests_and_locks_of_four_ecosystems() {
    let repo = TestRepo::new();
    let files = [
        (
            "Cargo.toml",
            "[package]\nname='x'\n[dependencies]\nserde = \"1.0\"\nrenamed = { package = \"toml_edit\", version = \"0.25\" }\n[dev-dependencies]\nproptest = '1'\n",
        ),
        (
            "Cargo.lock",
            "[[package]]\nname = \"serde\"\nversion = \"1.0.229\"\n\n[[package]]\nname = \"itoa\"\nversion = \"1.0.1\"\n",
        ),
        ("web/package.json", "{\"dependencies\":{\"react\":\"^18.0.0\"},\"devDependencies\":{\"vite\":\"5\"}}"),
        ("web/package-lock.json", "{\"packages\":{\"\":{},\"node_modules/react\":{\"version\":\"18.3.1\"}}}"),
        ("yarn/package.json", "{\"dependencies\":{\"left-pad\":\"^1.0.0\",\"@a/b\":\"2\"}}"),
        (
            "yarn/yarn.lock",
            "# yarn\n\n\"@a/b@2\", \"@a/b@^2\":\n  version \"2.1.0\"\nleft-pad@^1.0.0:\n  version \"1.3.0\"\n",
        ),
        ("pnpm/package.json", "{\"dependencies\":{\"vue\":\"3\"}}"),
        ("pnpm/pnpm-lock.yaml", "lockfileVersion: '9'\npackages:\n\n  vue@3.4.1(typescript@5):\n    resolution: {}\n"),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\"flask[async]>=2.0 ; python_version > '3'\"]\n[tool.poetry.dependencies]\nrich = \"^13\"\n[dependency-groups]\ndev = [\"pytest\"]\n",
        ),
        ("uv.lock", "[[package]]\nname = \"flask\"\nversion = \"3.0.1\"\n"),
        ("requirements.txt", "# pinned\nnumpy==1.26.4\n-r other.txt\n"),
        ("go.mod", "module m\n\nrequire (\n\tgithub.com/a/b v1.2.3\n\tgithub.com/c/d v0.1.0 // indirect\n)\n"),
    ];
    for (path, content) in files {
        repo.write(path, content);
    }
    let found = lattice_context::drive(ContextGatherer::new(workspace(&repo)).gather_dependencies());
    let [only] = found.chunks.as_slice() else { panic!("one chunk") };
    assert_eq!(only.chunk_type, ChunkType::Dependency);
    for line in [
        "- serde 1.0 = 1.0.229",
        "- toml_edit 0.25",
        "- proptest 1 (development)",
        "- and 1 that these need",
        "- react ^18.0.0 = 18.3.1",
        "- @a/b 2 = 2.1.0",
        "- left-pad ^1.0.0 = 1.3.0",
        "- vue 3 = 3.4.1",
        "- flask >=2.0 = 3.0.1",
        "- rich ^13",
        "- pytest (development)",
        "- numpy ==1.26.4",
        "- github.com/a/b v1.2.3",
        "- github.com/c/d v0.1.0 (indirect)",
    ] {
        assert!(only.content.lines().any(|found| found == line), "{line}\nis not in\n{}", only.content);
    }
}

// proves: CE-48
#[test]
fn recent_commits_come_newest_first() {
    let repo = TestRepo::new();
    for n in 1..8 {
        repo.commit_file("a.txt", n.to_string(), &format!("change {n}"));
    }
    let gatherer = ContextGatherer::new(workspace(&repo));
    let five = lattice_context::drive(gatherer.gather_git_context(5)).chunks;
    assert_eq!(five.len(), 5);
    assert!(five.iter().all(|chunk| chunk.chunk_type == ChunkType::History));
    assert!(five[0].content.contains("change 7") && five[4].content.contains("change 3"));
    assert_eq!(lattice_context::drive(gatherer.gather_git_context(2)).chunks.len(), 2);
    let young = TestRepo::new();
    assert_eq!(lattice_context::drive(ContextGatherer::new(workspace(&young)).gather_git_context(5)).chunks.len(), 1);
}

// proves: CE-49, CE-113
#[test]
fn gathering_leaves_the_thread_of_its_caller_free() {
    let repo = shop();
    let gatherer = ContextGatherer::new(workspace(&repo));
    let ticks = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let counted = runtime.block_on(async {
        let counting = Arc::clone(&ticks);
        let ticker = tokio::spawn(async move {
            loop {
                counting.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let patterns = ["**".to_owned()];
        let (files, structure, dependencies, history) = tokio::join!(
            gatherer.gather_files(&patterns, 50),
            gatherer.gather_structure(3),
            gatherer.gather_dependencies(),
            gatherer.gather_git_context(5)
        );
        ticker.abort();
        files.chunks.len() + structure.chunks.len() + dependencies.chunks.len() + history.chunks.len()
    });
    assert!(counted > 15, "{counted} chunks");
    assert!(ticks.load(Ordering::Relaxed) > 100, "another task on the same thread went on");
}

#[test]
fn where_there_is_room_files_come_along_that_the_request_says_nothing_of() {
    let repo = TestRepo::new();
    repo.commit_file("src/cfg.py", "DEPTH = 3\n", "one file");
    repo.commit_file("vendor/other.py", "OTHER = 4\n", "not ours");
    let packed = packed(&repo, TaskType::Implement, "be faster");
    assert!(packed.ranked.is_empty(), "nothing speaks for any file: {:?}", packed.ranked);
    assert!(packed.prompt.contains("DEPTH = 3") && !packed.prompt.contains("OTHER"), "{}", packed.prompt);
}
