//! Programs that only start another one: the shims of version managers, and scripts like them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::install::{SEEN, interpreter};
use crate::app::App;
use crate::prompt;

/// What is behind a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing else.
    Itself,
    /// It is a shim of a version manager, which named this program.
    Instead(PathBuf),
    /// It is a script that starts these.
    Also(Vec<PathBuf>),
    /// It is a shim of this version manager, which names nothing.
    Unknown(String),
}

/// Managers whose shims are links to themselves, with the program beside them that knows.
const LINKED: [(&str, &str); 3] = [("mise", "mise"), ("rtx", "rtx"), ("volta-shim", "volta")];

/// Longer scripts are more than shims.
const LONGEST: u64 = 16 << 10;

/// What a program that was found at `found` starts.
pub(super) fn target(app: &App, program: &Path, found: &Path) -> Target {
    if SEEN.iter().any(|seen| found.starts_with(seen)) && manager_of_link(program, found).is_none() {
        return Target::Itself;
    }
    let script = interpreter(found).map(|_| read(found)).unwrap_or_default();
    let home = app.variable("HOME").unwrap_or_default();
    let started = match manager_of_link(program, found) {
        Some(manager) => vec![Started::Managed(manager)],
        None => starts(&script, &home),
    };
    let mut others = Vec::new();
    for started in started {
        match started {
            Started::Managed(manager) => {
                let named = asked(app, &manager, program, &exports(&script, &home));
                // A manager that knows nothing better may name its own shim.
                return match named.filter(|named| named != found) {
                    Some(named) => Target::Instead(named),
                    None => Target::Unknown(manager.file_name().unwrap_or_default().to_string_lossy().into_owned()),
                };
            }
            Started::Program(path) => others.extend(path.canonicalize().ok().filter(|path| path.is_file())),
        }
    }
    if others.is_empty() { Target::Itself } else { Target::Also(others) }
}

/// What a line of a script starts.
#[derive(Debug, PartialEq, Eq)]
enum Started {
    /// Whatever this version manager chooses.
    Managed(PathBuf),
    Program(PathBuf),
}

/// What a script hands over to: lines of the form `exec /PLACE ...`, and of managers `exec /PLACE exec ...`.
fn starts(script: &str, home: &str) -> Vec<Started> {
    let line = |line: &str| {
        let mut words = line.trim().strip_prefix("exec ")?.split_whitespace();
        let program = PathBuf::from(plain(words.next()?, home));
        match words.next().map(|word| plain(word, home)).as_deref() {
            _ if !program.is_absolute() => None,
            Some("exec" | "x") => Some(Started::Managed(program)),
            Some(_) | None => Some(Started::Program(program)),
        }
    };
    script.lines().filter_map(line).collect()
}

/// What a script tells whom it starts, where that stands there as it is.
fn exports(script: &str, home: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, value) = line.trim().strip_prefix("export ")?.split_once('=')?;
        Some((name.to_owned(), plain(value, home))).filter(|(_, value)| !value.contains(['$', '`']))
    };
    script.lines().filter_map(line).collect()
}

/// A word of a script without its quotes.
fn plain(word: &str, home: &str) -> String {
    word.trim_matches(['"', '\'']).replace("${HOME}", home).replace("$HOME", home)
}

fn manager_of_link(program: &Path, found: &Path) -> Option<PathBuf> {
    let (asked, name) = (program.file_name()?, found.file_name()?);
    let (_, knows) = LINKED.iter().find(|(link, _)| asked != name && OsStr::new(link) == name)?;
    Some(found.with_file_name(knows))
}

/// Asks a version manager which program it would start here.
fn asked(app: &App, manager: &Path, program: &Path, told: &[(String, String)]) -> Option<PathBuf> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let told: Vec<_> = told.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = prompt::run_in(manager.as_os_str(), &["which", &name], &app.directory, &told);
    let (_, text) = answer.ok().filter(|(code, _)| *code == 0)?;
    let line = text.lines().map(str::trim).find(|line| line.starts_with('/'))?;
    Path::new(line).canonicalize().ok().filter(|path| path.is_file())
}

fn read(script: &Path) -> String {
    let mut text = String::new();
    let read = File::open(script).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}
