//! Which other items of the same repository a text means, as `#12` outside of code.

use std::collections::HashSet;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, TextMergeStream};

/// The numbers that these texts refer to: each once, in the order of their first appearance, without `own`.
pub fn references<'a>(texts: impl IntoIterator<Item = &'a str>, own: u64) -> Vec<u64> {
    let mut seen = HashSet::from([own]);
    let mut found = Vec::new();
    for text in texts {
        in_markdown(text, &mut |number| {
            if seen.insert(number) {
                found.push(number);
            }
        });
    }
    found
}

/// Reads Markdown as hosts do: code, comments, addresses and the targets of links hold no references.
fn in_markdown(text: &str, found: &mut dyn FnMut(u64)) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut in_code = false;
    let mut before = ' ';
    // The tags and comments of a block of HTML may go over several events.
    let mut html = Html::default();
    for event in TextMergeStream::new(Parser::new_ext(text, options)) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(text) if !in_code => before = in_text(&text, before, found),
            Event::Html(text) => html.read(&text, found),
            Event::Start(Tag::HtmlBlock) => html = Html::default(),
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. })
            | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link)
            | Event::Text(_) => {}
            Event::Code(_) => before = '`',
            _ => before = ' ',
        }
    }
}

/// Finds `#12` in plain text and says what the text ends with, since the next piece may continue a word.
fn in_text(text: &str, before: char, found: &mut dyn FnMut(u64)) -> char {
    for (at, _) in text.match_indices('#') {
        let digits = &text[at + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(end);
        let previous = text[..at].chars().next_back().unwrap_or(before);
        let number = digits.parse().ok().filter(|number| *number > 0);
        if let Some(number) = number
            && !continues(previous)
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            && !in_address(&text[..at])
        {
            found(number);
        }
    }
    text.chars().next_back().unwrap_or(before)
}

/// Whether a `#` after this belongs to a word, another repository, an address or an entity.
fn continues(previous: char) -> bool {
    previous.is_alphanumeric() || matches!(previous, '_' | '/' | '&' | '#')
}

/// An address is looked for so far back; nobody writes longer ones.
const ADDRESS_LIMIT: usize = 2048;

/// Whether the word that the text ends with is an address.
fn in_address(text: &str) -> bool {
    let from = text.ceil_char_boundary(text.len().saturating_sub(ADDRESS_LIMIT));
    let word = text[from..].rsplit(char::is_whitespace).next();
    word.is_some_and(|word| word.contains("://") || word.contains("www."))
}

/// Text between the tags of a block of HTML.
#[derive(Default)]
struct Html {
    state: HtmlState,
}

#[derive(Default)]
enum HtmlState {
    #[default]
    Text,
    Tag,
    Comment,
}

impl Html {
    fn read(&mut self, text: &str, found: &mut dyn FnMut(u64)) {
        let mut rest = text;
        while !rest.is_empty() {
            let (end, next) = match self.state {
                HtmlState::Text => match rest.find('<') {
                    Some(at) if rest[at..].starts_with("<!--") => (at, Some((4, HtmlState::Comment))),
                    Some(at) => (at, Some((1, HtmlState::Tag))),
                    None => (rest.len(), None),
                },
                HtmlState::Tag => rest.find('>').map_or((rest.len(), None), |at| (at, Some((1, HtmlState::Text)))),
                HtmlState::Comment => {
                    rest.find("-->").map_or((rest.len(), None), |at| (at, Some((3, HtmlState::Text))))
                }
            };
            if matches!(self.state, HtmlState::Text) {
                in_text(&rest[..end], ' ', found);
            }
            let Some((width, state)) = next else { return };
            self.state = state;
            rest = &rest[end + width..];
        }
    }
}
