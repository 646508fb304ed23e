//! The nine types of events.

use std::fmt;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    Info,
    PhaseStarted,
    PhaseFinished,
    ActionRequest,
    Artifact,
    Waiting,
    Completed,
    Error,
    EnvironmentProposal,
}

impl EventType {
    pub const ALL: [Self; 9] = [
        Self::Info,
        Self::PhaseStarted,
        Self::PhaseFinished,
        Self::ActionRequest,
        Self::Artifact,
        Self::Waiting,
        Self::Completed,
        Self::Error,
        Self::EnvironmentProposal,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::PhaseStarted => "PHASE_STARTED",
            Self::PhaseFinished => "PHASE_FINISHED",
            Self::ActionRequest => "ACTION_REQUEST",
            Self::Artifact => "ARTIFACT",
            Self::Waiting => "WAITING",
            Self::Completed => "COMPLETED",
            Self::Error => "ERROR",
            Self::EnvironmentProposal => "ENVIRONMENT_PROPOSAL",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether the event changes what happens next, so that it counts only once the outbox has it:
    /// stdout also carries the output of whatever the agent runs.
    pub fn takes_effect(self) -> bool {
        match self {
            Self::ActionRequest | Self::Waiting | Self::Completed | Self::EnvironmentProposal => true,
            Self::Info | Self::PhaseStarted | Self::PhaseFinished | Self::Artifact | Self::Error => false,
        }
    }

    /// Whether an agent ends after it, so that it must be on disk when the writer returns.
    pub fn is_last_word(self) -> bool {
        matches!(self, Self::Waiting | Self::Completed | Self::Error)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
