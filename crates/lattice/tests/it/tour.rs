//! What the documents say: blocks that can be pasted work, links lead somewhere, the reference is the help text.

use std::path::Path;
use std::process::Command;

use lattice_testkit::TestRepo;
use serde_json::Value;

use crate::lattice;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Git calls the first branch so where nobody has said anything.
const STOCK_GIT: [(&str, &str); 3] =
    [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "init.defaultBranch"), ("GIT_CONFIG_VALUE_0", "master")];

/// Pastes every block of `sh` in a document into one shell in an empty folder, and gives what it printed.
#[track_caller]
fn pasted(name: &str) -> String {
    let text = document(name);
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.collect::<String>();
    assert!(!block.is_empty(), "{name} has blocks of sh");
    let repo = TestRepo::new();
    let folder = repo.sandbox().root().join("pasted");
    std::fs::create_dir(&folder).expect("a new folder");
    let bin = Path::new(env!("CARGO_BIN_EXE_lattice")).parent().expect("a folder");
    let mut shell = shell();
    repo.sandbox().apply(&mut shell);
    let path = std::env::join_paths(
        std::iter::once(bin.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))),
    );
    shell.env("PATH", path.expect("folders without colons")).current_dir(&folder);
    shell.envs(STOCK_GIT);
    let output = shell.args(["-e", "-c", &block]).output().expect("sh starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "every line of {name} succeeds:\n{text}");
    text
}

#[test]
fn the_tour_of_the_readme_works_when_pasted() {
    let text = pasted("README.md");
    assert!(text.contains("undid `restack`"), "it undoes:\n{text}");
    assert!(text.contains("landed #1 (api)"), "and lands:\n{text}");
}

#[test]
fn the_long_tour_works_when_pasted() {
    let text = pasted("docs/tour.md");
    for said in ["lattice continue", "landed #3 (docs)", "recreate-branch-", "holds:"] {
        assert!(text.contains(said), "it shows `{said}`:\n{text}");
    }
}

#[test]
fn every_how_to_works_when_pasted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to");
    let mut names: Vec<_> = std::fs::read_dir(folder).expect("there are how-tos").flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for name in names {
        let name = format!("docs/how-to/{}", name.file_name().to_string_lossy());
        if document(&name).contains("```sh\n") {
            pasted(&name);
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in ["README.md", "docs/tour.md"] {
        let (text, base) = (document(name), Path::new(name).parent().expect("a folder"));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(base).join(target);
            assert!(path.exists(), "{name} links to {target}");
        }
    }
}

/// Written by the test itself with `UPDATE_EXPECT=1`, from what `--help` prints.
#[test]
fn the_reference_is_what_the_help_says() {
    let repo = TestRepo::new();
    let mut text = String::from(
        "# Every command\n\nWhat `--help` prints, for each command. Options that every command has are listed once, here at \
         the top.\n",
    );
    let mut waiting = vec![Vec::<String>::new()];
    while !waiting.is_empty() {
        let path = waiting.remove(0);
        let help = lattice(&repo).args(&path).arg("--help").env("COLUMNS", "100").ok().stdout;
        let (own, general) = help.split_once("\nOptions for every command:\n").unwrap_or((&help, ""));
        let title = std::iter::once("lattice".to_owned()).chain(path.clone()).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("\n## {title}\n\n```text\n{}\n", own.trim_end()));
        if path.is_empty() {
            text.push_str(&format!("\nOptions for every command:\n{}\n", general.trim_end()));
        }
        text.push_str("```\n");
        let listed = own.split("Commands:\n").nth(1).unwrap_or_default();
        let names = listed.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
        let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        let below: Vec<_> = names.map(|name| path.iter().cloned().chain([name.to_owned()]).collect()).collect();
        waiting.splice(0..0, below);
    }
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&place, &text).expect("the document can be written");
    }
    assert_eq!(document("docs/reference.md"), text, "UPDATE_EXPECT=1 writes it anew");
}

/// The names in an object, and in the objects in it.
fn shape(value: &Value) -> Vec<String> {
    let Some(object) = value.as_object() else { return Vec::new() };
    let below = |(name, value): (&String, &Value)| {
        let inner = shape(value).into_iter().map(move |inner| format!("{name}.{inner}"));
        std::iter::once(name.clone()).chain(inner).collect::<Vec<_>>()
    };
    let mut names: Vec<_> = object.iter().flat_map(below).collect();
    names.sort();
    names
}

#[test]
fn the_examples_of_the_formats_are_like_what_is_written() {
    let text = document("docs/formats.md");
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let examples: Vec<Value> = blocks.map(|block| serde_json::from_str(block).expect("an example is JSON")).collect();
    let example = |kind: &str| examples.iter().find(|example| example["kind"] == kind).expect("it has an example");
    let repo = TestRepo::draw("main <- api*");
    let remote = repo.sandbox().root().join("remote.git");
    repo.git(&["init", "--quiet", "--bare", remote.to_str().expect("text")]);
    repo.git(&["remote", "add", "origin", remote.to_str().expect("text")]);
    repo.git(&["push", "--quiet", "origin", "main"]);
    assert_eq!(shape(example("lattice.branch-metadata")), shape(&repo.metadata("api")));
    lattice(&repo).args(["freeze", "api"]).ok();
    assert_eq!(shape(example("lattice.event")), shape(&repo.ledger()[0]));
    lattice(&repo).args(["unfreeze", "api"]).ok();
    lattice(&repo).arg("submit").ok();
    let item = repo.git(&["-C", remote.to_str().expect("text"), "cat-file", "-p", "refs/lattice/forge/items/1"]);
    assert_eq!(shape(example("lattice.forge-item")), shape(&serde_json::from_str(&item).expect("it is JSON")));
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("api.txt", "another\n", "in conflict");
    lattice(&repo).arg("restack").fails(4);
    let marker = std::fs::read_to_string(repo.op_state_path()).expect("it waits");
    assert_eq!(shape(example("lattice.op-state")), shape(&serde_json::from_str(&marker).expect("it is JSON")));
    let emitted = lattice(&repo).args(["emit", "info", "hello", "--kind", "progress"]);
    let workspace = repo.sandbox().root().join("workspace");
    let emitted = emitted.env("LATTICE_WORKSPACE", &workspace).env("LATTICE_SPRITE_ID", "s");
    let emitted = emitted.env("LATTICE_WORK_ITEM_ID", "w").ok();
    let event = emitted.stdout.trim().strip_prefix("LATTICE_EVENT ").expect("a line of the protocol");
    let documented = examples.iter().find(|example| example["event_type"] == "INFO").expect("it has an example");
    assert_eq!(shape(documented), shape(&serde_json::from_str(event).expect("it is JSON")));
}

#[expect(clippy::disallowed_methods, reason = "the tour is for a shell")]
fn shell() -> Command {
    Command::new("sh")
}

#[test]
fn the_demo_runs_to_its_end_and_leaves_a_repository_that_verifies() {
    let repo = TestRepo::new();
    let folder = repo.sandbox().root().join("demo");
    let stock = STOCK_GIT.iter().fold(lattice(&repo), |run, (name, value)| run.env(name, value));
    let shown = stock.args(["demo", "--dir"]).arg(folder.as_os_str()).ok();
    for step in ["$ lattice run issue 1", "$ lattice approve 1", "$ lattice undo", "--fix restore-metadata-", "holds:"]
    {
        assert!(shown.stdout.contains(step), "the demo shows `{step}`:\n{}", shown.stdout);
    }
    lattice(&repo).cwd(folder.join("project")).args(["verify", "--full"]).ok();
    let again = lattice(&repo).args(["demo", "--dir"]).arg(folder.as_os_str()).fails(1);
    assert!(again.stderr.contains("not empty"), "a folder with something in it is left alone");
    let paused = lattice(&repo).args(["demo", "--pause"]).fails(2);
    assert!(paused.stderr.contains("no terminal"), "{}", paused.snapshot());
}
