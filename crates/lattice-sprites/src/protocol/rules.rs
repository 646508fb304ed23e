//! The rules across events: what must come before and after what.

use super::envelope::Event;
use super::kind::EventType;
use super::payload::{Waiting, known_action};
use super::violation::{Finding, Rule};

/// Something that happens in the life of a sprite.
#[derive(Debug)]
pub enum Happening<'a> {
    /// A checkpoint was made.
    Checkpoint(&'a str),
    /// The agent was started again with an answer.
    Resumed,
    Event(&'a Event),
}

/// What has happened so far, as far as the rules care.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    checkpoints: Vec<String>,
    place: Place,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Working,
    /// A blocking request of this action was made when there were so many checkpoints.
    Asked {
        action: String,
        checkpoints: usize,
    },
    Waiting,
    Resumed,
}

impl Rules {
    /// Takes the next happening and says which rules it breaks.
    pub fn observe(&mut self, happening: Happening<'_>) -> Vec<Finding> {
        match happening {
            Happening::Checkpoint(id) => {
                self.checkpoints.push(id.to_owned());
                Vec::new()
            }
            Happening::Resumed => {
                self.place = Place::Resumed;
                Vec::new()
            }
            Happening::Event(event) => self.event(event),
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.place == Place::Waiting
    }

    fn event(&mut self, event: &Event) -> Vec<Finding> {
        let mut findings = match &self.place {
            Place::Working => Vec::new(),
            Place::Waiting => {
                vec![Finding::new(Rule::AfterWaiting, format!("{} came after WAITING", event.kind))]
            }
            Place::Resumed if event.kind == EventType::Info => Vec::new(),
            Place::Resumed => vec![Finding::new(
                Rule::ResumeNotAcknowledged,
                format!("the first event after a resume is {}, not INFO", event.kind),
            )],
            Place::Asked { .. } if event.kind == EventType::Waiting => Vec::new(),
            Place::Asked { action, .. } => vec![Finding::new(
                Rule::BlockingWithoutWaiting,
                format!("{} came between the blocking {action} and its WAITING", event.kind),
            )],
        };
        let request = event.action_request();
        if let Some(request) = &request
            && known_action(&request.action).is_none()
        {
            findings.push(Finding::new(Rule::UnknownAction, format!("there is no action `{}`", request.action)));
        }
        if let Some(waiting) = event.waiting() {
            findings.extend(self.check_waiting(&waiting));
        }
        if event.kind == EventType::Error && self.checkpoints.is_empty() {
            findings
                .push(Finding::new(Rule::ErrorWithoutCheckpoint, "a checkpoint before ERROR helps to look into it"));
        }
        self.place = match (&self.place, event.kind, request) {
            (Place::Waiting, ..) | (_, EventType::Waiting, _) => Place::Waiting,
            (_, EventType::ActionRequest, Some(request)) if request.blocking => {
                Place::Asked { action: request.action, checkpoints: self.checkpoints.len() }
            }
            (Place::Asked { .. } | Place::Resumed | Place::Working, ..) => Place::Working,
        };
        findings
    }

    fn check_waiting(&self, waiting: &Waiting) -> Vec<Finding> {
        let mut findings = Vec::new();
        let made = self.checkpoints.iter().rposition(|id| *id == waiting.checkpoint_id);
        let Some(made) = made else {
            let detail = format!("WAITING names `{}`, which is no checkpoint of this sprite", waiting.checkpoint_id);
            return vec![Finding::new(Rule::WaitingWithoutCheckpoint, detail)];
        };
        let Place::Asked { action, checkpoints } = &self.place else { return findings };
        if made < *checkpoints {
            let detail = format!("the checkpoint must be made after the blocking {action}, not before it");
            findings.push(Finding::new(Rule::BlockingWithoutWaiting, detail));
        }
        match &waiting.expected_inputs {
            None => findings.push(Finding::new(
                Rule::BlockingWithoutWaiting,
                format!("WAITING after the blocking {action} has no `expected_inputs`"),
            )),
            Some(expected) => {
                let results = known_action(action).map_or(&[][..], |form| form.results);
                let foreign = expected.iter().filter(|(name, wanted)| {
                    !results.iter().any(|(known, kind)| known == name && *kind == wanted.to_string())
                });
                findings.extend(foreign.map(|(name, wanted)| {
                    let detail = format!("{action} does not answer with `{name}` ({wanted})");
                    Finding::new(Rule::BlockingWithoutWaiting, detail)
                }));
            }
        }
        findings
    }
}
