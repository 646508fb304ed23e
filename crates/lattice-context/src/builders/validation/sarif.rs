//! SARIF, the format of static analysers.

use serde_json::Value;

use super::StageError;

pub(super) fn parse(document: &Value) -> Vec<StageError> {
    let runs = document.get("runs").and_then(Value::as_array).into_iter().flatten();
    let results = runs.filter_map(|run| run.get("results")?.as_array()).flatten();
    results.filter_map(error).collect()
}

fn error(result: &Value) -> Option<StageError> {
    let place = result.get("locations")?.get(0)?.get("physicalLocation")?;
    let uri = place.get("artifactLocation")?.get("uri")?.as_str()?;
    let region = place.get("region");
    let number = |key: &str| region?.get(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
    Some(StageError {
        file: uri.trim_start_matches("file://").to_owned(),
        line: number("startLine").unwrap_or(1),
        message: result.get("message")?.get("text")?.as_str()?.to_owned(),
        column: number("startColumn"),
        severity: result.get("level").and_then(Value::as_str).map(str::to_owned),
        code: result.get("ruleId").and_then(Value::as_str).map(str::to_owned),
    })
}
