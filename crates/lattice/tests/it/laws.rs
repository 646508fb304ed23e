//! What the program does to files, as the kernel sees it: every command under `strace`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lattice_testkit::{Lattice, TestRepo};

use crate::lattice;

/// The calls that change a name or the content behind it.
const CALLS: &str = "trace=execve,clone,clone3,fork,vfork,open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,\
                     mkdir,mkdirat,link,linkat,symlink,symlinkat,truncate,ftruncate";

/// A process that changed a file.
#[derive(Clone, Debug, Default)]
struct Actor {
    /// What it runs; empty is the program itself.
    program: String,
    /// Whether it was started on behalf of a recorded operation.
    in_operation: bool,
}

#[derive(Debug)]
struct Change {
    by: Actor,
    call: String,
    path: PathBuf,
}

/// Runs the program and tells, in order, what was changed and which programs were started.
struct Trace {
    changes: Vec<Change>,
    started: Vec<String>,
}

impl Trace {
    #[track_caller]
    fn of(repo: &TestRepo, args: &[&str], code: i32) -> Self {
        let file = repo.sandbox().root().join("trace");
        let traced = file.to_str().expect("a plain path");
        let options = ["-f", "-qq", "-v", "-y", "-s", "4096", "-e", CALLS, "-e", "signal=none", "-o", traced];
        Lattice::new("strace", repo).args(options).arg(env!("CARGO_BIN_EXE_lattice")).args(args).fails(code);
        let text = std::fs::read_to_string(&file).expect("strace writes it");
        Self::read(&text)
    }

    fn read(text: &str) -> Self {
        let mut trace = Self { changes: Vec::new(), started: Vec::new() };
        let mut actors: BTreeMap<String, Actor> = BTreeMap::new();
        let mut begun: BTreeMap<String, String> = BTreeMap::new();
        for line in text.lines() {
            let (pid, rest) = line.split_once(' ').expect("a process and its call");
            let rest = rest.trim_start();
            if let Some(start) = rest.strip_suffix("<unfinished ...>") {
                begun.insert(pid.to_owned(), start.to_owned());
                continue;
            }
            let whole = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
                Some((_, end)) => begun.remove(pid).unwrap_or_default() + end,
                None => rest.to_owned(),
            };
            trace.add(pid, &whole, &mut actors);
        }
        trace
    }

    fn add(&mut self, pid: &str, whole: &str, actors: &mut BTreeMap<String, Actor>) {
        let Some((call, outcome)) = whole.rsplit_once(" = ") else { return };
        if outcome.starts_with('-') || outcome.starts_with('?') {
            return;
        }
        let by = actors.get(pid).cloned().unwrap_or_default();
        let (name, arguments) = call.split_once('(').expect("a call");
        let texts: Vec<_> = arguments.split('"').skip(1).step_by(2).collect();
        match name {
            // A child may be heard of before its parent is: what it runs then is known already.
            "clone" | "clone3" | "fork" | "vfork" => drop(actors.entry(outcome.to_owned()).or_insert(by)),
            "execve" => {
                let program = texts[0].to_owned();
                let in_operation = arguments.contains("\"LATTICE_OPERATION=");
                if self.started.is_empty() {
                    self.started.push(String::new());
                } else {
                    if by.program.is_empty() {
                        self.started.push(program.clone());
                    }
                    actors.insert(pid.to_owned(), Actor { program, in_operation });
                }
            }
            "open" | "openat"
                if !["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag)) => {}
            _ => {
                // The last name is the one that comes to be; relative ones follow their folder in angle brackets.
                let path = texts.last().map_or_else(|| folder(arguments), |name| folder(arguments).join(name));
                self.changes.push(Change { by, call: name.to_owned(), path });
            }
        }
    }

    fn touching(&self, path: &Path) -> Vec<&str> {
        self.changes.iter().filter(|change| change.path == path).map(|change| change.call.as_str()).collect()
    }
}

/// The folder of the last descriptor that a call names.
fn folder(arguments: &str) -> PathBuf {
    let start = arguments.rfind("AT_FDCWD<").map(|at| at + "AT_FDCWD<".len());
    let start = start.or_else(|| arguments.rfind('<').map(|at| at + 1));
    let path = start.and_then(|at| arguments[at..].split('>').next()).unwrap_or_default();
    PathBuf::from(path)
}

/// Each command that changes something, in an order in which each has something to do.
pub(crate) const CHANGING: [&[&str]; 27] = [
    &["restack"],
    &["create", "top", "-a", "-m", "More"],
    &["modify", "-m", "Said better"],
    &["freeze", "api"],
    &["unfreeze", "api"],
    &["move", "--source", "top", "--onto", "api"],
    &["undo"],
    &["redo"],
    &["untrack", "top"],
    &["track", "top", "--parent", "api"],
    &["rename", "peak"],
    &["down"],
    &["up", "--to", "peak"],
    &["checkout", "api"],
    &["top", "--to", "peak"],
    &["bottom"],
    &["checkout", "peak"],
    &["reorder", "--order", "peak,api"],
    &["split", "--by-file", "new.txt"],
    &["fold"],
    &["squash", "-m", "One"],
    &["revert", "main"],
    &["checkout", "peak-1"],
    &["pop"],
    &["delete", "ui"],
    &["config", "set", "undo.keep_days", "40"],
    &["init", "--reset", "--force"],
];

pub(crate) fn behind() -> TestRepo {
    let repo = TestRepo::draw("main <- api <- ui*");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_file("trunk.txt", "moved\n", "trunk moves");
    repo.git(&["checkout", "--quiet", "ui"]);
    repo.write("new.txt", "new\n");
    repo.write("other.txt", "other\n");
    repo
}

/// Whether a path is one that only git may write. Editors and hooks look for a message where git has it, and the index
/// is replaced as a whole, under its own lock.
fn is_git_own(common: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(common) else { return false };
    let ours = ["lattice", "objects"].iter().any(|folder| inside.starts_with(folder));
    let of_worktree = ["COMMIT_EDITMSG", "index"].iter().any(|name| inside.to_string_lossy().contains(name));
    !ours && !of_worktree
}

/// Whether a path belongs to a record of what was seen, which looking may add to.
fn is_record(common: &Path, path: &Path) -> bool {
    ["refs/lattice", "logs/refs/lattice"].iter().any(|folder| path.starts_with(common.join(folder)))
}

#[track_caller]
fn check_law(repo: &TestRepo, args: &[&str], code: i32) -> Trace {
    let trace = Trace::of(repo, args, code);
    let common = repo.common_dir();
    let git = repo.sandbox().git();
    for program in &trace.started[1..] {
        assert_eq!(Path::new(program), git, "{args:?}: the program starts the installed git and nothing else");
    }
    for change in &trace.changes {
        // Git works from the top of the working tree.
        let path = repo.dir().join(&change.path);
        let inside = path.starts_with(repo.dir()) || path.starts_with("/dev");
        assert!(inside, "{args:?}: nothing outside of the repository is written: {change:?}");
        if change.by.program.is_empty() {
            assert!(!is_git_own(&common, &change.path), "{args:?}: git alone writes what is its own: {change:?}");
        } else if is_git_own(&common, &change.path) && !is_record(&common, &change.path) {
            assert!(change.by.in_operation, "{args:?}: the executor alone has git change refs: {change:?}");
        }
    }
    trace
}

// proves: ST-1.1-2, ST-3-1, ST-4.1-19, ST-6.3-1, ST-10.1-2, ST-3.3-2
// proves partly: ST-4.1-22 — what is written; not what is read
#[test]
fn every_change_is_made_by_git_for_an_operation_with_a_marker_inside_the_repository() {
    let repo = behind();
    let marker = repo.op_state_path();
    for args in CHANGING {
        let trace = check_law(&repo, args, 0);
        let calls = trace.touching(&marker);
        assert!(calls.first().is_some_and(|call| call.starts_with("rename")), "{args:?}: a marker appears: {calls:?}");
        assert!(calls.last().is_some_and(|call| call.starts_with("unlink")), "{args:?}: and goes: {calls:?}");
        assert!(!marker.exists(), "{args:?}: no marker stays");
        let marked = trace.changes.iter().position(|change| change.path == marker).expect("it appeared");
        let first = trace.changes.iter().position(|change| {
            !change.by.program.is_empty() && change.path.starts_with(repo.common_dir().join("refs"))
        });
        assert!(first.is_none_or(|first| first > marked), "{args:?}: the marker comes before any ref moves");
    }
}

// proves: ST-8.1-3, ST-8.1-4
#[test]
fn a_repair_goes_the_way_of_every_change_and_looking_changes_nothing() {
    let repo = behind();
    repo.set_metadata_raw("ui", b"garbage");
    let marker = repo.op_state_path();
    lattice(&repo).args(["log"]).ok();
    let looking: [(&[&str], i32); 6] = [
        (&["log"], 0),
        (&["doctor"], 1),
        (&["ops"], 0),
        (&["info", "api"], 0),
        (&["children", "main"], 0),
        (&["config", "list"], 0),
    ];
    for (args, code) in looking {
        let trace = check_law(&repo, args, code);
        assert!(trace.touching(&marker).is_empty(), "{args:?}: no operation, no marker");
    }
    let report = lattice(&repo).arg("doctor").json();
    let fixes = report["issues"][0]["fixes"].as_array().expect("there are fixes");
    let fix = fixes.iter().find(|fix| fix["user_action"].is_null()).expect("one can be applied");
    let trace = check_law(&repo, &["doctor", "--fix", fix["id"].as_str().expect("text")], 0);
    assert!(!trace.touching(&marker).is_empty(), "a repair has its marker");
    let events: Vec<_> = repo.ledger().iter().take(2).map(|event| event["event"].clone()).collect();
    assert_eq!(events, ["DoctorApplied", "Committed"], "and its records");
}
