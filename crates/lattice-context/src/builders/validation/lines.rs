//! Lines of text that name a place: compilers, linters, and traces of Python and Rust.

use super::StageError;

/// Files with more errors than anyone fixes at once are cut here.
const MOST_ERRORS: usize = 10_000;

pub(super) fn parse(text: &str) -> Vec<StageError> {
    let mut errors: Vec<StageError> = Vec::new();
    // The message of a Rust diagnostic stands before its place, that of a Python trace behind its places.
    let mut rust: Option<(String, Option<String>, String)> = None;
    let mut trace: Vec<StageError> = Vec::new();
    for line in text.lines().take(1_000_000) {
        if errors.len() >= MOST_ERRORS {
            break;
        }
        let trimmed = line.trim();
        if let Some(frame) = python_frame(trimmed) {
            trace.push(frame);
        } else if let Some(message) = python_end(line, &trace) {
            errors.extend(trace.drain(..).map(|frame| StageError { message: message.clone(), ..frame }));
        } else if let Some(head) = rust_head(line) {
            rust = Some(head);
        } else if let Some(place) = trimmed.strip_prefix("--> ") {
            if let (Some((severity, code, message)), Some((file, line, column))) = (rust.take(), place_of(place)) {
                errors.push(StageError { file, line, message, column, severity: Some(severity), code });
            }
        } else if let Some(error) = panic_place(trimmed).or_else(|| typescript(trimmed)).or_else(|| colons(trimmed)) {
            errors.push(error);
        }
    }
    errors.extend(trace);
    errors
}

/// `File "a.py", line 3, in f`.
fn python_frame(line: &str) -> Option<StageError> {
    let (file, rest) = line.strip_prefix("File \"")?.split_once('"')?;
    let number: String = rest.strip_prefix(", line ")?.chars().take_while(char::is_ascii_digit).collect();
    Some(plain(file, number.parse().ok()?, None, line.to_owned()))
}

/// `ValueError: text`, which ends a trace.
fn python_end(line: &str, trace: &[StageError]) -> Option<String> {
    let is_end = !trace.is_empty() && line.starts_with(|c: char| c.is_ascii_alphabetic());
    is_end.then(|| line.trim().to_owned())
}

/// `error[E0308]: mismatched types`.
fn rust_head(line: &str) -> Option<(String, Option<String>, String)> {
    let (head, message) = line.split_once(": ")?;
    let (severity, code) = match head.split_once('[') {
        Some((severity, code)) => (severity, Some(code.trim_end_matches(']').to_owned())),
        None => (head, None),
    };
    matches!(severity, "error" | "warning").then(|| (severity.to_owned(), code, message.to_owned()))
}

/// `thread 'main' panicked at src/a.rs:3:5:`.
fn panic_place(line: &str) -> Option<StageError> {
    let (_, place) = line.split_once("panicked at ")?;
    let (file, number, column) = place_of(place.trim_end_matches(':'))?;
    Some(plain(&file, number, column, line.trim_end_matches(':').to_owned()))
}

/// `a.ts(3,5): error TS2322: text`.
fn typescript(line: &str) -> Option<StageError> {
    let (place, message) = line.split_once("): ")?;
    let (file, numbers) = place.rsplit_once('(')?;
    let mut numbers = numbers.split(',').map(str::parse);
    let number = numbers.next()?.ok()?;
    let column = numbers.next().and_then(Result::ok);
    let (severity, code, message) = severity_and_code(message);
    Some(StageError { file: file.to_owned(), line: number, message, column, severity, code })
}

/// `a.c:3:5: error: text`, `a.go:3: text`, `a.py:3: error: text  [code]`.
fn colons(line: &str) -> Option<StageError> {
    let mut parts = line.splitn(4, ':');
    let file = parts.next()?.trim();
    let number: u32 = parts.next()?.trim().parse().ok()?;
    let third = parts.next().unwrap_or_default();
    let fourth = parts.next();
    let is_path = !file.is_empty() && !file.contains("//") && (file.contains(['.', '/']));
    let (column, message) = match (third.trim().parse().ok(), fourth) {
        (Some(column), Some(rest)) => (Some(column), rest.to_owned()),
        (Some(column), None) => (Some(column), String::new()),
        (None, Some(rest)) => (None, format!("{third}:{rest}")),
        (None, None) => (None, third.to_owned()),
    };
    let (severity, code, message) = severity_and_code(message.trim());
    is_path.then(|| StageError { file: file.to_owned(), line: number, message, column, severity, code })
}

fn severity_and_code(message: &str) -> (Option<String>, Option<String>, String) {
    let (severity, message) = match message.split_once(": ") {
        Some((head, rest)) if is_severity(head.split_whitespace().next().unwrap_or_default()) => (Some(head), rest),
        Some(_) | None => (None, message),
    };
    let code = severity.and_then(|head| head.split_once(' ')).map(|(_, code)| code.to_owned());
    let severity = severity.and_then(|head| head.split_whitespace().next()).map(|word| word.to_ascii_lowercase());
    // gcc and mypy put the name of the rule in brackets at the end.
    let named = message.rsplit_once('[').filter(|(_, name)| name.ends_with(']') && !name.contains(' '));
    match (code, named) {
        (Some(code), _) => (severity, Some(code), message.to_owned()),
        (None, Some((text, name))) => {
            (severity, Some(name.trim_end_matches(']').to_owned()), text.trim_end().to_owned())
        }
        (None, None) => (severity, None, message.to_owned()),
    }
}

fn is_severity(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "error" | "warning" | "note" | "fatal" | "info" | "hint" | "help")
}

fn place_of(place: &str) -> Option<(String, u32, Option<u32>)> {
    let mut parts = place.trim().split(':');
    let file = parts.next()?.to_owned();
    let line = parts.next()?.parse().ok()?;
    Some((file, line, parts.next().and_then(|column| column.parse().ok())))
}

fn plain(file: &str, line: u32, column: Option<u32>, message: String) -> StageError {
    StageError { file: file.to_owned(), line, message, column, severity: None, code: None }
}
