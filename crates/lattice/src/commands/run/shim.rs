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
    let started = match manager_of_link(program, found) {
        Some(manager) => vec![Started::Managed(manager)],
        None => interpreter(found).map(|_| starts(&read(found), app)).unwrap_or_default(),
    };
    let mut others = Vec::new();
    for started in started {
        match started {
            Started::Managed(manager) => return asked(app, &manager, program),
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
fn starts(script: &str, app: &App) -> Vec<Started> {
    let home = app.variable("HOME").unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.trim().strip_prefix("exec ")?.split_whitespace();
        let plain = |word: &str| word.trim_matches(['"', '\'']).replace("${HOME}", &home).replace("$HOME", &home);
        let program = PathBuf::from(plain(words.next()?));
        match words.next().map(plain).as_deref() {
            _ if !program.is_absolute() => None,
            Some("exec" | "x") => Some(Started::Managed(program)),
            Some(_) | None => Some(Started::Program(program)),
        }
    };
    script.lines().filter_map(line).collect()
}

fn manager_of_link(program: &Path, found: &Path) -> Option<PathBuf> {
    let (asked, name) = (program.file_name()?, found.file_name()?);
    let (_, knows) = LINKED.iter().find(|(link, _)| asked != name && OsStr::new(link) == name)?;
    Some(found.with_file_name(knows))
}

/// Asks a version manager which program it would start here.
fn asked(app: &App, manager: &Path, program: &Path) -> Target {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let answer = prompt::run_in(manager.as_os_str(), &["which", &name], &app.directory, &[]);
    let path = answer.ok().filter(|(code, _)| *code == 0).and_then(|(_, text)| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with('/'))?;
        Path::new(line).canonicalize().ok().filter(|path| path.is_file())
    });
    match path {
        Some(path) => Target::Instead(path),
        None => Target::Unknown(manager.file_name().unwrap_or_default().to_string_lossy().into_owned()),
    }
}

fn read(script: &Path) -> String {
    let mut text = String::new();
    let read = File::open(script).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}
