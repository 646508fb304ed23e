//! The outer form of sources: first lines, lengths, and nothing left behind.

use xtask::source::{Line, Source};

use super::{assert_kept, crate_sources, place, sources};

const MOST_LINES_OF_A_FILE: usize = 500;
const MOST_LINES_OF_A_FUNCTION: usize = 70;

/// What marks unfinished work.
const LEFT_BEHIND: [&str; 4] = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];

#[test]
fn every_source_file_opens_by_saying_what_it_is() {
    let found: Vec<String> = sources()
        .iter()
        .filter(|source| !opens_with_documentation(source))
        .map(|source| format!("{}:1", source.path))
        .collect();
    assert_kept("a file begins with `//!`", &found);
}

#[test]
fn no_file_of_a_crate_is_too_long() {
    let found: Vec<String> = crate_sources()
        .iter()
        .map(|source| (source, source.production().count()))
        .filter(|(_, count)| *count > MOST_LINES_OF_A_FILE)
        .map(|(source, count)| format!("{}:1: {count} lines", source.path))
        .collect();
    assert_kept("a file has at most 500 lines without tests", &found);
}

/// Unlike the lint of the same limit, this rule has no exceptions.
#[test]
fn no_function_of_a_crate_is_too_long() {
    let found: Vec<String> =
        crate_sources().iter().flat_map(|source| long_functions(source, MOST_LINES_OF_A_FUNCTION)).collect();
    assert_kept("a function has at most 70 lines", &found);
}

#[test]
fn nothing_unfinished_is_left_behind() {
    let mut found = Vec::new();
    for source in &sources() {
        let lines = source.lines.iter().filter(|line| is_left_behind(line));
        found.extend(lines.map(|line| place(source, line)));
    }
    assert_kept("unfinished work and switched-off tests stay out", &found);
}

#[test]
fn the_lines_of_a_function_are_those_between_its_braces() {
    let content = "
fn short(a: [u8; 2]) -> u8 { 1 }
fn empty();
fn long(
    a: fn(u8),
) -> u8 {
    let b = if a { 1 } else { \"}\" };
    // A comment and a blank line do not count.

    b
}
";
    let source = Source::new("crates/a/src/a.rs", content);
    assert_eq!(long_functions(&source, 1), ["crates/a/src/a.rs:4: long has 2 lines"]);
    assert!(long_functions(&source, 2).is_empty(), "two lines are two");
}

fn opens_with_documentation(source: &Source) -> bool {
    source.lines.first().is_some_and(|line| line.comment.starts_with("//!"))
}

fn is_left_behind(line: &Line) -> bool {
    LEFT_BEHIND.iter().any(|mark| line.code.contains(mark))
}

fn long_functions(source: &Source, most: usize) -> Vec<String> {
    let lines: Vec<&Line> = source.production().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((at, name)) = function_head(&line.code) else {
            continue;
        };
        let count = body_lines(&lines[index..], at);
        if count > most {
            found.push(format!("{}:{}: {name} has {count} lines", source.path, line.number));
        }
    }
    found
}

/// Where a named function begins in a line. The type `fn(…)` has no name.
fn function_head(code: &str) -> Option<(usize, &str)> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices("fn ").find_map(|(at, keyword)| {
        let rest = &code[at + keyword.len()..];
        let name = rest.split(|character| !is_word(character)).next()?;
        (!code[..at].ends_with(is_word) && !name.is_empty()).then_some((at, name))
    })
}

/// The lines with code inside of the first body that opens at or after `start` of the first line.
fn body_lines(lines: &[&Line], start: usize) -> usize {
    let mut braces = 0_usize;
    let mut others = 0_usize;
    let mut count = 0;
    for (index, line) in lines.iter().enumerate() {
        let began_inside = braces > 0;
        let from = if index == 0 { start } else { 0 };
        for character in line.code[from..].chars() {
            match character {
                '(' | '[' => others += 1,
                ')' | ']' => others = others.saturating_sub(1),
                '{' => braces += 1,
                '}' if braces <= 1 => return count,
                '}' => braces -= 1,
                ';' if braces == 0 && others == 0 => return 0,
                _ => {}
            }
        }
        if began_inside && !line.text.trim().is_empty() {
            count += 1;
        }
    }
    count
}
