//! A remote that others push to: whatever they do there, nothing of theirs and nothing of ours is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lattice_testkit::{Output, Setup, TestRepo, git_versions};
use serde_json::{Value, json};

use crate::action::Random;
use crate::fuzz::{number, seed, shrink};
use crate::lattice;

/// How many moves one remote sees.
const LENGTH: usize = 25;

/// What is run in every test run; `cargo xtask others` asks for more.
const STEPS: u64 = 50;

/// One thing that somebody does; the numbers are read relative to what is there.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    kind: Kind,
    a: usize,
    b: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    // We, with Lattice.
    Create,
    Add,
    Amend,
    Checkout,
    Restack,
    Submit,
    SubmitStack,
    Sync,
    SyncAndDelete,
    Get,
    Merge,
    // We, or our editor, with plain git.
    Fetch,
    // Others, with plain git.
    TheyAdd,
    TheyRewrite,
    TheyConflict,
    TheyMoveTrunk,
    TheySquash,
    TheyMerge,
    TheyDelete,
}

const KINDS: &[(Kind, usize)] = &[
    (Kind::Create, 6),
    (Kind::Add, 3),
    (Kind::Amend, 3),
    (Kind::Checkout, 3),
    (Kind::Restack, 2),
    (Kind::Submit, 4),
    (Kind::SubmitStack, 5),
    (Kind::Sync, 2),
    (Kind::SyncAndDelete, 4),
    (Kind::Get, 4),
    (Kind::Merge, 2),
    (Kind::Fetch, 3),
    (Kind::TheyAdd, 5),
    (Kind::TheyRewrite, 2),
    (Kind::TheyConflict, 1),
    (Kind::TheyMoveTrunk, 3),
    (Kind::TheySquash, 2),
    (Kind::TheyMerge, 1),
    (Kind::TheyDelete, 1),
];

impl Move {
    fn drawn(random: &mut Random) -> Self {
        let total = KINDS.iter().map(|(_, weight)| weight).sum();
        let mut left = random.below(total);
        let drawn = KINDS.iter().find(|(_, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let (kind, _) = drawn.expect("the weights add up to the total");
        Self { kind: *kind, a: random.below(1000), b: random.below(1000) }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.kind, self.a, self.b)
    }
}

/// A broken promise: its kind, and what was found.
pub(crate) type Broken = (&'static str, String);

/// Two clones of one remote. Every file but one is written once, so that whatever has it has the change.
struct Shared {
    ours: TestRepo,
    remote: TestRepo,
    theirs: TestRepo,
    step: usize,
    defect: Option<&'static str>,
}

/// What everybody has at one moment: files by place, and where the branches of the remote are.
struct Seen {
    local: BTreeSet<String>,
    remote: BTreeSet<String>,
    heads: BTreeMap<String, String>,
}

impl Shared {
    fn new(defect: Option<&'static str>) -> Self {
        let ours = TestRepo::draw("main*");
        ours.commit_file("shared.txt", "one\ntwo\nthree\n", "shared");
        let dir = ours.sandbox().root().join("remote.git");
        let path = |dir: &std::path::Path| dir.to_str().expect("the kit chooses its paths").to_owned();
        ours.git(&["clone", "--quiet", "--bare", ".", &path(&dir)]);
        ours.git(&["remote", "add", "origin", &path(&dir)]);
        // Others have another Git, where there is one.
        let elsewhere = Setup::default().git(&git_versions::gits().pop().expect("tests need git")).draw("main*");
        let clone = elsewhere.sandbox().root().join("theirs");
        elsewhere.git(&["clone", "--quiet", &path(&dir), &path(&clone)]);
        let (remote, theirs) = (ours.beside(&dir), elsewhere.beside(&clone));
        theirs.git(&["config", "user.name", "Bob Colleague"]);
        Self { ours, remote, theirs, step: 0, defect }
    }

    fn perform(&mut self, step: &Move) -> Result<(), Broken> {
        self.step += 1;
        let branches = self.remote.branch_refs();
        let picked = |names: &BTreeMap<String, String>| {
            let names: Vec<_> = names.keys().filter(|name| *name != "main").cloned().collect();
            names.get(step.a % names.len().max(1)).cloned()
        };
        match (step.kind, picked(&branches)) {
            (Kind::Create, _) => {
                self.ours.write(&format!("a{}", self.step), "ours\n");
                self.command(&["create", &format!("n{}", self.step), "-a", "-m", "ours"])
            }
            (Kind::Add, _) if self.on_a_branch() => {
                self.ours.write(&format!("a{}", self.step), "ours\n");
                self.command(&["modify", "-c", "-a", "-m", "more of ours"])
            }
            (Kind::Amend, _) if self.on_a_branch() => {
                self.change_shared(&self.ours, step.b);
                self.command(&["modify", "-a"])
            }
            (Kind::Add | Kind::Amend, _) => Ok(()),
            (Kind::Checkout, _) => match picked(&self.ours.branch_refs()) {
                Some(branch) => self.command(&["checkout", &branch]),
                None => Ok(()),
            },
            (Kind::Restack, _) => self.command(&["restack"]),
            (Kind::Submit, _) => self.command(&["submit", "--no-edit"]),
            (Kind::SubmitStack, _) => self.command(&["submit", "--stack", "--no-edit"]),
            (Kind::Sync, _) => self.command(&["sync"]),
            (Kind::SyncAndDelete, _) => self.command(&["sync", "--force"]),
            (Kind::Merge, _) => self.command(&["merge", "--confirm"]),
            (Kind::Get, Some(branch)) if step.b.is_multiple_of(2) => self.command(&["get", &branch, "--unfrozen"]),
            (Kind::Get, Some(branch)) => self.command(&["get", &branch]),
            (Kind::Fetch, _) => {
                self.ours.git(&["fetch", "--quiet", "--prune", "origin"]);
                Ok(())
            }
            (kind, branch) => {
                if let Some(branch) = branch.or_else(|| (kind == Kind::TheyMoveTrunk).then(String::new)) {
                    self.others(kind, &branch, step.b);
                }
                Ok(())
            }
        }
    }

    /// What somebody else does with plain git. What the remote does not take from them does not happen.
    fn others(&self, kind: Kind, branch: &str, b: usize) {
        let git = |args: &[&str]| self.theirs.try_git(args).is_ok();
        git(&["fetch", "--quiet", "--prune", "origin"]);
        let at = |branch: &str| format!("refs/remotes/origin/{branch}");
        let start = |branch: &str| git(&["checkout", "--quiet", "--force", "--detach", &at(branch)]);
        let write = || self.theirs.write(&format!("b{}", self.step), "theirs\n");
        let commit =
            |extra: &[&str]| git(&["add", "--all"]) && git(&[&["commit", "--quiet", "-m", "theirs"], extra].concat());
        let push = |to: &str, force: bool| {
            let refspec = format!("{}HEAD:refs/heads/{to}", if force { "+" } else { "" });
            git(&["push", "--quiet", "origin", &refspec])
        };
        match kind {
            Kind::TheyAdd | Kind::TheyRewrite => {
                start(branch);
                write();
                let again = kind == Kind::TheyRewrite;
                let _ = commit(if again { &["--amend"] } else { &[] }) && push(branch, again);
            }
            Kind::TheyConflict => {
                start(branch);
                write();
                self.change_shared(&self.theirs, b);
                let _ = commit(&[]) && push(branch, false);
            }
            Kind::TheyMoveTrunk => {
                start("main");
                write();
                if b.is_multiple_of(4) {
                    self.change_shared(&self.theirs, b);
                }
                let _ = commit(&[]) && push("main", false);
            }
            Kind::TheySquash => {
                start("main");
                let merged = git(&["merge", "--quiet", "--squash", &at(branch)]);
                let _ = merged && commit(&[]) && push("main", false);
                git(&["reset", "--quiet", "--hard"]);
            }
            Kind::TheyMerge => {
                start("main");
                let _ = git(&["merge", "--quiet", "--no-ff", "--no-edit", &at(branch)]) && push("main", false);
                git(&["merge", "--abort"]);
            }
            Kind::TheyDelete => drop(git(&["push", "--quiet", "origin", "--delete", branch])),
            _ => {}
        }
    }

    fn change_shared(&self, repo: &TestRepo, b: usize) {
        let mut lines: Vec<_> = repo.read("shared.txt").lines().map(str::to_owned).collect();
        let at = b % (lines.len() + 1);
        lines.insert(at, format!("line {} of {b}", self.step));
        repo.write("shared.txt", lines.join("\n") + "\n");
    }

    fn on_a_branch(&self) -> bool {
        self.ours.try_git(&["symbolic-ref", "--short", "HEAD"]).is_ok_and(|branch| branch != "main")
    }

    /// A command of ours, and every promise that it might break.
    fn command(&self, args: &[&str]) -> Result<(), Broken> {
        let before = self.seen();
        if self.step.is_multiple_of(4) && self.ours.git(&["status", "--porcelain"]).is_empty() {
            let refs = (self.ours.refs(), self.remote.refs());
            self.run(args, &["--dry-run"])?;
            if refs.1 != self.remote.refs() || own_refs(&refs.0) != own_refs(&self.ours.refs()) {
                return Err(("dry-run", format!("`{}` changed something", args.join(" "))));
            }
        }
        let output = self.run(args, &[])?;
        if output.code == Some(4) {
            let back = lattice(&self.ours).args(["abort"]).run();
            if back.code != Some(0) {
                return Err(("abort", back.snapshot()));
            }
        }
        // What is left of an edit that found no home would be in the way of everything else.
        self.ours.git(&["reset", "--quiet", "--hard"]);
        self.ours.git(&["clean", "--quiet", "-fd"]);
        self.check(args, &before, &output)
    }

    fn run(&self, args: &[&str], more: &[&str]) -> Result<Output, Broken> {
        let mut program = lattice(&self.ours).args(args).args(more).arg("--json");
        if let Some(defect) = self.defect {
            program = program.env("LATTICE_DEFECT", defect);
        }
        let output = program.run();
        match output.code {
            Some(0 | 1 | 4) => Ok(output),
            _ => Err(("exit-code", format!("`{}`: {}", args.join(" "), output.snapshot()))),
        }
    }

    fn check(&self, args: &[&str], before: &Seen, output: &Output) -> Result<(), Broken> {
        let said = || format!("`{}`:\n{}", args.join(" "), output.snapshot());
        let after = self.seen();
        let document = output.json();
        let of_others = |name: &&String| name.starts_with('b');
        let gone: Vec<_> = before.remote.difference(&after.remote).filter(of_others).collect();
        if !gone.is_empty() {
            return Err(("lost-on-remote", format!("{gone:?} of others are on the remote no more after {}", said())));
        }
        let gone: Vec<_> = before.local.difference(&after.local).filter(|name| !after.remote.contains(*name)).collect();
        if !gone.is_empty() {
            return Err(("lost-here", format!("{gone:?} are nowhere after {}", said())));
        }
        let told = ["done: ", "before that: landed"].iter().any(|words| document.to_string().contains(words));
        if output.code == Some(1) && !told && before.heads != after.heads {
            return Err(("moved-though-refused", format!("the remote moved by {}", said())));
        }
        if output.code == Some(0) {
            self.kept_its_word(args, before, &after, &document).map_err(|what| ("false-success", what + &said()))?;
        }
        for look in ["verify", "doctor"] {
            let look = lattice(&self.ours).arg(look).run();
            if look.code != Some(0) {
                return Err(("invalid", format!("{}\nafter {}", look.snapshot(), said())));
            }
        }
        Ok(())
    }

    /// Whether a success is one.
    fn kept_its_word(&self, args: &[&str], before: &Seen, after: &Seen, document: &Value) -> Result<(), String> {
        let local = self.ours.branch_refs();
        let truth = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what} after ")) };
        match args[0] {
            "create" | "modify" => {
                let new = format!("a{}", self.step);
                let files = self.ours.git(&["ls-tree", "--name-only", "HEAD"]);
                truth(!args.contains(&"-m") || files.lines().any(|file| file == new), "the change is not committed")
            }
            "submit" => {
                let kept: Vec<_> = list(&document["kept"]).iter().map(|kept| kept["branch"].clone()).collect();
                let meant = self.line().into_iter().filter(|name| !kept.contains(&json!(name)));
                let missing: Vec<_> = meant.filter(|name| local.get(name) != after.heads.get(name)).collect();
                truth(missing.is_empty(), &format!("{missing:?} are not on the remote"))
            }
            "sync" => truth(local.get("main") == after.heads.get("main"), "the trunk is not that of the remote"),
            "merge" => truth(before.heads.get("main") != after.heads.get("main"), "nothing has landed"),
            "get" => {
                let (here, there) = (local.get(args[1]), after.heads.get(args[1]));
                let contains = |there: &String| {
                    let here = here.map_or("", String::as_str);
                    self.ours.try_git(&["merge-base", "--is-ancestor", there, here]).is_ok()
                };
                truth(there.is_some_and(contains), "the branch is not here")
            }
            _ => Ok(()),
        }
    }

    /// The current branch and what it stands on.
    fn line(&self) -> Vec<String> {
        let parent = |branch: &String| self.ours.metadata(branch)["parent"]["name"].as_str().map(str::to_owned);
        let current = self.ours.try_git(&["symbolic-ref", "--short", "HEAD"]).ok();
        let line = std::iter::successors(current, |branch| parent(branch).filter(|parent| parent != "main"));
        line.take_while(|branch| branch != "main").collect()
    }

    fn seen(&self) -> Seen {
        let heads = self.remote.branch_refs();
        Seen { local: files(&self.ours, &self.ours.branch_refs()), remote: files(&self.remote, &heads), heads }
    }
}

/// The files that any of these branches has.
fn files(repo: &TestRepo, heads: &BTreeMap<String, String>) -> BTreeSet<String> {
    let listed = |tip: &String| repo.git(&["ls-tree", "-r", "--name-only", tip]);
    heads.values().flat_map(|tip| listed(tip).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Refs but for those that only say what was looked at.
fn own_refs(refs: &BTreeMap<String, String>) -> BTreeMap<&String, &String> {
    refs.iter().filter(|(name, _)| !name.starts_with("refs/lattice/")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The moves of one seed.
pub(crate) fn moves(seed: u64) -> Vec<Move> {
    let mut random = Random::new(seed);
    (0..LENGTH).map(|_| Move::drawn(&mut random)).collect()
}

/// Runs a list of moves on a remote of its own. An error has the number of the move.
pub(crate) fn run(moves: &[Move], defect: Option<&'static str>) -> Result<(), (usize, Broken)> {
    let mut at = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut shared = Shared::new(defect);
        for step in moves {
            shared.perform(step)?;
            at += 1;
        }
        Ok(())
    }));
    match outcome {
        Ok(result) => result.map_err(|broken| (at, broken)),
        Err(panic) => Err((at, ("panic", panic.downcast_ref::<String>().cloned().unwrap_or_default()))),
    }
}

// proves partly: ST-0-5 — pushes, rewrites, landings and deletions of others by Git; nobody clicks on the site of GitHub
#[test]
fn whatever_others_push_nothing_is_lost_and_no_success_is_false() {
    let steps = usize::try_from(number("LATTICE_OTHERS_STEPS", STEPS)).expect("a size");
    let seed = seed("LATTICE_OTHERS_SEED");
    let lists = (0..steps.div_ceil(LENGTH) as u64).map(|list| seed.wrapping_add(list)).collect::<Vec<_>>();
    let halves = lists.chunks(lists.len().div_ceil(2).max(1));
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = halves.map(|half| scope.spawn(|| half.iter().find_map(|seed| tried(*seed)))).collect();
        running.into_iter().filter_map(|half| half.join().expect("a list reports what is wrong")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n==========\n\n"));
}

/// What is wrong after the moves of one seed, in as few of them as show it.
fn tried(seed: u64) -> Option<String> {
    let moves = moves(seed);
    let (at, (kind, text)) = run(&moves, None).err()?;
    let short = shrink(&moves[..moves.len().min(at + 1)], |list| match run(list, None) {
        Err((at, (again, _))) if again == kind => Some(at),
        _ => None,
    });
    let text = run(&short, None).err().map_or(text, |(_, (_, text))| text);
    let list: Vec<_> = short.iter().map(ToString::to_string).collect();
    Some(format!("seed {seed}: {kind}\n{}\n\n{text}\n\nagain: cargo xtask others {LENGTH} {seed}", list.join("\n")))
}
