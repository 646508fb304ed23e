//! Documents that must agree with the sources and with each other.

use xtask::conformance;

#[test]
fn the_conformance_table_is_up_to_date() {
    if let Err(failure) = conformance::check(xtask::root()) {
        panic!("{failure}");
    }
}

// proves: ST-0-1, ST-13-1
#[test]
fn every_rule_of_the_architecture_has_a_test() {
    let table = read("docs/conformance.md");
    let rules: Vec<_> = table.lines().filter(|line| line.starts_with("| ST-")).collect();
    assert!(rules.len() > 300, "the table has the rules of the architecture: {}", rules.len());
    let open: Vec<_> = rules.into_iter().filter(|line| line.ends_with("| open |")).collect();
    assert!(open.is_empty(), "no test names them:\n{}", open.join("\n"));
}

// proves: ST-6.3-4
#[test]
fn a_violation_of_the_architecture_is_a_bug_that_stops_every_run() {
    let guide = read("CONTRIBUTING.md");
    let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        guide.contains("A violation of the architecture is a correctness bug"),
        "the guide for contributors says how reviewers treat a violation"
    );
    let commands: Vec<String> =
        read(".ci/run").lines().filter(|line| line.starts_with("cargo")).map(str::to_owned).collect();
    assert_eq!(
        commands,
        ["cargo xtask test"],
        "automation runs the whole suite, these rules included, and nothing else"
    );
}

fn read(path: &str) -> String {
    std::fs::read_to_string(xtask::root().join(path)).expect("a document of the project")
}
