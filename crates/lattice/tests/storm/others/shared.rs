//! Two clones of one remote, what is done in them, and the promises that hold after each of our commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lattice_testkit::github::{Click, GitHub};
use lattice_testkit::{Lattice, Output, Setup, TestRepo, git_versions};
use serde_json::{Value, json};

use super::{Broken, Kind, Move, Site};
use crate::lattice;

const SLUG: &str = "acme/tools";
const TOKEN: &str = "ghp_ours";

/// Two clones of one remote. Every file but one is written once, so that whatever has it has the change.
pub(super) struct Shared {
    ours: TestRepo,
    remote: TestRepo,
    theirs: TestRepo,
    github: Option<GitHub>,
    step: usize,
    defect: Option<&'static str>,
}

/// What everybody has at one moment: files by place, where the branches of the remote are, and pull requests on GitHub.
struct Seen {
    local: BTreeSet<String>,
    remote: BTreeSet<String>,
    heads: BTreeMap<String, String>,
    pulls: Vec<Value>,
}

impl Shared {
    pub(super) fn new(site: Site, defect: Option<&'static str>) -> Self {
        let ours = TestRepo::draw("main*");
        ours.commit_file("shared.txt", "one\ntwo\nthree\n", "shared");
        let path = |dir: &Path| dir.to_str().expect("the kit chooses its paths").to_owned();
        let (github, remote) = match site {
            Site::Git => {
                let dir = ours.sandbox().root().join("remote.git");
                ours.git(&["clone", "--quiet", "--bare", ".", &path(&dir)]);
                ours.git(&["remote", "add", "origin", &path(&dir)]);
                (None, ours.beside(&dir))
            }
            Site::GitHub => {
                let github = GitHub::start(&ours);
                ours.git(&["remote", "add", "origin", &github.create(SLUG)]);
                ours.git(&["push", "--quiet", "origin", "main"]);
                github.accept(TOKEN, "octocat");
                github.introduce(&ours);
                let remote = github.bare(&ours, SLUG);
                (Some(github), remote)
            }
        };
        // Others have another Git, where there is one.
        let elsewhere = Setup::default().git(&git_versions::gits().pop().expect("tests need git")).draw("main*");
        let clone = elsewhere.sandbox().root().join("theirs");
        elsewhere.git(&["clone", "--quiet", &path(remote.dir()), &path(&clone)]);
        let theirs = elsewhere.beside(&clone);
        theirs.git(&["config", "user.name", "Bob Colleague"]);
        Self { ours, remote, theirs, github, step: 0, defect }
    }

    pub(super) fn perform(&mut self, step: &Move) -> Result<(), Broken> {
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
            (Kind::Click, _) => {
                self.click(step);
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

    /// What somebody does on the site of GitHub, with one of the pull requests there.
    fn click(&self, step: &Move) {
        let Some(github) = &self.github else { return };
        let pulls = github.pulls(SLUG);
        let Some(pull) = pulls.get(step.a % pulls.len().max(1)) else { return };
        let bases: Vec<_> = self.remote.branch_refs().into_keys().collect();
        let click = match step.b % 9 {
            0 => Click::Land("merge"),
            1 => Click::Land("squash"),
            2 => Click::Land("rebase"),
            3 => Click::Close,
            4 => Click::Reopen,
            5 => Click::Retarget(bases[step.a % bases.len()].clone()),
            6 | 7 => Click::Say(format!("{SAID}{}.", self.step)),
            _ => Click::Update,
        };
        github.click(SLUG, pull["number"].as_u64().expect("a number"), &click);
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
            let all = || (self.ours.refs(), self.remote.refs(), self.pulls());
            let (ours, remote, pulls) = all();
            self.run(args, &["--dry-run"])?;
            let after = all();
            if (remote, pulls) != (after.1, after.2) || own_refs(&ours) != own_refs(&after.0) {
                return Err(("dry-run", format!("`{}` changed something", args.join(" "))));
            }
        }
        let output = self.run(args, &[])?;
        if output.code == Some(4) {
            let back = self.lattice().args(["abort"]).run();
            if back.code != Some(0) {
                return Err(("abort", back.snapshot()));
            }
        }
        // What is left of an edit that found no home would be in the way of everything else.
        self.ours.git(&["reset", "--quiet", "--hard"]);
        self.ours.git(&["clean", "--quiet", "-fd"]);
        self.check(args, &before, &output)
    }

    fn lattice(&self) -> Lattice {
        lattice(&self.ours).env("GH_TOKEN", TOKEN)
    }

    fn run(&self, args: &[&str], more: &[&str]) -> Result<Output, Broken> {
        let mut program = self.lattice().args(args).args(more).arg("--json");
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
        for (then, now) in before.pulls.iter().zip(&after.pulls) {
            let gone: Vec<_> = said_by_others(then).difference(&said_by_others(now)).cloned().collect();
            if !gone.is_empty() {
                return Err(("lost-words", format!("{gone:?} of #{} are gone after {}", then["number"], said())));
            }
        }
        let told = ["done: ", "before that: landed"].iter().any(|words| document.to_string().contains(words));
        if output.code == Some(1) && !told && (&before.heads, &before.pulls) != (&after.heads, &after.pulls) {
            return Err(("moved-though-refused", format!("the remote moved by {}", said())));
        }
        if output.code == Some(0) {
            self.kept_its_word(args, before, &after, &document).map_err(|what| ("false-success", what + &said()))?;
        }
        for look in ["verify", "doctor"] {
            let look = self.lattice().arg(look).run();
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
                let meant: Vec<_> = self.line().into_iter().filter(|name| !kept.contains(&json!(name))).collect();
                let missing: Vec<_> = meant.iter().filter(|name| local.get(*name) != after.heads.get(*name)).collect();
                truth(missing.is_empty(), &format!("{missing:?} are not on the remote"))?;
                let unasked: Vec<_> = meant.iter().filter(|name| !self.is_asked_for(name, after)).collect();
                truth(unasked.is_empty(), &format!("{unasked:?} have no pull request onto their parents"))
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

    /// Whether GitHub has an open pull request of a branch as it is here, onto what it stands on here.
    fn is_asked_for(&self, branch: &str, after: &Seen) -> bool {
        let parent = &self.ours.metadata(branch)["parent"]["name"];
        let tip = json!(self.ours.rev(branch));
        let fits = |pull: &Value| {
            let (head, base) = (&pull["head"], &pull["base"]);
            pull["state"] == "open" && head["ref"] == branch && head["sha"] == tip && base["ref"] == *parent
        };
        self.github.is_none() || after.pulls.iter().any(fits)
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
        let (local, remote) = (files(&self.ours, &self.ours.branch_refs()), files(&self.remote, &heads));
        Seen { local, remote, heads, pulls: self.pulls() }
    }

    fn pulls(&self) -> Vec<Value> {
        self.github.as_ref().map(|github| github.pulls(SLUG)).unwrap_or_default()
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

const SAID: &str = "said by others in step ";

/// The lines of others in the text of a pull request.
fn said_by_others(pull: &Value) -> BTreeSet<String> {
    let lines = pull["body"].as_str().unwrap_or_default().lines();
    lines.filter(|line| line.starts_with(SAID)).map(str::to_owned).collect()
}
