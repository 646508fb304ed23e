//! Asks the user, and starts the user's own programs: editor, explainer, and this program in the demo.

use std::ffi::OsStr;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::app::{App, Interaction};
use crate::error::Failure;
use crate::output::err;
use crate::output::status::Asking;

/// Asks which of several; `None` for an empty answer or the end of input.
pub(crate) fn choose(question: &str, options: &[String]) -> Option<usize> {
    for (at, option) in options.iter().enumerate() {
        err(&format!("  {}) {option}\n", at + 1));
    }
    let answer = ask(&format!("{question} [1-{}, empty: none] ", options.len()))?;
    answer.parse::<usize>().ok().filter(|n| (1..=options.len()).contains(n)).map(|n| n - 1)
}

/// Asks for a yes. Anything else is a no.
pub(crate) fn agree(question: &str) -> bool {
    ask(&format!("{question} [y/n] ")).is_some_and(|answer| ["y", "yes"].contains(&answer.to_lowercase().as_str()))
}

/// Asks for a yes or a no until there is one; `None` for an empty answer or the end of input, which leave it open.
pub(crate) fn decide(question: &str) -> Option<bool> {
    loop {
        match ask(&format!("{question} [y/n, empty: later] "))?.to_lowercase().as_str() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => {}
        }
    }
}

/// Asks for the very word. Anything else is a no.
pub(crate) fn confirm(question: &str, word: &str) -> bool {
    ask(&format!("{question} [{word}/no] ")).is_some_and(|answer| answer == word)
}

/// One line of input; `None` for an empty one or the end of input.
pub(crate) fn ask(question: &str) -> Option<String> {
    let _asking = Asking::begin();
    err(question);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// A line that does not appear on the terminal where it is typed; everything on stdin where that is none.
pub(crate) fn secret(question: &str) -> std::io::Result<String> {
    let stdin = std::io::stdin();
    let Ok(shown) = tcgetattr(&stdin) else { return everything() };
    let _asking = Asking::begin();
    err(question);
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Flush, &shown)?;
    err("\n");
    read.map(|_| line)
}

/// Everything on stdin.
pub(crate) fn everything() -> std::io::Result<String> {
    let _asking = Asking::begin();
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

/// Lets the user write a message. Lines that start with `#` are for them alone.
pub(crate) fn edit(app: &App, file: &Path, text: &str) -> Result<String, Failure> {
    let edited = edit_whole(app, file, text)?;
    let kept: Vec<_> = edited.lines().filter(|line| !line.starts_with('#')).collect();
    Ok(kept.join("\n").trim().to_owned())
}

/// Lets the user edit a text.
pub(crate) fn edit_whole(app: &App, file: &Path, text: &str) -> Result<String, Failure> {
    if app.interaction == Interaction::Never {
        return Err(Failure::usage("an editor cannot be opened here").hint("give the text as an argument"));
    }
    let failed = |what: &str, error: std::io::Error| Failure::new("editor", format!("{what}: {error}"));
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::File::create(file)?.write_all(text.as_bytes()))
        .map_err(|error| failed("the file to edit cannot be written", error))?;
    let editor =
        ["GIT_EDITOR", "VISUAL", "EDITOR"].iter().find_map(|name| app.variable(name).filter(|v| !v.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let _asking = Asking::begin();
    // Words, not a shell: a file name can then never become a command.
    let mut words = editor.split_whitespace();
    let mut command = start(words.next().unwrap_or("vi"));
    let status = command.args(words).arg(file).status().map_err(|error| failed(&editor, error))?;
    let edited = std::fs::read_to_string(file).map_err(|error| failed("the edited file cannot be read", error))?;
    let _ = std::fs::remove_file(file);
    if !status.success() {
        return Err(Failure::new("editor", format!("{editor} ended without success; nothing was changed")));
    }
    Ok(edited)
}

/// Shows a page in the user's browser.
pub(crate) fn browse(app: &App, url: &str) -> Result<(), Failure> {
    let web = url.starts_with("https://") || url.starts_with("http://");
    if !web {
        return Err(Failure::new("no-web-page", format!("{url} is no page that a browser could show")));
    }
    let named = app.variable("BROWSER").filter(|name| !name.is_empty());
    let browser = named.unwrap_or_else(|| if cfg!(target_os = "macos") { "open" } else { "xdg-open" }.to_owned());
    let mut command = start(&browser);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => Err(Failure::new("browser", format!("{browser} could not be started")).hint(url.to_owned())),
    }
}

/// Runs the configured explainer: JSON on its stdin, prose on its stdout.
pub(crate) fn explainer(command: &[String], input: &str, timeout_ms: u64) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("no command is configured")?;
    let mut process = start(program);
    // It may ask a model on the network; it must not find our secrets on the way.
    process.args(arguments).env_clear().envs(harmless_environment());
    let child = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("it has no input")?;
    let stdout = child.stdout.take().ok_or("it has no output")?;
    let input = input.to_owned();
    std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.take(64 * 1024).read_to_end(&mut text);
        let _ = sender.send(text);
    });
    let answer = receiver.recv_timeout(Duration::from_millis(timeout_ms));
    let _ = child.kill();
    let _ = child.wait();
    match answer {
        Ok(text) if !text.is_empty() => Ok(String::from_utf8_lossy(&text).trim().to_owned()),
        Ok(_) => Err("it said nothing".to_owned()),
        Err(_) => Err(format!("it took longer than {timeout_ms} ms")),
    }
}

#[expect(clippy::disallowed_methods, reason = "names of variables that hold no secrets")]
fn harmless_environment() -> Vec<(&'static str, std::ffi::OsString)> {
    ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TZ", "XDG_CONFIG_HOME"]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
        .collect()
}

/// Starts a program that runs on when this one has ended.
pub(crate) fn let_run(program: &Path, arguments: &[&str], directory: &Path) -> std::io::Result<Child> {
    let mut command = start(program);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Runs a program in a directory and gives its exit code and everything it printed.
pub(crate) fn run_in(
    program: &OsStr,
    arguments: &[&str],
    directory: &Path,
    plain: &[(&str, &str)],
) -> std::io::Result<(i32, String)> {
    let mut command = start(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.envs(plain.iter().copied());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.code().unwrap_or(-1), text))
}

#[expect(clippy::disallowed_methods, reason = "the one place in the program where a process starts")]
fn start(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
