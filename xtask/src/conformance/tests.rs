//! How comments beside tests become rows of the table.

use expect_test::{Expect, expect};

use super::{Extent, proofs, requirements, table};
use crate::source::Source;

const LIST: &str = "ST-1-1\tFirst.\nST-1-2\tSecond `a|b`.\nCE-1\tThird.\nCE-2\tFourth.\n";

/// Shows each proof of a file, or each problem.
#[track_caller]
fn check(content: &str, expected: Expect) {
    let sources = [Source::new("crates/a/tests/it/b.rs", content)];
    let requirements = requirements(LIST).expect("the list of these tests is well-formed");
    let shown = match proofs::collect(&sources, &requirements) {
        Ok(proofs) => proofs.iter().map(shown).collect::<String>(),
        Err(problems) => problems.join("\n") + "\n",
    };
    expected.assert_eq(&shown);
}

fn shown(proof: &super::Proof) -> String {
    match &proof.extent {
        Extent::Whole => format!("{} {}\n", proof.id, proof.test),
        Extent::Part { missing } => format!("{} {} without {missing}\n", proof.id, proof.test),
    }
}

#[test]
fn a_comment_above_or_below_the_attribute_counts() {
    check(
        "
// proves: ST-1-1, CE-1
#[test]
fn one() {}

/// Why this matters.
#[test]
// proves: CE-2
#[should_panic]
fn two() {}
",
        expect![[r#"
            ST-1-1 a/tests/it/b.rs::one
            CE-1 a/tests/it/b.rs::one
            CE-2 a/tests/it/b.rs::two
        "#]],
    );
}

#[test]
fn several_comments_and_long_attributes_stay_with_their_test() {
    check(
        "
// proves: ST-1-1
// A sentence on the test.
// proves partly: ST-1-2 — the other half
#[expect(
    clippy::too_many_lines,
    reason = \"[a table]\"
)]
#[tokio::test(flavor = \"current_thread\")]
async fn one() {}
",
        expect![[r#"
            ST-1-1 a/tests/it/b.rs::one
            ST-1-2 a/tests/it/b.rs::one without the other half
        "#]],
    );
}

#[test]
fn property_tests_count_too() {
    check(
        "
proptest! {
    #![proptest_config(config())]

    // proves: ST-1-1
    #[test]
    fn any(value in 0..9) {
        prop_assert!(value < 9);
    }

    // proves: CE-1
    #[test] fn short(value in 0..9) {}
}
",
        expect![[r#"
            ST-1-1 a/tests/it/b.rs::any
            CE-1 a/tests/it/b.rs::short
        "#]],
    );
}

#[test]
fn an_unknown_id_is_refused() {
    check(
        "// proves: ST-9-9, ST-1-1\n#[test]\nfn one() {}\n",
        expect![[r#"
            crates/a/tests/it/b.rs:1: there is no requirement `ST-9-9`
        "#]],
    );
}

#[test]
fn an_id_named_twice_for_one_test_is_refused() {
    check(
        "// proves: CE-1\n// proves: CE-1\n#[test]\nfn one() {}\n",
        expect![[r#"
            crates/a/tests/it/b.rs:2: CE-1 is named twice for one test
        "#]],
    );
}

#[test]
fn a_partial_proof_must_say_what_is_missing() {
    check(
        "// proves partly: CE-1\n#[test]\nfn one() {}\n",
        expect![[r#"
            crates/a/tests/it/b.rs:1: a partial proof says after a dash (—) what is missing
        "#]],
    );
}

#[test]
fn an_id_that_is_not_beside_a_test_is_refused() {
    check(
        "
// proves: ST-1-1
fn helper() {}

// proves: ST-1-2

#[test]
fn one() {}

/// proves: CE-1
#[test]
fn two() {}

let a = 1; // see CE-2.
// proves: CE-1",
        expect![[r#"
            crates/a/tests/it/b.rs:2: ST-1-1 is named here, but no test follows
            crates/a/tests/it/b.rs:5: ST-1-2 is named here, but no test follows
            crates/a/tests/it/b.rs:10: CE-1 is named outside of a `// proves:` comment above a test
            crates/a/tests/it/b.rs:14: CE-2 is named outside of a `// proves:` comment above a test
            crates/a/tests/it/b.rs:15: CE-1 is named here, but no test follows
        "#]],
    );
}

#[test]
fn a_test_names_at_most_eight_ids() {
    let ids: Vec<String> = (1..=9).map(|number| format!("ST-1-{number}")).collect();
    let list: String = ids.iter().map(|id| format!("{id}\tA sentence.\n")).collect();
    let content = format!("// proves: {}\n#[test]\nfn one() {{}}\n", ids.join(", "));
    let sources = [Source::new("xtask/tests/a.rs", &content)];
    let requirements = requirements(&list).expect("the list of this test is well-formed");
    let problems = proofs::collect(&sources, &requirements).err().expect("nine ids are one too many");
    expect!["xtask/tests/a.rs:1: one names 9 requirements, more than 8"].assert_eq(&problems.join("\n"));
}

#[test]
fn comments_inside_of_string_literals_are_no_comments() {
    check(
        "
#[test]
fn one() {
    check(\"
// proves: ST-9-9
\");
}
",
        expect![""],
    );
}

#[test]
fn the_list_refuses_doubles_and_lines_without_a_tab() {
    let problems = requirements("ST-1-1\tA.\nST-1-1\tB.\nST-1-2 C.\n").err().expect("two lines are wrong");
    expect![[r#"
        docs/requirements.txt:2: ST-1-1 stands here a second time
        docs/requirements.txt:3: no tab between id and sentence"#]]
    .assert_eq(&problems.join("\n"));
}

#[test]
fn a_whole_proof_outweighs_partial_ones() {
    let content = "
// proves: ST-1-1
// proves partly: CE-1 — left side
#[test]
fn one() {}

// proves partly: ST-1-1, CE-1 — right side
#[test]
fn two() {}
";
    let sources = [Source::new("crates/a/src/b/tests.rs", content)];
    let requirements = requirements(LIST).expect("the list of these tests is well-formed");
    let proofs = proofs::collect(&sources, &requirements).unwrap_or_default();
    let page = table::render(&requirements, &proofs);
    let tables: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    expect![[r#"
        | subject | ids | proved | partly | open | all |
        |---|---|---|---|---|---|
        | stacks | ST | 1 | 0 | 1 | 2 |
        | context engine | CE | 0 | 1 | 1 | 2 |
        | context builders | BU | 0 | 0 | 0 | 0 |
        | context bundle | CB | 0 | 0 | 0 | 0 |
        | sprite protocol | SP | 0 | 0 | 0 | 0 |
        | together |  | 1 | 1 | 2 | 4 |
        | id | requirement | tests | state |
        |---|---|---|---|
        | ST-1-1 | First. | `a/src/b/tests.rs::one`, `a/src/b/tests.rs::two` | proved |
        | ST-1-2 | Second `a\|b`. |  | open |
        | CE-1 | Third. | `a/src/b/tests.rs::one`, `a/src/b/tests.rs::two` | partly (left side; right side) |
        | CE-2 | Fourth. |  | open |"#]]
    .assert_eq(&tables.join("\n"));
}
