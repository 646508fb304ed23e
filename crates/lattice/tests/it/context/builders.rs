//! Tests of the builders as commands.

use lattice_testkit::TestRepo;
use serde_json::Value;

use super::sample;
use crate::lattice;

// proves: BU-1
#[test]
fn each_builder_prints_one_object_whose_sections_are_plain_text() {
    let repo = sample();
    repo.write("tasks.md", "- [ ] \"quoted\" and\ttabbed\n");
    repo.write(
        "issue.json",
        r#"{"number":1,"title":"t","body":"see src/cart.py","labels":[],"state":"open","assignees":[],"url":"u"}"#,
    );
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    repo.commit_file("src/base.py", "class Priced:\n    price = 1\n", "price");
    let run = |arguments: &[&str]| -> Value {
        let out = lattice(&repo).arg("context").args(arguments).stdin("src/cart.py:3: error: wrong\n").ok();
        let bare: Value = serde_json::from_str(&out.stdout).expect("one object");
        let below = lattice(&repo).arg("context").args(arguments).stdin("src/cart.py:3: error: wrong\n").json();
        assert_eq!(below["result"], bare, "{arguments:?}");
        assert!(bare["_metadata"].is_object());
        bare
    };
    assert_eq!(run(&["implement", "--task-file", "tasks.md"])["tasks"], "- [ ] \"quoted\" and\ttabbed\n");
    assert!(run(&["review", "--base", "main"])["diff"].as_str().is_some_and(|diff| diff.contains("+    price = 1")));
    assert_eq!(run(&["fix", "--errors", "-", "src/cart.py"])["error_summary"], "1 error in 1 file");
    assert!(run(&["fix", "--errors", "-"])["source_files"]["src/cart.py"].is_string(), "files with errors by default");
    assert!(run(&["issue", "--from", "issue.json"])["related_files"]["src/cart.py"].is_string());
    let out = lattice(&repo).args(["context", "implement", "--task-file", "absent.md"]).ok();
    assert!(
        out.stderr.contains("warning: absent.md does not exist") && out.stderr.contains("CLAUDE.md"),
        "{}",
        out.stderr
    );
    let out = lattice(&repo).args(["context", "review", "--base", "nowhere"]).fails(1);
    assert!(out.stderr.contains("`nowhere` is no branch"), "{}", out.stderr);
    let fitted =
        lattice(&repo).args(["context", "fit", "--budget", "2"]).stdin("{\"b\":\"0123456789abcdef\",\"a\":\"\"}").ok();
    assert!(fitted.stdout.starts_with("{\n  \"b\": \"01234567\",\n  \"a\": \"\""), "{}", fitted.stdout);
    let cut = lattice(&repo).args(["context", "truncate", "-", "--max-lines", "1"]).stdin("a\nb\n").ok();
    assert_eq!(cut.stdout, "a\n...\n");
}

/// The most memory that a run of the program had, in KiB; measured by the system for its child.
fn peak_kib(repo: &TestRepo, arguments: &[&str]) -> u64 {
    let mut command = std::process::Command::new("/usr/bin/env");
    repo.sandbox().apply(&mut command);
    let script = "\"$@\" >/dev/null 2>/dev/null; grep VmHWM /proc/self/status >/dev/null; exit 0";
    command.args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_lattice")]).args(arguments).current_dir(repo.dir());
    let mut child = command.spawn().expect("a shell");
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        let listing = std::fs::read_dir("/proc").expect("proc").flatten();
        for entry in listing {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let is_ours =
                status.starts_with("Name:\tlattice\n") && status.contains(&format!("PPid:\t{}\n", child.id()));
            let high = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            peak = peak.max(high.filter(|_| is_ours).unwrap_or(0));
        }
    }
    peak
}

#[test]
fn a_huge_diff_and_a_huge_file_are_never_held() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    let line = format!("{}\n", "0123456789abcdef".repeat(64));
    repo.commit_file("big.txt", line.repeat(120_000), "120 MB in lines");
    repo.commit_file("line.txt", "x".repeat(60_000_000), "a line of 60 MB");
    for arguments in [
        &["context", "review", "--base", "main"][..],
        &["context", "implement", "--task-file", "big.txt"],
        &["context", "fix", "--errors", "/dev/null", "big.txt", "line.txt"],
    ] {
        let peak = peak_kib(&repo, arguments);
        assert!(peak < 100 * 1024, "{arguments:?}: {peak} KiB");
    }
    let json = lattice(&repo).args(["context", "review", "--base", "main"]).json();
    let metadata = &json["result"]["_metadata"];
    assert_eq!(metadata["truncated"], true);
    assert!(metadata["original_lines"].as_u64().is_some_and(|lines| lines > 240_000), "{metadata}");
    assert!(json["result"]["diff"].as_str().is_some_and(|diff| diff.len() <= 8 << 20));
}
