//! The form of each payload as a table, and the check against it.

use serde_json::{Map, Value};

use super::inputs::InputType;
use super::kind::EventType;
use super::violation::{Finding, Rule};

/// A field of a payload.
struct Field {
    name: &'static str,
    need: Need,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
    /// Like optional, and `null` is the same as absent.
    Nullable,
}

/// What a value must look like.
enum Shape {
    Text,
    /// Text with at least one character that can be seen.
    Said,
    Flag,
    Integer,
    Object,
    /// A text or a number: a branch, a path, or the number of a pull request.
    Reference,
    TextList,
    /// Between 0 and 1, both included.
    Fraction,
    OneOf(&'static [&'static str]),
    /// An object from names to types.
    Inputs,
    Nested(&'static [Field]),
}

/// What an environment proposal may suggest.
pub const ADJUSTMENTS: [&str; 8] = [
    "runtime_install",
    "runtime_version_adjust",
    "dependency_manager_switch",
    "add_preinstall_step",
    "adjust_smoke_command",
    "add_system_package",
    "enable_network_access",
    "escalate_to_human",
];

const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, need: Need::Required, shape }
}

const fn optional(name: &'static str, shape: Shape) -> Field {
    Field { name, need: Need::Optional, shape }
}

const fn nullable(name: &'static str, shape: Shape) -> Field {
    Field { name, need: Need::Nullable, shape }
}

const INFO: &[Field] =
    &[required("message", Shape::Text), optional("kind", Shape::Text), optional("metadata", Shape::Object)];
const PHASE_STARTED: &[Field] = &[required("phase", Shape::Said)];
const PHASE_FINISHED: &[Field] = &[required("phase", Shape::Said), required("success", Shape::Flag)];
const ACTION_REQUEST: &[Field] =
    &[required("action", Shape::Said), required("parameters", Shape::Object), optional("blocking", Shape::Flag)];
const ARTIFACT: &[Field] = &[
    required("kind", Shape::Said),
    nullable("ref", Shape::Reference),
    nullable("url", Shape::Text),
    optional("metadata", Shape::Object),
];
const WAITING: &[Field] = &[
    required("reason", Shape::Said),
    required("checkpoint_id", Shape::Said),
    optional("expected_inputs", Shape::Inputs),
];
const COMPLETED: &[Field] =
    &[required("status", Shape::OneOf(&["success", "failure"])), optional("summary", Shape::Text)];
const ERROR: &[Field] = &[required("message", Shape::Text), optional("details", Shape::Object)];
const PROPOSAL: &[Field] = &[
    required(
        "observed_failure",
        Shape::Nested(&[
            required("phase", Shape::Text),
            required("exit_code", Shape::Integer),
            required("stderr_hint", Shape::Text),
        ]),
    ),
    required(
        "suggested_adjustment",
        Shape::Nested(&[required("type", Shape::OneOf(&ADJUSTMENTS)), required("details", Shape::Object)]),
    ),
    required("confidence", Shape::Fraction),
    required("evidence", Shape::TextList),
    required("scope", Shape::OneOf(&["repo_specific", "global_candidate"])),
];

fn fields(kind: EventType) -> &'static [Field] {
    match kind {
        EventType::Info => INFO,
        EventType::PhaseStarted => PHASE_STARTED,
        EventType::PhaseFinished => PHASE_FINISHED,
        EventType::ActionRequest => ACTION_REQUEST,
        EventType::Artifact => ARTIFACT,
        EventType::Waiting => WAITING,
        EventType::Completed => COMPLETED,
        EventType::Error => ERROR,
        EventType::EnvironmentProposal => PROPOSAL,
    }
}

/// What is wrong with the payload of an event of this type; one finding for each field.
pub(super) fn check(kind: EventType, payload: &Map<String, Value>) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_fields(fields(kind), payload, "", &mut findings);
    findings
}

fn check_fields(fields: &[Field], object: &Map<String, Value>, path: &str, findings: &mut Vec<Finding>) {
    for field in fields {
        match object.get(field.name) {
            None if field.need == Need::Required => {
                findings.push(Finding::new(Rule::MissingKey, format!("`{path}{}` is missing", field.name)));
            }
            None => {}
            Some(Value::Null) if field.need == Need::Nullable => {}
            Some(value) => check_value(field, value, path, findings),
        }
    }
}

fn check_value(field: &Field, value: &Value, path: &str, findings: &mut Vec<Finding>) {
    let wanted = match (&field.shape, value) {
        (Shape::Nested(inner), Value::Object(object)) => {
            return check_fields(inner, object, &format!("{path}{}.", field.name), findings);
        }
        (shape, value) => shape.wanted(value),
    };
    if let Some(wanted) = wanted {
        findings.push(Finding::new(Rule::BadField, format!("`{path}{}` must be {wanted}", field.name)));
    }
}

impl Shape {
    /// What the value should have been; `None` if it is that.
    fn wanted(&self, value: &Value) -> Option<String> {
        let (fits, wanted) = match self {
            Self::Text => (value.is_string(), "text"),
            Self::Said => (value.as_str().is_some_and(|text| !text.trim().is_empty()), "text that is not empty"),
            Self::Flag => (value.is_boolean(), "true or false"),
            Self::Integer => (value.is_i64() || value.is_u64(), "an integer"),
            Self::Object | Self::Nested(_) => (value.is_object(), "an object"),
            Self::Reference => (value.is_string() || value.is_u64(), "text or a number"),
            Self::TextList => {
                (value.as_array().is_some_and(|list| list.iter().all(Value::is_string)), "a list of texts")
            }
            Self::Fraction => {
                (value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)), "a number from 0.0 to 1.0")
            }
            Self::OneOf(words) => {
                let fits = value.as_str().is_some_and(|word| words.contains(&word));
                return (!fits).then(|| format!("one of {}", words.join(", ")));
            }
            Self::Inputs => return wrong_inputs(value),
        };
        (!fits).then(|| wanted.to_owned())
    }
}

fn wrong_inputs(value: &Value) -> Option<String> {
    let Some(inputs) = value.as_object() else { return Some("an object from names to types".to_owned()) };
    inputs.iter().find_map(|(name, value)| match value.as_str().map(InputType::new) {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("an object from names to types: `{name}`: {error}")),
        None => Some(format!("an object from names to types: `{name}` names none")),
    })
}
