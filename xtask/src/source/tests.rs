//! How sources are taken apart.

use expect_test::{Expect, expect};

use super::Source;

/// Shows each line as `number code | text | comment`, with `t` before lines of tests.
#[track_caller]
fn check(content: &str, expected: Expect) {
    let source = Source::new("crates/a/src/lib.rs", content);
    let shown: String = source.lines.iter().map(shown).collect();
    expected.assert_eq(&shown);
}

fn shown(line: &super::Line) -> String {
    let mark = if line.in_test { "t" } else { "" };
    let parts = [&line.code, &line.text, &line.comment].map(|part| part.trim());
    let shown = format!("{mark}{} {}", line.number, parts.join(" | "));
    format!("{}\n", shown.trim_end())
}

#[test]
fn comments_and_literals_are_kept_apart_from_code() {
    check(
        "let a = \"x // y\"; // z\nlet b = /* in /* out */ */ 1;",
        expect![[r#"
            1 let a = ""; | let a = "x // y"; | // z
            2 let b =  1; | let b =  1; | /* in /* out */ */
        "#]],
    );
}

#[test]
fn an_escaped_quote_does_not_end_a_string() {
    check(
        r#"f("a\"//b\\"); g('\'', '"');"#,
        expect![[r#"
            1 f(""); g('', ''); | f("a\"//b\\"); g('\'', '"'); |
        "#]],
    );
}

#[test]
fn raw_strings_end_at_their_own_number_of_hashes() {
    check(
        "let a = br#\"x\"\n// y\"#; r#type; for\"\";",
        expect![[r##"
            1 let a = br#" | let a = br#"x" |
            2 "#; r#type; for""; | // y"#; r#type; for""; |
        "##]],
    );
}

#[test]
fn a_lifetime_is_no_character_literal() {
    check(
        "fn f<'a>(a: &'a str) {} // '",
        expect![[r#"
            1 fn f<'a>(a: &'a str) {} | fn f<'a>(a: &'a str) {} | // '
        "#]],
    );
}

#[test]
fn items_under_cfg_test_are_marked_to_their_end() {
    check(
        "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n#[cfg(test)]\nmod inner {\n    fn c() {}\n}\nfn d() {}\n",
        expect![[r#"
            1 fn a() {} | fn a() {} |
            t2 #[cfg(test)] | #[cfg(test)] |
            t3 mod tests; | mod tests; |
            4 fn b() {} | fn b() {} |
            t5 #[cfg(test)] | #[cfg(test)] |
            t6 mod inner { | mod inner { |
            t7 fn c() {} | fn c() {} |
            t8 } | } |
            9 fn d() {} | fn d() {} |
        "#]],
    );
}

#[test]
fn files_of_tests_are_tests_throughout() {
    for path in ["crates/a/tests/it/b.rs", "crates/a/src/b/tests.rs"] {
        let source = Source::new(path, "fn a() {}");
        assert!(source.lines.iter().all(|line| line.in_test), "{path}");
    }
}
