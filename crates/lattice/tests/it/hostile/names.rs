//! Names and texts that are made to be taken for something else.

use lattice_testkit::metadata::{Freeze, Parent, Tracked, document};
use lattice_testkit::{TestRepo, assert_same};

use crate::doctor::{issue, list, report, text};
use crate::lattice;

/// A branch that plain git would not create.
fn force_branch(repo: &TestRepo, name: &str) {
    let tip = repo.rev("refs/heads/main");
    repo.git(&["update-ref", &format!("refs/heads/{name}"), &tip]);
}

/// Looks at everything that a person may look at.
const LOOKS: [&[&str]; 8] = [
    &["log"],
    &["log", "--long", "--show-untracked"],
    &["ls"],
    &["doctor"],
    &["doctor", "--explain"],
    &["verify"],
    &["ops"],
    &["info"],
];

#[test]
fn row_1_a_branch_that_looks_like_an_option_is_named_and_never_an_argument() {
    for name in ["--output=injected", "-h", "--", "-d", "--upload-pack=touch injected"] {
        let name = name.replace(' ', "_");
        let repo = TestRepo::draw("main <- a*");
        force_branch(&repo, &name);
        let found = report(&repo);
        let unusable = issue(&found, "unusable-name");
        assert!(text(&unusable["summary"]).contains(&name), "{name} is listed: {found:#}");
        let before = repo.state();
        for looks in LOOKS {
            lattice(&repo).args(looks).ok();
        }
        for args in [&["checkout"][..], &["freeze"], &["restack"], &["track", "--parent", "main"], &["move", "--onto"]]
        {
            let output = lattice(&repo).args(args).arg("--").arg(&name).run();
            assert!(matches!(output.code, Some(1 | 2)), "{args:?} {name}:\n{}", output.snapshot());
        }
        assert_same(&before, &repo.state());
        lattice(&repo).args(["restack"]).ok();
        assert!(!repo.dir().join("injected").exists(), "no file appears for {name}");
    }
}

#[test]
fn row_1_a_current_branch_that_looks_like_an_option_is_refused_by_name() {
    let repo = TestRepo::draw("main <- a*");
    force_branch(&repo, "-h");
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/-h"]);
    let before = repo.state();
    for args in [&["create", "x", "-m", "x"][..], &["restack"], &["modify", "-m", "x"], &["freeze"], &["up"]] {
        let answer = lattice(&repo).args(args).json();
        assert_eq!(answer["issues"][0]["kind"], "scope-unresolved", "{args:?}: {answer:#}");
        assert!(text(&answer["issues"][0]["evidence"]["head"][0]).contains("-h"), "{args:?}: {answer:#}");
    }
    for looks in [&["log"][..], &["doctor"], &["verify"]] {
        lattice(&repo).args(looks).ok();
    }
    assert_same(&before, &repo.state());
}

#[test]
fn row_3_shell_syntax_in_names_is_never_run() {
    for name in
        ["$(touch${IFS}injected)", "a;touch${IFS}injected", "`touch${IFS}injected`", "a'b", "a\"b", "a&b", "a|b", "%s"]
    {
        let repo = TestRepo::draw("main* <- a");
        repo.git(&["branch", name, "a"]);
        lattice(&repo).args(["track", name, "--parent", "a"]).ok();
        repo.commit_file("new", "x\n", "advance");
        lattice(&repo).args(["restack", name]).ok();
        assert_eq!(repo.rev(&format!("refs/heads/{name}")), repo.rev("a"), "{name} is restacked like any other");
        lattice(&repo).args(["checkout", name]).ok();
        lattice(&repo).args(["create", "above", "-m", name]).ok();
        lattice(&repo).args(["freeze", name]).ok();
        lattice(&repo).arg("undo").ok();
        for looks in LOOKS {
            lattice(&repo).args(looks).ok();
        }
        lattice(&repo).args(["untrack", name, "--force"]).ok();
        repo.git(&["update-ref", "-d", "refs/heads/above"]);
        let gated = lattice(&repo).args(["restack", name]).json();
        let action = text(&gated["issues"][0]["fixes"][0]["user_action"]).to_owned();
        assert!(!runs(&repo, &action), "what is printed for {name} can be pasted: {action}");
        assert!(!repo.dir().join("injected").exists(), "{name} was run");
    }
}

/// Whether a shell that is given this line does anything but start `lattice`.
fn runs(repo: &TestRepo, line: &str) -> bool {
    let script = format!("lattice() {{ printf '%s\\n' \"$@\" >words; }}\n{}", line.replace("<branch below>", "main"));
    let status = std::process::Command::new("sh").arg("-c").arg(script).current_dir(repo.dir()).status();
    let words = repo.read("words");
    !status.expect("sh starts").success() || words.lines().count() != 4 || repo.dir().join("injected").exists()
}

#[test]
fn row_4_nothing_from_outside_steers_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\rback\u{8}\u{202e}desrever\u{2066}";
    let repo = TestRepo::draw("main* <- a");
    let branch = "x\u{9b}31m\u{202e}y\u{2066}\u{200b}z";
    repo.git(&["checkout", "--quiet", "-b", branch, "a"]);
    repo.write("f\u{1b}[31m\u{7}", "x\n");
    repo.git(&["add", "--all"]);
    repo.git(&["-c", &format!("user.name=Eve{evil}"), "commit", "--quiet", "--message", &format!("subject {evil}")]);
    let mut outputs = vec![lattice(&repo).args(["track", "--parent", "a"]).ok()];
    outputs.extend(LOOKS.iter().map(|looks| lattice(&repo).args(*looks).ok()));
    for args in
        [&["info", "--stat"][..], &["parent"], &["children", "a"], &["freeze"], &["unfreeze"], &["down"], &["up"]]
    {
        outputs.push(lattice(&repo).args(args).ok());
    }
    outputs.push(lattice(&repo).args(["restack", "--dry-run"]).ok());
    outputs.push(lattice(&repo).args(["move", "--source", branch, "--onto", "main", "--dry-run"]).ok());
    repo.set_metadata_raw(branch, format!("{{\"schema_version\":\"{evil}\"}}").as_bytes());
    outputs.push(lattice(&repo).arg("log").ok());
    outputs.push(lattice(&repo).arg("doctor").fails(1));
    outputs.push(lattice(&repo).arg("restack").fails(1));
    outputs.push(lattice(&repo).args(["checkout", &format!("no{evil}")]).run());
    repo.write_config(&format!("[trunk]\nbranch = \"main\"\n[lock]\n\"{}\" = 1\n", "k\u{9b}\u{202e}"));
    outputs.push(lattice(&repo).arg("doctor").fails(1));
    let id = list(&report(&repo)["issues"]).iter().flat_map(|issue| list(&issue["fixes"]).to_vec()).next();
    let id = id.expect("there is a fix");
    outputs.push(lattice(&repo).args(["explain", text(&report(&repo)["issues"][0]["id"])]).ok());
    outputs.push(lattice(&repo).args(["doctor", "--dry-run", "--fix", text(&id["id"])]).ok());
    outputs.push(lattice(&repo).args(["doctor", "--fix", text(&id["id"])]).ok());
    for output in outputs {
        let steers = |c: &char| {
            (c.is_control() && *c != '\n' && *c != '\t')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        for stream in [&output.stdout, &output.stderr] {
            let found: Vec<_> = stream.chars().filter(steers).collect();
            assert!(found.is_empty(), "{found:?} in:\n{}", stream.escape_debug());
        }
    }
}

#[test]
fn row_5_a_branch_named_like_a_revision_is_not_mistaken_for_it() {
    let repo = TestRepo::draw("main* <- a <- b");
    for name in ["HEAD", "@", "refs/heads/a", "FETCH_HEAD"] {
        force_branch(&repo, name);
    }
    repo.git(&["tag", "a", "main"]);
    repo.git(&["tag", "main", "b"]);
    repo.git(&["update-ref", "refs/heads/heads/a", "refs/heads/main"]);
    let found = report(&repo);
    let unusable: Vec<_> = list(&found["issues"]).iter().filter(|issue| issue["kind"] == "unusable-name").collect();
    assert_eq!(unusable.len(), 2, "HEAD and @: {found:#}");
    repo.write("new", "x\n");
    repo.git(&["add", "new"]);
    repo.git(&["commit", "--quiet", "--message", "advance"]);
    lattice(&repo).args(["restack"]).ok();
    let rev = |name: &str| repo.rev(&format!("refs/heads/{name}"));
    assert_eq!(rev("a~1"), rev("main"), "the branch a stands on the branch main, not on the tag");
    assert_eq!(rev("b~1"), rev("a"), "and b on the branch a");
    lattice(&repo).args(["checkout", "a"]).ok();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/a", "the branch is checked out, not the tag");
    assert_eq!(repo.rev("HEAD"), rev("a"));
    lattice(&repo).args(["checkout", "refs/heads/a"]).ok();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/refs/heads/a", "names are names, not revisions");
    lattice(&repo).args(["checkout", "HEAD"]).run();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/refs/heads/a", "HEAD is no branch");
}

#[test]
fn row_6_names_that_cannot_exist_beside_each_other_are_found_in_planning() {
    let repo = TestRepo::draw("main <- a*");
    repo.git(&["pack-refs", "--all"]);
    let before = repo.state();
    for name in ["a/b", "main/x"] {
        for dry in [&["--dry-run"][..], &[]] {
            let answer = lattice(&repo).args(["create", name, "-m", "x"]).args(dry).json();
            assert_eq!(answer["error"]["code"], "branch-name-clash", "{name}: {answer:#}");
        }
    }
    assert_same(&before, &repo.state());
    // Metadata alone is in the way too: the branch it belonged to is gone.
    let base = repo.rev("main");
    let tracked = Tracked { branch: "old/x", parent: Parent::Trunk("main"), base: &base, freeze: Freeze::Unfrozen };
    repo.set_metadata_raw("old/x", document(&tracked).to_string().as_bytes());
    let answer = lattice(&repo).args(["create", "old", "-m", "x"]).json();
    assert_eq!(answer["error"]["code"], "branch-name-clash", "{answer:#}");
    repo.git(&["branch", "old", "a"]);
    let before = repo.state();
    let answer = lattice(&repo).args(["track", "old", "--parent", "a"]).json();
    assert_eq!(answer["error"]["code"], "branch-name-clash", "{answer:#}");
    assert_same(&before, &repo.state());
}

#[test]
fn row_7_names_that_look_alike_are_different_and_marked() {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    let repo = TestRepo::draw("main <- a*");
    for name in [composed, decomposed] {
        repo.git(&["branch", name, "a"]);
        lattice(&repo).args(["track", name, "--parent", "a"]).ok();
    }
    lattice(&repo).args(["freeze", composed]).ok();
    assert_eq!(repo.metadata(composed)["freeze"]["state"], "frozen", "the one that was named");
    assert_eq!(repo.metadata(decomposed)["freeze"]["state"], "unfrozen", "and not its twin");
    let found = report(&repo);
    let twins: Vec<_> = list(&issue(&found, "look-alike-names")["evidence"]["branches"]).iter().map(text).collect();
    assert_eq!(twins, [decomposed, composed], "the twins are named byte for byte");
    let repo = TestRepo::draw("main <- Feature <- feature*");
    assert_eq!(issue(&report(&repo), "look-alike-names")["severity"], "warning", "also names that differ in case");
}
