//! `demo`: from an issue over an agent to a reviewed stack and a repaired accident, in a scratch repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::{App, Interaction};
use crate::commands::run::bare::SandboxChoice;
use crate::error::Failure;
use crate::output::{Document, Reply, err, indented, out};
use crate::prompt;

/// Show the whole loop at work in a scratch repository: an issue, an agent, a reviewed stack, an accident
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to make the repositories, which then stay; a temporary folder if absent
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the temporary folder for you to explore
    #[arg(long)]
    keep: bool,
    /// Wait for Enter before each part
    #[arg(long)]
    pause: bool,
    /// How the agent is kept apart from this machine; `none` is for where there can be no sandbox
    #[arg(long, value_enum, default_value = "strict")]
    sandbox: SandboxChoice,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DemoDocument {
    /// Where everything is, unless it was removed.
    directory: Option<String>,
    steps: usize,
}

impl Document for DemoDocument {
    const COMMAND: &'static str = "demo";
}

/// One thing that the demo does.
enum Step {
    Say(&'static str),
    /// What a person types into a shell.
    Shell(&'static str),
    /// Arguments of the program, the exit code that it must have, and a text that it must print.
    Lattice(&'static [&'static str], i32, &'static str),
    /// As `Lattice`, with one more argument: the first word of this kind that the step before printed.
    Pick(&'static [&'static str], fn(&str) -> bool, &'static str),
}

const AGENT: &str = include_str!("demo/agent.sh");

/// How it begins.
const BEFORE: &[Step] = &[
    Step::Say("A project, and a bare repository that the team pushes to. That is all the host there is."),
    Step::Shell(
        "git init -q --bare -b main ../team.git && git remote add origin ../team.git && git push -q origin main",
    ),
    Step::Lattice(&["init", "--trunk", "main"], 0, "main"),
    Step::Say("Somebody reports an issue, somebody else has a word to add."),
    Step::Lattice(
        &["issue", "new", "--title", "The greeting is rude", "--body", "greet.sh should be polite."],
        0,
        "opened #1",
    ),
    Step::Lattice(&["issue", "comment", "1", "Say somewhere what it is for, too."], 0, ""),
];

const IN_A_SANDBOX: &[Step] = &[
    Step::Say(
        "An agent gets the issue as files, and a checkout of its own, in a sandbox without network or credentials.\n\
         It works on two branches, one on the other, and asks for a pull request. It has to wait for that.",
    ),
    Step::Lattice(&["run", "issue", "1", "--name", "polite", "--", "bash", "agent.sh"], 4, "The greeting is rude"),
    Step::Say("It tried to push, too. There is nowhere to push to in a sandbox."),
];

const WITHOUT_A_SANDBOX: &[Step] = &[
    Step::Say(
        "An agent gets the issue as files, and a checkout of its own. There is no sandbox: this one is trusted, by name.\n\
         It works on two branches, one on the other, and asks for a pull request. It has to wait for that.",
    ),
    Step::Lattice(
        &["run", "issue", "1", "--name", "polite", "--sandbox", "none", "--", "bash", "agent.sh"],
        4,
        "without a sandbox",
    ),
    Step::Say("It tried to push, too. Its clone has nowhere to push to; nothing else would have stopped it."),
];

/// What follows in either case.
const AFTER: &[Step] = &[
    Step::Shell("lattice sprite logs polite | grep --after-context=2 '^. git push'"),
    Step::Say("What it asks for is done when a person says so. Then it goes on from its checkpoint."),
    Step::Lattice(&["approvals"], 0, "OPEN_PR"),
    Step::Pick(&["approve"], |word| word.parse::<u32>().is_ok(), "polite completed"),
    Step::Say("Its commits are ordinary branches of a stack now, and the pull request can be reviewed."),
    Step::Lattice(&["log"], 0, "usage"),
    Step::Lattice(&["pr", "show", "2"], 0, "Greet politely"),
    Step::Lattice(&["pr", "review", "2", "--verdict", "approve", "--body", "Much better"], 0, ""),
    Step::Say("Meanwhile a colleague changes the trunk. One command brings the whole stack along."),
    Step::Shell(
        "git clone -q ../team.git ../colleague && cd ../colleague && echo 'Read me first' > README && git add README && \
         git commit -q -m 'Introduce the project' && git push -q origin main",
    ),
    Step::Lattice(&["sync"], 0, "rebased usage"),
    Step::Lattice(&["log"], 0, "#2 open"),
    Step::Say("Everything can be undone, exactly, and done again."),
    Step::Lattice(&["undo"], 0, "undid"),
    Step::Lattice(&["restack"], 0, "rebased usage"),
    Step::Say(
        "Now somebody breaks what Lattice knows, by hand. It notices, refuses to guess, and says what can be done.",
    ),
    Step::Shell("git update-ref refs/branch-metadata/usage \"$(echo garbage | git hash-object -w --stdin)\""),
    Step::Lattice(&["restack"], 1, "cannot run"),
    Step::Say("A repair is a choice. This one puts back what the ledger saw last."),
    Step::Pick(&["doctor", "--fix"], |word| word.starts_with("restore-metadata-"), ""),
    Step::Lattice(&["verify"], 0, "holds"),
    Step::Say("All of it is on record."),
    Step::Lattice(&["ops"], 0, "import"),
];

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    if arguments.pause && app.interaction == Interaction::Never {
        return Err(Failure::usage("`--pause` waits for a key, and there is no terminal to press one on"));
    }
    let folder = folder(app, arguments)?;
    let directory = folder.join("project");
    let program = std::env::current_exe().map_err(|error| Failure::new("io", error.to_string()))?;
    let stage = Stage { app, program: &program, directory: &directory, pause: arguments.pause };
    let agent = match arguments.sandbox {
        SandboxChoice::Strict => IN_A_SANDBOX,
        SandboxChoice::None => WITHOUT_A_SANDBOX,
    };
    let story = || [BEFORE, agent, AFTER].into_iter().flatten();
    let played = stage.set().and_then(|()| stage.play_all(story()));
    let steps = story().filter(|step| !matches!(step, Step::Say(_))).count();
    if arguments.dir.is_none() && !arguments.keep {
        // What is left of a demo that nobody wants to keep is in a temporary folder.
        let _ = std::fs::remove_dir_all(&folder);
        played?;
        let text = "\nThat was all. `lattice demo --keep` leaves the repositories for you to explore.\n";
        return Ok(Reply::new(DemoDocument { directory: None, steps }, text.to_owned()));
    }
    played?;
    let document = DemoDocument { directory: Some(directory.display().to_string()), steps };
    Ok(Reply::new(document, format!("\nThe repository is in {}\n", directory.display())))
}

struct Stage<'a> {
    app: &'a App,
    program: &'a Path,
    directory: &'a Path,
    pause: bool,
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
        let failed = |error: std::io::Error| Failure::new("io", error.to_string());
        std::fs::create_dir_all(self.directory).map_err(failed)?;
        for (name, text) in [("greet.sh", "echo 'What do you want?'\n"), ("agent.sh", AGENT)] {
            crate::output::write_file(&self.directory.join(name), text).map_err(failed)?;
        }
        self.shell("git init -q -b main && git add . && git commit -q -m Begin").map(drop)
    }

    fn play_all(&self, story: impl Iterator<Item = &'static Step>) -> Result<(), Failure> {
        let mut last = String::new();
        for step in story {
            if let Some(text) = self.play(step, &last)? {
                last = text;
            }
        }
        Ok(())
    }

    /// What the program printed, where the step runs it.
    fn play(&self, step: &Step, last: &str) -> Result<Option<String>, Failure> {
        match step {
            Step::Say(text) => {
                if self.pause {
                    prompt::ask("\n[Enter] ");
                }
                self.tell(&format!("\n{}\n", self.app.style.bold(text)));
            }
            Step::Shell(line) => {
                self.tell(&format!("$ {line}\n"));
                self.tell(&indented(&self.shell(line)?, "  "));
            }
            Step::Lattice(arguments, code, said) => return self.lattice(arguments, *code, said).map(Some),
            Step::Pick(arguments, wanted, said) => {
                let word = last.split_whitespace().find(|word| wanted(word));
                let word = word.ok_or_else(|| {
                    Failure::new("demo", format!("there is nothing for `lattice {}`", shown(arguments)))
                })?;
                let arguments: Vec<_> = arguments.iter().copied().chain([word]).collect();
                return self.lattice(&arguments, 0, said).map(Some);
            }
        }
        Ok(None)
    }

    fn lattice(&self, arguments: &[&str], expected: i32, said: &str) -> Result<String, Failure> {
        self.tell(&format!("$ lattice {}\n", shown(arguments)));
        // What is printed comes in the order in which a terminal would show it.
        let program = self.program.display().to_string();
        let words: Vec<_> =
            ["-c", "exec \"$@\" 2>&1", "sh", &program].into_iter().chain(arguments.iter().copied()).collect();
        let (code, text) = self.start(&words)?;
        self.tell(&indented(&text, "  "));
        if code != expected && text.contains("the sandbox was refused") {
            let failure = Failure::new("sandbox-refused", "this system forbids what a sandbox is made of; see above");
            return Err(failure.hint("lattice demo --sandbox none shows the rest with an agent that nothing isolates"));
        }
        let problem = if code != expected {
            format!("ended with {code}, not {expected}")
        } else if !text.contains(said) {
            format!("did not say `{said}`")
        } else {
            return Ok(text);
        };
        Err(Failure::new("demo", format!("`lattice {}` {problem}", shown(arguments))))
    }

    fn shell(&self, line: &str) -> Result<String, Failure> {
        let (code, text) = self.start(&["-e", "-c", line])?;
        if code == 0 { Ok(text) } else { Err(Failure::new("demo", format!("`{line}`: {text}"))) }
    }

    /// Runs a shell that finds this program under its usual name.
    fn start(&self, arguments: &[&str]) -> Result<(i32, String), Failure> {
        let folder = self.program.parent().unwrap_or(Path::new("/")).display();
        let path = format!("{folder}:{}", self.app.variable("PATH").unwrap_or_default());
        let environment: Vec<_> = PLAIN.iter().copied().chain([("PATH", path.as_str())]).collect();
        prompt::run_in(OsStr::new("sh"), arguments, self.directory, &environment)
            .map_err(|error| Failure::new("demo", error.to_string()))
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
