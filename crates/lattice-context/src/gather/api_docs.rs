//! An OpenAPI specification in short: every path and method with its summary.

use serde_json::Value;

use super::{Gathered, chunk, skipped};
use crate::chunk::{ChunkType, ContextPriority};
use crate::workspace::{FILE_LIMIT, Workspace};

const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch", "trace"];

pub(super) fn gather(workspace: &Workspace, path: &str) -> Gathered {
    let text = match workspace.read(path, FILE_LIMIT) {
        Ok(file) => file.text,
        Err(skip) => return Gathered::nothing(skipped(path, &skip)),
    };
    let operations = match serde_json::from_str::<Value>(&text) {
        Ok(document) => from_json(&document),
        Err(_) => from_yaml(&text),
    };
    if operations.is_empty() {
        return Gathered::nothing(format!("{path} has no paths of an OpenAPI specification"));
    }
    let lines: String = operations.iter().map(Operation::line).collect();
    let source = workspace.resolve(path).unwrap_or_else(|_| path.to_owned());
    let kind = ChunkType::Other("api_spec".to_owned());
    Gathered::one(chunk(workspace, lines, &source, kind, ContextPriority::High))
}

struct Operation {
    method: String,
    path: String,
    summary: String,
}

impl Operation {
    fn line(&self) -> String {
        let summary = if self.summary.is_empty() { String::new() } else { format!(": {}", self.summary) };
        format!("- {} {}{summary}\n", self.method.to_uppercase(), self.path)
    }
}

fn from_json(document: &Value) -> Vec<Operation> {
    let paths = document.get("paths").and_then(Value::as_object);
    let mut operations = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if METHODS.contains(&method.as_str()) {
                let summary = operation.get("summary").and_then(Value::as_str).unwrap_or_default().to_owned();
                operations.push(Operation { method: method.clone(), path: path.clone(), summary });
            }
        }
    }
    operations
}

/// The block form of YAML in which specifications are written: keys by indentation.
fn from_yaml(text: &str) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut path: Option<(usize, String)> = None;
    let mut method_indent = None;
    let mut inside = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let key = key.trim_matches(['"', '\'']);
        if indent == 0 {
            inside = key == "paths";
            path = None;
        } else if inside && key.starts_with('/') && path.as_ref().is_none_or(|(level, _)| indent <= *level) {
            path = Some((indent, key.to_owned()));
            method_indent = None;
        } else if let Some((level, path)) = path.as_ref().filter(|(level, _)| inside && indent > *level) {
            let is_method = METHODS.contains(&key) && method_indent.is_none_or(|known| known == indent);
            if is_method {
                method_indent = Some(indent);
                operations.push(Operation { method: key.to_owned(), path: path.clone(), summary: String::new() });
            } else if key == "summary"
                && indent > *level
                && let Some(last) = operations.last_mut().filter(|last| last.path == *path && last.summary.is_empty())
            {
                value.trim().trim_matches(['"', '\'']).clone_into(&mut last.summary);
            }
        }
    }
    operations
}
