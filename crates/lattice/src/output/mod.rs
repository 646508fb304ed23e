//! What the program prints: one reply per command, as text or as JSON.

pub(crate) mod documents;
pub(crate) mod graph;
pub(crate) mod issues;
pub(crate) mod status;
pub(crate) mod table;

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::app::{App, Format, Noise};
use crate::cli::Global;
use crate::error::{Code, Failure};

/// Colours and symbols that the terminal can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colour: bool,
    pub(crate) ascii: bool,
    /// How wide the terminal is that shows what is printed, if one does.
    pub(crate) columns: Option<usize>,
}

impl Style {
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The JSON document of a command.
pub(crate) trait Document: Serialize + JsonSchema {
    /// The command that the document belongs to.
    const COMMAND: &'static str;
}

/// Fields that become JSON only if someone wants to see them.
trait Fields {
    fn value(&self) -> Value;
}

impl<T: Serialize> Fields for T {
    fn value(&self) -> Value {
        serde_json::to_value(self).expect("bug: our documents have string keys")
    }
}

/// A document that is made only if someone wants to see it.
pub(crate) struct Lazy<F>(pub(crate) F);

impl<D: Document, F: Fn() -> D> Serialize for Lazy<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0)().serialize(serializer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Data,
    Story,
    /// The command has said everything already.
    Said,
    /// Data for other programs, byte for byte unless a person would see it.
    Exact,
}

/// What a command has to say.
pub(crate) struct Reply {
    command: String,
    fields: Box<dyn Fields>,
    /// For stdout: data that was asked for, or the story of what was done.
    pub(crate) text: String,
    kind: TextKind,
    /// Remarks, for stderr.
    pub(crate) notes: Vec<String>,
    pub(crate) code: Code,
}

impl Reply {
    pub(crate) fn new<D: Document + 'static>(document: D, text: impl Into<String>) -> Self {
        Self::named(D::COMMAND, document, text)
    }

    /// Nothing more to say: the command wrote line by line what it had.
    pub(crate) fn said() -> Self {
        Self { kind: TextKind::Said, ..Self::named("", Value::Null, "") }
    }

    /// A document that several commands share.
    pub(crate) fn named<D: Serialize + 'static>(command: &str, document: D, text: impl Into<String>) -> Self {
        Self {
            command: command.to_owned(),
            fields: Box::new(document),
            text: text.into(),
            kind: TextKind::Data,
            notes: Vec::new(),
            code: Code::Done,
        }
    }

    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds to the document.
    #[must_use]
    pub(crate) fn with_field(mut self, name: &str, value: Value) -> Self {
        let mut fields = self.fields.value();
        fields[name] = value;
        self.fields = Box::new(fields);
        self
    }

    /// States that the text only tells what was done; `--quiet` leaves it out.
    #[must_use]
    pub(crate) fn story(mut self) -> Self {
        self.kind = TextKind::Story;
        self
    }

    /// States that the text is for other programs: it is changed only where a terminal shows it.
    #[must_use]
    pub(crate) fn exact(mut self) -> Self {
        self.kind = TextKind::Exact;
        self
    }

    /// Adds to the text.
    #[must_use]
    pub(crate) fn with_text_below(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    #[must_use]
    pub(crate) fn with_text_above(mut self, text: &str) -> Self {
        self.text.insert_str(0, text);
        self
    }

    /// Says it in other words.
    #[must_use]
    pub(crate) fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    #[must_use]
    pub(crate) fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The document without its envelope.
    pub(crate) fn fields(&self) -> Value {
        self.fields.value()
    }

    /// One field of the document.
    pub(crate) fn field(&self, name: &str) -> Value {
        self.fields.value().get(name).cloned().unwrap_or_default()
    }

    fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("schema".to_owned(), json!(format!("lattice.{}/v1", self.command)));
        document.insert("ok".to_owned(), json!(true));
        if let Value::Object(fields) = self.fields.value() {
            document.extend(fields);
        }
        Value::Object(document)
    }
}

/// Prints the result of a command and gives its exit code.
pub(crate) fn show(app: &App, result: Result<Reply, Failure>) -> Code {
    match (result, app.format) {
        (Ok(reply), _) if reply.kind == TextKind::Said => reply.code,
        (Ok(reply), Format::Json) => {
            out(&format!("{}\n", reply.document()));
            reply.code
        }
        (Ok(reply), Format::Human) => {
            match (reply.kind, app.noise) {
                (TextKind::Exact, _) if !std::io::stdout().is_terminal() => out(&reply.text),
                (TextKind::Said, _) | (TextKind::Story, Noise::Quiet) => {}
                (TextKind::Data | TextKind::Exact, _) | (TextKind::Story, Noise::Normal) => out(&visible(&reply.text)),
            }
            if app.noise == Noise::Normal {
                reply.notes.iter().for_each(|note| err(&format!("{note}\n")));
            }
            reply.code
        }
        (Err(failure), Format::Json) => {
            out(&format!("{}\n", error_document(&failure)));
            failure.code
        }
        (Err(failure), Format::Human) => {
            err(&failure_text(&failure, app.style));
            failure.code
        }
    }
}

/// Prints a failure that came before anything was known about where the program runs.
pub(crate) fn show_without_app(global: &Global, failure: &Failure) -> Code {
    if global.json {
        out(&format!("{}\n", error_document(failure)));
    } else {
        err(&failure_text(failure, Style { colour: false, ascii: true, columns: None }));
    }
    failure.code
}

pub(crate) fn error_document(failure: &Failure) -> Value {
    let issues: Vec<_> = failure.issues.iter().map(documents::IssueDocument::of).collect();
    let message = match failure.causes.as_slice() {
        [] => failure.message.clone(),
        causes => format!("{}: {}", failure.message, causes.join("; ")),
    };
    let mut document = json!({
        "schema": "lattice.error/v1",
        "ok": false,
        "error": { "code": failure.name, "message": message, "hints": failure.hints },
        "issues": issues,
    });
    if let (Some(detail), Value::Object(fields)) = (&failure.detail, &mut document) {
        fields.insert("paused".to_owned(), detail.clone());
    }
    if !failure.landed.is_empty() {
        document["landed"] = json!(failure.landed);
    }
    document
}

fn failure_text(failure: &Failure, style: Style) -> String {
    let mut text = format!("{} {}\n", style.bad("error:"), failure.message);
    for cause in &failure.causes {
        text.push_str(&indented(cause, "  "));
    }
    match failure.issues.as_slice() {
        [] => {}
        // The message says already what is wrong.
        [only] => text.push_str(&format!("  issue {}\n{}", style.bold(only.id.as_str()), issues::choices(only, style))),
        several => text.push_str(&format!("\n{}", issues::text(several, style))),
    }
    for hint in &failure.hints {
        text.push_str(&format!("{} {hint}\n", style.good("hint:")));
    }
    text
}

pub(crate) fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
}

/// Text from outside, made safe for a terminal: control and direction characters become visible.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// Whether a terminal would obey a character instead of showing it.
fn hides(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// As `printable`, for text that may have been painted here: only our own colours get through.
fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, part) in text.split('\u{1b}').enumerate() {
        let digits =
            part.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        if at > 0 {
            let colour = digits.is_some_and(|rest| rest.starts_with('m'));
            shown.push_str(if colour { "\u{1b}" } else { "\\u{1b}" });
        }
        shown.push_str(&printable(part));
    }
    Cow::Owned(shown)
}

/// A line of the trace that `--debug` asks for.
pub(crate) fn trace(stage: &str, detail: &str) {
    err(&format!("debug: {stage}: {detail}\n"));
}

/// An event of the context pipeline as one line of JSON.
pub(crate) fn log_event(event: &str, mut fields: Value) {
    if let Value::Object(fields) = &mut fields {
        fields.insert("event".to_owned(), json!(event));
        fields.insert("level".to_owned(), json!("debug"));
    }
    err(&format!("{fields}\n"));
}

/// Something that takes time, for people who wait.
pub(crate) fn notice(text: &str) {
    err(&format!("{text}\n"));
}

/// Writes data. A reader that has seen enough is no error; a disk that is full is one, see [`checked`].
pub(crate) fn out(text: &str) {
    status::make_room();
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        err(&format!("error: the output could not be written: {error}\n"));
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether output was lost. Output happens in many places and the program ends in one.
static LOST: AtomicBool = AtomicBool::new(false);

/// The exit code, which is no success if the caller did not get what was said.
pub(crate) fn checked(code: Code) -> Code {
    if code == Code::Done && LOST.load(Ordering::Relaxed) { Code::Failed } else { code }
}

/// Writes a remark.
pub(crate) fn err(text: &str) {
    status::make_room();
    let _ = std::io::stderr().write_all(visible(text).as_bytes());
}

/// Writes a file that the user asked for.
pub(crate) fn write_file(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    std::fs::File::create(path)?.write_all(text.as_bytes())
}
