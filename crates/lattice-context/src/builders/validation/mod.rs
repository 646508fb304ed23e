//! Results of compilers, linters and tests, in the formats in which people have them.

mod cargo;
mod lines;
mod sarif;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a validation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationOutput {
    pub success: bool,
    pub stages: Vec<StageResult>,
    pub total_duration_ms: u64,
}

/// One stage of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageResult {
    pub stage_name: String,
    pub passed: bool,
    #[serde(default)]
    pub output: String,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub fix_attempts: u64,
    #[serde(default)]
    pub errors: Vec<StageError>,
}

/// One error of a stage, as it comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageError {
    pub file: String,
    pub line: u32,
    pub message: String,
    #[serde(default)]
    pub column: Option<u32>,
    #[serde(default)]
    pub severity: Option<String>,
    #[serde(default)]
    pub code: Option<String>,
}

/// One error as the fix context shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorItem {
    pub file: String,
    pub line: u32,
    pub message: String,
    pub severity: Severity,
    pub code: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// A text that is no validation output.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    #[error("the validation output is not as expected")]
    Shape(#[source] serde_json::Error),
    #[error("the validation output is JSON of no known kind: it has neither `stages` nor `runs`")]
    UnknownKind,
}

impl Severity {
    /// Notes and hints are warnings; whatever is not known is an error.
    pub fn of(name: Option<&str>) -> Self {
        match name.unwrap_or("error").to_ascii_lowercase().as_str() {
            "warning" | "warn" | "note" | "info" | "information" | "help" | "hint" | "none" | "style" => Self::Warning,
            _ => Self::Error,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl ErrorItem {
    pub fn line_of_text(&self) -> String {
        let code = self.code.as_ref().map(|code| format!("[{code}]")).unwrap_or_default();
        format!("- {}:{}: {}{code}: {}\n", self.file, self.line, self.severity.as_str(), self.message)
    }
}

impl ValidationOutput {
    /// Reads any of the known formats.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        let start = text.trim_start();
        if !start.starts_with('{') {
            return Ok(Self::of_errors("lines", lines::parse(text)));
        }
        if let Some(errors) = cargo::parse(text) {
            return Ok(Self::of_errors("cargo", errors));
        }
        let document: Value = serde_json::from_str(start).map_err(ValidationError::Shape)?;
        if document.get("runs").is_some() {
            return Ok(Self::of_errors("sarif", sarif::parse(&document)));
        }
        if document.get("stages").is_none() && document.get("success").is_none() {
            return Err(ValidationError::UnknownKind);
        }
        serde_json::from_value(document).map_err(ValidationError::Shape)
    }

    /// The errors of all stages, in order.
    pub fn errors(&self) -> Vec<ErrorItem> {
        let item = |error: &StageError| ErrorItem {
            file: error.file.trim_start_matches("./").to_owned(),
            line: error.line,
            message: error.message.clone(),
            severity: Severity::of(error.severity.as_deref()),
            code: error.code.clone(),
        };
        self.stages.iter().flat_map(|stage| &stage.errors).map(item).collect()
    }

    fn of_errors(stage_name: &str, errors: Vec<StageError>) -> Self {
        let failed = errors.iter().any(|error| Severity::of(error.severity.as_deref()) == Severity::Error);
        let stage = StageResult {
            stage_name: stage_name.to_owned(),
            passed: !failed,
            output: String::new(),
            duration_ms: 0,
            fix_attempts: 0,
            errors,
        };
        Self { success: !failed, stages: vec![stage], total_duration_ms: 0 }
    }
}
