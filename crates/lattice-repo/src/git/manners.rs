//! What git does around a rewrite besides making commits, as the user's configuration has it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lattice_model::id::Oid;
use lattice_model::name::BranchName;

use super::commits::Sign;
use super::error::GitError;
use super::process::Git;

/// What the user's configuration says about rewriting.
#[derive(Debug, Clone)]
pub(crate) struct Manners {
    pub(crate) sign: Sign,
    hooks: PathBuf,
    notes: NotesRef,
}

/// Which notes follow the commits that they are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotesRef {
    /// Those that the configuration names.
    Configured,
    /// All of them: git would leave them behind, and nobody wants to lose what they wrote.
    All,
}

/// Why commits took the place of others; git's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Amend,
    Rebase,
}

impl Cause {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Amend => "amend",
            Self::Rebase => "rebase",
        }
    }
}

/// What becomes of a note where the new commit has one already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotesMode {
    /// What the configuration says; git appends by default.
    Configured,
    /// It stays: the notes may have been copied before.
    Keep,
}

impl Manners {
    /// Whether there is such a hook to run.
    pub(crate) fn has_hook(&self, hook: &str) -> bool {
        let runs = |found: std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
        self.hooks.join(hook).metadata().is_ok_and(runs)
    }
}

impl Git {
    pub(crate) fn manners(&self, common_dir: &Path) -> Result<Manners, GitError> {
        let keys = r"^(commit\.gpgsign|core\.hookspath|notes\.rewriteref)$";
        let said = self.call("config").args(["-z", "--get-regexp", keys]).finish()?;
        let (mut sign, mut hooks, mut notes) = (Sign::No, common_dir.join("hooks"), NotesRef::All);
        for entry in String::from_utf8_lossy(&said.stdout).split_terminator('\0') {
            // A key without a value means yes.
            match entry.split_once('\n').unwrap_or((entry, "true")) {
                ("commit.gpgsign", value) => sign = if is_true(value) { Sign::Yes } else { Sign::No },
                ("notes.rewriteref", _) => notes = NotesRef::Configured,
                _ => hooks = self.hooks_dir()?,
            }
        }
        Ok(Manners { sign, hooks, notes })
    }

    /// Where hooks are if not in their usual place; git knows what the configuration means.
    fn hooks_dir(&self) -> Result<PathBuf, GitError> {
        let line = self.call("rev-parse").args(["--git-path", "hooks"]).line()?;
        Ok(self.work_dir().map_or_else(|| PathBuf::from(&line), |top| top.join(&line)))
    }

    /// Gives the options of one branch to another that has none; nothing happens if the first has none either.
    pub(crate) fn move_branch_options(&self, from: &BranchName, to: &BranchName) -> Result<(), GitError> {
        let section = |branch: &BranchName| format!("branch.{branch}");
        let names =
            self.call("config").args(["--local", "-z", "--name-only", "--get-regexp", r"^branch\."]).finish()?;
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        let has = |branch: &BranchName| {
            let prefix = format!("{}.", section(branch));
            let own = |name: &str| name.strip_prefix(&prefix).is_some_and(|key| !key.contains('.'));
            names.split_terminator('\0').any(own)
        };
        if !has(from) || has(to) {
            return Ok(());
        }
        self.call("config").args(["--local", "--rename-section"]).args([section(from), section(to)]).run().map(drop)
    }

    /// Copies notes to the commits that took the place of those they are about.
    pub(crate) fn copy_notes(
        &self,
        manners: &Manners,
        cause: Cause,
        pairs: &[(Oid, Oid)],
        mode: NotesMode,
    ) -> Result<(), GitError> {
        let call = self.call("notes").args(["copy", "--stdin"]).arg(format!("--for-rewrite={}", cause.as_str()));
        let call = match manners.notes {
            NotesRef::Configured => call,
            NotesRef::All => call.env(REWRITE_REF, ALL_NOTES),
        };
        let call = match mode {
            NotesMode::Configured => call,
            NotesMode::Keep => call.env("GIT_NOTES_REWRITE_MODE", "ignore"),
        };
        call.stdin(lines(pairs)).run().map(drop)
    }

    /// Tells the hook which commits took the place of which.
    pub(crate) fn run_post_rewrite(&self, manners: &Manners, cause: Cause, list: &Path) -> Result<(), GitError> {
        // Older versions of git cannot give a hook something to read, and a shell of git's can.
        let call = self.call("lattice-post-rewrite");
        let call = call.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "alias.lattice-post-rewrite");
        let call = call.env("GIT_CONFIG_VALUE_0", POST_REWRITE);
        let call = call.env("LATTICE_HOOK", manners.hooks.join("post-rewrite")).env("LATTICE_CAUSE", cause.as_str());
        call.env("LATTICE_REWRITTEN", list).run_as_hook("post-rewrite")
    }
}

/// Runs the hook without a trace of how it was started.
const POST_REWRITE: &str = r#"!hook=$LATTICE_HOOK cause=$LATTICE_CAUSE list=$LATTICE_REWRITTEN
unset GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 LATTICE_HOOK LATTICE_CAUSE LATTICE_REWRITTEN
exec "$hook" "$cause" <"$list""#;

/// Where git's own rewriting looks for notes if the user does not say.
pub(crate) const REWRITE_REF: &str = "GIT_NOTES_REWRITE_REF";
pub(crate) const ALL_NOTES: &str = "refs/notes/*";

/// Whether a repository can have notes, without asking git.
pub(crate) fn may_have_notes(common_dir: &Path) -> bool {
    const PACKED: &[u8] = b" refs/notes/";
    let packed = || std::fs::read(common_dir.join("packed-refs")).unwrap_or_default();
    let names = |bytes: Vec<u8>| bytes.windows(PACKED.len()).any(|window| window == PACKED);
    common_dir.join("refs/notes").exists() || common_dir.join("reftable").exists() || names(packed())
}

/// A switch as git reads it.
fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on") || value.parse::<i64>().is_ok_and(|number| number != 0)
}

/// `old new`, one pair a line.
pub(crate) fn lines(pairs: &[(Oid, Oid)]) -> Vec<u8> {
    pairs.iter().map(|(old, new)| format!("{old} {new}\n")).collect::<String>().into_bytes()
}
