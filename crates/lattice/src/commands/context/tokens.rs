//! `context tokens`: where the tokens of a file or folder are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use lattice_context::measure::measure;
use serde_json::{Value, json};

use super::{Counting, ResultDocument, read_input, workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::{Reply, Style, printable};

/// Count tokens: of a text, or per file and folder with bars
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder; `-` reads stdin; everything if absent
    path: Option<PathBuf>,
    #[command(flatten)]
    counting: Counting,
    /// How deep the tree is drawn
    #[arg(long, default_value_t = 2, value_name = "N")]
    depth: usize,
}

#[derive(Default)]
struct Folder {
    tokens: usize,
    files: usize,
    children: BTreeMap<String, Folder>,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let tokenizer = arguments.counting.tokenizer();
    let counter = tokenizer.counter();
    if let Some(path) = &arguments.path
        && (path == &PathBuf::from("-") || app.directory.join(path).is_file())
    {
        let tokens = counter.count(&read_input(app, path)?);
        let result = json!({ "tokens": tokens, "tokenizer": counter.name() });
        return Ok(Reply::named("context-tokens", ResultDocument { result }, format!("{tokens}\n")));
    }
    let workspace = workspace(app, tokenizer)?;
    let below = match &arguments.path {
        Some(path) => app.in_repository(&path.to_string_lossy(), workspace.root()),
        None => String::new(),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = measure(&workspace, &below, threads).map_err(super::workspace_failure)?;
    if counts.is_empty() {
        let place = if below.is_empty() { workspace.root().display().to_string() } else { below };
        return Err(Failure::new("nothing-to-count", format!("there is no text below `{}`", printable(&place))));
    }
    let mut root = Folder::default();
    for (path, tokens) in &counts {
        root.add(path.strip_prefix(&below).unwrap_or(path).trim_start_matches('/'), *tokens);
    }
    let mut text = String::new();
    let name = if below.is_empty() { "." } else { below.as_str() };
    root.write(&mut text, name, (0, arguments.depth), (root.tokens, app.style));
    let files: BTreeMap<&String, Value> = counts.iter().map(|(path, tokens)| (path, json!(tokens))).collect();
    let result = json!({ "tokens": root.tokens, "tokenizer": counter.name(), "files": files });
    Ok(Reply::named("context-tokens", ResultDocument { result }, text))
}

impl Folder {
    fn add(&mut self, path: &str, tokens: usize) {
        self.tokens += tokens;
        self.files += 1;
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let child = self.children.entry(name.to_owned()).or_default();
        if rest.is_empty() {
            child.tokens += tokens;
        } else {
            child.add(rest, tokens);
        }
    }

    fn write(&self, text: &mut String, name: &str, (level, depth): (usize, usize), (all, style): (usize, Style)) {
        let share = self.tokens as f64 / all.max(1) as f64;
        let full = if style.ascii { "#" } else { "█" };
        let bar = full.repeat((share * 20.0).round() as usize);
        let name = printable(name);
        let shown = if self.files > 0 { format!("{name}/ ({} files)", self.files) } else { name };
        text.push_str(&format!(
            "{:>10} {:>5.1}% {bar:<20} {}{shown}\n",
            self.tokens,
            share * 100.0,
            "  ".repeat(level)
        ));
        if level >= depth {
            return;
        }
        let mut children: Vec<_> = self.children.iter().collect();
        children.sort_by(|one, other| other.1.tokens.cmp(&one.1.tokens).then_with(|| one.0.cmp(other.0)));
        let shown = children.len().min(MOST_SHOWN);
        for (name, child) in &children[..shown] {
            child.write(text, name, (level + 1, depth), (all, style));
        }
        if children.len() > shown {
            let rest: usize = children[shown..].iter().map(|(_, child)| child.tokens).sum();
            let indent = "  ".repeat(level + 1);
            text.push_str(&format!("{rest:>10} {:>27} {indent}... {} more\n", "", children.len() - shown));
        }
    }
}

/// Entries of one folder that are drawn.
const MOST_SHOWN: usize = 12;
