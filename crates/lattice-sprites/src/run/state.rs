//! The states of a sprite as tables: what an end means, and which state follows which.

use crate::store::SpriteState;

/// Something that moves a sprite to another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// Its agent began, for the first time or again.
    Started,
    Ended(Verdict),
    /// The process that watched it is gone.
    Lost,
}

/// What an end of the agent's process means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Completed,
    Failed,
    Waiting,
    Stopped,
}

/// What is known when the agent's process has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// A person stopped it.
    pub stopped: bool,
    /// It used more than it may, of this.
    pub limit: Option<String>,
    /// The last WAITING that the outbox has and whose checkpoint exists, with nothing after it.
    pub waiting: Option<String>,
    /// COMPLETED: whether with success, and its summary.
    pub completed: Option<(bool, String)>,
    /// The message of ERROR.
    pub error: Option<String>,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// What an end means, and how to say it.
pub fn verdict(ending: &Ending) -> (Verdict, String) {
    let exit = match (ending.code, ending.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    match ending {
        Ending { stopped: true, .. } => (Verdict::Stopped, "stopped by a person".to_owned()),
        Ending { limit: Some(what), .. } => (Verdict::Failed, format!("ended because it used too much: {what}")),
        Ending { waiting: Some(reason), .. } => (Verdict::Waiting, reason.clone()),
        Ending { error: Some(message), .. } => (Verdict::Failed, message.clone()),
        Ending { completed: Some((true, summary)), code: Some(0), .. } => (Verdict::Completed, summary.clone()),
        Ending { completed: Some((true, summary)), .. } => (Verdict::Completed, format!("{summary} (and then {exit})")),
        Ending { completed: Some((false, summary)), .. } => (Verdict::Failed, summary.clone()),
        Ending { code: Some(0), .. } => (Verdict::Completed, "ended with exit code 0 and without COMPLETED".to_owned()),
        Ending { .. } => (Verdict::Failed, exit),
    }
}

/// The state that follows; `None` if that cannot happen.
pub fn next(state: SpriteState, happening: Happening) -> Option<SpriteState> {
    match (state, happening) {
        (SpriteState::Queued | SpriteState::Waiting | SpriteState::Interrupted, Happening::Started) => {
            Some(SpriteState::Running)
        }
        // A sprite whose work is over can be given another answer to an earlier question.
        (SpriteState::Completed | SpriteState::Failed | SpriteState::Stopped, Happening::Started) => {
            Some(SpriteState::Running)
        }
        (SpriteState::Running, Happening::Ended(verdict)) => Some(match verdict {
            Verdict::Completed => SpriteState::Completed,
            Verdict::Failed => SpriteState::Failed,
            Verdict::Waiting => SpriteState::Waiting,
            Verdict::Stopped => SpriteState::Stopped,
        }),
        (SpriteState::Running | SpriteState::Queued, Happening::Lost) => Some(SpriteState::Interrupted),
        (SpriteState::Waiting | SpriteState::Interrupted, Happening::Ended(Verdict::Stopped)) => {
            Some(SpriteState::Stopped)
        }
        (SpriteState::Running, Happening::Started)
        | (
            SpriteState::Queued
            | SpriteState::Waiting
            | SpriteState::Interrupted
            | SpriteState::Completed
            | SpriteState::Failed
            | SpriteState::Stopped,
            Happening::Ended(_),
        )
        | (
            SpriteState::Waiting
            | SpriteState::Interrupted
            | SpriteState::Completed
            | SpriteState::Failed
            | SpriteState::Stopped,
            Happening::Lost,
        ) => None,
    }
}
