//! Exact counts, judged by tiktoken: for code, prose, long pieces and whatever a generator makes up.

use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

use super::{TokenCounter as _, Tokenizer};

/// The counters with their judges.
fn judged() -> [(Tokenizer, &'static CoreBPE); 2] {
    [(Tokenizer::O200k, tiktoken_rs::o200k_base_singleton()), (Tokenizer::Cl100k, tiktoken_rs::cl100k_base_singleton())]
}

#[track_caller]
fn assert_exact(text: &str) {
    for (ours, judge) in judged() {
        assert_eq!(ours.count(text), judge.encode_ordinary(text).len(), "{} of {text:?}", ours.name());
    }
}

#[test]
fn code_prose_and_what_is_neither_has_exactly_the_tokens_of_tiktoken() {
    for text in [
        include_str!("vocabulary.rs"),
        include_str!("../../Cargo.toml"),
        "",
        " ",
        "\n",
        "  \n \t\n  x",
        "trailing   ",
        "I'll, you'RE, it'ſ DON'T\r\n\r\n",
        "<|endoftext|> is text",
        "1234567 12 3a",
        "http://example.invalid/a//b/\n/c",
        "naïve Ünïcödé 漢字かな 한국어 \u{1f469}\u{200d}\u{1f4bb} e\u{301}\u{85}\u{2003}x\u{3000}\u{3000}y",
    ] {
        assert_exact(text);
    }
}

#[test]
fn long_pieces_have_exactly_the_tokens_of_tiktoken() {
    for unit in ["x", "ab", " ", "=", "\n", "漢", "aB", "zq", "\t ", "ä"] {
        for length in [63, 64, 65, 66, 127, 1000, 5003] {
            assert_exact(&unit.repeat(length));
        }
    }
    let mixed: String = (0..4000_u32).map(|n| char::from(b'a' + (n * n % 97 % 26) as u8)).collect();
    assert_exact(&mixed);
}

proptest! {
    #[test]
    fn any_text_has_exactly_the_tokens_of_tiktoken(text in "\\PC*|[a-zA-Z0-9_'./ \\t\\r\\n(){}=-]{0,200}|[a-z]{60,90}|[\\s\\S]{0,80}") {
        for (ours, judge) in judged() {
            prop_assert_eq!(ours.count(&text), judge.encode_ordinary(&text).len());
        }
    }
}
