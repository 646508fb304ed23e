//! Turns a drawing into commits, refs and metadata with a handful of git processes, however large it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::draw::{Branch, Drawing};
use crate::metadata::{self, Freeze, Parent, Tracked};
use crate::repo::TestRepo;

/// Makes the drawn commits and branches and returns the tip of each branch.
pub(crate) fn commits(repo: &TestRepo, drawing: &Drawing) -> BTreeMap<String, String> {
    let mut stream = Stream::default();
    for branch in &drawing.branches {
        stream.add_branch(repo, branch);
    }
    let oids = import(repo, &stream.text);
    let tips = stream.tips.into_iter();
    tips.map(|(name, mark)| (name, oids[&mark].clone())).collect()
}

/// Tracks every drawn branch: one metadata blob and ref each.
pub(crate) fn metadata(repo: &TestRepo, drawing: &Drawing, tips: &BTreeMap<String, String>) {
    let trunk = &drawing.trunk().name;
    let mut blobs = String::new();
    let mut names = Vec::new();
    for branch in &drawing.branches {
        let Some(parent) = &branch.parent else { continue };
        let tracked = Tracked {
            branch: &branch.name,
            parent: if parent == trunk { Parent::Trunk(parent) } else { Parent::Branch(parent) },
            base: &tips[parent],
            freeze: if branch.frozen { Freeze::Frozen } else { Freeze::Unfrozen },
        };
        names.push(&branch.name);
        let text = metadata::document(&tracked).to_string();
        put(&mut blobs, format_args!("blob\nmark :{}\n{}", names.len(), data(&text)));
    }
    let oids = import(repo, &blobs);
    let mut updates = String::new();
    for (mark, name) in (1..).zip(names) {
        put(&mut updates, format_args!("create {} {}\n", metadata::metadata_ref(name), oids[&mark]));
    }
    repo.git_with_input(&["update-ref", "--stdin"], updates.as_bytes());
}

/// The input of `git fast-import` as it grows.
#[derive(Default)]
struct Stream {
    text: String,
    tips: BTreeMap<String, u32>,
    marks: u32,
}

impl Stream {
    fn add_branch(&mut self, repo: &TestRepo, branch: &Branch) {
        let mut tip = branch.parent.as_ref().map(|parent| self.tips[parent]);
        for number in 1..=branch.commits.unwrap_or(1) {
            tip = Some(self.add_commit(repo, branch, number, tip));
        }
        let tip = tip.expect("the trunk has a commit, every other branch a parent");
        let name = &branch.name;
        put(&mut self.text, format_args!("reset refs/heads/{name}\nfrom :{tip}\n\n"));
        self.tips.insert(name.clone(), tip);
    }

    /// Adds the `number`-th commit of a branch, which adds a line to the branch's own file.
    fn add_commit(&mut self, repo: &TestRepo, branch: &Branch, number: u32, parent: Option<u32>) -> u32 {
        self.marks += 1;
        let name = &branch.name;
        let (file, content, message) = match parent {
            None => ("README".to_owned(), "A repository for tests.\n".to_owned(), "initial".to_owned()),
            Some(_) => {
                let lines = (1..=number).map(|number| format!("{name} {number}\n"));
                (file_of(name), lines.collect(), format!("{name} {number}"))
            }
        };
        let (mark, date) = (self.marks, repo.sandbox().tick_commit());
        put(
            &mut self.text,
            format_args!(
                "commit refs/heads/{name}\nmark :{mark}\n\
                 committer Ada Tester <ada@example.invalid> {date} +0000\n{}",
                data(&format!("{message}\n"))
            ),
        );
        if let Some(parent) = parent {
            put(&mut self.text, format_args!("from :{parent}\n"));
        }
        put(&mut self.text, format_args!("M 100644 inline {file}\n{}\n", data(&content)));
        mark
    }
}

/// The file that the commits of a branch change; no other branch touches it.
fn file_of(branch: &str) -> String {
    format!("{}.txt", branch.replace('/', "-"))
}

fn data(text: &str) -> String {
    format!("data {}\n{text}\n", text.len())
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string grows without errors");
}

/// Runs `git fast-import` and returns the object id of every mark.
fn import(repo: &TestRepo, stream: &str) -> BTreeMap<u32, String> {
    let marks = repo.sandbox().root().join("tmp/marks");
    let export = format!("--export-marks={}", marks.display());
    repo.git_with_input(&["fast-import", "--quiet", "--force", &export], stream.as_bytes());
    let text = fs::read_to_string(&marks).unwrap_or_default();
    fs::remove_file(&marks).ok();
    text.lines().map(parse_mark).collect()
}

fn parse_mark(line: &str) -> (u32, String) {
    let (mark, oid) = line
        .strip_prefix(':')
        .and_then(|line| line.split_once(' '))
        .unwrap_or_else(|| panic!("not a mark of fast-import: {line:?}"));
    (mark.parse().expect("marks are numbers"), oid.to_owned())
}
