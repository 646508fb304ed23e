//! The table of requirements and the tests that prove them.
//!
//! A test names what it proves in a comment directly above it, `// proves: ` and a list of ids, or
//! `// proves partly: ` with ids, a dash and what is missing. The table is generated from these comments
//! and from the list of requirements, so that neither can claim what the other does not have.

use std::path::Path;

use crate::Failure;
use crate::source;

mod proofs;
mod table;
#[cfg(test)]
mod tests;

const REQUIREMENTS: &str = "docs/requirements.txt";
const TABLE: &str = "docs/conformance.md";

/// One promise of the project.
struct Requirement {
    id: String,
    sentence: String,
}

/// What one test says about one requirement.
struct Proof {
    id: String,
    /// The file and the name of the test.
    test: String,
    extent: Extent,
}

enum Extent {
    Whole,
    Part { missing: String },
}

/// Writes the table.
pub fn write(root: &Path) -> Result<(), Failure> {
    let path = root.join(TABLE);
    let content = generate(root)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "a generated document that can be generated again needs no durable write"
    )]
    let written = std::fs::write(&path, content);
    written.map_err(|cause| Failure::File { path, cause })
}

/// Compares the table with the one that would be written now.
pub fn check(root: &Path) -> Result<(), Failure> {
    let expected = generate(root)?;
    // A missing table is an outdated one.
    let found = std::fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    Err(Failure::Problems(vec![format!("{TABLE} is not up to date; run `cargo xtask conformance`")]))
}

fn generate(root: &Path) -> Result<String, Failure> {
    let list = crate::read(&root.join(REQUIREMENTS))?;
    let requirements = requirements(&list).map_err(Failure::Problems)?;
    let sources = source::rust_sources(root)?;
    let proofs = proofs::collect(&sources, &requirements).map_err(Failure::Problems)?;
    Ok(table::render(&requirements, &proofs))
}

/// Reads the list: one requirement a line, its id and its sentence with a tab between them.
fn requirements(list: &str) -> Result<Vec<Requirement>, Vec<String>> {
    let mut requirements: Vec<Requirement> = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in list.lines().enumerate() {
        let place = format!("{REQUIREMENTS}:{}", index + 1);
        let Some((id, sentence)) = line.split_once('\t') else {
            problems.push(format!("{place}: no tab between id and sentence"));
            continue;
        };
        if requirements.iter().any(|known| known.id == id) {
            problems.push(format!("{place}: {id} stands here a second time"));
        }
        requirements.push(Requirement { id: id.to_owned(), sentence: sentence.to_owned() });
    }
    if problems.is_empty() { Ok(requirements) } else { Err(problems) }
}
