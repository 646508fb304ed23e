//! Commands that edit a stack against a restack of the same stack, and worktrees that have to follow.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use crate::Failure;

use super::curves::Curve;
use super::fixture::{Fixture, Size, branch, write};
use super::measure::{Contestant, compared, in_turns, shown};
use super::report::Section;

const ROUNDS: usize = 7;

const SIZE: Size = Size { branches: 50, commits: 2, files: 2000 };

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let bench = Bench { lattice: super::program(root), scratch: scratch.path().to_owned() };
    Ok(vec![bench.edits()?, bench.worktrees()?])
}

struct Bench {
    lattice: PathBuf,
    scratch: PathBuf,
}

impl Bench {
    /// Each edit concerns the bottom of the stack, so that everything above has to be rewritten.
    fn edits(&self) -> Result<Section, Failure> {
        let fixture = |name: &str| self.fixture(name, SIZE).map(RefCell::new);
        let (restacked, absorbed) = (fixture("restack")?, fixture("absorb")?);
        let mut order: Vec<_> = restacked.borrow().branches();
        order.swap(0, 1);
        let order = order.join(",");
        let path = format!("{}-0.txt", branch(0));
        let edits: [(&str, usize, &[&str]); 3] = [
            ("reorder", SIZE.branches - 1, &["reorder", "--order", &order]),
            ("split", 0, &["split", "--by-file", &path]),
            ("fold", 1, &["fold"]),
        ];
        let mut fixtures = Vec::new();
        for (name, current, arguments) in edits {
            let fixture = fixture(name)?;
            fixture.borrow().git(&["checkout", "-q", &branch(current)])?;
            fixtures.push((name, arguments, fixture, Cell::new(false)));
        }
        let rounds = Cell::new(0);
        let mut contestants = vec![
            Contestant {
                name: "lattice restack".to_owned(),
                prepare: Box::new(|| restacked.borrow_mut().move_trunk()),
                run: Box::new(|| restacked.borrow().run(&self.lattice, &["restack"], &[])),
            },
            Contestant {
                name: "lattice absorb".to_owned(),
                prepare: Box::new(|| {
                    rounds.set(rounds.get() + 1);
                    write(&absorbed.borrow().path.join(&path), &format!("round {}\n", rounds.get()))?;
                    absorbed.borrow().git(&["add", &path])
                }),
                run: Box::new(|| absorbed.borrow().run(&self.lattice, &["absorb"], &[])),
            },
        ];
        for (name, arguments, fixture, ran) in &fixtures {
            contestants.push(Contestant {
                name: format!("lattice {name}"),
                prepare: Box::new(|| match ran.replace(true) {
                    true => fixture.borrow().run(&self.lattice, &["undo"], &[]),
                    false => Ok(()),
                }),
                run: Box::new(|| fixture.borrow().run(&self.lattice, arguments, &[])),
            });
        }
        let timings = in_turns(ROUNDS, &mut contestants)?;
        let mut section = Section::new(
            "edits",
            "50 branches x 2 commits in a repository of 2,000 files; each edit is made at the bottom of the stack, so that all branches above are rewritten. At most 3 times a restack is the limit.",
            &["what", "median", "best", "ratio of medians", "ratio of bests"],
        );
        for timing in &timings {
            section.row(compared(timing, &timings[0]));
        }
        Ok(section)
    }

    fn worktrees(&self) -> Result<Section, Failure> {
        let mut section = Section::new(
            "worktrees",
            "A restack of a stack where each branch is checked out in a worktree of its own: 100 files, one commit per branch. A time per worktree that does not grow is linear.",
            &["worktrees", "median", "best", "median per worktree"],
        );
        let mut curve = Curve { name: "lattice restack".to_owned(), points: Vec::new() };
        for branches in [10, 30, 100] {
            let size = Size { branches, commits: 1, files: 100 };
            let fixture = self.fixture(&format!("worktrees-{branches}"), size)?;
            fixture.git(&["checkout", "-q", "--detach", "main"])?;
            for name in fixture.branches() {
                let place = self.scratch.join(format!("worktree-{branches}-{name}"));
                fixture.git(&["worktree", "add", "-q", &place.display().to_string(), &name])?;
            }
            let fixture = RefCell::new(fixture);
            let mut contestants = [Contestant {
                name: String::new(),
                prepare: Box::new(|| fixture.borrow_mut().move_trunk()),
                run: Box::new(|| fixture.borrow().run(&self.lattice, &["restack", &branch(0)], &[])),
            }];
            let timings = in_turns(3, &mut contestants)?;
            let timing = &timings[0];
            curve.points.push((branches, timing.median));
            let each = timing.median / u32::try_from(branches).unwrap_or(1);
            section.row(vec![branches.to_string(), shown(timing.median), shown(timing.best), shown(each)]);
        }
        section.draw("worktrees", vec![curve]);
        Ok(section)
    }

    /// A stack that stands on its trunk.
    fn fixture(&self, name: &str, size: Size) -> Result<Fixture, Failure> {
        let fixture = Fixture::new(&self.scratch, &format!("edits-{name}"), size)?;
        fixture.run(&self.lattice, &["restack"], &[])?;
        Ok(fixture)
    }
}
