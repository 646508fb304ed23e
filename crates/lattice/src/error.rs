//! Failures as users see them: what happened, why, what to type next, and the exit code.

use lattice_engine::{ConfigEditError, DeriveError, EngineError, ExecuteError, GitError, LockError};
use lattice_forge::secret::SecretError;
use lattice_forge::token::AuthError;
use lattice_forge::{ForgeError, NotReached};
use lattice_model::gate::{Refusal, RepairBundle};
use lattice_model::id::Oid;
use lattice_model::issue::Issue;
use lattice_model::name::shell_word;
use lattice_model::remote::{Refused, RefusedRef, RemoteError};

use crate::commands::change;
use crate::output::printable;

/// Every exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Done = 0,
    /// Refused or failed, with a reason.
    Failed = 1,
    Usage = 2,
    /// An operation is in progress: `continue` or `abort` first.
    InProgress = 3,
    /// Paused, waiting for the user.
    Paused = 4,
    /// A bug.
    Internal = 70,
}

/// How a hint begins where all is as it was.
const UNCHANGED: &str = "nothing was changed";

/// A failure, ready to be shown.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) name: &'static str,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
    pub(crate) issues: Vec<Issue>,
    pub(crate) detail: Option<serde_json::Value>,
    /// Branches that landed before it.
    pub(crate) landed: Vec<String>,
}

impl Failure {
    pub(crate) fn new(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Code::Failed,
            name,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            issues: Vec::new(),
            detail: None,
            landed: Vec::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: Code::Usage, ..Self::new("usage", message) }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// The same after parts of the command were done: a line for each thing that was.
    pub(crate) fn after(self, done: &str) -> Self {
        if done.is_empty() {
            return self;
        }
        let hints = self.hints.iter().map(|hint| hint.replacen(UNCHANGED, "nothing else was changed", 1)).collect();
        let told = |failure: Self, line: &str| failure.cause(format!("before that: {}", line.trim()));
        done.lines().fold(Self { hints, ..self }, told)
    }

    fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let code = if refusal.code == "operation-in-progress" { Code::InProgress } else { Code::Failed };
        Self { hints: refusal.hints, ..Self::new(refusal.code, refusal.message).code(code) }
    }
}

impl From<RepairBundle> for Failure {
    fn from(bundle: RepairBundle) -> Self {
        let in_progress = bundle.missing.contains(&lattice_model::capability::Capability::NoLatticeOpInProgress);
        let message = match bundle.issues.as_slice() {
            [only] => format!("`{}` cannot run: {}", bundle.command, only.summary),
            several => format!("`{}` cannot run: {} issues are in the way", bundle.command, several.len()),
        };
        let mut failure = Self::new(if in_progress { "operation-in-progress" } else { "gated" }, message);
        if in_progress {
            failure.code = Code::InProgress;
        }
        let fixable = bundle.issues.iter().flat_map(|issue| &issue.fixes);
        let fix = fixable.clone().find(|fix| matches!(fix.effect, lattice_model::issue::FixEffect::Plan(_)));
        if let Some(fix) = fix {
            failure = failure.hint(format!("apply a fix by its id, for example: lattice doctor --fix {}", fix.id));
        }
        if let Some(divergence) = &bundle.divergence {
            let refs = divergence.changes.iter().take(8).map(|change| change.name.to_string());
            let names: Vec<_> = divergence.files.iter().map(|file| (*file).to_owned()).chain(refs).collect();
            failure =
                failure.cause(format!("changed outside of Lattice since its last operation: {}", names.join(", ")));
        }
        failure.issues = bundle.issues;
        failure
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Git(error) => error.into(),
            EngineError::Scan(error) => match error {
                lattice_engine::ScanError::Git(error) => error.into(),
            },
            EngineError::Lock(error) => error.into(),
            EngineError::Execute(error) => error.into(),
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Forge(error) => error.into(),
            EngineError::Remote(error) => error.into(),
            EngineError::PushRefused { refused } => push_refused(&refused),
            EngineError::RemotePart { done, source } => remote_part(done, *source),
            EngineError::After { done, source } => match change::reply("", *done) {
                Ok(told) => Self::from(*source).after(&told.text),
                Err(_) => Self::from(*source),
            },
            EngineError::NoRuntime(reason) => Self::new("no-runtime", "requests cannot be made here").cause(reason),
            EngineError::InsideOperation { op } => {
                Self::new("inside-operation", format!("operation {op} started this and has not ended"))
                    .hint("a hook cannot change the stack that it is a part of")
            }
        }
    }
}

/// What the remote part did before it stopped. The local part is done and valid.
fn remote_part(done: Vec<String>, source: EngineError) -> Failure {
    let inner = Failure::from(source);
    let said = done.into_iter().map(|line| format!("done: {}", printable(&line)));
    let causes = inner.causes.iter().cloned().chain(said).collect();
    let failure = Failure { causes, ..inner };
    match failure.hints.is_empty() {
        true => failure.hint("your branches are as they were; run the command again to go on"),
        false => failure.hint("your branches are as they were"),
    }
}

fn push_refused(refused: &[RefusedRef]) -> Failure {
    let shown = |oid: &Option<lattice_model::id::Oid>| oid.map_or("absent".to_owned(), |oid| oid.short());
    let mut failure = Failure::new("push-refused", "the remote did not take the push; nothing on it was moved");
    for RefusedRef { name, why } in refused {
        failure = failure.cause(match why {
            Refused::Moved { expected, found } => {
                format!("{name} is at {}, not at {} as it was seen before", shown(found), shown(expected))
            }
            Refused::Rejected(reason) => format!("{name}: {}", printable(reason)),
        });
    }
    let moved = refused.iter().any(|refused| matches!(refused.why, Refused::Moved { .. }));
    if moved { failure.hint("lattice get <branch> takes in what somebody else pushed") } else { failure }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let text = error.to_string();
        match error {
            RemoteError::Unreachable { detail, .. } => {
                let failure =
                    Self::new("remote-unreachable", text).hint("is it there, and may you read it? git fetch says more");
                detail.lines().fold(failure, |failure, line| failure.cause(printable(line)))
            }
            RemoteError::Unexpected(_) => Self::new("remote-odd", text),
            RemoteError::Git(_) => Self::new("git-failed", text),
            RemoteError::NotSent { detail } => Self::new("not-pushed", text)
                .cause(printable(&detail))
                .hint("if a hook refused it (pre-push): --no-verify goes without hooks"),
            RemoteError::TooManyRefs { .. } => Self::new("too-many-branches", text)
                .hint("push part of the stack first: lattice checkout <a branch in the middle>, then lattice submit"),
        }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        let text = error.to_string();
        let log_in = "lattice auth login";
        match error {
            AuthError::NotAuthenticated => Self::new("not-authenticated", text).hint(log_in),
            AuthError::RefreshFailed(_) => {
                Self::new("refresh-failed", printable(&text)).hint(format!("log in again: {log_in}"))
            }
            AuthError::LockContention => Self::new("auth-locked", text).hint("try again"),
            AuthError::Secret(error) => error.into(),
        }
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        let text = error.to_string();
        match error {
            SecretError::Exposed(path) => Self::new("secret-exposed", text)
                .hint(format!("chmod 600 {}, and get a new token if others may have read it", path.display())),
            SecretError::Damaged(_) => Self::new("secret-damaged", text).hint("lattice auth login writes a new one"),
            SecretError::Io { source, .. } => Self::new("io", text).cause(source.to_string()),
        }
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        let text = error.to_string();
        match error {
            ForgeError::Remote(error) => error.into(),
            ForgeError::NotFound(_) => {
                Self::new("not-found", text).hint("lattice issue list and lattice pr list show what there is")
            }
            ForgeError::NotAPull(_) => Self::new("not-a-pull-request", text),
            ForgeError::NotMergeable { .. } => Self::new("not-mergeable", printable(&text))
                .hint("if it conflicts: lattice sync takes in the trunk, lattice restack stops at the conflict; then lattice submit"),
            ForgeError::Rejected { reason } => Self::new("rejected", text).cause(printable(&reason)),
            ForgeError::NoSuchHead(_) => Self::new("no-such-head", text).hint("lattice submit pushes it"),
            ForgeError::Unauthorized => Self::new("unauthorized", text).hint("lattice auth login"),
            ForgeError::Forbidden(_) => {
                Self::new("forbidden", printable(&text)).hint("lattice auth status shows which token is used")
            }
            ForgeError::Missing(_) => Self::new("host-missing", printable(&text))
                .hint("does the repository exist there, and may your token see it?"),
            ForgeError::Conflict(_) => Self::new("host-conflict", printable(&text)).hint("run the command again"),
            ForgeError::Unprocessable(_) => Self::new("host-refused", printable(&text)),
            ForgeError::RateLimited { .. } => Self::new("rate-limited", text).hint("try again after that"),
            ForgeError::Server(_) => Self::new("host-failed", text).hint("try again in a while"),
            ForgeError::Unreachable { detail, why } => {
                Self::new("host-unreachable", text).cause(printable(&detail)).hint(match why {
                    NotReached::Connection => "are you online? github.api_url says where it is asked for",
                    NotReached::Certificate => {
                        "if its authority is your company's own: SSL_CERT_FILE=<its certificate>"
                    }
                })
            }
            ForgeError::TimedOut { .. } => Self::new("host-timeout", text).hint("try again in a while"),
            ForgeError::BadAnswer(_) => Self::new("host-odd", printable(&text)).hint("is github.api_url right?"),
            ForgeError::Redirected(_) => Self::new("host-redirects", printable(&text)).hint("is github.api_url right?"),
            ForgeError::Auth(error) => error.into(),
            ForgeError::Busy => Self::new("busy", text).hint("try again"),
            ForgeError::Damaged { .. } => Self::new("item-damaged", printable(&text)),
        }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { holder, waited_ms } => {
                let who = holder.map_or("another process".to_owned(), |holder| {
                    format!("`{}` (process {}, since {})", holder.command, holder.pid, holder.since)
                });
                Self::new("locked", format!("{who} is changing this repository; waited {} s for it", waited_ms / 1000))
                    .hint("try again when it is done; lock.timeout_ms says how long to wait")
            }
            LockError::Io { ref source, .. } => {
                let cause = source.to_string();
                Self::new("lock-unusable", error.to_string()).cause(cause).hint("is the repository writable?")
            }
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let said = error.stderr().filter(|text| !text.is_empty()).map(printable);
        let failure = match &error {
            GitError::NotARepository(_) => {
                Self::new("not-a-repository", error.to_string()).hint("git init, or -C <path>")
            }
            GitError::NotTrusted(path) => Self::new("not-trusted", error.to_string())
                .hint(format!("if you trust it: git config --global --add safe.directory {}", path.display())),
            GitError::NotInstalled(_) => {
                Self::new("git-missing", error.to_string()).hint("install git, or set LATTICE_GIT")
            }
            GitError::Hook { .. } => {
                Self::new("hook-refused", error.to_string()).hint("nothing was changed; --no-verify skips hooks")
            }
            GitError::HookHangs { .. } => Self::new("hook-hangs", error.to_string())
                .hint("nothing was changed; hooks.timeout_ms says how long to wait, --no-verify skips hooks"),
            GitError::IndexLocked { lock } => Self::new("index-locked", error.to_string())
                .cause(format!("{} is there", printable(&lock.display().to_string())))
                .hint("nothing was changed; an editor or a commit that is being written may hold it: try again then")
                .hint("if no git is running, lattice doctor offers to remove it once it is ten seconds old"),
            GitError::Killed { .. } => Self::new("git-killed", error.to_string()),
            GitError::Start { source, .. }
            | GitError::Pipe { source, .. }
            | GitError::Read { source, .. }
            | GitError::Write { source, .. } => Self::new("git-io", error.to_string()).cause(source.to_string()),
            GitError::Failed { .. } | GitError::Unexpected { .. } => Self::new("git-failed", error.to_string()),
        };
        match said {
            Some(said) => failure.cause(said),
            None => failure,
        }
    }
}

impl From<ConfigEditError> for Failure {
    fn from(error: ConfigEditError) -> Self {
        let failure = Self::new("config", error.to_string());
        match error {
            ConfigEditError::UnknownKey(_) | ConfigEditError::NotSet(_) | ConfigEditError::BadValue { .. } => {
                failure.hint("lattice config list shows every option")
            }
            ConfigEditError::Unreadable(_) => failure.hint("nothing was changed"),
        }
    }
}

impl From<DeriveError> for Failure {
    fn from(error: DeriveError) -> Self {
        let text = error.to_string();
        match error {
            DeriveError::NothingLeft { .. } => Self::new("nothing-left", text)
                .hint("nothing was changed; lattice create makes a branch without changes of its own"),
            DeriveError::NothingToRevert { .. } => Self::new("nothing-left", text)
                .hint("nothing was changed; what has not landed yet is taken out with lattice pop or lattice delete"),
            DeriveError::DoesNotFit { .. } => Self::new("does-not-fit", text).hint(
                "nothing was changed; lattice modify --into <branch> gives everything that is staged to one branch",
            ),
            DeriveError::AbsorbConflicts { .. } => Self::new("absorb-conflicts", text)
                .hint("nothing was changed; unstage those hunks, or lattice modify --into <branch>"),
            DeriveError::LinesMoved { .. } => Self::new("lines-moved", text).hint("nothing was changed; try again"),
            DeriveError::NotLinear { .. } => Self::new("merge-commit", text).hint("nothing was changed"),
            DeriveError::RevertConflicts { .. } => Self::new("revert-conflicts", text)
                .cause("later commits changed the same lines")
                .hint("nothing was changed; take it back by hand: git revert"),
        }
    }
}

impl From<ExecuteError> for Failure {
    fn from(error: ExecuteError) -> Self {
        let text = error.to_string();
        match error {
            ExecuteError::Git(error) => Self::from(error),
            ExecuteError::RefMoved { expected, found, .. } => ref_moved(text, expected, found),
            ExecuteError::GitMovedRefs { names } => {
                let failure = Self::new("git-moved-refs", text);
                let failure = names.iter().fold(failure, |failure, name| failure.cause(format!("moved: {name}")));
                failure.hint("git reflog shows where they were; please report the version of git")
            }
            ExecuteError::ConfigChanged => {
                Self::new("config-changed", text).hint(format!("{UNCHANGED}; run the command again"))
            }
            ExecuteError::HeldBack { .. } => Self::new("worktree-in-the-way", text).hint(UNCHANGED),
            ExecuteError::Occupied { .. } => Self::new("precondition-failed", text).hint(UNCHANGED),
            ExecuteError::NeedsCleanTree { .. } => Self::new("conflict-needs-clean-tree", text)
                .hint(format!("{UNCHANGED}; commit or stash your changes, then run the command again")),
            ExecuteError::StagedDoesNotApply { .. } => Self::new("staged-does-not-apply", text)
                .hint(format!("{UNCHANGED}; check that branch out and make the change there")),
            ExecuteError::Derive(error) => Self::from(error),
            ExecuteError::NothingPicked => Self::new("nothing-to-commit", text).hint(UNCHANGED),
            ExecuteError::MessageEmptied => Self::new("message-emptied", text)
                .hint(format!("{UNCHANGED}; --no-verify leaves prepare-commit-msg and commit-msg out")),
            ExecuteError::FilesInTheWay { detail } => Self::new("files-in-the-way", text)
                .cause(printable(&in_the_way(&detail)))
                .hint(format!("{UNCHANGED}; commit or stash your changes, then run the command again")),
            ExecuteError::Unmerged { files } => {
                let failure = Self::new("unmerged-files", text);
                let failure = files.iter().fold(failure, |failure, file| failure.cause(printable(file)));
                failure.hint(format!("{UNCHANGED}; resolve them, stage the result, then run the command again"))
            }
            ExecuteError::LedgerBusy => {
                Self::new("ledger-busy", text).hint(format!("{UNCHANGED}; run the command again"))
            }
            ExecuteError::NoHead => Self::new("no-head", text).hint("make a first commit"),
            ExecuteError::Io { source, .. } => Self::new("io", text)
                .cause(source.to_string())
                .hint("free some space or check permissions; then run the command again"),
            ExecuteError::Rescan(source) => in_doubt(Self::new("not-verified", text).cause(source.to_string())),
            ExecuteError::NotVerified { problems } => {
                let failure = Self::new("not-verified", text);
                in_doubt(problems.into_iter().fold(failure, Self::cause))
            }
            ExecuteError::Incomplete { source } => {
                let inner = Self::from(*source);
                in_doubt(Self { causes: [vec![inner.message], inner.causes].concat(), ..Self::new("incomplete", text) })
            }
            ExecuteError::NothingInProgress => Self::new("nothing-in-progress", text),
            ExecuteError::StillRunning { .. } => Self::new("still-running", text)
                .cause("the Lattice that started it is gone; what it does now cannot be known")
                .hint("try again when it has ended"),
            ExecuteError::WrongWorktree { path } => Self::new("wrong-worktree", text).hint(format!(
                "run it there: lattice -C {0} continue, or lattice -C {0} abort",
                shell_word(&path.display().to_string())
            )),
            ExecuteError::JournalUnusable { .. } => {
                Self::new("journal-unusable", text).hint("lattice doctor lists what can be done")
            }
            ExecuteError::Unresolved { files } => in_conflict(Self::new("unresolved", text), &files),
            ExecuteError::MarkersLeft { files } => in_conflict(Self::new("conflict-markers", text), &files)
                .hint("if these lines belong there: git add the files, then lattice continue"),
            ExecuteError::Untouched { files } => in_conflict(Self::new("conflict-untouched", text), &files)
                .hint("if they are right as they are: git add or git rm them, then lattice continue"),
            ExecuteError::NothingResolved { .. } => nothing_resolved(&text),
            ExecuteError::NotStaged { files } => not_staged(text, &files),
            ExecuteError::RebaseGone { expected } => Self::new("rebase-gone", text)
                .cause(format!("the new base is {}", expected.short()))
                .hint("lattice abort goes back to where the operation began"),
        }
    }
}

/// What Git says of the first file that it cannot replace, in words that name the reason.
fn in_the_way(said: &str) -> String {
    match said.split('\'').collect::<Vec<_>>().as_slice() {
        ["error: Entry ", file, rest] if rest.contains("not uptodate") => format!("{file} has uncommitted changes"),
        ["error: Entry ", file, rest] if rest.contains("would be overwritten") => {
            format!("{file} is staged and would be overwritten")
        }
        ["error: Untracked working tree file ", file, _] => format!("{file} is untracked and would be overwritten"),
        _ => said.to_owned(),
    }
}

fn ref_moved(text: String, expected: Option<Oid>, found: Option<Oid>) -> Failure {
    let shown = |oid: Option<Oid>| oid.map_or("absent".to_owned(), |oid| oid.short());
    Failure::new("ref-moved", text)
        .cause(format!("expected {}, found {}", shown(expected), shown(found)))
        .hint(format!("{UNCHANGED}; run the command again to plan on the new state"))
}

fn nothing_resolved(text: &str) -> Failure {
    Failure::new("nothing-resolved", printable(text))
        .code(Code::Paused)
        .hint("to leave that commit out: git rebase --skip, then lattice continue")
        .hint("or go back and begin again: lattice abort")
}

fn not_staged(text: String, files: &[String]) -> Failure {
    let failure = Failure::new("not-staged", text).code(Code::Paused);
    let failure = files.iter().fold(failure, |failure, file| failure.cause(printable(file)));
    failure
        .hint("git add what belongs to the commit, git stash push the other files, then: lattice continue")
        .hint("or go back: lattice abort")
}

fn in_conflict(failure: Failure, files: &[String]) -> Failure {
    let failure = files.iter().fold(failure.code(Code::Paused), |failure, file| failure.cause(printable(file)));
    failure.hint("resolve them, then: lattice continue -a").hint("or go back: lattice abort")
}

fn in_doubt(failure: Failure) -> Failure {
    failure.hint("lattice continue tries to finish").hint("lattice abort goes back to where it began")
}
