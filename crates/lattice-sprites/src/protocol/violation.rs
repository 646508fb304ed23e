//! What an agent did against the protocol.

/// One thing to report about an agent, by rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    pub detail: String,
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The protocol was broken.
    Violation,
    /// A recommendation was not followed.
    Hint,
}

/// The rules that can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The line is too long to be read.
    LineTooLong,
    /// The line is no JSON object.
    NotJson,
    MissingKey,
    ExtraKey,
    WrongVersion,
    UnknownType,
    WrongIdentity,
    BadTimestamp,
    BadField,
    /// Seen on one side only although both were read to their ends.
    OneSided,
    /// The outbox was shortened, replaced or rewritten.
    OutboxTampered,
    /// Something like a token stood in what the agent said.
    SecretShown,
    WaitingWithoutCheckpoint,
    BlockingWithoutWaiting,
    AfterWaiting,
    ResumeNotAcknowledged,
    UnknownAction,
    ErrorWithoutCheckpoint,
    /// A credential that the agent was given is in its commits.
    SecretCommitted,
    /// The agent changed the remotes of its repository.
    RemoteEdited,
    /// The agent wanted to reach what it may not reach.
    NetworkRefused,
}

impl Rule {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LineTooLong => "line-too-long",
            Self::NotJson => "not-json",
            Self::MissingKey => "missing-key",
            Self::ExtraKey => "extra-key",
            Self::WrongVersion => "wrong-version",
            Self::UnknownType => "unknown-type",
            Self::WrongIdentity => "wrong-identity",
            Self::BadTimestamp => "bad-timestamp",
            Self::BadField => "bad-field",
            Self::OneSided => "one-sided",
            Self::OutboxTampered => "outbox-tampered",
            Self::SecretShown => "secret-shown",
            Self::WaitingWithoutCheckpoint => "waiting-without-checkpoint",
            Self::BlockingWithoutWaiting => "blocking-without-waiting",
            Self::AfterWaiting => "after-waiting",
            Self::ResumeNotAcknowledged => "resume-not-acknowledged",
            Self::UnknownAction => "unknown-action",
            Self::ErrorWithoutCheckpoint => "error-without-checkpoint",
            Self::SecretCommitted => "secret-committed",
            Self::RemoteEdited => "remote-edited",
            Self::NetworkRefused => "network-refused",
        }
    }

    pub fn weight(self) -> Weight {
        match self {
            Self::ErrorWithoutCheckpoint => Weight::Hint,
            Self::LineTooLong
            | Self::NotJson
            | Self::MissingKey
            | Self::ExtraKey
            | Self::WrongVersion
            | Self::UnknownType
            | Self::WrongIdentity
            | Self::BadTimestamp
            | Self::BadField
            | Self::OneSided
            | Self::OutboxTampered
            | Self::SecretShown
            | Self::WaitingWithoutCheckpoint
            | Self::BlockingWithoutWaiting
            | Self::AfterWaiting
            | Self::ResumeNotAcknowledged
            | Self::UnknownAction
            | Self::SecretCommitted
            | Self::RemoteEdited
            | Self::NetworkRefused => Weight::Violation,
        }
    }
}

impl Finding {
    pub fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self { rule, detail: detail.into() }
    }
}

impl Weight {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Violation => "violation",
            Self::Hint => "hint",
        }
    }
}
