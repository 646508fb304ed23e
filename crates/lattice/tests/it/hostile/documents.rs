//! Documents, graphs and configurations that are made to mislead: refused with a reason, nothing written.

use std::fs;

use lattice_testkit::metadata::metadata_ref;
use lattice_testkit::{Setup, TestRepo, assert_same};
use serde_json::{Value, json};

use crate::doctor::states::{edit, stack};
use crate::doctor::{issue, list, report, text};
use crate::lattice;

fn valid(repo: &TestRepo) -> String {
    repo.metadata("b").to_string()
}

/// Documents that a lenient reader would take for something.
fn misleading(valid: &str) -> Vec<(&'static str, Vec<u8>)> {
    let replaced = |from: &str, to: &str| {
        assert!(valid.contains(from), "{from} is in {valid}");
        valid.replacen(from, to, 1).into_bytes()
    };
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    vec![
        ("a key twice", replaced("\"branch\":", "\"branch\":{\"name\":\"b\"},\"branch\":")),
        ("a nested key twice", replaced("\"name\":\"a\"", "\"name\":\"main\",\"name\":\"a\"")),
        ("a tag twice", replaced("\"state\":\"unfrozen\"", "\"state\":\"unfrozen\",\"state\":\"unfrozen\"")),
        ("an unknown field", replaced("{\"base\"", "{\"extra\":1,\"base\"")),
        ("an unknown nested field", replaced("\"oid\":", "\"extra\":1,\"oid\":")),
        ("an unknown field of an enum", replaced("\"state\":\"none\"", "\"state\":\"none\",\"extra\":1")),
        ("version 999", replaced("\"schema_version\":1", "\"schema_version\":999")),
        ("version 1.0", replaced("\"schema_version\":1", "\"schema_version\":1.0")),
        ("a huge number", replaced("\"schema_version\":1", &format!("\"schema_version\":1{}", "0".repeat(400)))),
        ("another kind", replaced("lattice.branch-metadata", "lattice.event")),
        ("a short id", replaced("\"oid\":\"", "\"oid\":\"abc")),
        ("a revision as id", json_with(valid, "/base/oid", json!("main"))),
        ("a parent outside", json_with(valid, "/parent/name", json!("../x"))),
        ("a parent like an option", json_with(valid, "/parent/name", json!("--output=x"))),
        ("no time", json_with(valid, "/timestamps/created_at", json!("yesterday"))),
        ("30 000 levels", deep.clone().into_bytes()),
        ("30 000 levels in a field", replaced("\"schema_version\":1", &format!("\"schema_version\":{deep}"))),
        ("a byte order mark", [b"\xef\xbb\xbf", valid.as_bytes()].concat()),
        ("no text", [&valid.as_bytes()[..20], b"\xff\xfe", &valid.as_bytes()[20..]].concat()),
        ("more after the end", format!("{valid}{valid}").into_bytes()),
        ("nothing", Vec::new()),
        ("null", b"null".to_vec()),
    ]
}

fn json_with(valid: &str, pointer: &str, value: Value) -> Vec<u8> {
    let mut document: Value = serde_json::from_str(valid).expect("it is valid");
    *document.pointer_mut(pointer).expect("the field is there") = value;
    document.to_string().into_bytes()
}

#[test]
fn row_9_misleading_metadata_is_refused_with_a_reason() {
    let repo = stack();
    for (what, bytes) in misleading(&valid(&repo)) {
        repo.set_metadata_raw("b", &bytes);
        let before = repo.state();
        let found = report(&repo);
        let unreadable = issue(&found, "metadata-unreadable");
        assert!(!text(&unreadable["evidence"]["reason"][0]).is_empty(), "{what}: {found:#}");
        assert_eq!(unreadable["evidence"]["ref"][0], metadata_ref("b"), "{what}");
        for args in [&["restack"][..], &["freeze", "a"], &["create", "x", "-m", "x"]] {
            let answer = lattice(&repo).args(args).json();
            assert_eq!(answer["error"]["code"], "gated", "{args:?} with {what}: {answer:#}");
        }
        lattice(&repo).arg("log").ok();
        assert_same(&before, &repo.state());
    }
}

#[test]
fn row_8_a_large_blob_is_not_read() {
    let repo = stack();
    repo.set_metadata_raw("b", &vec![b' '; 64 << 20]);
    let found = report(&repo);
    let reason = text(&issue(&found, "metadata-unreadable")["evidence"]["reason"][0]).to_owned();
    assert!(reason.contains("67108864") && reason.contains("limit"), "the size is told: {reason}");
}

#[test]
fn row_8_a_metadata_ref_that_is_symbolic_never_takes_its_target_along() {
    let repo = stack();
    let main = repo.rev("main");
    repo.git(&["symbolic-ref", &metadata_ref("b"), "refs/heads/main"]);
    let found = report(&repo);
    let fix = &issue(&found, "metadata-unreadable")["fixes"][0];
    lattice(&repo).args(["doctor", "--fix", text(&fix["id"])]).ok();
    assert_eq!(repo.rev("refs/heads/main"), main, "the trunk is where it was");
    assert!(!repo.metadata_refs().contains_key("b"), "the ref itself is gone");
}

#[test]
fn row_10_a_cycle_of_a_thousand_is_one_issue_with_its_trace() {
    let names: Vec<_> = (0..1000).map(|n| format!("b{n:03}")).collect();
    let repo = TestRepo::draw(&format!("main* <- {}", names.join("(0) <- ")));
    edit(&repo, "b000", |metadata| metadata["parent"] = json!({ "kind": "branch", "name": "b999" }));
    let found = report(&repo);
    let cycle = issue(&found, "cycle");
    assert_eq!(list(&cycle["evidence"]["cycle"]).len(), 1000, "the whole trace is evidence");
    assert!(text(&cycle["summary"]).len() < 300, "the summary is for people: {}", cycle["summary"]);
    assert!(list(&cycle["fixes"]).len() <= 20, "and so is the number of choices");
    let answer = lattice(&repo).arg("restack").json();
    assert_eq!(answer["issues"][0]["id"], cycle["id"], "the same id gates");
    let id = text(&cycle["fixes"][0]["id"]).to_owned();
    lattice(&repo).args(["doctor", "--fix", &id]).ok();
    assert!(list(&report(&repo)["issues"]).iter().all(|issue| issue["kind"] != "cycle"), "one cut is enough");
}

#[test]
fn row_10_a_base_that_is_no_commit_is_an_issue_and_never_a_rewrite() {
    let objects: [fn(&TestRepo) -> String; 4] =
        [|repo| repo.rev("main^{tree}"), |repo| repo.rev("main:README"), |_| "0".repeat(40), |_| "f".repeat(40)];
    for object in objects {
        let repo = TestRepo::draw("main* <- a(2)");
        repo.commit_file("new", "x\n", "advance");
        let base = object(&repo);
        edit(&repo, "a", |metadata| metadata["base"]["oid"] = json!(base));
        let before = repo.state();
        let found = report(&repo);
        let kinds: Vec<_> = list(&found["issues"]).iter().map(|issue| text(&issue["kind"])).collect();
        assert_eq!(kinds, ["base-missing"], "{base}: {found:#}");
        assert_eq!(lattice(&repo).arg("restack").json()["error"]["code"], "gated", "{base}");
        assert_same(&before, &repo.state());
        let id = crate::doctor::fix_named(&found, "correct-base");
        lattice(&repo).args(["doctor", "--fix", &id]).ok();
        lattice(&repo).arg("restack").ok();
        assert_eq!(repo.git(&["rev-list", "--count", "main..a"]), "2", "no commit is lost or doubled");
    }
}

#[test]
fn row_13_a_configuration_with_a_bad_trunk_is_refused() {
    for (toml, kind) in [
        ("[trunk]\nbranch = \"-x\"\n", "config-invalid"),
        ("[trunk]\nbranch = \"\"\n", "config-invalid"),
        ("[trunk]\nbranch = 7\n", "config-invalid"),
        ("[trunk]\nbranch = \"a..b\"\n", "config-invalid"),
        ("trunk = \"-x\"\n", "config-invalid"),
        ("[trunk]\nbranch = \"gone\"\n", "trunk-missing"),
        ("[trunk]\nbranch = \"a\"\n", "trunk-tracked"),
    ] {
        let repo = stack();
        repo.write_config(toml);
        let before = repo.state();
        issue(&report(&repo), kind);
        for args in [&["restack"][..], &["create", "x", "-m", "x"], &["track", "a", "--parent", "main", "--force"]] {
            let answer = lattice(&repo).args(args).json();
            assert_eq!(answer["error"]["code"], "gated", "{args:?} with {toml:?}: {answer:#}");
        }
        lattice(&repo).arg("log").ok();
        assert_same(&before, &repo.state());
    }
}

#[test]
fn row_13_a_configuration_that_is_huge_or_no_file_is_refused_without_reading_it() {
    let make: [fn(&std::path::Path); 4] = [
        |path| {
            let file = fs::File::create(path).expect("it can be written");
            file.set_len(50 << 20).expect("it can grow");
        },
        |path| std::os::unix::fs::symlink("/etc/passwd", path).expect("it can be linked"),
        |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo starts").success());
        },
        |path| fs::create_dir(path).expect("it can be made"),
    ];
    for make in make {
        let repo = stack();
        let path = repo.lattice_dir().join("config.toml");
        fs::remove_file(&path).expect("there is a configuration");
        make(&path);
        let found = report(&repo);
        assert!(!found.to_string().contains("root:"), "a link is not followed");
        let id = crate::doctor::fix_named(&found, "set-trunk");
        assert_eq!(lattice(&repo).arg("restack").json()["error"]["code"], "gated");
        lattice(&repo).args(["doctor", "--fix", &id]).ok();
        assert_eq!(lattice(&repo).arg("trunk").ok().stdout.trim(), "main");
        let kept = fs::read_dir(repo.lattice_dir()).expect("it is there").flatten();
        let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("replaced")).count();
        assert_eq!(kept, 1, "what was there is kept");
    }
}

#[test]
fn row_17_replacements_and_grafts_do_not_change_what_a_branch_holds() {
    let repo = TestRepo::draw("main* <- a(3)");
    repo.commit_file("new", "x\n", "advance");
    let lonely = repo.git(&["commit-tree", "-m", "replacement", "main^{tree}"]);
    let expected = lattice(&repo).arg("log").json()["branches"].clone();
    repo.git(&["replace", &repo.rev("a~1"), &lonely]);
    fs::write(repo.common_dir().join("info/grafts"), format!("{}\n", repo.rev("a"))).expect("it can be written");
    assert_eq!(repo.git(&["rev-list", "--count", "main..a"]), "1", "plain git believes the graft");
    assert_eq!(lattice(&repo).arg("log").json()["branches"], expected, "Lattice sees the commits themselves");
    lattice(&repo).arg("restack").ok();
    fs::remove_file(repo.common_dir().join("info/grafts")).expect("it is there");
    repo.git(&["replace", "--delete", &repo.git(&["replace", "--list"])]);
    assert_eq!(repo.git(&["rev-list", "--count", "main..a"]), "3", "all three commits were moved");
    assert_eq!(repo.rev("a~3"), repo.rev("main"));
}

#[test]
fn row_21_a_deep_stack_and_many_branches_work() {
    let chain: Vec<_> = (0..2000).map(|n| format!("b{n:04}")).collect();
    let repo = Setup::default().draw(&format!("main* <- {}", chain.join(" <- ")));
    repo.git(&["pack-refs", "--all"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", &"x".repeat(100_000)]);
    let log = lattice(&repo).arg("log").json();
    assert_eq!(list(&log["branches"]).len(), 2000, "every branch of a deep stack is there");
    lattice(&repo).arg("log").ok();
    lattice(&repo).arg("verify").ok();
    let plan = lattice(&repo).args(["restack", "--dry-run"]).json();
    let refs = list(&plan["plan"]["touched_refs"]).len();
    assert_eq!(refs, 4000, "a tip and a document for each");
    let wide: Vec<_> = (0..10_000).map(|n| format!("main <- w{n:05}(0)")).collect();
    let repo = Setup::default().draw(&wide.join(";"));
    repo.git(&["pack-refs", "--all"]);
    let log = lattice(&repo).arg("log").json();
    assert_eq!(list(&log["branches"]).len(), 10_000, "every branch of a wide stack is there");
    lattice(&repo).args(["freeze", "w09999"]).ok();
}

#[test]
fn row_18_the_users_own_drivers_and_filters_decide_as_they_do_for_git() {
    let repo = TestRepo::draw("main* <- a");
    repo.write(".gitattributes", "shared.txt merge=ours-first\nloud.txt filter=loud\n");
    repo.git(&["config", "merge.ours-first.driver", "cat %B >> %A"]);
    repo.git(&["config", "filter.loud.smudge", "tr a-z A-Z"]);
    repo.git(&["config", "filter.loud.clean", "tr A-Z a-z"]);
    repo.write("loud.txt", "once\n");
    repo.git(&["add", "--all"]);
    repo.commit_file("shared.txt", "start\n", "what both will change");
    lattice(&repo).args(["restack"]).ok();
    repo.git(&["checkout", "--quiet", "a"]);
    repo.commit_file("shared.txt", "upper\n", "the branch's");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("loud.txt", "twice\n");
    repo.git(&["add", "--all"]);
    repo.commit_file("shared.txt", "lower\n", "the trunk's");
    repo.git(&["checkout", "--quiet", "a"]);
    let by_git = crate::doctor::copy_of(&repo, "by-git");
    by_git.git(&["rebase", "--quiet", "main"]);
    lattice(&repo).arg("restack").ok();
    assert_eq!(repo.rev("a^{tree}"), by_git.rev("a^{tree}"), "the driver was asked");
    let (loud, by_git) = (repo.read("loud.txt"), by_git.read("loud.txt"));
    assert_eq!((loud.as_str(), by_git.as_str()), ("TWICE\n", "TWICE\n"), "and so was the filter");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
