//! `demo`: a stack from its first branch to a repaired accident, in a scratch repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::Failure;
use crate::output::{Document, Reply, err, indented, out};
use crate::prompt;

/// Show stacks at work in a scratch repository
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to make the repository; a new temporary folder if absent
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DemoDocument {
    directory: String,
    steps: usize,
}

impl Document for DemoDocument {
    const COMMAND: &'static str = "demo";
}

/// One thing that the demo does: what to say, what to run, and the exit code that it must have.
enum Step {
    Say(&'static str),
    Git(&'static [&'static str]),
    Write(&'static str, &'static str),
    Lattice(&'static [&'static str], i32),
    /// As `Lattice`, with the first fix id that the output of the step before offered.
    ApplyFirstFix(&'static str),
}

const STORY: &[Step] = &[
    Step::Say("A repository with one commit. Lattice is told which branch is the trunk."),
    Step::Lattice(&["init", "--trunk", "main"], 0),
    Step::Say("Two branches, one on the other."),
    Step::Write("api.txt", "GET /users\n"),
    Step::Lattice(&["create", "api", "-a", "-m", "Add the users endpoint"], 0),
    Step::Write("ui.txt", "A list of users\n"),
    Step::Lattice(&["create", "ui", "-a", "-m", "Show the users"], 0),
    Step::Lattice(&["log"], 0),
    Step::Say("Meanwhile the trunk moves on. One command brings the whole stack along."),
    Step::Git(&["switch", "-q", "main"]),
    Step::Write("README", "A better introduction\n"),
    Step::Git(&["commit", "-q", "-a", "-m", "Improve the README"]),
    Step::Lattice(&["log"], 0),
    Step::Lattice(&["restack"], 0),
    Step::Lattice(&["log"], 0),
    Step::Say("Everything that Lattice does can be undone, exactly."),
    Step::Lattice(&["undo"], 0),
    Step::Lattice(&["redo"], 0),
    Step::Say("Now someone deletes a branch with plain git, and its child has no parent any more."),
    Step::Git(&["branch", "-q", "-D", "api"]),
    Step::Say("Lattice notices, refuses to guess, and says what can be done."),
    Step::Lattice(&["restack", "ui"], 1),
    Step::Say("A repair is a choice. This one brings the branch back from what the ledger knows."),
    Step::ApplyFirstFix("recreate-branch"),
    Step::Lattice(&["verify"], 0),
    Step::Lattice(&["log"], 0),
    Step::Lattice(&["ops"], 0),
];

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let directory = folder(app, arguments)?;
    let program = std::env::current_exe().map_err(|error| Failure::new("io", error.to_string()))?;
    let stage = Stage { app, program: &program, directory: &directory };
    stage.set()?;
    let mut last = String::new();
    for step in STORY {
        if let Some(text) = stage.play(step, &last)? {
            last = text;
        }
    }
    let steps = STORY.iter().filter(|step| !matches!(step, Step::Say(_))).count();
    let document = DemoDocument { directory: directory.display().to_string(), steps };
    Ok(Reply::new(document, format!("\nThe repository is in {}\n", directory.display())))
}

struct Stage<'a> {
    app: &'a App,
    program: &'a Path,
    directory: &'a Path,
}

/// The demo looks the same everywhere, whoever runs it.
const PLAIN: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "Demo"),
    ("GIT_AUTHOR_EMAIL", "demo@example.invalid"),
    ("GIT_COMMITTER_NAME", "Demo"),
    ("GIT_COMMITTER_EMAIL", "demo@example.invalid"),
];

impl Stage<'_> {
    fn set(&self) -> Result<(), Failure> {
        self.git(&["init", "-q", "-b", "main"])?;
        self.write("README", "An introduction\n")?;
        self.git(&["add", "README"])?;
        self.git(&["commit", "-q", "-m", "Begin"]).map(drop)
    }

    /// What the program printed, where the step runs it.
    fn play(&self, step: &Step, last: &str) -> Result<Option<String>, Failure> {
        match step {
            Step::Say(text) => self.tell(&format!("\n{}\n", self.app.style.bold(text))),
            Step::Write(name, text) => {
                self.tell(&format!("$ echo '{}' > {name}\n", text.trim_end()));
                self.write(name, text)?;
            }
            Step::Git(arguments) => {
                self.tell(&format!("$ git {}\n", shown(arguments)));
                self.git(arguments)?;
            }
            Step::Lattice(arguments, expected) => return self.lattice(arguments, *expected).map(Some),
            Step::ApplyFirstFix(kind) => {
                let fix = last.split_whitespace().find(|word| word.starts_with(kind));
                let fix = fix.ok_or_else(|| Failure::new("demo", format!("no fix {kind} was offered")))?;
                return self.lattice(&["doctor", "--fix", fix], 0).map(Some);
            }
        }
        Ok(None)
    }

    fn lattice(&self, arguments: &[&str], expected: i32) -> Result<String, Failure> {
        self.tell(&format!("$ lattice {}\n", shown(arguments)));
        let (code, text) = self.start(self.program.as_os_str(), arguments)?;
        self.tell(&indented(&text, "  "));
        if code != expected {
            return Err(Failure::new(
                "demo",
                format!("`lattice {}` ended with {code}, not {expected}", shown(arguments)),
            ));
        }
        Ok(text)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Failure> {
        let git = self.app.variable("LATTICE_GIT").unwrap_or_else(|| "git".to_owned());
        let (code, text) = self.start(OsStr::new(&git), arguments)?;
        if code == 0 { Ok(text) } else { Err(Failure::new("demo", format!("git {}: {text}", shown(arguments)))) }
    }

    fn start(&self, program: &OsStr, arguments: &[&str]) -> Result<(i32, String), Failure> {
        prompt::run_in(program, arguments, self.directory, PLAIN)
            .map_err(|error| Failure::new("demo", error.to_string()))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        crate::output::write_file(&self.directory.join(name), text)
            .map_err(|error| Failure::new("io", error.to_string()))
    }

    /// With `--json` the story goes to stderr, since stdout holds one document.
    fn tell(&self, text: &str) {
        match self.app.format {
            crate::app::Format::Human => out(text),
            crate::app::Format::Json => err(text),
        }
    }
}

fn shown(arguments: &[&str]) -> String {
    let quoted =
        arguments.iter().map(|word| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() });
    quoted.collect::<Vec<_>>().join(" ")
}

fn folder(app: &App, arguments: &Arguments) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::new("io", format!("the folder cannot be made: {error}"));
    let base = match &arguments.dir {
        Some(dir) => {
            let path = app.directory.join(dir);
            let taken = path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
            if taken {
                return Err(Failure::new("not-empty", format!("{} is not empty", path.display()))
                    .hint("name a folder that does not exist"));
            }
            path
        }
        None => std::env::temp_dir().join(format!("lattice-demo-{}", std::process::id())),
    };
    std::fs::create_dir_all(&base).map_err(failed)?;
    std::fs::canonicalize(&base).map_err(failed)
}
