//! `emit`: inside a sprite, say something to Lattice, on stdout and in the outbox.

use std::io::Read as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lattice_sprites::emit;
use lattice_sprites::protocol::{Event, EventType, read_event};
use serde_json::{Map, Value, json};

use crate::app::{App, Format};
use crate::error::Failure;
use crate::output::Reply;

/// Emit an event of the sprite protocol: to stdout and to the outbox
///
/// Works inside a sprite, or wherever LATTICE_SPRITE_ID and LATTICE_WORK_ITEM_ID are set. The outbox is
/// `.lattice/outbox.jsonl` in LATTICE_WORKSPACE, else in /workspace. `lattice emit <type> --json -` reads the
/// whole payload as JSON from stdin instead of building it from arguments.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    event: EventArguments,
}

#[derive(Debug, Subcommand)]
enum EventArguments {
    /// Say what you do, see or assume
    Info {
        /// The text, or `-` with --json
        message: String,
        /// progress, observation, assumption, note, or any other word
        #[arg(long)]
        kind: Option<String>,
        /// A JSON object
        #[arg(long, value_parser = object)]
        metadata: Option<Map<String, Value>>,
    },
    /// A phase of the work begins
    PhaseStarted {
        /// Such as bootstrap, implement, test; or `-` with --json
        phase: String,
    },
    /// A phase of the work is over
    PhaseFinished {
        /// The name it began with; or `-` with --json
        phase: String,
        #[arg(long, required_unless_present = "json")]
        success: Option<bool>,
    },
    /// Ask Lattice to do something outside of the sandbox
    ActionRequest {
        /// OPEN_PR, PUSH_TO_BRANCH, POST_COMMENT, LABEL_ISSUE, NOTIFY_USER, FETCH_CREDENTIAL; or `-` with --json
        action: String,
        /// A parameter; its value is JSON if it reads as a list, an object or true/false, else text
        #[arg(long = "param", value_name = "K=V", value_parser = parameter)]
        params: Vec<(String, Value)>,
        /// The result is needed: a checkpoint and WAITING follow
        #[arg(long)]
        blocking: bool,
    },
    /// Declare something that you made
    Artifact {
        /// `-` with --json
        payload: Option<String>,
        /// branch, commit, file, pr_url, issue_url, or any other word
        #[arg(long, required_unless_present = "json")]
        kind: Option<String>,
        /// Branch, commit, path or number
        #[arg(long = "ref")]
        reference: Option<String>,
        #[arg(long)]
        url: Option<String>,
    },
    /// Pause until an answer comes; make a checkpoint first
    Waiting {
        /// `-` with --json
        payload: Option<String>,
        /// What you wait for
        #[arg(long, required_unless_present = "json")]
        reason: Option<String>,
        /// What `lattice checkpoint` printed
        #[arg(long, required_unless_present = "json")]
        checkpoint: Option<String>,
        /// An input that you need: string, integer, boolean, map or `array<T>`
        #[arg(long = "expect", value_name = "K=TYPE", value_parser = pair)]
        expected: Vec<(String, String)>,
    },
    /// All work is done
    Completed {
        /// `-` with --json
        payload: Option<String>,
        /// success or failure
        #[arg(long, required_unless_present = "json", value_parser = ["success", "failure"])]
        status: Option<String>,
        #[arg(long)]
        summary: Option<String>,
    },
    /// Something failed and you cannot go on
    Error {
        /// The text, or `-` with --json
        message: String,
        /// A JSON object
        #[arg(long, value_parser = object)]
        details: Option<Map<String, Value>>,
    },
    /// Propose a change of the environment; the payload comes with --json -
    EnvironmentProposal {
        /// `-`: the payload is read from stdin
        payload: String,
    },
}

pub(crate) fn run(app: &App, arguments: Arguments) -> Result<Reply, Failure> {
    let (kind, first, built) = arguments.event.payload();
    let from_stdin = app.format == Format::Json && first.as_deref() == Some("-");
    let payload = match (built, from_stdin) {
        (_, true) => payload_from_stdin()?,
        (Some(built), false) => built,
        (None, false) => return Err(Failure::usage("the payload is needed").hint("lattice emit … --json - < FILE")),
    };
    let event = event(app, kind, payload)?;
    let workspace = app.variable("LATTICE_WORKSPACE").filter(|path| !path.is_empty());
    let workspace = workspace.map_or_else(|| PathBuf::from("/workspace"), PathBuf::from);
    emit::emit(&workspace, &event, &mut std::io::stdout()).map_err(|error| {
        let outbox = emit::outbox_path(&workspace);
        Failure::new("outbox", format!("the event could not be written to {}: {error}", outbox.display()))
            .hint("LATTICE_WORKSPACE says where the workspace is, if not in /workspace")
    })?;
    Ok(Reply::said())
}

/// The event, checked as Lattice will check it: what would be refused there is refused here.
fn event(app: &App, kind: EventType, payload: Map<String, Value>) -> Result<Event, Failure> {
    let needed = |name: &str| {
        app.variable(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| {
            Failure::new("no-sprite", format!("{name} is not set: this is no sprite"))
                .hint("inside a sprite it is set; elsewhere, set LATTICE_SPRITE_ID and LATTICE_WORK_ITEM_ID yourself")
        })
    };
    let event = Event {
        kind,
        sprite_id: needed("LATTICE_SPRITE_ID")?,
        work_item_id: needed("LATTICE_WORK_ITEM_ID")?,
        timestamp: app.now.to_string(),
        payload,
        extra: Map::new(),
    };
    match read_event(event.to_line().as_bytes()) {
        Ok(_) => Ok(event),
        Err(findings) => {
            let problems: Vec<_> = findings.into_iter().map(|finding| finding.detail).collect();
            Err(Failure::usage(format!("this is no valid {kind} event: {}", problems.join("; "))))
        }
    }
}

impl EventArguments {
    /// The type, the first word, and the payload if the arguments make one.
    fn payload(self) -> (EventType, Option<String>, Option<Map<String, Value>>) {
        match self {
            Self::Info { message, kind, metadata } => {
                let fields = [("message", Some(json!(message))), ("kind", text(kind)), ("metadata", map(metadata))];
                (EventType::Info, Some(message), Some(collect(fields)))
            }
            Self::PhaseStarted { phase } => {
                (EventType::PhaseStarted, Some(phase.clone()), Some(collect([("phase", Some(json!(phase)))])))
            }
            Self::PhaseFinished { phase, success } => {
                let fields = [("phase", Some(json!(phase))), ("success", success.map(Value::Bool))];
                (EventType::PhaseFinished, Some(phase), Some(collect(fields)))
            }
            Self::ActionRequest { action, params, blocking } => {
                let parameters: Map<_, _> = params.into_iter().collect();
                let fields = [
                    ("action", Some(json!(action))),
                    ("parameters", Some(Value::Object(parameters))),
                    ("blocking", Some(Value::Bool(blocking))),
                ];
                (EventType::ActionRequest, Some(action), Some(collect(fields)))
            }
            Self::Artifact { payload, kind, reference, url } => {
                let fields = [("kind", text(kind)), ("ref", text(reference)), ("url", text(url))];
                (EventType::Artifact, payload, Some(collect(fields)))
            }
            Self::Waiting { payload, reason, checkpoint, expected } => {
                let inputs: Map<_, _> = expected.into_iter().map(|(name, kind)| (name, json!(kind))).collect();
                let inputs = (!inputs.is_empty()).then_some(Value::Object(inputs));
                let fields =
                    [("reason", text(reason)), ("checkpoint_id", text(checkpoint)), ("expected_inputs", inputs)];
                (EventType::Waiting, payload, Some(collect(fields)))
            }
            Self::Completed { payload, status, summary } => {
                (EventType::Completed, payload, Some(collect([("status", text(status)), ("summary", text(summary))])))
            }
            Self::Error { message, details } => {
                let fields = [("message", Some(json!(message))), ("details", map(details))];
                (EventType::Error, Some(message), Some(collect(fields)))
            }
            Self::EnvironmentProposal { payload } => (EventType::EnvironmentProposal, Some(payload), None),
        }
    }
}

fn payload_from_stdin() -> Result<Map<String, Value>, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::new("io", format!("stdin: {error}")))?;
    object(&text).map_err(|problem| Failure::usage(format!("the payload on stdin is no JSON object: {problem}")))
}

fn collect<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn text(value: Option<String>) -> Option<Value> {
    value.map(Value::String)
}

fn map(value: Option<Map<String, Value>>) -> Option<Value> {
    value.map(Value::Object)
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is JSON, but no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    if name.is_empty() { Err("the name is empty".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

/// Titles and bodies are text even if they look like a number.
fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = pair(text)?;
    let read = serde_json::from_str::<Value>(&value).ok();
    let value = read.filter(|read| read.is_array() || read.is_object() || read.is_boolean()).unwrap_or(json!(value));
    Ok((name, value))
}
