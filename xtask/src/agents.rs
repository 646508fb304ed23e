//! Real agents from npm, unchanged, in the strict sandbox: their model is scripted, on loopback behind the proxy.

mod model;

use std::path::{Path, PathBuf};

use lattice_testkit::{Lattice, TestRepo};

use crate::Failure;
use crate::bench::{Section, write_report};
use crate::process::Call;
use model::Model;

/// An agent as it is installed and as Lattice knows it.
struct Agent {
    preset: &'static str,
    package: &'static str,
    /// The variable of the host that its key is in.
    variable: &'static str,
}

const AGENTS: [Agent; 2] = [
    Agent { preset: "claude", package: "@anthropic-ai/claude-code", variable: "ANTHROPIC_API_KEY" },
    Agent { preset: "codex", package: "@openai/codex", variable: "OPENAI_API_KEY" },
];

/// What must never be seen inside.
const KEY: &str = "the-real-key-of-this-host-52c1";

/// Installs each agent, lets it work, and checks that its commit is on the stack and the key only at its model. What works
/// goes into docs/benchmarks.md.
pub fn run(root: &Path) -> Result<(), Failure> {
    Call { program: "cargo", arguments: &["build", "--package", "lattice"], environment: &[] }.run(root)?;
    let folder = tempfile::tempdir().map_err(|cause| Failure::File { path: std::env::temp_dir(), cause })?;
    let modules = folder.path().join("node_modules");
    let mut problems = Vec::new();
    let about = "Agents as npm has them, in the strict sandbox, with a scripted model: each made its commit, and its key was seen by its model alone.";
    let mut section = Section::new("passed", about, &["agent", "package", "version"]);
    for agent in &AGENTS {
        let words = ["install", "--no-audit", "--no-fund", "--no-save", agent.package];
        Call { program: "npm", arguments: &words, environment: &[] }.run(folder.path())?;
        // Some versions of npm run no scripts of packages; this one puts the program in its place.
        let script = modules.join(agent.package).join("install.cjs");
        if script.exists() {
            let script = script.display().to_string();
            Call { program: "node", arguments: &[&script], environment: &[] }.run(folder.path())?;
        }
        let found = one(&crate::bench::target(root).join("debug/lattice"), &modules.join(".bin"), agent);
        eprintln!("{}: {}", agent.preset, if found.is_empty() { "works" } else { "does not work" });
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", agent.preset)));
        section.row([agent.preset, agent.package, &version(&modules.join(agent.package))].map(str::to_owned).to_vec());
    }
    if problems.is_empty() {
        write_report(root, ("agents", "agents"), &[section])
    } else {
        Err(Failure::Problems(problems))
    }
}

fn version(package: &Path) -> String {
    let text = std::fs::read_to_string(package.join("package.json")).unwrap_or_default();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    description["version"].as_str().unwrap_or("not known").to_owned()
}

/// What is wrong after one agent has worked.
fn one(program: &Path, bin: &Path, agent: &Agent) -> Vec<String> {
    let repo = TestRepo::draw("main*");
    let model = Model::start();
    let config = repo.dir().join(".git/lattice/config.toml");
    let text = format!(
        "[trunk]\nbranch = \"main\"\n[agents.{}]\nkey = {{ env = \"{}\", url = \"http://127.0.0.1:{}\" }}\n",
        agent.preset, agent.variable, model.port
    );
    repo.write(config.to_str().unwrap_or_default(), text);
    let program = program.display().to_string();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let run = Lattice::new(&program, &repo).args(["run", "Make a file", "--name", "real", "--agent", agent.preset]);
    let out = run.env(agent.variable, KEY).env("PATH", &path).run();
    let place = repo.dir().join(".git/lattice/sprites/real");
    let said = std::fs::read_to_string(place.join("log")).unwrap_or_default();
    if out.code != Some(0) {
        return vec![format!("it ended with {:?}\n{}{said}", out.code, out.stderr)];
    }
    let commit = repo.git(&["log", "--format=%s", "main..sprite/real"]);
    let mut problems = Vec::new();
    if commit != model::SUBJECT {
        problems.push(format!("the stack has `{commit}`, not its commit\n{said}"));
    }
    if !model.heard(KEY) {
        problems.push("its model was asked without the key".to_owned());
    }
    problems.extend(files_with(KEY, &place).into_iter().map(|file| format!("the key is in {}", file.display())));
    problems
}

/// Files below a folder that hold a text.
fn files_with(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_with(text, &path)),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                    found.push(path);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
    found
}
