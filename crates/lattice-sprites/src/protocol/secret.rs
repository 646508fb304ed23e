//! Finds what must not be shown: things that look like tokens, and values that were given out.

use std::borrow::Cow;

/// What stands in the place of a secret.
pub const MASK: &str = "[masked]";

/// How tokens of well-known services begin, and how many characters follow at least.
const FORMS: [(&str, usize); 12] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 16),
];

/// The secrets that are known besides those that look like one.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// Remembers a value in the forms in which it could be shown.
    pub fn add(&mut self, value: &str) {
        // A value this short would mask ordinary words.
        if value.len() < 6 {
            return;
        }
        let forms = [value.to_owned(), base64(value.as_bytes()), percent_encoded(value), json_escaped(value)];
        for form in forms {
            if !self.values.contains(&form) {
                self.values.push(form);
            }
        }
    }

    /// The text with every secret masked; borrowed if there is none.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = token_spans(text);
        for value in &self.values {
            spans.extend(text.match_indices(value.as_str()).map(|(at, found)| (at, at + found.len())));
        }
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        spans.sort_unstable();
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in spans {
            if start >= done {
                masked.push_str(&text[done..start]);
                masked.push_str(MASK);
            }
            done = done.max(end);
        }
        masked.push_str(&text[done..]);
        Cow::Owned(masked)
    }
}

fn token_spans(text: &str) -> Vec<(usize, usize)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut spans = Vec::new();
    for (start, least) in FORMS {
        for (at, _) in text.match_indices(start) {
            let rest = &text.as_bytes()[at + start.len()..];
            let length = rest.iter().take_while(|byte| is_part(byte)).count();
            let is_inside_word = at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
            if length >= least && !is_inside_word {
                spans.push((at, at + start.len() + length));
            }
        }
    }
    spans
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent_encoded(value: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    value.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Without padding, which would keep a longer text around the value from being found.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for digit in 0..=chunk.len() {
            let index = (number >> (18 - 6 * digit)) & 63;
            text.push(char::from(DIGITS[index as usize]));
        }
    }
    text
}
