//! Scores: every modifier by its number.

use lattice_context::budget::TokenBudget;
use lattice_context::chunk::{ChunkType, ContextChunk, ContextPriority, ScoredChunk};
use lattice_context::prioritize::{Boost, ContextPrioritizer, MODIFIERS, Prioritizer};
use lattice_context::task::{TaskEnvelope, TaskType, session_id};
use lattice_context::tokens::{TokenCounter, Tokenizer, estimate_tokens};
use proptest::prelude::*;
use serde_json::json;

use crate::{envelope, file, now};

fn score(chunk: &ContextChunk, task: TaskType, request: &str) -> f64 {
    ContextPrioritizer::default().score_chunk(chunk, &envelope(task, request))
}

// proves: CE-33, CE-34, CE-35, CE-36, CE-37, CE-52, CE-63
#[test]
fn a_chunk_to_which_nothing_applies_has_the_score_of_its_priority() {
    let scores = [
        (ContextPriority::Critical, 1000.0),
        (ContextPriority::High, 800.0),
        (ContextPriority::Medium, 500.0),
        (ContextPriority::Low, 200.0),
        (ContextPriority::Minimal, 100.0),
    ];
    for (priority, expected) in scores {
        for task in TaskType::ALL {
            assert_eq!(score(&file("src/cart.rs", "fn a() {}\n", priority), task, "something else"), expected);
        }
    }
    for path in ["src/errors.rs", "tests/cart_test.rs", "src/cart.rs"] {
        let parts = ContextPrioritizer::default()
            .score_parts(&file(path, "x", ContextPriority::Medium), &envelope(TaskType::Analyze, "look at cart"));
        assert_eq!(parts.task_relevance_boost, 0.0, "{path}");
    }
}

// proves: CE-53, CE-59, CE-60, CE-61, CE-62
#[test]
fn each_task_adds_its_bonus_and_nothing_else() {
    let gain =
        |chunk: &ContextChunk, task, request| score(chunk, task, request) - score(chunk, TaskType::Analyze, request);
    let medium = |path| file(path, "x", ContextPriority::Medium);
    assert_eq!(gain(&medium("src/errors.rs"), TaskType::Debug, ""), 300.0);
    assert_eq!(gain(&medium("src/terrors.rs"), TaskType::Debug, ""), 0.0, "a part of another word");
    assert_eq!(gain(&medium("tests/cart_test.rs"), TaskType::Test, ""), 250.0);
    assert_eq!(gain(&medium("tests/fixtures/a.json"), TaskType::Test, ""), 250.0);
    assert_eq!(gain(&medium("src/cart.rs"), TaskType::Implement, "change cart"), 400.0);
    assert_eq!(gain(&medium("src/other.rs"), TaskType::Implement, "change cart"), 0.0);
    let mut dependencies = medium("workspace");
    dependencies.chunk_type = ChunkType::Dependency;
    assert_eq!(gain(&dependencies, TaskType::Refactor, ""), 200.0);
    let mut needed = medium("src/base.rs");
    needed.metadata.insert("role".to_owned(), json!("dependency"));
    assert_eq!(gain(&needed, TaskType::Refactor, ""), 200.0);
}

// proves: CE-54, CE-55, CE-56
#[test]
fn recency_mention_and_size_change_the_score_by_their_constants() {
    let plain = file("src/cart.rs", "x", ContextPriority::Medium);
    let with_time = |time: &str| {
        let mut chunk = plain.clone();
        chunk.metadata.insert("last_modified".to_owned(), json!(time));
        score(&chunk, TaskType::Analyze, "")
    };
    assert_eq!(with_time("2026-01-03T00:00:00Z") - with_time("2026-01-02T23:59:59Z"), MODIFIERS.recency_boost);
    assert_eq!(with_time("2026-01-10T00:00:01Z"), 500.0, "what is newer than the envelope is not recent");
    let mention = |request: &str| score(&plain, TaskType::Analyze, request) - 500.0;
    for request in ["fix src/cart.rs please", "see `cart.rs`", "the cart is wrong", "in cart."] {
        assert_eq!(mention(request), MODIFIERS.mention_boost, "{request}");
    }
    for request in ["the cartridge", "go-cart", "a_cart", "cart.py", ""] {
        assert_eq!(mention(request), 0.0, "{request}");
    }
    let sized = |tokens: usize| {
        let mut chunk = plain.clone();
        chunk.tokens = tokens;
        score(&chunk, TaskType::Analyze, "")
    };
    assert_eq!(sized(1000) - sized(1001), -MODIFIERS.size_penalty, "more than a quarter of 4000");
}

// proves: CE-6, CE-51, CE-57, CE-58
#[test]
fn ranking_drops_nothing_breaks_ties_by_source_and_adds_up() {
    let chunks: Vec<ContextChunk> = (0..200)
        .map(|n| file(&format!("src/file_{:03}.rs", 199 - n), &"word ".repeat(n * 2), ContextPriority::Medium))
        .collect();
    let target = envelope(TaskType::Implement, "change file_007 and file_100");
    let ranked = ContextPrioritizer::default().rank(chunks.clone(), &target);
    assert_eq!(ranked.len(), chunks.len(), "ten times the budget, and all there");
    for pair in ranked.windows(2) {
        let ordered = (pair[0].score, &pair[1].chunk.source) > (pair[1].score, &pair[0].chunk.source);
        assert!(pair[0].score > pair[1].score || ordered, "{} before {}", pair[0].chunk.source, pair[1].chunk.source);
    }
    for ScoredChunk { score, parts, .. } in &ranked {
        let sum = parts.base_score
            + parts.task_relevance_boost
            + parts.recency_boost
            + parts.mention_boost
            + parts.size_penalty
            + parts.relevance_boost
            + parts.custom_boost;
        assert_eq!((sum, *score), (parts.final_score, parts.final_score));
    }
    let bytes = serde_json::to_vec(&ranked).expect("JSON");
    for _ in 0..100 {
        let again = ContextPrioritizer::default().rank(chunks.clone(), &target);
        assert!(serde_json::to_vec(&again).expect("JSON") == bytes, "the same bytes every time");
    }
}

// proves: CE-126
#[test]
fn a_boost_of_the_user_adds_to_what_it_fits() {
    let boosted = ContextPrioritizer { boosts: vec![Boost::new("domain/models", 200.0).expect("a pattern")] };
    let target = envelope(TaskType::Analyze, "");
    let model = file("src/domain/models/user.rs", "x", ContextPriority::Medium);
    assert_eq!(boosted.score_chunk(&model, &target), 700.0);
    assert_eq!(boosted.score_chunk(&file("src/a.rs", "x", ContextPriority::Medium), &target), 500.0);
    let glob = Boost::new("src/**/*.rs", 1.0).expect("a glob");
    assert!(glob.fits("src/a/b.rs") && !glob.fits("lib/b.rs"));
}

// proves: CE-18, CE-19, CE-20, CE-21, CE-22, CE-24, CE-25
#[test]
fn budgets_have_the_shares_of_the_protocol() {
    let shares = |budget: TokenBudget| {
        (budget.total(), budget.system_prompt(), budget.context(), budget.user_request(), budget.response_buffer())
    };
    assert_eq!(shares(TokenBudget::default()), (8000, 800, 4000, 800, 2400));
    assert_eq!(shares(TokenBudget::new(16_000, 0.7).expect("a budget")), (16_000, 1600, 8000, 1600, 4800));
    assert_eq!(TokenBudget::new(16_000, 0.5).expect("a budget").response_buffer(), 8000);
    for (total, share) in [(0, 0.7), (8000, 1.2), (8000, -0.1), (8000, f64::NAN)] {
        assert!(TokenBudget::new(total, share).is_err(), "{total} {share}");
    }
}

proptest! {
    // proves: CE-23
    #[test]
    fn the_shares_always_sum_to_the_total(total in 1_usize..=1_000_000, share in 0.0_f64..=1.0) {
        let budget = TokenBudget::new(total, share).expect("in range");
        let sum = budget.system_prompt() + budget.context() + budget.user_request() + budget.response_buffer();
        prop_assert_eq!(sum, total);
    }
}

// proves: CE-8, CE-9, CE-11, CE-15, CE-16, CE-17
#[test]
fn an_envelope_round_trips_and_keeps_the_input_as_it_came() {
    for task in TaskType::ALL {
        let made = envelope(task, "  /debug add user authentication \n");
        assert_eq!(made.original_input, "  /debug add user authentication \n");
        assert_eq!(made.user_request, "add user authentication");
        let text = serde_json::to_string(&made).expect("JSON");
        assert!(
            text.contains(&format!("\"task_type\":\"{task}\""))
                && text.contains("\"created_at\":\"2026-01-10T00:00:00Z\"")
        );
        assert!(text.contains("\"response_buffer\":2400"), "{text}");
        assert_eq!(serde_json::from_str::<TaskEnvelope>(&text).expect("an envelope"), made);
    }
    assert!("deploy".parse::<TaskType>().is_err());
    assert_eq!("DEBUG".parse::<TaskType>(), Ok(TaskType::Debug), "both spellings");
    let ids: std::collections::BTreeSet<String> = (0..10_000).map(|n| session_id(&format!("{n}\0{}", now()))).collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.iter().all(|id| id.starts_with("session_")));
}

// proves: BU-59, BU-60
#[test]
fn the_estimate_is_characters_by_four() {
    let cases = [("", 0), ("abc", 0), ("abcd", 1), ("abcdefg", 1), ("éééé", 1), ("🦀🦀🦀🦀", 1)];
    for (text, tokens) in cases {
        assert_eq!(estimate_tokens(text), tokens, "{text}");
    }
}

#[test]
fn exact_counters_count_special_tokens_as_text_and_long_runs_in_linear_time() {
    assert_eq!(Tokenizer::O200k.count("hello world"), 2);
    assert_eq!(Tokenizer::Cl100k.count("hello world"), 2);
    assert!(Tokenizer::O200k.count("<|endoftext|>") > 1, "special text is ordinary text");
    assert!(Tokenizer::O200k.count(&"a".repeat(1_000_000)) > 1000);
}
