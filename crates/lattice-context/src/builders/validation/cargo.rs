//! Cargo's messages: one JSON object per line, those of the compiler among them.

use serde_json::Value;

use super::StageError;

/// The errors and warnings; none if the text is something else.
pub(super) fn parse(text: &str) -> Option<Vec<StageError>> {
    let mut is_cargo = false;
    let mut errors = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        let Some(reason) = record.get("reason").and_then(Value::as_str) else { continue };
        is_cargo = true;
        if reason == "compiler-message" {
            errors.extend(record.get("message").and_then(error));
        }
    }
    is_cargo.then_some(errors)
}

fn error(message: &Value) -> Option<StageError> {
    let spans = message.get("spans")?.as_array()?;
    let primary = spans.iter().find(|span| span.get("is_primary").and_then(Value::as_bool) == Some(true));
    let span = primary.or(spans.first())?;
    let number = |key: &str| span.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    Some(StageError {
        file: text(span.get("file_name"))?,
        line: number("line_start")?,
        message: text(message.get("message"))?,
        column: number("column_start"),
        severity: text(message.get("level")),
        code: text(message.get("code").and_then(|code| code.get("code"))),
    })
}
