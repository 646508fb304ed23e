//! Finds the comments in which tests say what they prove.

use std::collections::BTreeSet;

use super::{Extent, Proof, Requirement};
use crate::source::{Line, Source};

const WHOLE: &str = "// proves:";
const PART: &str = "// proves partly:";
const DASH: &str = " — ";

/// A test that claims more proves nothing in particular.
const MOST_IDS: usize = 8;

/// All proofs in the order of files and lines, or everything that is wrong with the comments.
pub(super) fn collect(sources: &[Source], requirements: &[Requirement]) -> Result<Vec<Proof>, Vec<String>> {
    let known: BTreeSet<&str> = requirements.iter().map(|one| one.id.as_str()).collect();
    let mut proofs = Vec::new();
    let mut problems = Vec::new();
    for source in sources {
        let mut reader = Reader::new(source, &known);
        source.lines.iter().for_each(|line| reader.line(line));
        reader.leave();
        proofs.append(&mut reader.proofs);
        problems.append(&mut reader.problems);
    }
    if problems.is_empty() { Ok(proofs) } else { Err(problems) }
}

/// Reads one file and keeps what stands above the next function.
struct Reader<'a> {
    source: &'a Source,
    known: &'a BTreeSet<&'a str>,
    above: Above,
    /// Brackets of an attribute that are still open.
    open_brackets: usize,
    proofs: Vec<Proof>,
    problems: Vec<String>,
}

/// Comments and attributes directly above a function.
#[derive(Default)]
struct Above {
    claims: Vec<Claim>,
    test: bool,
}

/// One id of a comment.
struct Claim {
    line: usize,
    id: String,
    extent: Extent,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source, known: &'a BTreeSet<&'a str>) -> Self {
        Self { source, known, above: Above::default(), open_brackets: 0, proofs: Vec::new(), problems: Vec::new() }
    }

    fn line(&mut self, line: &Line) {
        if line.code.trim().is_empty() && !line.comment.is_empty() {
            self.comment(line);
            return;
        }
        self.refuse_ids(line);
        let code = self.after_attributes(line.code.trim());
        if let Some(name) = function_name(code) {
            self.function(name);
        } else if !code.is_empty() || line.is_blank() {
            self.leave();
        }
    }

    fn comment(&mut self, line: &Line) {
        let comment = line.comment.trim();
        if let Some(list) = comment.strip_prefix(WHOLE) {
            self.claims(line.number, list, || Extent::Whole);
        } else if let Some(rest) = comment.strip_prefix(PART) {
            self.partial_claims(line.number, rest);
        } else {
            self.refuse_ids(line);
        }
    }

    fn partial_claims(&mut self, line: usize, rest: &str) {
        let Some((list, missing)) = rest.split_once(DASH) else {
            self.problem(line, "a partial proof says after a dash (—) what is missing");
            return;
        };
        let missing = missing.trim();
        self.claims(line, list, || Extent::Part { missing: missing.to_owned() });
    }

    fn claims(&mut self, line: usize, list: &str, extent: impl Fn() -> Extent) {
        for id in list.split(',').map(str::trim) {
            if !self.known.contains(id) {
                self.problem(line, &format!("there is no requirement `{id}`"));
            } else if self.above.claims.iter().any(|claim| claim.id == id) {
                self.problem(line, &format!("{id} is named twice for one test"));
            } else {
                self.above.claims.push(Claim { line, id: id.to_owned(), extent: extent() });
            }
        }
    }

    /// Takes leading attributes off and notes whether one of them makes a test.
    fn after_attributes<'c>(&mut self, mut code: &'c str) -> &'c str {
        loop {
            if self.open_brackets == 0 && !code.starts_with("#[") {
                return code;
            }
            if self.open_brackets == 0 {
                self.above.test |= is_test_attribute(code);
            }
            let Some(end) = self.close_attribute(code) else {
                return "";
            };
            code = code[end..].trim_start();
        }
    }

    /// The place behind the attribute's last bracket, none if that is on a later line.
    fn close_attribute(&mut self, code: &str) -> Option<usize> {
        for (at, character) in code.char_indices() {
            match character {
                '[' => self.open_brackets += 1,
                ']' => self.open_brackets -= 1,
                _ => {}
            }
            if self.open_brackets == 0 && character == ']' {
                return Some(at + 1);
            }
        }
        None
    }

    fn function(&mut self, name: &str) {
        if !self.above.test {
            self.leave();
            return;
        }
        let above = std::mem::take(&mut self.above);
        if above.claims.len() > MOST_IDS {
            let count = above.claims.len();
            let problem = format!("{name} names {count} requirements, more than {MOST_IDS}");
            self.problem(above.claims[0].line, &problem);
        }
        let file = self.source.path.trim_start_matches("crates/");
        let test = format!("{file}::{name}");
        self.proofs.extend(above.claims.into_iter().map(|claim| Proof {
            id: claim.id,
            test: test.clone(),
            extent: claim.extent,
        }));
    }

    /// What stood above was no test: claims there are errors.
    fn leave(&mut self) {
        let above = std::mem::take(&mut self.above);
        for claim in above.claims {
            let problem = format!("{} is named here, but no test follows", claim.id);
            self.problem(claim.line, &problem);
        }
    }

    /// Ids stand only in the comments that this module reads, so that none is overlooked.
    fn refuse_ids(&mut self, line: &Line) {
        let is_part = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
        for word in line.comment.split(|character| !is_part(character)) {
            let word = word.trim_end_matches(['.', '-']);
            if self.known.contains(word) {
                let problem = format!("{word} is named outside of a `{WHOLE}` comment above a test");
                self.problem(line.number, &problem);
            }
        }
    }

    fn problem(&mut self, line: usize, what: &str) {
        self.problems.push(format!("{}:{line}: {what}", self.source.path));
    }
}

/// Whether an attribute such as `#[test]` or `#[tokio::test(…)]` begins here.
fn is_test_attribute(code: &str) -> bool {
    let path = code.trim_start_matches("#[").split(['(', ']', ' ', '=']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

/// The name of the function whose head begins here.
fn function_name(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace();
    let is_qualifier = |word: &&str| matches!(*word, "pub" | "async" | "const") || word.starts_with("pub(");
    let keyword = words.find(|word| !is_qualifier(word))?;
    let name = words.next()?;
    let end = name.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(name.len());
    (keyword == "fn").then_some(&name[..end])
}
