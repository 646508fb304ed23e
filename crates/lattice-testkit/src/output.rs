//! What the program printed, and that text with the accidents of one run taken out.

use serde_json::Value;

use crate::repo::TestRepo;

/// How the program ended and what it said.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code, unless a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Data for the caller.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
    repo: TestRepo,
}

impl Output {
    pub(crate) fn new(repo: TestRepo, code: Option<i32>, signal: Option<i32>, stdout: String, stderr: String) -> Self {
        Self { code, signal, stdout, stderr, repo }
    }

    /// Stdout as the one JSON document that it has to be.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}\n{}", self.snapshot()))
    }

    /// Exit code, stdout and stderr as one text that is the same in every run of the same test.
    ///
    /// Object ids stay: dates are fixed, so they are reproducible, and a changed one is worth a look.
    pub fn snapshot(&self) -> String {
        let end = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "did not end".to_owned(),
        };
        let mut text = format!("{end}\n");
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                text += &format!("--- {name}\n{}", normalise(&self.repo, stream));
                text += if text.ends_with('\n') { "" } else { "\n(no newline at the end)\n" };
            }
        }
        text
    }
}

/// Replaces what differs from run to run: temporary paths, process ids and durations.
pub fn normalise(repo: &TestRepo, text: &str) -> String {
    let mut text = text.replace(&*repo.sandbox().root().to_string_lossy(), "<dir>");
    if let Some(parent) = repo.dir().parent() {
        text = text.replace(&*parent.to_string_lossy(), "<dir>");
    }
    normalise_numbers(&text)
}

/// Replaces numbers that are durations or process ids, by what stands around them.
fn normalise_numbers(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from_number) = rest.split_at(start);
        done += before;
        let end = from_number.find(|c: char| !c.is_ascii_digit() && c != '.');
        // A full stop at the end is the sentence's, not the number's.
        let number = from_number[..end.unwrap_or(from_number.len())].trim_end_matches('.');
        let after = &from_number[number.len()..];
        done += match accident(&done, after) {
            Some(name) => name,
            None => number,
        };
        rest = after;
    }
    done + rest
}

/// The placeholder for a number between these two texts, if it is a matter of chance.
fn accident(before: &str, after: &str) -> Option<&'static str> {
    let in_a_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if before.ends_with(in_a_word) {
        return None;
    }
    let name = before.trim_end_matches([' ', ':', '=', '"', '(']);
    if ["pid", "process"].iter().any(|word| name.ends_with(word)) {
        return Some("<pid>");
    }
    let after = after.strip_prefix(' ').unwrap_or(after);
    let unit = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let timed = ["ns", "us", "µs", "ms", "s"].contains(&unit) || name.ends_with("_ms");
    timed.then_some("<time>")
}

#[cfg(test)]
mod tests;
