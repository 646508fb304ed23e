//! Text that looks like a secret: found by place and kind, never shown.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};

/// Where a secret seems to be. Its value is nowhere in here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Counted from 1.
    pub line: usize,
    pub kind: SecretKind,
    #[serde(skip)]
    span: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretKind {
    PrivateKey,
    AccessToken,
    JsonWebToken,
    PasswordInUrl,
    AssignedSecret,
}

impl SecretKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PrivateKey => "private key",
            Self::AccessToken => "access token",
            Self::JsonWebToken => "JSON web token",
            Self::PasswordInUrl => "password in a URL",
            Self::AssignedSecret => "assigned secret",
        }
    }
}

/// How a token of a service begins, and how many characters follow at least.
const TOKENS: &[(&str, usize)] = &[
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("dop_v1_", 30),
    ("shpat_", 24),
];

/// Names whose values are secrets.
const NAMES: &[&str] =
    &["password", "passwd", "secret", "api_key", "apikey", "access_key", "auth_token", "access_token", "private_key"];

/// A name of many things, so that its value has to look like one that was made up by a program.
const TOKEN: &str = "token";

/// Names as configurations write them too.
const SPELLINGS: &[&str] = &["api-key", "access-key", "private-key"];

/// The header that carries a secret, and the words before it.
const HEADER: &str = "authorization";
const SCHEMES: &[&str] = &["bearer ", "basic ", "token "];

/// What may stand before a name in a line of a configuration, or of a diff of one.
const BEFORE_NAMES: &[&str] = &["export ", "ENV ", "- ", "+", "-"];

/// A value that a person chose has so many characters at least, one that a program made so many.
const SHORTEST: usize = 8;
const SHORTEST_MADE: usize = 16;

/// What is written where a value will be, and is none.
const PLACEHOLDERS: &[&str] = &["example", "changeme", "placeholder", "your", "xxx", "dummy", "test", "none", "null"];

/// How a JSON web token begins, and what stands before the host of a URL.
const WEB_TOKEN: &str = "eyJ";
const URL: &str = "://";

/// Longer lines are data; only their beginning is looked at.
const LINE_LIMIT: usize = 16 << 10;

/// How a private key begins.
const KEY: &str = "-----BEGIN ";

/// A line without any of these holds no secret, and most lines hold none.
static SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let signs = TOKENS.iter().map(|(prefix, _)| *prefix).chain(NAMES.iter().copied()).chain([KEY, WEB_TOKEN, URL]);
    let signs = signs.chain(SPELLINGS.iter().copied()).chain([TOKEN, HEADER]);
    let built = AhoCorasick::builder().ascii_case_insensitive(true).build(signs);
    built.expect("bug: a fixed list of short words")
});

/// All places of a text that look like secrets, in order.
pub fn find(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut offset = 0;
    let mut in_key = false;
    let mut signs = SIGNS.find_iter(text).map(|sign| sign.start()).peekable();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        while signs.next_if(|at| *at < offset).is_some() {}
        let has_sign = signs.peek().is_some_and(|at| *at < offset + line.len());
        if !in_key && !has_sign {
            offset += line.len();
            continue;
        }
        let head = crate::text::at_most(line, LINE_LIMIT);
        let mut add = |kind, span: Range<usize>| {
            found.push(Finding { line: number + 1, kind, span: offset + span.start..offset + span.end });
        };
        if head.contains(KEY) && head.contains("PRIVATE KEY") {
            in_key = true;
        }
        if in_key {
            add(SecretKind::PrivateKey, 0..line.trim_end().len());
            in_key = !head.contains("-----END ");
        } else {
            in_line(head).into_iter().for_each(|(kind, span)| add(kind, span));
        }
        offset += line.len();
    }
    found
}

/// The text with every finding masked; line breaks stay.
pub fn redact(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    for finding in find(text) {
        if finding.span.start < at {
            continue;
        }
        redacted.push_str(&text[at..finding.span.start]);
        redacted.push_str(&format!("[redacted {}]", finding.kind.as_str()));
        at = finding.span.end;
    }
    redacted.push_str(&text[at..]);
    redacted
}

/// One line per finding: place and kind.
pub fn warnings(path: &str, text: &str) -> Vec<String> {
    warnings_from(path, 1, text)
}

/// The same for a text that begins at this line of a file.
pub(crate) fn warnings_from(path: &str, first: usize, text: &str) -> Vec<String> {
    let mut said: Vec<(usize, SecretKind)> = find(text).into_iter().map(|found| (found.line, found.kind)).collect();
    // A key of thirty lines is one secret.
    said.dedup_by(|next, first| next.1 == SecretKind::PrivateKey && first.1 == SecretKind::PrivateKey);
    said.dedup();
    let told = |(line, kind): (usize, SecretKind)| {
        format!("{path}:{} looks like a secret ({})", first + line - 1, kind.as_str())
    };
    said.into_iter().map(told).collect()
}

fn in_line(line: &str) -> Vec<(SecretKind, Range<usize>)> {
    let mut found = Vec::new();
    for (prefix, least) in TOKENS {
        for (at, _) in line.match_indices(prefix) {
            if line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let length = run(&line[at + prefix.len()..], |c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if length >= *least {
                found.push((SecretKind::AccessToken, at..at + prefix.len() + length));
            }
        }
    }
    for (at, _) in line.match_indices(WEB_TOKEN) {
        let length = run(&line[at..], |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if line[at..at + length].split('.').filter(|part| part.len() >= 8).count() == 3 {
            found.push((SecretKind::JsonWebToken, at..at + length));
        }
    }
    found.extend(url_password(line));
    found.extend(assignment(line));
    found.extend(configured(line));
    found.extend(header(line));
    // The longest comes first where several begin, so that nothing of it stays.
    found.sort_by_key(|(_, span)| (span.start, std::cmp::Reverse(span.end)));
    found.dedup_by(|next, first| next.1.start < first.1.end);
    found
}

fn url_password(line: &str) -> Option<(SecretKind, Range<usize>)> {
    let start = line.find(URL)? + URL.len();
    let host = run(&line[start..], |c| !c.is_whitespace() && !matches!(c, '/' | '"' | '\'' | '`' | '>'));
    let (user, _) = line[start..start + host].rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let is_variable = password.starts_with(['$', '{', '<', '%']) || password.is_empty();
    let from = start + name.len() + 1;
    (!is_variable).then_some((SecretKind::PasswordInUrl, from..from + password.len()))
}

fn assignment(line: &str) -> Option<(SecretKind, Range<usize>)> {
    let lower = line.to_ascii_lowercase();
    let ends = |name: &'static &str| lower.match_indices(*name).map(|(at, name)| (name, at + name.len()));
    NAMES.iter().chain([&TOKEN]).flat_map(ends).find_map(|(name, end)| assigned(line, name, end))
}

/// The value in quotes that stands behind a name, which ends here.
fn assigned(line: &str, name: &str, end: usize) -> Option<(SecretKind, Range<usize>)> {
    let rest = &line[end..];
    let sign = rest.find(['=', ':']).filter(|at| *at <= 3)?;
    let value = line[end + sign + 1..].trim_start_matches([' ', ':', '=']);
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let start = line.len() - value.len() + 1;
    let end = line[start..].find(quote)? + start;
    let value = &line[start..end];
    let is_secret = match name {
        TOKEN => is_made(value),
        _ => value.len() >= SHORTEST,
    };
    let is_variable = value.contains(['$', '{', '<', ' ']);
    (is_secret && !is_variable && !is_placeholder(value)).then_some((SecretKind::AssignedSecret, start..end))
}

/// The value without quotes of a line that has a name, a sign and a value and nothing else.
fn configured(line: &str) -> Option<(SecretKind, Range<usize>)> {
    let mut rest = line.trim();
    for before in BEFORE_NAMES {
        rest = rest.strip_prefix(before).unwrap_or(rest).trim_start();
    }
    let length = run(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let name = rest[..length].to_ascii_lowercase().replace(['-', '.'], "_");
    let is_token = name.ends_with(TOKEN);
    if !is_token && !NAMES.iter().any(|known| name.ends_with(known)) {
        return None;
    }
    let value = rest[length..].trim_start().strip_prefix(['=', ':'])?;
    let value = value.split(" #").next().unwrap_or(value).trim();
    let is_secret = is_chosen(value) && (!is_token || is_made(value));
    if !is_plain(value) || !is_secret || is_placeholder(value) {
        return None;
    }
    let behind = line.trim_end().len() - rest.len() + length;
    let start = behind + line[behind..].find(value)?;
    Some((SecretKind::AssignedSecret, start..start + value.len()))
}

/// Whether a value is a word of a configuration, and no code, path or address.
fn is_plain(value: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "+/=_-.~@!#%^:?".contains(c);
    let is_member =
        value.match_indices('.').any(|(at, _)| value[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic()));
    let begins = value.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '!' | '+'));
    value.chars().all(fits) && begins && !is_member && !value.contains("::") && !value.contains("==")
}

/// Whether a value that a person may have chosen is more than the name of something.
fn is_chosen(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let has_signs = value.contains(['+', '=', '@', '!', '#', '%', '^', '~']);
    // Such as `BlobV1`.
    let is_type = value.starts_with(|c: char| c.is_ascii_uppercase())
        && value.chars().all(|c| c.is_ascii_alphanumeric())
        && digits == 1
        && value.ends_with(|c: char| c.is_ascii_digit());
    value.len() >= SHORTEST && (digits > 0 || has_signs) && !is_type
}

/// Whether a value looks as if a program had made it.
fn is_made(value: &str) -> bool {
    let has = |fits: fn(&char) -> bool| value.chars().any(|c| fits(&c));
    value.len() >= SHORTEST_MADE && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn is_placeholder(value: &str) -> bool {
    let plain = value.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| plain.contains(word))
}

/// The value of a header that lets somebody in.
fn header(line: &str) -> Option<(SecretKind, Range<usize>)> {
    let lower = line.to_ascii_lowercase();
    let after = lower.find(HEADER)? + HEADER.len();
    let start = after + run(&lower[after..], |c| matches!(c, ':' | '=' | ' ' | '"' | '\''));
    let scheme = SCHEMES.iter().find(|scheme| lower[start..].starts_with(**scheme))?;
    let start = start + scheme.len();
    let length = run(&line[start..], |c| c.is_ascii_alphanumeric() || "._~+/=-".contains(c));
    let value = &line[start..start + length];
    (is_made(value) && !is_placeholder(value)).then_some((SecretKind::AccessToken, start..start + length))
}

fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !fits(c)).unwrap_or(text.len())
}
