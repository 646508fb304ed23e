//! Payloads that Lattice acts on, and the actions that it knows.

use serde_json::{Map, Value};

use super::envelope::Event;
use super::inputs::InputType;
use super::kind::EventType;

/// An action that Lattice can carry out for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownAction {
    OpenPr,
    PushToBranch,
    PostComment,
    LabelIssue,
    NotifyUser,
    FetchCredential,
}

/// All actions with their parameters and what they answer.
pub const ACTIONS: [ActionForm; 6] = [
    ActionForm {
        action: KnownAction::OpenPr,
        name: "OPEN_PR",
        parameters: &["title", "body", "base", "head", "draft"],
        results: &[("pr_number", "integer"), ("pr_url", "string")],
    },
    ActionForm {
        action: KnownAction::PushToBranch,
        name: "PUSH_TO_BRANCH",
        parameters: &["branch"],
        results: &[("sha", "string")],
    },
    ActionForm {
        action: KnownAction::PostComment,
        name: "POST_COMMENT",
        parameters: &["body"],
        results: &[("url", "string")],
    },
    ActionForm {
        action: KnownAction::LabelIssue,
        name: "LABEL_ISSUE",
        parameters: &["labels"],
        results: &[("labels", "array<string>")],
    },
    ActionForm { action: KnownAction::NotifyUser, name: "NOTIFY_USER", parameters: &["message"], results: &[] },
    ActionForm {
        action: KnownAction::FetchCredential,
        name: "FETCH_CREDENTIAL",
        parameters: &["name"],
        results: &[("value", "string")],
    },
];

/// How an action is asked for and answered.
#[derive(Debug)]
pub struct ActionForm {
    pub action: KnownAction,
    pub name: &'static str,
    pub parameters: &'static [&'static str],
    /// Names and types of the inputs of the resume that follows.
    pub results: &'static [(&'static str, &'static str)],
}

/// The form of the action with this name.
pub fn known_action(name: &str) -> Option<&'static ActionForm> {
    ACTIONS.iter().find(|form| form.name == name)
}

/// An action that an agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRequest {
    pub action: String,
    pub parameters: Map<String, Value>,
    pub blocking: bool,
}

/// A pause that an agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub reason: String,
    pub checkpoint_id: String,
    pub expected_inputs: Option<Vec<(String, InputType)>>,
}

impl Event {
    /// The request, if this is one.
    pub fn action_request(&self) -> Option<ActionRequest> {
        (self.kind == EventType::ActionRequest).then(|| ActionRequest {
            action: self.text("action").to_owned(),
            parameters: self.payload.get("parameters").and_then(Value::as_object).cloned().unwrap_or_default(),
            blocking: self.payload.get("blocking").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// The pause, if this is one.
    pub fn waiting(&self) -> Option<Waiting> {
        let inputs = |inputs: &Map<String, Value>| {
            let typed = |(name, value): (&String, &Value)| Some((name.clone(), InputType::new(value.as_str()?).ok()?));
            inputs.iter().filter_map(typed).collect()
        };
        (self.kind == EventType::Waiting).then(|| Waiting {
            reason: self.text("reason").to_owned(),
            checkpoint_id: self.text("checkpoint_id").to_owned(),
            expected_inputs: self.payload.get("expected_inputs").and_then(Value::as_object).map(inputs),
        })
    }

    /// A text of the payload, empty if it has none by this name.
    pub fn text(&self, name: &str) -> &str {
        self.payload.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}
