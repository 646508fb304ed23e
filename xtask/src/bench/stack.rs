//! The stack engine against Git's own plumbing.

use std::path::{Path, PathBuf};

use crate::Failure;

use super::curves::Curve;
use super::fixture::{Fixture, Size, branch, write};
use super::measure::{Contestant, Timing, compared, in_turns, ratio, shown};
use super::peers;
use super::report::Section;

const ROUNDS: usize = 7;

/// Peers that take seconds for what Git's plumbing does in a tenth of one are only asked up to this size.
const PEERS_UP_TO: usize = 50;

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let bench = Bench { lattice: root.join("target/release/lattice"), scratch: scratch.path().to_owned() };
    Ok(vec![bench.restack()?, bench.log()?, bench.growth()?, bench.start()?])
}

struct Bench {
    lattice: PathBuf,
    scratch: PathBuf,
}

impl Bench {
    fn restack(&self) -> Result<Section, Failure> {
        let size = Size { branches: 50, commits: 2, files: 2000 };
        let timings = self.time_restack("restack", size)?;
        let processes = self.processes("restack-count", size, &["restack"])?;
        let mut section = Section::new(
            "restack",
            "50 branches x 2 commits in a repository of 2,000 files, the top branch checked out; the trunk has moved by one commit.",
            &["what", "median", "best", "ratio of medians", "ratio of bests", "git processes"],
        );
        add_rows(&mut section, &timings, &[processes]);
        Ok(section)
    }

    /// Plain Git first; then Lattice; then what else is installed.
    fn time_restack(&self, name: &str, size: Size) -> Result<Vec<Timing>, Failure> {
        let fixture =
            |suffix: &str| Fixture::new(&self.scratch, &format!("{name}-{suffix}"), size).map(std::cell::RefCell::new);
        let (plain, rebased, ours) = (fixture("git")?, fixture("rebase")?, fixture("lattice")?);
        let peers = if size.branches == PEERS_UP_TO { peers::installed() } else { Vec::new() };
        let theirs = peers.iter().map(|(peer, _)| fixture(peer.program));
        let theirs = theirs.collect::<Result<Vec<_>, _>>()?;
        let ids = std::cell::RefCell::new(String::new());
        let mut contestants = vec![
            Contestant {
                name: "git replay + update-ref --stdin + read-tree -m -u".to_owned(),
                prepare: Box::new(|| {
                    plain.borrow_mut().move_trunk()?;
                    *ids.borrow_mut() = plain.borrow().answer(&["rev-parse", "HEAD", "main", "main^"])?;
                    Ok(())
                }),
                run: Box::new(|| plumbing(&plain.borrow(), &ids.borrow())),
            },
            Contestant {
                name: "lattice restack".to_owned(),
                prepare: Box::new(|| ours.borrow_mut().move_trunk()),
                run: Box::new(|| ours.borrow().run(&self.lattice, &["restack"], &[])),
            },
        ];
        if size.branches <= PEERS_UP_TO {
            contestants.push(Contestant {
                name: "git rebase --update-refs".to_owned(),
                prepare: Box::new(|| rebased.borrow_mut().move_trunk()),
                run: Box::new(|| rebased.borrow().git(&["rebase", "-q", "--update-refs", "main"])),
            });
        }
        for ((peer, program), repository) in peers.iter().zip(&theirs) {
            (peer.prepare)(&repository.borrow(), program)?;
            contestants.push(Contestant {
                name: peer.name.to_owned(),
                prepare: Box::new(|| repository.borrow_mut().move_trunk()),
                run: Box::new(|| (peer.restack)(&repository.borrow(), program)),
            });
        }
        let timings = in_turns(if size.branches > 100 { 3 } else { ROUNDS }, &mut contestants)?;
        drop(contestants);
        // A tool that left the stack where it was would be the fastest of all.
        for repository in &theirs {
            let top = size.branches - 1;
            repository.borrow().git(&["merge-base", "--is-ancestor", "main", &branch(top)])?;
        }
        Ok(timings)
    }

    fn log(&self) -> Result<Section, Failure> {
        let size = Size { branches: 1000, commits: 1, files: 100 };
        let timings = self.time_log("log", size)?;
        let [first, again] = self.processes_again("log-count", size, &["log"])?;
        let mut section = Section::new(
            "log",
            "1,000 tracked branches, refs packed, nothing changed since the last operation. A look keeps what it read for the next one; the last row is one that finds nothing kept.",
            &["what", "median", "best", "ratio of medians", "ratio of bests", "git processes"],
        );
        add_rows(&mut section, &timings, &[again, first]);
        Ok(section)
    }

    fn time_log(&self, name: &str, size: Size) -> Result<Vec<Timing>, Failure> {
        let fixture = Fixture::new(&self.scratch, name, size)?;
        let mut contestants = vec![
            Contestant {
                name: "git for-each-ref with %(raw)".to_owned(),
                prepare: Box::new(|| Ok(())),
                run: Box::new(|| fixture.git(&["for-each-ref", "--format=%(refname) %(objectname) %(raw)"])),
            },
            Contestant {
                name: "lattice log".to_owned(),
                prepare: Box::new(|| Ok(())),
                run: Box::new(|| fixture.run(&self.lattice, &["log"], &[])),
            },
            Contestant {
                name: "lattice log for the first time".to_owned(),
                prepare: Box::new(|| fixture.forget()),
                run: Box::new(|| fixture.run(&self.lattice, &["log"], &[])),
            },
        ];
        in_turns(ROUNDS, &mut contestants)
    }

    fn growth(&self) -> Result<Section, Failure> {
        let mut section = Section::new(
            "growth",
            "One commit per branch, 500 files. Times are medians; a ratio that stays the same is linear like Git's own.",
            &["branches", "restack", "ratio to git", "git processes", "log", "ratio to git", "git processes"],
        );
        let curve = |name: &str| Curve { name: name.to_owned(), points: Vec::new() };
        let mut curves = ["git replay + update-ref", "lattice restack", "git for-each-ref", "lattice log"].map(curve);
        for branches in [10, 100, 1000] {
            let size = Size { branches, commits: 1, files: 500 };
            let restack = self.time_restack(&format!("grow-{branches}"), size)?;
            let log = self.time_log(&format!("grow-log-{branches}"), size)?;
            for (curve, timing) in curves.iter_mut().zip([&restack[0], &restack[1], &log[0], &log[1]]) {
                curve.points.push((branches, timing.median));
            }
            section.row(vec![
                branches.to_string(),
                shown(restack[1].median),
                format!("{:.2}", ratio(restack[1].median, restack[0].median)),
                self.processes(&format!("grow-count-{branches}"), size, &["restack"])?.to_string(),
                shown(log[1].median),
                format!("{:.2}", ratio(log[1].median, log[0].median)),
                self.processes(&format!("grow-log-count-{branches}"), size, &["log"])?.to_string(),
            ]);
        }
        section.draw("branches", curves.to_vec());
        Ok(section)
    }

    fn start(&self) -> Result<Section, Failure> {
        let fixture = Fixture::new(&self.scratch, "start", Size { branches: 1, commits: 1, files: 1 })?;
        let (source, empty) = (self.scratch.join("empty.rs"), self.scratch.join("empty"));
        write(&source, "fn main() {}\n")?;
        let (from, to) = (source.display().to_string(), empty.display().to_string());
        fixture.run(Path::new("rustc"), &["-O", "-o", &to, &from], &[])?;
        let mut contestants = vec![
            Contestant {
                name: "an empty Rust program".to_owned(),
                prepare: Box::new(|| Ok(())),
                run: Box::new(|| fixture.run(&empty, &[], &[])),
            },
            Contestant {
                name: "lattice --version".to_owned(),
                prepare: Box::new(|| Ok(())),
                run: Box::new(|| fixture.run(&self.lattice, &["--version"], &[])),
            },
        ];
        let timings = in_turns(51, &mut contestants)?;
        let mut section =
            Section::new("start", "The program does nothing but say its version.", &["what", "median", "best"]);
        for timing in &timings {
            section.row(vec![timing.name.clone(), shown(timing.median), shown(timing.best)]);
        }
        Ok(section)
    }

    /// How many processes of git one command starts when it comes first, counted by a wrapper.
    fn processes(&self, name: &str, size: Size, arguments: &[&str]) -> Result<usize, Failure> {
        Ok(self.processes_again(name, size, arguments)?[0])
    }

    /// The same, and how many it starts when it comes again.
    fn processes_again(&self, name: &str, size: Size, arguments: &[&str]) -> Result<[usize; 2], Failure> {
        let fixture = Fixture::new(&self.scratch, name, size)?;
        let (wrapper, log) = (fixture.path.join(".git/count-git"), fixture.path.join(".git/count-log"));
        write(&wrapper, &format!("#!/bin/sh\necho x >> '{}'\nexec git \"$@\"\n", log.display()))?;
        fixture.run(Path::new("chmod"), &["+x", &wrapper.display().to_string()], &[])?;
        let mut counts = [0; 2];
        for count in &mut counts {
            write(&log, "")?;
            fixture.run(&self.lattice, arguments, &[("LATTICE_GIT", &wrapper.display().to_string())])?;
            *count = crate::read(&log)?.lines().count();
        }
        Ok(counts)
    }
}

/// One row per contestant, with its ratio to the first; git processes are counted for those of Lattice, in their order.
fn add_rows(section: &mut Section, timings: &[Timing], processes: &[usize]) {
    let mut processes = processes.iter();
    for timing in timings {
        let count = if timing.name.starts_with("lattice ") { processes.next() } else { None };
        let mut row = compared(timing, &timings[0]);
        row.push(count.map(ToString::to_string).unwrap_or_default());
        section.row(row);
    }
}

/// What a careful person would type: compute, move all refs at once, bring the working tree along.
fn plumbing(fixture: &Fixture, ids: &str) -> Result<(), Failure> {
    let branches = fixture.branches();
    let top = branches.last().expect("a stack has a top");
    let ids: Vec<_> = ids.lines().collect();
    let mut arguments = vec!["replay".to_owned(), "--contained".to_owned(), "--onto".to_owned(), ids[1].to_owned()];
    arguments.push(format!("{}..refs/heads/{top}", ids[2]));
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let updates = fixture.answer(&words)?;
    fixture.feed(&["update-ref", "--stdin"], &updates)?;
    fixture.git(&["read-tree", "-m", "-u", ids[0], "HEAD"])
}
