//! The structure of code: what can be left out of a file and what it looks like then.

use std::ops::Range;

use tree_sitter::{Node, Parser};

use crate::language::{BodyStyle, Grammar, Language};

/// Files above this size are handled by lines alone.
const PARSE_LIMIT: usize = 2 << 20;

/// How deep a tree is followed.
const DEPTH_LIMIT: usize = 200;

/// A file in terms of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The callables outside of other callables, in order.
    pub bodies: Vec<Body>,
    /// First lines of top-level items, comments above them included.
    pub items: Vec<usize>,
    /// First lines of callables inside of items, where an item that is too long may be divided.
    pub members: Vec<usize>,
    /// Lines of imports.
    pub imports: Vec<Range<usize>>,
}

/// A callable whose body can be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// With the names of what it is in, such as `Cart.total`.
    pub name: String,
    /// All lines of the callable, counted from 0.
    pub lines: Range<usize>,
    /// The lines that go, counted from 0.
    pub cut: Range<usize>,
    /// First and last lines of what it is in.
    pub frames: Vec<Range<usize>>,
    pub(super) marker: Marker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Comment,
    /// Python needs something in the place of a body.
    Ellipsis,
}

/// Lines that were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elision {
    pub name: String,
    /// Counted from 1, both included.
    pub first: usize,
    pub last: usize,
}

/// A text with parts left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub content: String,
    pub elisions: Vec<Elision>,
}

/// Finds the structure of a text; none if its language has no grammar or it cannot be parsed.
pub fn outline(language: &Language, text: &str) -> Option<Outline> {
    let grammar = language.grammar.as_ref()?;
    if text.len() > PARSE_LIMIT {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&(grammar.parser)()).ok()?;
    let tree = parser.parse(text, None)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut walk =
        Walk { grammar, text, lines: &lines, found: Outline::default(), names: Vec::new(), frames: Vec::new() };
    walk.visit(tree.root_node(), 0);
    walk.found.items = top_level(tree.root_node(), &lines);
    walk.found.members.sort_unstable();
    Some(walk.found)
}

/// The text without the bodies that `keep` does not want.
pub fn without_bodies(language: &Language, text: &str, outline: &Outline, keep: impl Fn(usize) -> bool) -> Rendered {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut content = String::with_capacity(text.len());
    let mut elisions = Vec::new();
    let mut at = 0;
    for (number, body) in outline.bodies.iter().enumerate() {
        if keep(number) || body.cut.start < at || body.cut.end > lines.len() {
            continue;
        }
        content.extend(lines[at..body.cut.start].iter().copied());
        let indent = lines.get(body.cut.start).map(|line| indent_of(line)).unwrap_or_default();
        content.push_str(&body.marker(language, indent));
        elisions.push(Elision { name: body.name.clone(), first: body.cut.start + 1, last: body.cut.end });
        at = body.cut.end;
    }
    content.extend(lines[at..].iter().copied());
    Rendered { content, elisions }
}

/// Only the lines of `wanted`; each gap becomes a line that says how long it is.
pub fn only_lines(language: Option<&Language>, text: &str, wanted: &[Range<usize>]) -> Rendered {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut content = String::new();
    let mut elisions = Vec::new();
    let mut gap = |content: &mut String, from: usize, to: usize| {
        if from >= to {
            return;
        }
        let indent = lines.get(to).or(lines.get(from)).map(|line| indent_of(line)).unwrap_or_default();
        content.push_str(&gap_line(language, indent, to - from));
        elisions.push(Elision { name: String::new(), first: from + 1, last: to });
    };
    let mut at = 0;
    for range in merged(wanted, lines.len()) {
        gap(&mut content, at, range.start);
        content.extend(lines[range.clone()].iter().copied());
        if range.end < lines.len() || content.ends_with('\n') {
            at = range.end;
        } else {
            at = lines.len();
        }
    }
    gap(&mut content, at, lines.len());
    Rendered { content, elisions }
}

/// Sorted, without overlaps; ranges that touch become one.
pub fn merged(ranges: &[Range<usize>], lines: usize) -> Vec<Range<usize>> {
    let mut sorted: Vec<_> = ranges.iter().map(|range| range.start.min(lines)..range.end.min(lines)).collect();
    sorted.retain(|range| range.start < range.end);
    sorted.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => merged.push(range),
        }
    }
    merged
}

impl Body {
    /// The line that stands in the place of the body.
    pub(super) fn marker(&self, language: &Language, indent: &str) -> String {
        let comment = language.comment(&format!("... ({})", lines_said(self.cut.len())));
        match self.marker {
            Marker::Comment => format!("{indent}{comment}\n"),
            Marker::Ellipsis => format!("{indent}...  {comment}\n"),
        }
    }
}

/// The line that stands in the place of lines that are not shown.
pub(super) fn gap_line(language: Option<&Language>, indent: &str, lines: usize) -> String {
    let said = format!("... ({})", lines_said(lines));
    format!("{indent}{}\n", language.map_or(said.clone(), |language| language.comment(&said)))
}

fn lines_said(count: usize) -> String {
    format!("{count} lines")
}

pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

struct Walk<'a> {
    grammar: &'a Grammar,
    text: &'a str,
    lines: &'a [&'a str],
    found: Outline,
    names: Vec<String>,
    frames: Vec<Range<usize>>,
}

impl Walk<'_> {
    fn visit(&mut self, node: Node<'_>, depth: usize) {
        if depth > DEPTH_LIMIT {
            return;
        }
        let kind = node.kind();
        if self.grammar.imports.contains(&kind) {
            self.found.imports.push(rows(node));
        }
        if self.grammar.callables.contains(&kind) {
            let start = rows(self.with_decorators(node)).start;
            self.found.members.push(self.with_comments(start));
        }
        if self.grammar.callables.contains(&kind)
            && let Some(body) = self.body(node)
        {
            self.found.bodies.push(body);
            return;
        }
        let is_container = self.grammar.containers.contains(&kind);
        if is_container {
            self.names.push(name_of(node, self.text));
            let inner =
                node.child_by_field_name("body").map_or(node.start_position().row, |body| body.start_position().row);
            let head = node.start_position().row..inner.max(node.start_position().row) + 1;
            self.frames.push(head);
            if self.grammar.body != BodyStyle::Docstring {
                let last = node.end_position().row;
                self.frames.push(last..last + 1);
            }
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child, depth + 1);
        }
        if is_container {
            self.names.pop();
            self.frames.pop();
            if self.grammar.body != BodyStyle::Docstring {
                self.frames.pop();
            }
        }
    }

    fn body(&self, node: Node<'_>) -> Option<Body> {
        let body = node.child_by_field_name("body")?;
        if body.has_error() || body.is_missing() {
            return None;
        }
        let (cut, marker) = match self.grammar.body {
            BodyStyle::Braces => (self.between_braces(body)?, Marker::Comment),
            BodyStyle::Lines => (self.whole_lines(body, body, node.start_position().row)?, Marker::Comment),
            BodyStyle::Docstring => match docstring(body) {
                None => {
                    let first = body.named_child(0)?;
                    (self.whole_lines(first, body, node.start_position().row)?, Marker::Ellipsis)
                }
                Some(doc) => {
                    let first = doc.next_named_sibling()?;
                    (self.whole_lines(first, body, doc.end_position().row)?, Marker::Comment)
                }
            },
        };
        let names = self.names.iter().map(String::as_str).filter(|name| !name.is_empty());
        let own = name_of(node, self.text);
        let name = names.chain(std::iter::once(own.as_str())).collect::<Vec<_>>().join(".");
        let removed: usize = self.lines[cut.clone()].iter().map(|line| line.len() + 1).sum();
        // A marker that is longer than what it stands for helps nobody.
        let is_gain = removed > indent_of(self.lines[cut.start]).len() + 24;
        is_gain.then(|| Body {
            name,
            lines: rows(self.with_decorators(node)),
            cut,
            frames: self.frames.clone(),
            marker,
        })
    }

    /// The first line of the comments directly above a line.
    fn with_comments(&self, row: usize) -> usize {
        let leads = |line: &str| {
            let line = line.trim_start();
            line.starts_with("//")
                || line.starts_with('#')
                || line.starts_with('*')
                || line.starts_with("/*")
                || line.starts_with('@')
        };
        let above = self.lines[..row].iter().rev().take_while(|line| leads(line)).count();
        row - above
    }

    fn with_decorators<'t>(&self, node: Node<'t>) -> Node<'t> {
        match node.parent() {
            Some(parent) if parent.kind() == "decorated_definition" => parent,
            Some(_) | None => node,
        }
    }

    /// The lines between a brace that ends its line and one that begins its line.
    fn between_braces(&self, body: Node<'_>) -> Option<Range<usize>> {
        let text = self.text.get(body.byte_range())?;
        if !text.starts_with('{') || !text.ends_with('}') {
            return None;
        }
        let (open, close) = (body.start_position(), body.end_position());
        let after = self.lines.get(open.row)?.get(open.column + 1..)?;
        let before = self.lines.get(close.row)?.get(..close.column.checked_sub(1)?)?;
        let range = open.row + 1..close.row;
        (after.trim().is_empty() && before.trim().is_empty() && range.start < range.end).then_some(range)
    }

    /// The lines from `first` to the end of `body`, if both stand alone on their lines. All are below the row `above`.
    fn whole_lines(&self, first: Node<'_>, body: Node<'_>, above: usize) -> Option<Range<usize>> {
        let start = first.start_position();
        // Comments above the first statement belong to the body.
        let mut row = start.row;
        while row > above + 1 && self.lines.get(row - 1).is_some_and(|line| line.trim_start().starts_with('#')) {
            row -= 1;
        }
        let before = self.lines.get(start.row)?.get(..start.column)?;
        let last = last_row(body);
        let range = row..last + 1;
        (before.trim().is_empty() && range.end <= self.lines.len() && range.start < range.end).then_some(range)
    }
}

/// The last row with something of a node on it.
fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row { end.row - 1 } else { end.row }
}

fn rows(node: Node<'_>) -> Range<usize> {
    node.start_position().row..last_row(node) + 1
}

fn docstring(body: Node<'_>) -> Option<Node<'_>> {
    let first = body.named_child(0)?;
    let inner = first.named_child(0)?;
    let is_text = matches!(inner.kind(), "string" | "concatenated_string");
    (first.kind() == "expression_statement" && is_text && first.named_child_count() == 1).then_some(first)
}

/// The name of something that is defined; names of unnamed functions are those of what they are assigned to.
fn name_of(node: Node<'_>, text: &str) -> String {
    let named = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("declarator").map(innermost_declarator))
        .or_else(|| node.child_by_field_name("type"))
        .or_else(|| {
            let parent = node.parent()?;
            parent.child_by_field_name("name").or_else(|| parent.child_by_field_name("key"))
        });
    let name = named.and_then(|named| text.get(named.byte_range())).unwrap_or_default();
    name.lines().next().unwrap_or_default().trim().to_owned()
}

fn innermost_declarator(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    for _ in 0..DEPTH_LIMIT {
        match node.child_by_field_name("declarator") {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

/// Where top-level items begin: comments and attributes directly above belong to the item below them.
fn top_level(root: Node<'_>, lines: &[&str]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut cursor = root.walk();
    let mut pending: Option<usize> = None;
    for child in root.named_children(&mut cursor) {
        let row = child.start_position().row;
        let leads = child.kind().contains("comment") || child.kind() == "attribute_item";
        let touches =
            |from: usize| from <= row && lines[from..row.min(lines.len())].iter().all(|line| !line.trim().is_empty());
        let start = pending.take().filter(|from| touches(*from)).unwrap_or(row);
        if leads {
            pending = Some(start);
        }
        if starts.last() != Some(&start) {
            starts.push(start);
        }
    }
    // What a comment leads to begins at the comment.
    starts.dedup();
    starts
}
