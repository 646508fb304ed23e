//! `build_fix_context`: errors, and the source around each of them.

use std::collections::BTreeSet;

use serde_json::json;

use super::sources::{SECTION_LIMIT, Sources, note_absence};
use super::validation::{ErrorItem, ValidationOutput};
use super::{ContextDict, TruncationMetadata};
use crate::workspace::{Skip, Workspace};

/// The errors of all stages, the given files around them, and a summary.
pub fn build_fix_context(workspace: &Workspace, validation: &ValidationOutput, files: &[String]) -> ContextDict {
    let errors = validation.errors();
    let mut metadata = TruncationMetadata::default();
    let mut sources = Sources::new("source_files", &mut metadata);
    for file in files {
        let shown = file.trim_start_matches("./");
        // A file is meant by its path inside the workspace, however it is written.
        let place = workspace.resolve(file);
        let same =
            |error: &&ErrorItem| error.file == shown || (place.is_ok() && workspace.resolve(&error.file) == place);
        let targets: Vec<usize> = errors.iter().filter(same).map(|error| error.line as usize).collect();
        match workspace.read_bytes(file, SECTION_LIMIT.min(sources.left)) {
            Ok((content, _)) if targets.is_empty() => sources.add(shown, content, &[]),
            Ok((content, _)) => sources.add_windows(shown, content, &targets),
            Err(Skip::Missing) => sources.absent(shown),
            Err(skip) => {
                note_absence(shown, &skip, sources.metadata);
                sources.files.insert(shown, "");
            }
        }
    }
    let files = sources.files;
    let mut context = ContextDict::default();
    context.insert("errors", json!(errors));
    context.insert("source_files", files);
    context.insert("error_summary", summary(&errors));
    metadata.complete(context)
}

fn summary(errors: &[ErrorItem]) -> String {
    if errors.is_empty() {
        return "no errors were reported".to_owned();
    }
    let files: BTreeSet<&str> = errors.iter().map(|error| error.file.as_str()).collect();
    let warnings = errors.iter().filter(|error| error.severity == super::validation::Severity::Warning).count();
    let counted = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    let what = match (errors.len() - warnings, warnings) {
        (real, 0) => counted(real, "error"),
        (0, only) => counted(only, "warning"),
        (real, more) => format!("{} and {}", counted(real, "error"), counted(more, "warning")),
    };
    format!("{what} in {}", counted(files.len(), "file"))
}
