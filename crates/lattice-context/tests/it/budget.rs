//! Whole packs under generated requests and budgets: never over, and used where there is enough.

use std::sync::{Arc, OnceLock};

use lattice_context::budget::TokenBudget;
use lattice_context::chunk::Verdict;
use lattice_context::log::Log;
use lattice_context::pack::{PackBudget, PackError, pack};
use lattice_context::task::TaskType;
use lattice_context::tokens::{TokenCounter, Tokenizer};
use lattice_testkit::TestRepo;
use proptest::prelude::*;

use crate::extension::request;
use crate::workspace_with;

/// A folder without Git, so that no process has to start for a case.
fn folder() -> &'static TestRepo {
    static FOLDER: OnceLock<(TestRepo, TestRepo)> = OnceLock::new();
    let (_, plain) = FOLDER.get_or_init(|| {
        let repo = TestRepo::new();
        let plain = repo.dir().parent().expect("a parent").join("plain");
        for n in 0..24_usize {
            let path = plain.join(format!("src/part_{}/file_{n}.{}", n % 5, ["py", "rs", "ts", "md"][n % 4]));
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let piece = |m: usize| match n % 4 {
                0 => format!("def name_{m}(cart, rate):\n    total = cart.sum() * rate + {m}\n    return total\n\n\n"),
                1 => {
                    format!("fn name_{m}(cart: &Cart) -> u64 {{\n    let total = cart.sum();\n    total + {m}\n}}\n\n")
                }
                2 => format!(
                    "export function name{m}(cart: Cart) {{\n  const rate = cart.rate;\n  return rate * {m};\n}}\n"
                ),
                _ => format!("## Part {m}\n\nÜber den Wert: the total of `cart` — 価格 {m}.\n\n"),
            };
            let text: String = (0..3 + n).map(piece).collect();
            std::fs::write(path, text).expect("a file");
        }
        let there = repo.beside(&plain);
        (repo, there)
    });
    plain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // proves: CE-3, CE-103, CE-110
    #[test]
    fn no_pack_goes_over_its_budget_and_one_with_enough_to_say_uses_it(
        words in prop::collection::vec("cart|total|rate|name_1|src/part_1/file_8.py|file_9|[a-z]{1,9}|Wert|価格", 0..12),
        limit in prop_oneof![0_usize..300, 300_usize..6000],
        share in prop_oneof![Just(None), (0.05_f64..1.0).prop_map(Some)],
        task in prop_oneof![Just(TaskType::Implement), Just(TaskType::Debug), Just(TaskType::Test), Just(TaskType::Analyze)],
        counter in prop_oneof![4 => Just(Tokenizer::Estimate), 1 => Just(Tokenizer::O200k), 1 => Just(Tokenizer::Cl100k)],
    ) {
        let mut wanted = request(task, &words.join(" "), limit);
        if let Some(share) = share {
            wanted.budget = PackBudget::Shares(TokenBudget::new(limit.max(1), share).expect("a share"));
        }
        let most = match wanted.budget {
            PackBudget::Prompt(tokens) => tokens,
            PackBudget::Shares(budget) => budget.input(),
        };
        let shared = workspace_with(folder(), counter);
        match lattice_context::drive(pack(Arc::clone(&shared), wanted, Log::SILENT)) {
            Err(PackError::TooSmall { needed, limit }) => prop_assert!(needed > limit && limit == most),
            Err(error) => prop_assert!(false, "{}", error),
            Ok(packed) => {
                let tokens = counter.count(&packed.prompt);
                prop_assert_eq!(tokens, packed.prompt_tokens);
                prop_assert!(tokens <= most, "{} of {}", tokens, most);
                let left_out = packed.envelope.context.decisions.iter().any(|one| one.verdict == Verdict::Skipped);
                if left_out && share.is_none() && most >= 600 {
                    prop_assert!(tokens * 100 >= most * 95, "{} of {}", tokens, most);
                }
            }
        }
    }
}
