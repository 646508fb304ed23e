//! Validation output in the formats that people have.

use lattice_context::builders::validation::{ErrorItem, ValidationOutput};

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let errors = ValidationOutput::parse(text).expect("a known format").errors();
    let shown = |error: &ErrorItem| {
        let code = error.code.as_deref().unwrap_or("-");
        format!("{}:{} {} {code} {}", error.file, error.line, error.severity.as_str(), error.message)
    };
    assert_eq!(errors.iter().map(shown).collect::<Vec<_>>(), expected);
}

// proves: BU-36, BU-37, BU-74
#[test]
fn the_json_of_the_specification_is_read_and_refused_by_name() {
    let error = |extra: &str| {
        format!(
            r#"{{"success":false,"total_duration_ms":5,"stages":[{{"stage_name":"check","passed":false,"errors":[{{"file":"a.rs","line":3,"message":"m"{extra}}}]}}]}}"#
        )
    };
    check(&error(""), &["a.rs:3 error - m"]);
    check(&error(r#","severity":"warning","code":"E0308""#), &["a.rs:3 warning E0308 m"]);
    check(&error(r#","severity":"note""#), &["a.rs:3 warning - m"]);
    check(&error(r#","severity":"catastrophe""#), &["a.rs:3 error - m"]);
    for (text, word) in [
        (r#"{"success":true,"total_duration_ms":1}"#, "stages"),
        (r#"{"success":true,"total_duration_ms":1,"stages":[],"more":1}"#, "more"),
        ("{}", "stages"),
    ] {
        let error = ValidationOutput::parse(text).expect_err("refused");
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{error} {cause}").contains(word), "{error} {cause}");
    }
}

#[test]
fn lines_of_compilers_and_traces_name_places() {
    check("src/a.c:3:5: error: expected ';'", &["src/a.c:3 error - expected ';'"]);
    check(
        "a.c:3:5: warning: unused variable 'x' [-Wunused-variable]",
        &["a.c:3 warning -Wunused-variable unused variable 'x'"],
    );
    check("./a.go:7:2: undefined: x", &["a.go:7 error - undefined: x"]);
    check("a.py:9: error: Incompatible types  [assignment]", &["a.py:9 error assignment Incompatible types"]);
    check("src/a.ts(3,5): error TS2322: Type 'x' is wrong.", &["src/a.ts:3 error TS2322 Type 'x' is wrong."]);
    check(
        "error[E0308]: mismatched types\n --> src/a.rs:3:5\n  |\n3 | x\nwarning: unused\n  --> src/b.rs:1:1\n",
        &["src/a.rs:3 error E0308 mismatched types", "src/b.rs:1 warning - unused"],
    );
    check(
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n  File \"b.py\", line 9, in g\nValueError: bad\n",
        &["a.py:3 error - ValueError: bad", "b.py:9 error - ValueError: bad"],
    );
    check(
        "thread 'main' panicked at src/a.rs:10:5:\nboom",
        &["src/a.rs:10 error - thread 'main' panicked at src/a.rs:10:5"],
    );
    check("all is well\nhttp://host:80/x is no place\n12:30: nor is this\n", &[]);
}

#[test]
fn messages_of_cargo_and_sarif_are_read() {
    let cargo = r#"{"reason":"compiler-artifact"}
{"reason":"compiler-message","message":{"message":"mismatched types","level":"error","code":{"code":"E0308"},"spans":[{"file_name":"x.rs","line_start":1,"column_start":1,"is_primary":false},{"file_name":"src/a.rs","line_start":3,"column_start":5,"is_primary":true}]}}
{"reason":"build-finished","success":false}"#;
    check(cargo, &["src/a.rs:3 error E0308 mismatched types"]);
    let sarif = r#"{"version":"2.1.0","runs":[{"results":[{"ruleId":"js/x","level":"note","message":{"text":"careful"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"src/a.js"},"region":{"startLine":4}}}]}]}]}"#;
    check(sarif, &["src/a.js:4 warning js/x careful"]);
}
