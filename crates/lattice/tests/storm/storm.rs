//! One repository in a storm: performs actions and compares what they leave with what the oracle says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lattice_testkit::{GitWrapper, Output, TestRepo};

use crate::action::{Action, Kind};
use crate::lattice;
use crate::oracle::{Expected, Files, invalid, unmet};
use crate::world::{Place, Reader, TRUNK, World};

/// Something that must not happen.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// In a word, so that a shorter list of actions can be recognised as the same.
    pub(crate) kind: String,
    pub(crate) detail: String,
}

impl Violation {
    pub(crate) fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

pub(crate) type Checked = Result<(), Violation>;

pub(crate) struct Storm {
    pub(crate) repo: TestRepo,
    pub(crate) reader: Reader,
    pub(crate) world: World,
    /// Counts actions, for names and contents that come once.
    pub(crate) step: usize,
    waiting: Option<Waiting>,
    done: Vec<Done>,
    undone: Vec<Done>,
    /// How many commands ended with which code.
    pub(crate) codes: BTreeMap<String, usize>,
    pub(crate) defect: Option<&'static str>,
}

/// An operation that waits for its user.
struct Waiting {
    place: usize,
    before: World,
    expected: Expected,
}

/// An operation that can be undone.
struct Done {
    place: usize,
    before: World,
    after: World,
}

impl Storm {
    pub(crate) fn new() -> Self {
        let repo = TestRepo::draw("main <- a(2) <- b(2)* <- c; a <- d");
        repo.worktree("w1", "d");
        repo.git(&["config", "rerere.enabled", "false"]);
        let mut reader = Reader::new(&repo);
        let world = reader.read();
        let codes = Default::default();
        Self { repo, reader, world, step: 0, waiting: None, done: Vec::new(), undone: Vec::new(), codes, defect: None }
    }

    pub(crate) fn perform(&mut self, action: &Action) -> Checked {
        self.step += 1;
        let place = usize::from(action.place) % self.world.places.len();
        if self.waiting.is_some() {
            return self.while_waiting(action, place);
        }
        if self.outside(action, place)? {
            // What was done before cannot be compared with what comes after.
            self.done.clear();
            self.undone.clear();
            self.world = self.reader.read();
            return Ok(());
        }
        match action.kind {
            Kind::Undo => self.undo(place),
            Kind::Redo => self.redo(place),
            Kind::Look => self.look(place, action),
            Kind::Doctor => self.doctor(place).map(drop),
            Kind::Fix => self.fix(place, action),
            Kind::Race if self.world.marker.is_none() => self.race(place, action),
            _ => match self.request(action, place) {
                Some((args, expected)) => self.command(place, &args, expected, None),
                None => Ok(()),
            },
        }
    }

    /// What must hold at the end, whatever happened.
    pub(crate) fn finish(&mut self) -> Checked {
        let fsck = self.repo.try_git(&["fsck", "--no-dangling", "--no-progress"]);
        fsck.map_err(|failure| Violation::new("fsck", failure.stderr)).map(drop)
    }

    pub(crate) fn run(&mut self, place: usize, args: &[String], wrapper: Option<&GitWrapper>) -> Output {
        let mut program = lattice(&self.repo).cwd(&self.world.places[place].dir).args(args).env("LATTICE_JOBS", "1");
        if let Some(wrapper) = wrapper {
            program = program.wrapper(wrapper);
        }
        if let Some(defect) = self.defect {
            program = program.env("LATTICE_DEFECT", defect);
        }
        self.show("lattice", &self.world.places[place].dir.display().to_string(), args);
        let output = program.run();
        self.show("->", "", &[format!("{:?} {}{}", output.code, output.stdout, output.stderr)]);
        output
    }

    /// Prints what is done, for whoever looks into one list (`LATTICE_FUZZ_SHOW=1`).
    pub(crate) fn show<S: AsRef<str>>(&self, what: &str, place: &str, words: &[S]) {
        if std::env::var_os("LATTICE_FUZZ_SHOW").is_some() {
            let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
            println!("  {:3} {place} {what} {}", self.step, words.join(" "));
        }
    }

    /// Runs a command that changes something and checks how it ended.
    pub(crate) fn command(
        &mut self,
        place: usize,
        args: &[String],
        mut expected: Expected,
        wrapper: Option<&GitWrapper>,
    ) -> Checked {
        let before = self.world.clone();
        let output = self.run(place, args, wrapper);
        self.excuse(&mut expected, &output);
        self.world = self.reader.read();
        let told = format!("`{}` in {}\n{}", args.join(" "), before.places[place].dir.display(), output.snapshot());
        self.count(&args[0], &output);
        self.check_output(&output, &told)?;
        // A repair that was made ends with 1 if something else is wrong, too.
        let repaired = args[0] == "doctor" && output.stdout.starts_with("applied ");
        match output.code {
            _ if repaired => self.check_done(&before, &expected, place, &told),
            Some(0) => {
                let unmet = unmet(&before, place, &args[0]);
                if !unmet.is_empty() {
                    return Err(Violation::new("gate", format!("{told}\nunmet: {unmet:#?}")));
                }
                self.check_done(&before, &expected, place, &told)?;
                if !before.differences(&self.world).is_empty() {
                    self.done.push(Done { place, before, after: self.world.clone() });
                    self.undone.clear();
                }
                Ok(())
            }
            Some(4) => {
                let moved: Vec<_> =
                    before.refs.iter().filter(|(name, oid)| self.world.refs.get(*name) != Some(oid)).collect();
                if !moved.is_empty() || self.world.marker.is_none() {
                    return Err(Violation::new("pause", format!("{told}\nmoved: {moved:#?}")));
                }
                self.waiting = Some(Waiting { place, before, expected });
                Ok(())
            }
            Some(3) if before.marker.is_none() => Err(Violation::new("false in-progress", told)),
            _ => self.check_unchanged(&before, "refused", &told),
        }
    }

    /// A branch that is said to be kept is expected to be as it was, if there is a reason: a conflict among several
    /// stacks, or a worktree in the way.
    fn excuse(&self, expected: &mut Expected, output: &Output) {
        let lines = output.stdout.lines().chain(output.stderr.lines());
        for (branch, reason) in lines.filter_map(|line| line.strip_prefix("kept ")?.split_once(" (")) {
            // A rebase of it, which plain git began, has HEAD detached there.
            let elsewhere = self.world.places.iter().any(|place| place.branch() == Some(branch) || place.operation);
            let conflicts = reason.contains("conflicts in ") && self.world.upstack(TRUNK).len() > 1;
            let gone = reason.starts_with("the worktree ") && reason.contains(" is gone");
            if conflicts || gone || (elsewhere && reason.starts_with("the worktree ")) {
                expected.keep(&self.world, branch);
            }
        }
    }

    fn count(&mut self, command: &str, output: &Output) {
        let why = output.stderr.lines().find(|line| line.starts_with("error")).unwrap_or_default();
        let why: String = why.split('`').step_by(2).collect::<Vec<_>>().join("_");
        let why = if output.code == Some(0) { String::new() } else { general(&why) };
        *self.codes.entry(format!("{command} {:?} {why}", output.code)).or_default() += 1;
    }

    fn check_output(&self, output: &Output, told: &str) -> Checked {
        let known = matches!(output.code, Some(0..=4));
        if !known || output.stderr.contains("panicked") {
            return Err(Violation::new("crash", told));
        }
        if output.code == Some(2) {
            return Err(Violation::new("usage", told));
        }
        Ok(())
    }

    pub(crate) fn check_unchanged(&self, before: &World, kind: &str, told: &str) -> Checked {
        let differences = before.differences(&self.world);
        if differences.is_empty() {
            return Ok(());
        }
        Err(Violation::new(format!("{kind}: changed"), format!("{told}\n{}", differences.join("\n"))))
    }

    fn check_done(&self, before: &World, expected: &Expected, place: usize, told: &str) -> Checked {
        let after = &self.world;
        let mut problems = expected.problems(before, after);
        let known = invalid(before);
        let new = invalid(after).into_iter().filter(|problem| !known.contains(problem));
        problems.extend(new.map(|problem| format!("not valid: {problem}")));
        if after.marker.is_some() {
            problems.push("the marker is still there".to_owned());
        }
        let (was, is) = (&before.places[place], &after.places[place]);
        if expected.head.as_deref().is_some_and(|head| is.branch() != Some(head)) {
            problems.push(format!("HEAD is {}, not {:?}", is.head, expected.head));
        }
        match expected.files {
            Files::Same if was.files != is.files => problems.extend(was.differences(is)),
            Files::SameAndClean if was.files != is.files || !is.status.is_empty() => {
                problems.extend(was.differences(is))
            }
            Files::Follow if !carried(was, is) => problems.extend(was.differences(is)),
            Files::Same | Files::SameAndClean | Files::Follow => {}
        }
        for (dirty, _) in dirt(was).into_iter().filter(|_| expected.files == Files::Follow) {
            if was.files.get(dirty) != is.files.get(dirty) {
                problems.push(format!("the uncommitted changes of {dirty} are not as before"));
            }
        }
        for was in before.places.iter().filter(|other| other.dir != was.dir) {
            let is = after.places.iter().find(|other| other.dir == was.dir);
            if is.is_none_or(|is| !carried(was, is) || is.head != was.head) {
                problems.push(format!("another worktree changed: {:?}", is.map(|is| was.differences(is))));
            }
        }
        problems.extend(self.lost(before));
        if problems.is_empty() {
            return Ok(());
        }
        Err(Violation::new("wrong result", format!("{told}\n{}", problems.join("\n"))))
    }

    /// Commits of branches that nothing holds any more.
    fn lost(&self, before: &World) -> Vec<String> {
        let tips: BTreeSet<_> = before.branches().into_iter().filter_map(|branch| before.tip(branch)).collect();
        let mut args = vec!["rev-list", "--ignore-missing"];
        args.extend(tips.iter().map(|tip| tip.as_str()));
        args.extend(["--not", "--all"]);
        self.repo.git(&args).lines().map(|commit| format!("{commit} is lost")).collect()
    }

    /// What was done is no longer what an undo would take.
    pub(crate) fn forget_operations(&mut self) {
        self.done.clear();
        self.undone.clear();
    }

    fn undo(&mut self, place: usize) -> Checked {
        let top = self.done.pop();
        let ended = self.restore(place, "undo", top.as_ref().map(|done| (done.place, &done.after, &done.before)))?;
        match (ended, top) {
            (Some(0), Some(done)) => self.undone.push(done),
            (Some(0), None) => {
                self.done.clear();
                self.undone.clear();
            }
            (_, Some(done)) => self.done.push(done),
            (_, None) => {}
        }
        Ok(())
    }

    fn redo(&mut self, place: usize) -> Checked {
        let top = self.undone.pop();
        let ended = self.restore(place, "redo", top.as_ref().map(|done| (done.place, &done.before, &done.after)))?;
        match (ended, top) {
            (Some(0), Some(done)) => self.done.push(done),
            (Some(0), None) => self.done.clear(),
            (_, Some(done)) => self.undone.push(done),
            (_, None) => {}
        }
        Ok(())
    }

    /// Goes back or forth; from the state that the operation left that leads exactly to the one it found.
    fn restore(
        &mut self,
        place: usize,
        way: &str,
        known: Option<(usize, &World, &World)>,
    ) -> Result<Option<i32>, Violation> {
        let before = self.world.clone();
        let output = self.run(place, &[way.to_owned()], None);
        self.world = self.reader.read();
        let told = format!("`{way}` in {}\n{}", before.places[place].dir.display(), output.snapshot());
        self.count(way, &output);
        self.check_output(&output, &told)?;
        if output.code != Some(0) {
            self.check_unchanged(&before, way, &told)?;
            return Ok(output.code);
        }
        if let Some((origin, from, to)) = known
            && from.differences(&before).is_empty()
            && origin == place
        {
            let differences = to.with_lost_deletions(from, &self.world).differences(&self.world);
            if !differences.is_empty() {
                return Err(Violation::new(
                    format!("{way} is not exact"),
                    format!("{told}\n{}", differences.join("\n")),
                ));
            }
        }
        let lost = self.lost(&before);
        if lost.is_empty() { Ok(output.code) } else { Err(Violation::new(way, format!("{told}\n{lost:?}"))) }
    }

    /// While an operation waits, only its own end is let through.
    fn while_waiting(&mut self, action: &Action, place: usize) -> Checked {
        let way = match action.kind {
            Kind::Continue => 1,
            Kind::Abort => 2,
            _ => action.b % 3,
        };
        match way {
            1 => self.go_on(action, place),
            2 => self.give_up(action, place),
            _ => match self.request(action, place) {
                Some((args, _)) => {
                    let before = self.world.clone();
                    let output = self.run(place, &args, None);
                    self.world = self.reader.read();
                    let told = format!("`{}` while an operation waits\n{}", args.join(" "), output.snapshot());
                    if output.code != Some(3) {
                        return Err(Violation::new("not refused while waiting", told));
                    }
                    self.check_unchanged(&before, "while waiting", &told)
                }
                None => Ok(()),
            },
        }
    }

    fn go_on(&mut self, action: &Action, place: usize) -> Checked {
        let mut waiting = self.waiting.take().expect("something waits");
        self.resolve(waiting.place, action.a);
        let output = self.run(waiting.place, &["continue".to_owned()], None);
        self.excuse(&mut waiting.expected, &output);
        self.world = self.reader.read();
        let told =
            format!("`continue` in {}\n{}", waiting.before.places[waiting.place].dir.display(), output.snapshot());
        self.count("continue", &output);
        self.check_output(&output, &told)?;
        match output.code {
            Some(0) => {
                let mut expected = waiting.expected;
                expected.resolved_by_hand();
                let before = waiting.before;
                self.check_done(&before, &expected, waiting.place, &told)?;
                self.done.push(Done { place: waiting.place, before, after: self.world.clone() });
                Ok(())
            }
            Some(4) => {
                self.waiting = Some(waiting);
                Ok(())
            }
            // What was resolved may not go under the uncommitted changes of another worktree. It is for its user to say.
            Some(1) if output.stderr.contains("branches cannot move: ") && self.world.marker.is_some() => {
                self.waiting = Some(waiting);
                self.give_up(action, place)
            }
            _ => Err(Violation::new("continue fails", told)),
        }
    }

    fn give_up(&mut self, action: &Action, place: usize) -> Checked {
        let waiting = self.waiting.take().expect("something waits");
        if place != waiting.place && action.a.is_multiple_of(2) {
            let before = self.world.clone();
            let output = self.run(place, &["abort".to_owned()], None);
            self.world = self.reader.read();
            self.waiting = Some(waiting);
            if output.code == Some(0) {
                return Err(Violation::new("abort from elsewhere", output.snapshot()));
            }
            return self.check_unchanged(&before, "abort from elsewhere", &output.snapshot());
        }
        let output = self.run(waiting.place, &["abort".to_owned()], None);
        self.world = self.reader.read();
        self.count("abort", &output);
        if output.code != Some(0) {
            return Err(Violation::new("abort fails", output.snapshot()));
        }
        self.check_unchanged(&waiting.before, "abort", &output.snapshot())
    }
}

/// Whether what was uncommitted is as before. A change that the commit below has by now, too, is none any more: all of
/// it, or what of it was staged.
fn carried(was: &Place, is: &Place) -> bool {
    let (was_dirty, is_dirty) = (dirt(was), dirt(is));
    let same = |path: &String| was.files.get(path) == is.files.get(path);
    let same_or_unstaged = |path: &String, status: &str| {
        let before = was_dirty.get(path).map(|status| status.as_str());
        let unstaged = before.is_some_and(|before| before.get(1..) == status.strip_prefix(' '));
        before == Some(status) || unstaged && same(path) && was.staged(path) == is.staged(path)
    };
    is_dirty.iter().all(|(path, status)| same_or_unstaged(path, status))
        && was_dirty.keys().all(|path| is_dirty.contains_key(*path) || same(path))
}

/// Uncommitted changes that leave something in the working tree: a file that the user removed may be gone below, too.
fn dirt(place: &Place) -> BTreeMap<&String, &String> {
    place.status.iter().filter(|(path, _)| place.files.contains_key(*path)).collect()
}

/// A message without what only this repository has: paths and ids.
fn general(message: &str) -> String {
    let is_id = |word: &str| word.len() >= 8 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    let word = |word: &str| match word {
        path if path.starts_with('/') => "PATH".to_owned(),
        id if is_id(id.trim_end_matches([':', ','])) => "ID".to_owned(),
        word => word.to_owned(),
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
