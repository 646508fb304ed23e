//! The README's tour and the demo work as they are printed.

use std::process::Command;

use lattice_testkit::TestRepo;

use crate::lattice;

#[test]
fn the_tour_of_the_readme_works_when_pasted() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("there is a README");
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.collect::<String>();
    assert!(!block.is_empty(), "the tour is blocks of sh");
    let repo = TestRepo::new();
    let folder = repo.sandbox().root().join("tour");
    std::fs::create_dir(&folder).expect("a new folder");
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_lattice")).parent().expect("a folder");
    let mut shell = shell();
    repo.sandbox().apply(&mut shell);
    let path = std::env::join_paths(
        std::iter::once(bin.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))),
    );
    shell.env("PATH", path.expect("folders without colons")).current_dir(&folder);
    let output = shell.args(["-e", "-c", &block]).output().expect("sh starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "every line of the tour succeeds:\n{text}");
    assert!(text.contains("undid `restack`"), "it undoes:\n{text}");
    assert!(text.contains("landed #1 (api)"), "and lands:\n{text}");
}

#[expect(clippy::disallowed_methods, reason = "the tour is for a shell")]
fn shell() -> Command {
    Command::new("sh")
}

#[test]
fn the_demo_runs_to_its_end_and_leaves_a_repository_that_verifies() {
    let repo = TestRepo::new();
    let folder = repo.sandbox().root().join("demo");
    let shown = lattice(&repo).args(["demo", "--dir"]).arg(folder.as_os_str()).ok();
    for step in ["$ lattice restack", "$ lattice undo", "$ lattice doctor --fix recreate-branch-", "holds:"] {
        assert!(shown.stdout.contains(step), "the demo shows `{step}`:\n{}", shown.stdout);
    }
    lattice(&repo).cwd(&folder).args(["verify", "--full"]).ok();
    let again = lattice(&repo).args(["demo", "--dir"]).arg(folder.as_os_str()).fails(1);
    assert!(again.stderr.contains("not empty"), "a folder with something in it is left alone");
}
