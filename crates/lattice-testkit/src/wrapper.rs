//! A git that writes down how it was called and misbehaves on request.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::repo::TestRepo;

/// A shell script that stands between the program and git.
#[derive(Debug)]
pub struct GitWrapper {
    dir: PathBuf,
    repo: TestRepo,
    rules: Vec<Rule>,
}

/// What happens at a call instead of, before or after git.
///
/// Shell text runs in the directory of the repository, in a subshell with the hermetic environment and without
/// input, so that it can stand for another process. `$REAL_GIT` is git, `$PPID` the program, `$$` the wrapper.
/// Text that fails makes the call fail with 125.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs shell text, then git.
    Run(String),
    /// Runs git, then shell text; the caller gets the exit code of git.
    After(String),
    /// Kills the caller; git does not run.
    KillParent,
    /// Runs git to its end, then kills the caller before it learns of that.
    KillParentAfter,
    /// Dies by SIGKILL in place of git.
    KillSelf,
    /// Ends with this code; git does not run.
    Fail(u8),
}

/// Which of the matching calls are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// All of them.
    Every,
    /// One, counted from 1 over all processes and runs since the rule was made.
    Nth(u32),
}

#[derive(Debug)]
struct Rule {
    pattern: String,
    occurrence: Occurrence,
    action: Action,
}

impl From<u32> for Occurrence {
    fn from(number: u32) -> Self {
        assert!(number > 0, "occurrences are counted from 1");
        Self::Nth(number)
    }
}

impl GitWrapper {
    /// Writes a wrapper around the git of `repo`; without rules it only writes down calls.
    #[track_caller]
    pub fn new(repo: &TestRepo) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("wrapper-")
            .tempdir_in(repo.sandbox().root())
            .expect("the sandbox can be written")
            .keep();
        let wrapper = Self { dir, repo: repo.clone(), rules: Vec::new() };
        wrapper.write_script();
        wrapper
    }

    /// The script, for `LATTICE_GIT`.
    pub fn path(&self) -> PathBuf {
        self.dir.join("git")
    }

    /// Adds a rule for calls whose arguments, joined by spaces, contain `pattern`.
    ///
    /// Every rule counts every call that matches it, also when another rule acts on that call. Rules act in the
    /// order in which they were added.
    #[track_caller]
    pub fn on(&mut self, pattern: &str, occurrence: impl Into<Occurrence>, action: Action) -> &mut Self {
        self.rules.push(Rule { pattern: pattern.to_owned(), occurrence: occurrence.into(), action });
        self.write_script();
        self
    }

    /// The calls so far, one line each, arguments quoted as a shell would need them.
    #[track_caller]
    pub fn calls(&self) -> Vec<String> {
        let log = fs::read(self.dir.join("calls")).unwrap_or_default();
        let mut fields = log.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut calls = Vec::new();
        // Each record is the number of arguments, then the arguments; the log ends with an empty field.
        while let Some(count) = fields.next().filter(|count| !count.is_empty()) {
            let count: usize = count.parse().expect("a record starts with a number");
            let args: Vec<String> = fields.by_ref().take(count).map(|arg| shown(&arg)).collect();
            assert_eq!(args.len(), count, "the log of calls is cut off");
            calls.push(args.join(" "));
        }
        calls
    }

    /// How many calls there were so far.
    #[track_caller]
    pub fn count(&self) -> usize {
        self.calls().len()
    }

    /// Forgets the calls so far; rules and their counts stay.
    pub fn clear_calls(&self) {
        fs::remove_file(self.dir.join("calls")).ok();
    }

    fn write_script(&self) {
        let script = self.dir.join("git.new");
        fs::write(&script, self.script()).expect("the sandbox can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("the script is ours");
        // A call in another process sees the old script or the new one, never half of it.
        fs::rename(&script, self.path()).expect("the sandbox can be written");
    }

    fn script(&self) -> String {
        let mut script = self.head();
        for (number, rule) in self.rules.iter().enumerate() {
            script += &rule.counting(number);
        }
        for (number, rule) in self.rules.iter().enumerate() {
            script += &rule.before(number);
        }
        let after: String = self.rules.iter().enumerate().map(|(n, rule)| rule.after(n)).collect();
        script += "if [ -z \"$after\" ]; then exec \"$REAL_GIT\" \"$@\"; fi\n";
        script += "\"$REAL_GIT\" \"$@\"; code=$?\n";
        script + &after + "exit $code\n"
    }

    fn head(&self) -> String {
        let mut exports = String::new();
        for (name, value) in self.repo.sandbox().variables() {
            exports += &format!("  {name}={}; export {name}\n", quoted(&value));
        }
        HEAD.replace("{git}", &quoted(self.repo.sandbox().git().as_os_str()))
            .replace("{dir}", &quoted(self.dir.as_os_str()))
            .replace("{repo}", &quoted(self.repo.dir().as_os_str()))
            .replace("{exports}", &exports)
            .replace("{seed}", &(FOREIGN_SEEDS + self.rules.len()).to_string())
    }
}

/// The program run from the text of a rule must not make the operation ids of the test's own runs.
const FOREIGN_SEEDS: usize = 1_000_000;

/// The part of the script before the rules.
///
/// An occurrence is claimed by creating a file that must not exist, which is atomic and starts no process.
const HEAD: &str = r#"#!/bin/sh
REAL_GIT={git}; export REAL_GIT
unset LATTICE_GIT
dir={dir}
printf '%s\0' "$#" "$@" >>"$dir/calls"
claim() {
  set -C
  number=1
  while [ "$number" -le "$2" ]; do
    if { true >"$dir/rule-$1.$number"; } 2>/dev/null; then set +C; [ "$number" -eq "$2" ]; return; fi
    number=$((number + 1))
  done
  set +C
  return 1
}
foreign() {
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_PREFIX
  unset GIT_OPTIONAL_LOCKS GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
{exports}  LATTICE_SEED={seed}; export LATTICE_SEED
  unset LATTICE_GIT
  cd {repo}
}
broken() {
  echo "the text of a wrapper's rule failed: $(cat "$dir/said")" >&2
  exit 125
}
after=
"#;

impl Rule {
    /// Sets `fires_<number>` if this call is meant.
    fn counting(&self, number: usize) -> String {
        let claim = match self.occurrence {
            Occurrence::Every => String::new(),
            Occurrence::Nth(nth) => format!("claim {number} {nth} && "),
        };
        let later = match self.action {
            Action::After(_) | Action::KillParentAfter => "; after=yes",
            Action::Run(_) | Action::KillParent | Action::KillSelf | Action::Fail(_) => "",
        };
        let pattern = quoted(OsStr::new(&self.pattern));
        format!("fires_{number}=\ncase \"$*\" in *{pattern}*) {claim}{{ fires_{number}=yes{later}; }} ;; esac\n")
    }

    fn before(&self, number: usize) -> String {
        match &self.action {
            Action::Run(text) => fired(number, &subshell(text)),
            Action::KillParent => fired(number, "kill -9 $PPID; exit 137"),
            Action::KillSelf => fired(number, "kill -9 $$"),
            Action::Fail(code) => fired(number, &format!("echo 'fatal: made to fail' >&2; exit {code}")),
            Action::After(_) | Action::KillParentAfter => String::new(),
        }
    }

    fn after(&self, number: usize) -> String {
        match &self.action {
            Action::After(text) => fired(number, &subshell(text)),
            Action::KillParentAfter => fired(number, "kill -9 $PPID"),
            Action::Run(_) | Action::KillParent | Action::KillSelf | Action::Fail(_) => String::new(),
        }
    }
}

fn fired(number: usize, body: &str) -> String {
    format!("if [ -n \"$fires_{number}\" ]; then\n{body}\nfi\n")
}

fn subshell(text: &str) -> String {
    // Not `( ... ) || broken`: a shell ignores `set -e` on the left of `||`.
    format!("( foreign; set -e\n{text}\n) </dev/null >\"$dir/said\" 2>&1\n[ $? -eq 0 ] || broken")
}

/// A word that a shell reads as exactly these bytes.
fn quoted(word: &OsStr) -> String {
    let text = std::str::from_utf8(word.as_bytes()).expect("the kit chooses its words, and they are text");
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An argument for people: quoted only where it must be, always on one line.
fn shown(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,^~".contains(c);
    match arg {
        "" => "''".to_owned(),
        _ if arg.chars().all(plain) => arg.to_owned(),
        _ if arg.contains(char::is_control) => format!("$'{}'", arg.escape_debug()),
        _ => quoted(OsStr::new(arg)),
    }
}
