//! Commands of the program, each with what it must leave.

use lattice_testkit::{Action as GitAction, GitWrapper};
use serde_json::Value;

use crate::action::{Action, Kind};
use crate::oracle::{Branch, Expected, Files, Sketch, State};
use crate::storm::{Checked, Storm, Violation};
use crate::world::TRUNK;

type Request = Option<(Vec<String>, Expected)>;

/// The element that a number stands for.
pub(crate) fn pick<'a>(list: &[&'a str], number: u8) -> Option<&'a str> {
    list.get(usize::from(number) % list.len().max(1)).copied()
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(ToString::to_string).collect()
}

fn new_commit(subject: &str) -> Sketch {
    Sketch { subject: subject.to_owned(), author: None, changes: None }
}

impl Storm {
    /// The command line of an action and what it leaves if it succeeds.
    pub(crate) fn request(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch();
        let mut expected = Expected::same(world, place);
        match action.kind {
            Kind::Create | Kind::CreateAll | Kind::Insert => self.create(action, place),
            Kind::Modify | Kind::ModifyCommit => self.modify(action, place),
            Kind::Restack => self.restack(action, place),
            Kind::Move => self.move_branch(action, place),
            Kind::Reorder => self.reorder(action, place),
            Kind::SplitCommit | Kind::SplitFile | Kind::Squash => self.reshape(action, place),
            Kind::Fold | Kind::FoldKeep => self.fold(action, place),
            Kind::Pop | Kind::Delete => self.remove(action, place),
            Kind::Rename => self.rename(place),
            Kind::Absorb => {
                let line: Vec<_> = world.downstack(here?).into_iter().chain([here?]).collect();
                let lowest = *line.first()?;
                // Beside the line, a branch that is not on its parent's tip comes along only if what it stands on changes,
                // which depends on where the hunks belong.
                let stands = |branch: &str| {
                    let below = world.parent(branch).and_then(|parent| world.tip(parent));
                    world.base(branch) == below.map(String::as_str)
                };
                let beside = world.upstack(lowest).into_iter().filter(|branch| !line.contains(branch));
                if !beside.into_iter().all(stands) {
                    return None;
                }
                expected.bring(world, lowest);
                expected.bring_all(world, world.upstack(lowest));
                for branch in world.upstack(lowest).into_iter().chain([lowest]) {
                    expected.commits(branch).into_iter().flatten().for_each(|commit| commit.changes = None);
                }
                expected.files = Files::Same;
                Some((words(&["absorb"]), expected))
            }
            Kind::Revert => {
                let own = world.own(here?);
                let commit = own.get(usize::from(action.a) % own.len().max(1))?;
                let name = format!("revert-{}", &commit.id[..8]);
                let commits = vec![new_commit(&format!("Revert \"{}\"", commit.subject))];
                let state = State::Brought(commits);
                expected.branches.insert(name.clone(), Branch { parent: TRUNK.to_owned(), frozen: false, state });
                expected.head = Some(name);
                Some((words(&["revert", &commit.id]), expected))
            }
            Kind::Freeze | Kind::Unfreeze => {
                let branch = pick(&world.tracked(), action.a)?;
                let frozen = action.kind == Kind::Freeze;
                expected.branches.get_mut(branch)?.frozen = frozen;
                for below in world.downstack(branch).into_iter().filter(|_| frozen) {
                    expected.branches.get_mut(below)?.frozen = true;
                }
                Some((words(&[if frozen { "freeze" } else { "unfreeze" }, branch]), expected))
            }
            Kind::Track | Kind::Untrack => self.track(action, place),
            Kind::Checkout => {
                let branch = pick(&world.branches(), action.a)?;
                expected.head = Some(branch.to_owned());
                Some((words(&["checkout", branch]), expected))
            }
            Kind::Step => {
                let way = pick(&["up", "down", "top", "bottom"], action.a)?;
                expected.head = None;
                Some((words(&[way]), expected))
            }
            Kind::Continue | Kind::Abort => None,
            _ => Some((words(&["restack"]), expected)),
        }
    }

    fn create(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch()?;
        let name = format!("n{}", self.step);
        let subject = format!("commit of {name}");
        let mut expected = Expected::same(world, place);
        let status = &world.places[place].status;
        let staged = status.values().any(|letters| !letters.starts_with([' ', '?']));
        let all = action.kind == Kind::CreateAll;
        let commits = staged || (all && !status.is_empty());
        let mut args = words(&["create", &name, "-m", &subject]);
        if all {
            args.push("-a".to_owned());
        }
        let own = if commits { vec![new_commit(&subject)] } else { Vec::new() };
        let state = State::Brought(own);
        expected.branches.insert(name.clone(), Branch { parent: here.to_owned(), frozen: false, state });
        expected.files = if all { Files::SameAndClean } else { Files::Same };
        if action.kind == Kind::Insert {
            args.push("--insert".to_owned());
            for child in world.children(here) {
                expected.reparent(child, &name);
                expected.bring(world, child);
                expected.bring_all(world, world.upstack(child));
            }
        }
        expected.head = Some(name);
        Some((args, expected))
    }

    fn modify(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch()?;
        let mut expected = Expected::same(world, place);
        // The branch keeps its base: only its newest commit changes.
        let base = world.base(here)?.to_owned();
        let based = world.parent(here).and_then(|parent| world.tip(parent)) == Some(&base);
        expected.bring(world, here);
        if !based {
            expected.branches.remove(here);
        }
        let subject = format!("more {}", self.step);
        let mut args = words(&["modify", "-a"]);
        if let Some(commits) = expected.commits(here) {
            if action.kind == Kind::ModifyCommit {
                commits.push(new_commit(&subject));
            } else if let Some(newest) = commits.last_mut() {
                newest.changes = None;
            }
        }
        if action.kind == Kind::ModifyCommit {
            args.extend(words(&["-c", "-m", &subject]));
        }
        expected.bring_all(world, world.upstack(here));
        if !based {
            // What it has to be is not known; that it is tracked is.
            return None;
        }
        expected.files = Files::SameAndClean;
        Some((args, expected))
    }

    fn restack(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let mut expected = Expected::same(world, place);
        let all: Vec<_> = world.tracked().into_iter().chain([TRUNK]).collect();
        let branch = pick(&all, action.a)?;
        let reach = pick(&["", "--only", "--upstack", "--downstack"], action.b)?;
        let mut args = words(&["restack", branch]);
        let mut branches = Vec::new();
        if branch == TRUNK {
            branches.extend(world.upstack(TRUNK));
        } else {
            if matches!(reach, "" | "--downstack") {
                branches.extend(world.downstack(branch));
            }
            branches.push(branch);
            if matches!(reach, "" | "--upstack") {
                branches.extend(world.upstack(branch));
            }
            args.extend((!reach.is_empty()).then(|| reach.to_owned()));
        }
        expected.bring_all(world, branches);
        Some((args, expected))
    }

    fn move_branch(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let source = pick(&world.tracked(), action.a)?;
        let all: Vec<_> = world.tracked().into_iter().chain([TRUNK]).collect();
        let onto = pick(&all, action.b)?;
        let mut expected = Expected::same(world, place);
        expected.reparent(source, onto);
        expected.bring(world, source);
        expected.bring_all(world, world.upstack(source));
        Some((words(&["move", "--source", source, "--onto", onto]), expected))
    }

    fn reorder(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch().filter(|here| world.parent(here).is_some())?;
        let mut line = world.downstack(here);
        let mut top = here;
        loop {
            line.push(top);
            match world.children(top)[..] {
                [only] if !line.contains(&only) => top = only,
                _ => break,
            }
        }
        let lowest = line[0];
        let length = line.len();
        line.rotate_left(usize::from(action.a) % length);
        line.swap(0, usize::from(action.b) % length);
        let mut expected = Expected::same(world, place);
        let mut below = world.parent(lowest)?;
        for branch in &line {
            expected.reparent(branch, below);
            expected.bring(world, branch);
            below = branch;
        }
        expected.bring_all(world, world.upstack(lowest));
        Some((words(&["reorder", "--order", &line.join(",")]), expected))
    }

    fn reshape(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch().filter(|here| world.parent(here).is_some())?;
        let own = world.own(here);
        let mut expected = Expected::same(world, place);
        expected.files = Files::Same;
        let parent = world.parent(here)?.to_owned();
        if action.kind == Kind::SplitCommit {
            let mut below = parent;
            for (name, commit) in world.parts(here).zip(own.get(..own.len().checked_sub(1)?)?) {
                let state = State::Stays { tip: commit.id.clone() };
                expected.branches.insert(name.clone(), Branch { parent: below, frozen: false, state });
                below = name;
            }
            let state = State::Stays { tip: world.tip(here)?.clone() };
            expected.branches.insert(here.to_owned(), Branch { parent: below, frozen: false, state });
            return Some((words(&["split", "--by-commit"]), expected));
        }
        expected.bring_all(world, world.upstack(here));
        // Where it stands on an older commit of its parent it stays there.
        let anything = |parent: &str| {
            let state = State::Brought(vec![new_commit("*")]);
            Branch { parent: parent.to_owned(), frozen: false, state }
        };
        let based = world.base(here) == world.tip(&parent).map(String::as_str);
        // Where the trunk has some of its commits, the others begin above them.
        let landed = own.first().is_some_and(|first| first.parents.first().map(String::as_str) != world.base(here));
        if !based || landed {
            return None;
        }
        if action.kind == Kind::Squash {
            let mut branch = anything(&parent);
            let mut first = new_commit(&own.first()?.subject);
            first.author = Some(own.first()?.author.clone());
            branch.state = State::Brought(vec![first]);
            expected.branches.insert(here.to_owned(), branch);
            return Some((words(&["squash"]), expected));
        }
        let paths: Vec<_> =
            own.iter().flat_map(|commit| commit.changes.keys().map(|(path, _, _)| path.as_str())).collect();
        let path = pick(&paths, action.a)?;
        let lower = world.parts(here).next()?;
        expected.branches.insert(lower.clone(), anything(&parent));
        expected.branches.insert(here.to_owned(), anything(&lower));
        let dir = world.places[place].dir.to_str()?;
        Some((words(&["split", "--by-file", &format!("{dir}/{path}")]), expected))
    }

    fn fold(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch()?;
        let parent = world.parent(here)?;
        let mut expected = Expected::same(world, place);
        expected.files = Files::Same;
        let tip = world.tip(here)?.clone();
        let (name, gone) = if action.kind == Kind::FoldKeep { (here, parent) } else { (parent, here) };
        let below = world.parent(parent).unwrap_or(TRUNK).to_owned();
        for child in world.children(gone).into_iter().chain(world.children(parent)).filter(|child| *child != here) {
            expected.reparent(child, name);
            expected.bring(world, child);
            expected.bring_all(world, world.upstack(child));
        }
        expected.branches.remove(gone);
        expected.branches.insert(name.to_owned(), Branch { parent: below, frozen: false, state: State::Stays { tip } });
        expected.head = Some(name.to_owned());
        let args = if action.kind == Kind::FoldKeep { words(&["fold", "--keep"]) } else { words(&["fold"]) };
        Some((args, expected))
    }

    fn remove(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch();
        let mut expected = Expected::same(world, place);
        let (branch, reach) = match action.kind {
            Kind::Pop => (here.filter(|here| world.parent(here).is_some())?, ""),
            _ => (pick(&world.tracked(), action.a)?, pick(&["", "--upstack", "--downstack"], action.b)?),
        };
        let mut removed = vec![branch];
        match reach {
            "--upstack" => removed.extend(world.upstack(branch)),
            "--downstack" => removed.extend(world.downstack(branch)),
            _ => {}
        }
        let surviving = |branch: &str| {
            let mut below = world.parent(branch).unwrap_or(TRUNK);
            // Damaged metadata may go round in circles.
            for _ in &removed {
                if removed.contains(&below) {
                    below = world.parent(below).unwrap_or(TRUNK);
                }
            }
            below.to_owned()
        };
        for gone in &removed {
            expected.branches.remove(*gone);
            for child in world.children(gone).into_iter().filter(|child| !removed.contains(child)) {
                expected.reparent(child, &surviving(child));
            }
            expected.bring_all(world, world.upstack(gone));
        }
        if here.is_some_and(|here| removed.contains(&here)) {
            expected.head = here.map(surviving);
        }
        if action.kind == Kind::Pop {
            expected.files = Files::Same;
            return Some((words(&["pop"]), expected));
        }
        let mut args = words(&["delete", branch]);
        args.extend((!reach.is_empty()).then(|| reach.to_owned()));
        Some((args, expected))
    }

    fn rename(&self, place: usize) -> Request {
        let world = &self.world;
        let here = world.places[place].branch().filter(|here| world.parent(here).is_some())?;
        let name = format!("r{}", self.step);
        let mut expected = Expected::same(world, place);
        let branch = expected.branches.remove(here)?;
        expected.branches.insert(name.clone(), branch);
        for child in world.children(here) {
            expected.reparent(child, &name);
        }
        expected.head = Some(name.clone());
        expected.files = Files::Same;
        Some((words(&["rename", &name]), expected))
    }

    fn track(&self, action: &Action, place: usize) -> Request {
        let world = &self.world;
        let mut expected = Expected::same(world, place);
        if action.kind == Kind::Untrack {
            let branch = pick(&world.tracked(), action.a)?;
            expected.branches.remove(branch);
            return Some((words(&["untrack", branch]), expected));
        }
        let loose: Vec<_> = world.branches().into_iter().filter(|b| world.parent(b).is_none() && *b != TRUNK).collect();
        let branch = pick(&loose, action.a)?;
        let all: Vec<_> = world.tracked().into_iter().chain([TRUNK]).collect();
        let parent = pick(&all, action.b)?;
        let state = State::Stays { tip: world.tip(branch)?.clone() };
        expected.branches.insert(branch.to_owned(), Branch { parent: parent.to_owned(), frozen: false, state });
        Some((words(&["track", branch, "--parent", parent]), expected))
    }

    /// Commands that only look change nothing.
    pub(crate) fn look(&mut self, place: usize, action: &Action) -> Checked {
        let args = [&["log"][..], &["verify", "--full"], &["ops"], &["info"], &["log", "--all", "--long"]];
        let args = words(args[usize::from(action.a) % args.len()]);
        self.watch(place, &args).map(drop)
    }

    fn watch(&mut self, place: usize, args: &[String]) -> Result<lattice_testkit::Output, Violation> {
        let before = self.world.clone();
        let output = self.run(place, args, None);
        self.world = self.reader.read();
        let told = format!("`{}`\n{}", args.join(" "), output.snapshot());
        if !matches!(output.code, Some(0 | 1 | 3)) {
            return Err(Violation::new("crash", told));
        }
        self.check_unchanged(&before, "look", &told)?;
        Ok(output)
    }

    /// Doctor alone changes nothing, and has a choice for everything that blocks.
    pub(crate) fn doctor(&mut self, place: usize) -> Result<Vec<Value>, Violation> {
        let output = self.watch(place, &words(&["--json", "doctor"]))?;
        let report = output.json();
        let issues = report["issues"].as_array().cloned().unwrap_or_default();
        let blocking: Vec<_> = issues.iter().filter(|issue| issue["severity"] == "blocking").collect();
        if (output.code == Some(1)) == blocking.is_empty() {
            return Err(Violation::new("doctor's exit code", output.snapshot()));
        }
        if blocking.iter().any(|issue| issue["fixes"].as_array().is_none_or(Vec::is_empty)) {
            return Err(Violation::new("no choice", output.snapshot()));
        }
        Ok(issues)
    }

    /// A fix that was named removes its issue, and moves no branch but the one that it is to move.
    pub(crate) fn fix(&mut self, place: usize, action: &Action) -> Checked {
        let issues = self.doctor(place)?;
        let mut fixes = Vec::new();
        for issue in &issues {
            for fix in issue["fixes"].as_array().into_iter().flatten().filter(|fix| fix["user_action"].is_null()) {
                let [id, fix] = [&issue["id"], &fix["id"]].map(|id| id.as_str().unwrap_or_default());
                fixes.push((id, fix, issue["evidence"]["branch"][0].as_str().unwrap_or_default()));
            }
        }
        let Some((issue, fix, branch)) = fixes.get(usize::from(action.a) % fixes.len().max(1)) else { return Ok(()) };
        let before = self.world.clone();
        if fix.starts_with("move-to-trunk-") {
            let mut expected = Expected::same(&before, place);
            expected.reparent(branch, TRUNK);
            expected.bring(&before, branch);
            expected.bring_all(&before, before.upstack(branch));
            return self.command(place, &words(&["doctor", "--fix", fix]), expected, None);
        }
        let output = self.run(place, &words(&["doctor", "--fix", fix]), None);
        self.world = self.reader.read();
        let told = format!("fix {fix}\n{}", output.snapshot());
        let still = output.code != Some(0) && output.code != Some(1);
        if still {
            return Err(Violation::new("crash", told));
        }
        let moved = |name: &&str| before.tip(name) != self.world.tip(name);
        let moved: Vec<_> = before.branches().into_iter().filter(moved).collect();
        if !moved.is_empty() || before.places != self.world.places {
            let differences = before.differences(&self.world).join("\n");
            return Err(Violation::new("a fix moved something", format!("{told}\n{differences}")));
        }
        let left = self.doctor(place)?;
        if output.code == Some(0) && left.iter().any(|known| known["id"] == *issue) {
            return Err(Violation::new("a fix without effect", told));
        }
        Ok(())
    }

    /// Someone moves a branch while a command runs: their value stays, or what they made is carried along.
    pub(crate) fn race(&mut self, place: usize, action: &Action) -> Checked {
        let world = self.world.clone();
        let free: Vec<_> = world.branches();
        let free: Vec<_> = free.into_iter().filter(|b| world.places.iter().all(|p| p.branch() != Some(b))).collect();
        let inner = Action {
            kind: [Kind::Restack, Kind::Move, Kind::Reorder, Kind::Delete][usize::from(action.b) % 4],
            ..*action
        };
        let Some((args, expected)) = self.request(&inner, place) else { return Ok(()) };
        // A race is worth most where both sides want the same branch.
        let moves = |branch: &str| expected.branches.get(branch).is_none_or(|b| matches!(b.state, State::Brought(_)));
        let wanted: Vec<_> = free.iter().copied().filter(|branch| moves(branch)).collect();
        let Some(branch) = pick(if wanted.is_empty() { &free } else { &wanted }, action.a) else { return Ok(()) };
        let subject = format!("raced {}", self.step);
        let mut wrapper = GitWrapper::new(&self.repo);
        let text = format!(
            "new=$(\"$REAL_GIT\" commit-tree -p refs/heads/{branch} -m '{subject}' 'refs/heads/{branch}^{{tree}}' 2>/dev/null) \
             && \"$REAL_GIT\" update-ref refs/heads/{branch} $new refs/heads/{branch} || true"
        );
        match action.place % 2 {
            // After the last look at the values, just before they change.
            0 => wrapper.on("update-ref --no-deref -m", 1, GitAction::Run(text)),
            _ => wrapper.on("", 1 + u32::from(action.place / 2) % 14, GitAction::Run(text)),
        };
        let output = self.run(place, &args, Some(&wrapper));
        self.world = self.reader.read();
        let told = format!("`{}` while {branch} moves\n{}", args.join(" "), output.snapshot());
        if !matches!(output.code, Some(0 | 1 | 4)) {
            return Err(Violation::new("crash", told));
        }
        self.forget_operations();
        if self.world.marker.is_some() {
            // A conflict, or a foreign change between the move of the refs and the look at the result.
            let aborted = self.run(place, &words(&["abort"]), None);
            self.world = self.reader.read();
            if aborted.code != Some(0) {
                return Err(Violation::new("abort fails", format!("{told}\n{}", aborted.snapshot())));
            }
        }
        let value = self.world.tip(branch).cloned();
        let raced = self.world.commits.values().any(|commit| commit.subject == subject);
        let holds = value
            .as_ref()
            .is_some_and(|tip| self.world.reachable(tip).iter().any(|id| self.world.commits[*id].subject == subject));
        if raced && !holds {
            return Err(Violation::new("a foreign value was overwritten", format!("{told}\n{branch} is {value:?}")));
        }
        if output.code != Some(0) {
            // Files may have moved already, and were moved back.
            let differs = world.with_lost_deletions(&self.world, &self.world).differences(&self.world);
            let own = format!("refs/heads/{branch}:");
            if differs.iter().any(|line| !line.starts_with(&own)) {
                return Err(Violation::new("refused: changed", format!("{told}\n{}", differs.join("\n"))));
            }
        }
        Ok(())
    }
}
