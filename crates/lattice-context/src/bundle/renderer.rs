//! From what was gathered to the files of a bundle. Pure: the same data gives the same bytes.

use lattice_model::time::Timestamp;
use sha2::{Digest as _, Sha256};

use super::data::{Comment, Gathered, InlineComment, Item, ItemType, PullParts, Review};
use super::manifest::{
    Amendment, Bundle, BundleFile, DIFF_STATS, FileEntry, FileKind, LinkedItem, Manifest, REVIEWS, THREAD, TRIGGER,
    VERSION, linked_path,
};
use super::table::{cell, code};
use super::untrusted::{Shown, on_one_line, shown};
use crate::pack::Secrets;
use crate::prompt::fence;
use crate::secrets;

/// Makes the bundle.
pub fn render(gathered: &Gathered, gathered_at: &Timestamp, secrets: Secrets) -> Bundle {
    let mut page = Page::new(gathered, secrets);
    page.trigger();
    page.thread();
    if let Some(pull) = &gathered.pull {
        page.diff_stats(pull);
        page.reviews(pull);
    }
    for item in &gathered.linked {
        page.linked(item);
    }
    let Page { files, warnings: found, secret_places, .. } = page;
    let mut warnings: Vec<_> = gathered.warnings.iter().map(|text| on_one_line(text).text).collect();
    warnings.extend(found);
    if let count @ 1.. = secret_places {
        let places = if count == 1 { "place looks" } else { "places look" };
        let done = match secrets {
            Secrets::Warn => "",
            Secrets::Redact => ", masked",
        };
        warnings.push(format!("{count} {places} like secrets{done}"));
    }
    let amends = match (&gathered.trigger.head_branch, gathered.trigger.kind) {
        (Some(branch), ItemType::PullRequest) => {
            Some(Amendment { number: gathered.trigger.number, branch: branch.clone() })
        }
        (None, _) | (_, ItemType::Issue) => None,
    };
    Bundle { manifest: manifest(gathered, gathered_at, warnings, &files), files, amends }
}

fn manifest(gathered: &Gathered, gathered_at: &Timestamp, warnings: Vec<String>, files: &[BundleFile]) -> Manifest {
    let entry = |file: &BundleFile| FileEntry { path: file.path.clone(), kind: file.kind };
    let linked =
        |item: &Item| LinkedItem { kind: item.kind, number: item.number, title: on_one_line(&item.title).text };
    Manifest {
        version: VERSION.to_owned(),
        trigger_type: gathered.trigger.kind,
        trigger_number: gathered.trigger.number,
        repo: gathered.trigger.repo.to_string(),
        title: on_one_line(&gathered.item.title).text,
        gathered_at: gathered_at.clone(),
        files: files.iter().map(entry).collect(),
        linked_items: gathered.linked.iter().map(linked).collect(),
        expansion_budget: gathered.expansion_budget,
        warnings,
    }
}

/// Writes one file after the other.
struct Page<'a> {
    gathered: &'a Gathered,
    secrets: Secrets,
    /// A word that marks the texts of others. It depends on all of them, so that none can contain it.
    mark: String,
    path: String,
    text: String,
    files: Vec<BundleFile>,
    warnings: Vec<String>,
    secret_places: usize,
}

impl<'a> Page<'a> {
    fn new(gathered: &'a Gathered, secrets: Secrets) -> Self {
        let bytes = serde_json::to_vec(gathered).expect("bug: the data has string keys");
        let mark = Sha256::digest(&bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let (path, text) = (String::new(), String::new());
        Self { gathered, secrets, mark, path, text, files: Vec::new(), warnings: Vec::new(), secret_places: 0 }
    }

    fn trigger(&mut self) {
        self.path = TRIGGER.to_owned();
        let gathered = self.gathered;
        self.facts(&gathered.item);
        self.field("Repository", &gathered.trigger.repo.to_string());
        if let Some(PullParts { pull, .. }) = &gathered.pull {
            let draft = if pull.draft { ", draft" } else { "" };
            self.field("Pull request", &format!("{}{draft}", pull.state));
            self.field("Head branch", &pull.head_branch);
            self.field("Base branch", &pull.base_branch);
        }
        self.body(&gathered.item.body);
        self.finish(FileKind::Trigger);
    }

    fn linked(&mut self, item: &Item) {
        self.path = linked_path(item.number);
        self.facts(item);
        self.body(&item.body);
        self.finish(FileKind::LinkedIssue);
    }

    /// The title and the lines that every item has.
    fn facts(&mut self, item: &Item) {
        let title = self.line(&item.title, "title");
        self.heading(1, &format!("{} #{}: {title}", item.kind.noun(), item.number), "");
        self.text.push('\n');
        self.field("State", &item.state);
        self.field("Author", &item.author);
        let labels: Vec<_> = item.labels.iter().map(|label| self.line(label, "labels")).collect();
        self.field("Labels", &if labels.is_empty() { "none".to_owned() } else { labels.join(", ") });
        self.field("Created", &item.created_at);
        self.field("URL", &item.url);
    }

    fn body(&mut self, body: &str) {
        if body.is_empty() {
            self.text.push_str("\nThere is no body.\n");
        } else {
            self.text.push_str("\n## Body\n");
            self.fenced(body, "body");
        }
    }

    fn thread(&mut self) {
        self.path = THREAD.to_owned();
        let comments = &self.gathered.comments;
        if let count @ 1.. = comments.len() {
            self.heading(1, &format!("Thread of {}", self.reference()), "");
            let noun = if count == 1 { "comment" } else { "comments" };
            self.text.push_str(&format!("\n{count} {noun}, oldest first.\n"));
        }
        for (at, Comment { author, body, created_at }) in (1..).zip(comments) {
            self.spoken(&format!("Comment {at}"), author, created_at);
            self.fenced(body, &format!("comment {at}"));
        }
        self.finish(FileKind::Thread);
    }

    fn diff_stats(&mut self, pull: &PullParts) {
        self.path = DIFF_STATS.to_owned();
        if let count @ 1.. = pull.files.len() {
            let added: u64 = pull.files.iter().map(|file| file.additions).sum();
            let removed: u64 = pull.files.iter().map(|file| file.deletions).sum();
            let noun = if count == 1 { "file" } else { "files" };
            self.heading(1, &format!("Changed files of {}", self.reference()), "");
            self.text.push_str(&format!("\n{count} {noun}, +{added} -{removed}\n\n"));
            self.text.push_str("| File | Status | Added | Removed |\n|---|---|---:|---:|\n");
        }
        for file in &pull.files {
            let path = shown(&file.path);
            let path = cell(&self.checked(path, "paths"));
            let status = file.status.as_str();
            self.text.push_str(&format!("| {path} | {status} | +{} | -{} |\n", file.additions, file.deletions));
        }
        self.finish(FileKind::DiffStats);
    }

    fn reviews(&mut self, pull: &PullParts) {
        self.path = REVIEWS.to_owned();
        if !pull.reviews.is_empty() || !pull.comments.is_empty() {
            self.heading(1, &format!("Reviews of {}", self.reference()), "");
        }
        for (at, Review { author, verdict, body, created_at }) in (1..).zip(&pull.reviews) {
            self.spoken(&format!("Review {at}: {verdict}"), author, created_at);
            if !body.is_empty() {
                self.fenced(body, &format!("review {at}"));
            }
        }
        for (at, InlineComment { author, path, line, body, created_at }) in (1..).zip(&pull.comments) {
            self.spoken(&format!("Inline comment {at}"), author, created_at);
            let place = line.map_or_else(|| path.clone(), |line| format!("{path}:{line}"));
            let place = code(&self.line(&place, &format!("path of inline comment {at}")));
            self.text.push_str(&format!("\n- Place: {place}\n"));
            self.fenced(body, &format!("inline comment {at}"));
        }
        self.finish(FileKind::Reviews);
    }

    /// The item as people refer to it.
    fn reference(&self) -> String {
        format!("{}#{}", self.gathered.trigger.repo, self.gathered.trigger.number)
    }

    /// The heading of something that somebody said.
    fn spoken(&mut self, what: &str, author: &str, created_at: &str) {
        self.text.push('\n');
        self.heading(2, &format!("{what} by {author}, {created_at}"), "headings");
    }

    fn heading(&mut self, level: usize, title: &str, name: &str) {
        let title = self.line(title, name);
        self.text.push_str(&format!("{} {}\n", "#".repeat(level), title.trim_end()));
    }

    fn field(&mut self, name: &str, value: &str) {
        let value = self.line(value, name);
        if !value.is_empty() {
            self.text.push_str(&format!("- {name}: {value}\n"));
        }
    }

    /// A text of somebody else, between fences that it cannot close and that carry the mark.
    fn fenced(&mut self, text: &str, name: &str) {
        self.text.push('\n');
        let opening = self.text.len();
        self.text.push('\n');
        let text = self.checked(shown(text), name);
        let fence = fence(&text);
        self.text.insert_str(opening, &format!("{fence}text untrusted {}", self.mark));
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.text.push_str(&format!("{text}{end}{fence}\n"));
    }

    fn line(&mut self, text: &str, name: &str) -> String {
        self.checked(on_one_line(text), name)
    }

    /// Notes what is odd about a text that comes next in the file.
    fn checked(&mut self, shown: Shown, name: &str) -> String {
        let (path, text) = (&self.path, &shown.text);
        self.warnings.extend(shown.warnings(&format!("{path}: {name}")));
        if secrets::find(text).is_empty() {
            return shown.text;
        }
        let here = self.text.matches('\n').count() + 1;
        let found = secrets::warnings_from(path, here, text);
        self.secret_places += found.len();
        self.warnings.extend(found);
        match self.secrets {
            Secrets::Warn => shown.text,
            Secrets::Redact => secrets::redact(&shown.text),
        }
    }

    fn finish(&mut self, kind: FileKind) {
        let (path, content) = (std::mem::take(&mut self.path), std::mem::take(&mut self.text));
        self.files.push(BundleFile { path, kind, content });
    }
}
