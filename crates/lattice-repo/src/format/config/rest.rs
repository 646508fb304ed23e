//! What can still be read of a configuration that cannot be read as a whole.

use lattice_model::settings::Settings;
use lattice_model::snapshot::ReadableRest;
use toml_edit::DocumentMut;

/// A file with more mistakes than this is nobody's configuration.
const MISTAKES: usize = 20;

/// The text without the lines that are no TOML, and without options whose values mean nothing.
pub(super) fn readable(text: &str) -> ReadableRest {
    let mut lines: Vec<(usize, &str)> = text.split_inclusive('\n').enumerate().collect();
    let mut left_out = Vec::new();
    for _ in 0..MISTAKES {
        let kept: String = lines.iter().map(|(_, line)| *line).collect();
        let error = match kept.parse::<DocumentMut>() {
            Ok(document) => return without_bad_options(document, left_out),
            Err(error) => error,
        };
        let before = error.span().and_then(|span| kept.get(..span.start)).unwrap_or_default();
        let at = before.matches('\n').count().min(lines.len().saturating_sub(1));
        let end = end_of_mistake(&lines, at);
        left_out.extend(lines.drain(at..end).map(|(number, _)| format!("line {}", number + 1)));
    }
    ReadableRest::default()
}

/// A line; what stands below a heading goes with it, since it would come to stand below another one.
fn end_of_mistake(lines: &[(usize, &str)], at: usize) -> usize {
    let is_heading = |(_, line): &(usize, &str)| line.trim_start().starts_with('[');
    let below = lines.get(at + 1..).unwrap_or_default();
    match lines.get(at).is_some_and(is_heading) {
        true => at + 1 + below.iter().position(is_heading).unwrap_or(below.len()),
        false => lines.len().min(at + 1),
    }
}

fn without_bad_options(mut document: DocumentMut, mut left_out: Vec<String>) -> ReadableRest {
    let mut bad = Vec::new();
    for (table_name, item) in document.iter() {
        let Some(table) = item.as_table_like() else {
            bad.push((table_name.to_owned(), None));
            continue;
        };
        for (name, item) in table.iter() {
            let key = format!("{table_name}.{name}");
            if super::apply(&key, item, &mut Settings::default(), &mut Vec::new()).is_err() {
                bad.push((table_name.to_owned(), Some(name.to_owned())));
            }
        }
    }
    for (table, name) in bad {
        match name {
            None => {
                document.remove(&table);
                left_out.push(format!("`{table}`"));
            }
            Some(name) => {
                let slot = document.get_mut(&table).and_then(|item| item.as_table_like_mut());
                slot.and_then(|slot| slot.remove(&name));
                left_out.push(format!("`{table}.{name}`"));
            }
        }
    }
    ReadableRest { content: document.to_string(), left_out }
}
