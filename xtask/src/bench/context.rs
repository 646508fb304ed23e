//! Context on a large tree: cold, warm, after one change, and the builders; beside other packers where they are installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Failure;
use crate::process::Call;

use super::fixture::{Fixture, Size, write as write_file};
use super::measure::{Contestant, Timing, in_turns, ratio, shown};
use super::program;
use super::report::Section;

/// Whole trees take others minutes; one round that is not counted comes before.
const ROUNDS: usize = 1;
const WARM_ROUNDS: usize = 7;

/// The least tree that the figures are about.
const LEAST_FILES: usize = 7_000;

/// What the builders may take on ten thousand files.
const BUILDER_LIMIT: Duration = Duration::from_millis(500);
const BUILDER_KIB: u64 = 100 << 10;

const REQUEST: &str = "the migration autodetector forgets the options of a field that is renamed";

/// Other packers with the arguments that make them pack a whole tree: `TREE` and `OUT` stand for the two paths.
const PEERS: [(&str, &[&str], &str); 4] = [
    ("repomix", &["TREE", "--quiet", "--output", "OUT"], "o200k"),
    ("code2prompt", &["TREE", "--output-file", "OUT", "--encoding", "o200k", "--no-clipboard"], "o200k"),
    ("gitingest", &["TREE", "--output", "OUT"], "o200k"),
    ("yek", &["TREE", "--output-dir", "OUT"], "none"),
];

/// A program with all of its arguments.
pub(super) struct Line {
    pub(super) name: String,
    program: String,
    arguments: Vec<String>,
}

pub(super) fn run(root: &Path, tree: Option<&str>) -> Result<Vec<Section>, Failure> {
    let scratch = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let tree = match tree {
        Some(tree) => PathBuf::from(tree),
        None => sources(root, &scratch.path().join("sources"))?,
    };
    let bench = Bench { lattice: program(root), tree, scratch: scratch.path() };
    let files = bench.files()?;
    if files < LEAST_FILES {
        let what = format!("{} has {files} files; the figures are about {LEAST_FILES} or more", bench.tree_text());
        return Err(Failure::Problems(vec![what]));
    }
    Ok(vec![bench.cold(files)?, bench.warm()?, bench.builders()?])
}

/// A working tree with the sources of all dependencies: large, real, and the same for everybody.
fn sources(root: &Path, tree: &Path) -> Result<PathBuf, Failure> {
    let place = tree.display().to_string();
    let cargo = ["vendor", "--quiet", "--locked", &place];
    Call { program: "cargo", arguments: &cargo, environment: &[] }.run(root)?;
    let identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid"];
    let commit = [&["-C", &place], identity.as_slice(), &["commit", "-qm", "sources"]].concat();
    for arguments in [&["init", "-q", &place][..], &["-C", &place, "add", "-Af", "."], &commit] {
        Call { program: "git", arguments, environment: &[] }.run(root)?;
    }
    Ok(tree.to_owned())
}

struct Bench<'a> {
    lattice: PathBuf,
    tree: PathBuf,
    scratch: &'a Path,
}

impl Bench<'_> {
    fn files(&self) -> Result<usize, Failure> {
        let git = Line::new("git", "git", &["-C", &self.tree_text(), "ls-files", "-z"]);
        let output = git.command().stdout(Stdio::piped()).output().map_err(|cause| git.not_started(cause))?;
        Ok(output.stdout.iter().filter(|byte| **byte == 0).count())
    }

    fn tree_text(&self) -> String {
        self.tree.display().to_string()
    }

    fn own(&self, name: &str, arguments: &[&str]) -> Line {
        let tree = self.tree_text();
        Line::new(name, &self.lattice.display().to_string(), &[&["-C", &tree], arguments].concat())
    }

    fn pack(&self, name: &str, tokenizer: &str) -> Line {
        self.own(name, &["context", "pack", REQUEST, "--budget", "27000", "--tokenizer", tokenizer])
    }

    fn forget(&self) -> Result<(), Failure> {
        let cache = self.tree.join(".git/lattice/cache");
        match std::fs::remove_dir_all(&cache) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Failure::File { path: cache, cause }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn peers(&self) -> Vec<(Line, &'static str)> {
        let line = |(name, arguments, counts): &(&str, &[&str], &'static str)| {
            let out = self.scratch.join(format!("{name}.out")).display().to_string();
            let filled = arguments.iter().map(|word| match *word {
                "TREE" => self.tree_text(),
                "OUT" => out.clone(),
                other => other.to_owned(),
            });
            let line = Line { name: (*name).to_owned(), program: (*name).to_owned(), arguments: filled.collect() };
            let is_there = Line::new(name, name, &["--help"]).run().is_ok();
            is_there.then_some((line, *counts))
        };
        PEERS.iter().filter_map(line).collect()
    }

    /// From nothing: everything is read, indexed and counted.
    fn cold(&self, files: usize) -> Result<Section, Failure> {
        let mut lines = vec![
            (self.pack("lattice context pack", "o200k"), "o200k"),
            (self.own("lattice context tokens", &["context", "tokens", "--tokenizer", "o200k"]), "o200k"),
        ];
        lines.extend(self.peers());
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (line, _) in &lines {
            contestants.push(Contestant {
                name: line.name.clone(),
                prepare: Box::new(|| self.forget()),
                run: Box::new(|| line.run()),
            });
        }
        let timings = in_turns(ROUNDS, &mut contestants)?;
        let mut section = Section::new(
            "cold",
            &format!(
                "{files} files of a Git working tree, nothing kept from earlier runs. `pack` indexes all files and fills 27,000 \
                 tokens for a request; `tokens` counts every file; the others put the whole tree into one file."
            ),
            &["what", "tokens", "median", "time by `lattice context pack`'s", "peak memory"],
        );
        for ((line, counts), timing) in lines.iter().zip(&timings) {
            self.forget()?;
            let peak = line.peak_kib()?;
            let by = ratio(timing.median, timings[0].median);
            let cells = [&line.name, *counts, &shown(timing.median), &format!("{by:.2}"), &mebibytes(peak)];
            section.row(cells.map(str::to_owned).to_vec());
        }
        Ok(section)
    }

    /// Again, and again after one file was changed.
    fn warm(&self) -> Result<Section, Failure> {
        let changed = self.tree.join("lattice-bench-change.py");
        let edits = std::cell::Cell::new(0);
        let lines = [
            self.pack("pack", "estimate"),
            self.pack("pack, one changed file", "estimate"),
            self.pack("pack, exact counts", "o200k"),
            Line::new("git ls-files", "git", &["-C", &self.tree_text(), "ls-files", "-o", "-m", "--exclude-standard"]),
        ];
        write_file(&changed, "value = 0\n")?;
        let edit = || {
            edits.set(edits.get() + 1);
            write_file(&changed, &format!("value = {}\n", edits.get()))
        };
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let edit = &edit;
            let prepare = move || if at == 1 { edit() } else { line.run() };
            contestants.push(Contestant {
                name: line.name.clone(),
                prepare: Box::new(prepare),
                run: Box::new(|| line.run()),
            });
        }
        let timings = in_turns(WARM_ROUNDS, &mut contestants)?;
        drop(contestants);
        std::fs::remove_file(&changed).map_err(|cause| Failure::File { path: changed.clone(), cause })?;
        let mut section = Section::new(
            "warm",
            "The same request once more. `git ls-files` asks Git alone which files are there and which changed; a pack knows \
             that too before it begins.",
            &["what", "median", "best", "by `git ls-files`", "peak memory"],
        );
        let git = timings[3].median;
        for (line, Timing { name, median, best }) in lines.iter().zip(&timings) {
            let peak = mebibytes(line.peak_kib()?);
            section.row(vec![name.clone(), shown(*median), shown(*best), format!("{:.2}", ratio(*median, git)), peak]);
        }
        Ok(section)
    }

    /// The builders on ten thousand files.
    fn builders(&self) -> Result<Section, Failure> {
        let size = Size { branches: 1, commits: 1, files: 10_000 };
        let fixture = Fixture::new(self.scratch, "builders", size)?;
        let at = fixture.path.display().to_string();
        write_file(&fixture.path.join("tasks.md"), "# Tasks\n\n- [ ] one\n")?;
        write_file(&fixture.path.join("errors.txt"), "d3/f301.txt:7: something is wrong here\n")?;
        let builders: [&[&str]; 3] = [
            &["implement", "--task-file", "tasks.md"],
            &["review", "--base", "main"],
            &["fix", "--errors", "errors.txt"],
        ];
        let program = self.lattice.display().to_string();
        let line =
            |arguments: &&[&str]| Line::new(arguments[0], &program, &[&["-C", &at, "context"], *arguments].concat());
        let lines: Vec<Line> = builders.iter().map(line).collect();
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for line in &lines {
            contestants.push(Contestant {
                name: line.name.clone(),
                prepare: Box::new(|| Ok(())),
                run: Box::new(|| line.run()),
            });
        }
        let timings = in_turns(WARM_ROUNDS, &mut contestants)?;
        let mut section = Section::new(
            "builders",
            "Ten thousand files. A builder may take 500 ms and 100 MiB in its own process.",
            &["what", "median", "best", "peak memory"],
        );
        for (line, timing) in lines.iter().zip(&timings) {
            let peak = line.peak_kib()?;
            section.row(vec![line.name.clone(), shown(timing.median), shown(timing.best), mebibytes(peak)]);
            if timing.best > BUILDER_LIMIT || peak > BUILDER_KIB {
                let what = format!("`{}` took {} and {}", line.name, shown(timing.best), mebibytes(peak));
                return Err(Failure::Problems(vec![what]));
            }
        }
        Ok(section)
    }
}

impl Line {
    pub(super) fn new(name: &str, program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { name: name.to_owned(), program: program.to_owned(), arguments }
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark starts what it measures")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn not_started(&self, cause: std::io::Error) -> Failure {
        Failure::Start { command: self.name.clone(), cause }
    }

    fn ended(&self, child: &mut Child) -> Result<(), Failure> {
        let status = child.wait().map_err(|cause| self.not_started(cause))?;
        if status.success() { Ok(()) } else { Err(Failure::Step { command: self.name.clone(), code: 1 }) }
    }

    fn run(&self) -> Result<(), Failure> {
        let mut child = self.command().spawn().map_err(|cause| self.not_started(cause))?;
        self.ended(&mut child)
    }

    /// The most memory that the process itself had, by the kernel's own mark, read again and again until it ends.
    pub(super) fn peak_kib(&self) -> Result<u64, Failure> {
        let mut child = self.command().spawn().map_err(|cause| self.not_started(cause))?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        loop {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            peak = mark.and_then(|mark| mark.trim().split(' ').next()?.parse().ok()).unwrap_or(peak).max(peak);
            if child.try_wait().map_err(|cause| self.not_started(cause))?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        self.ended(&mut child)?;
        Ok(peak)
    }
}

pub(super) fn mebibytes(kib: u64) -> String {
    format!("{:.0} MiB", kib as f64 / 1024.0)
}
