//! Names inside of Markdown: spans of code and cells of tables that they cannot leave.

/// A cell of a table that shows the text. Every Markdown reader gets exactly the text back.
pub(super) fn cell(text: &str) -> String {
    // Inside of code a bar is escaped and nothing else is, so that a backslash cannot stand before one.
    if text.contains(['\\', '`', '\n', '\t']) || text.trim() != text || text.is_empty() {
        return escaped(text);
    }
    format!("`{}`", text.replace('|', "\\|"))
}

/// A span of code around a text of one line.
pub(super) fn code(text: &str) -> String {
    let mut longest = 0;
    for run in text.split(|c| c != '`') {
        longest = longest.max(run.len());
    }
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A text without any meaning for Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            ' ' => escaped.push_str("&#32;"),
            c if c.is_ascii_punctuation() => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
