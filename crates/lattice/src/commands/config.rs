//! `config`: reads and changes options, of this repository or of the user.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lattice_engine::{
    ConfigEditError, Engine, Mode, WorkingCopyNeed, edit_setting, list_settings, read_setting, unset_setting,
};
use lattice_model::command::config::WriteSettings;
use lattice_model::gate::Refusal;
use lattice_model::settings::{KnownOption, OPTIONS, known_option};
use lattice_model::snapshot::{ConfigReading, Snapshot};
use serde_json::json;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::alias::is_command;
use crate::commands::change::{change, mode, previews};
use crate::error::Failure;
use crate::output::Reply;
use crate::output::documents::ConfigDocument;
use crate::prompt;

/// Read and change options
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the value of an option
    Get {
        /// Such as `trunk.branch`
        key: String,
        #[command(flatten)]
        place: Place,
    },
    /// Set an option
    Set {
        /// Such as `branch.template`, or `alias.<name>`
        key: String,
        value: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        preview: Preview,
    },
    /// Take an option out, so that its default holds again
    Unset {
        /// Such as `branch.template`, or `alias.<name>`
        key: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        preview: Preview,
    },
    /// Print every option: those that are set, and the others with their defaults
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Open the file in an editor
    Edit {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Clone, Copy, Args)]
struct Place {
    /// The user's own file instead of the repository's
    #[arg(long)]
    global: bool,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.action {
        Action::Get { key, place } => get(app, key, *place),
        Action::List { place } => list(app, *place),
        Action::Set { key, value, place, preview } => write(app, (key, Some(value)), *place, *preview),
        Action::Unset { key, place, preview } => write(app, (key, None), *place, *preview),
        Action::Edit { place } => edit(app, *place),
    }
}

/// A file with options.
struct Source {
    path: PathBuf,
    text: String,
    place: Place,
}

impl Source {
    /// Says which file it is that cannot be understood, and what helps there.
    fn unreadable(&self, error: ConfigEditError) -> Failure {
        match error {
            ConfigEditError::Unreadable(reason) => {
                let failure = Failure::new("config-invalid", format!("{} is broken: {reason}", self.path.display()));
                match self.place {
                    Place { global: true } => failure.hint("lattice config edit --global opens it"),
                    Place { global: false } => failure.hint("lattice doctor says what can be done"),
                }
            }
            ConfigEditError::UnknownKey(_) | ConfigEditError::NotSet(_) | ConfigEditError::BadValue { .. } => {
                error.into()
            }
        }
    }
}

/// The chosen file, and for a look without `--global` the user's below it.
fn sources(app: &App, place: Place) -> Result<Vec<Source>, Failure> {
    let user = app.user_config_path().unwrap_or_default();
    let global_text = app.user_config_path().map_or(Ok(String::new()), |path| user_text(&path));
    let global = |text| Source { path: user, text, place: Place { global: true } };
    if place.global {
        return Ok(vec![global(global_text?)]);
    }
    let engine = app.engine()?;
    let path = engine.repository().common_dir.join("lattice").join("config.toml");
    let own = Source { path, text: engine.config_text().unwrap_or_default(), place };
    // A file of the user's that cannot be read sets nothing, here as in every command.
    Ok(vec![own, global(global_text.unwrap_or_default())])
}

fn get(app: &App, key: &str, place: Place) -> Result<Reply, Failure> {
    for source in sources(app, place)? {
        if let Some(value) = read_setting(&source.text, key).map_err(|error| source.unreadable(error))? {
            let options = BTreeMap::from([(key.to_owned(), value.clone())]);
            return Ok(Reply::new(ConfigDocument { options, file: None, operation: None }, format!("{value}\n")));
        }
    }
    let default = known_option(key).and_then(KnownOption::default);
    let default = default.map(|default| format!("; the default is {default}")).unwrap_or_default();
    let failure = Failure::new("not-set", format!("`{key}` is not set{default}"));
    Err(failure.hint("lattice config list shows every option"))
}

fn list(app: &App, place: Place) -> Result<Reply, Failure> {
    let mut options = BTreeMap::new();
    for source in sources(app, place)?.iter().rev() {
        options.extend(list_settings(&source.text).map_err(|error| source.unreadable(error))?);
    }
    let mut text: String = options.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    for option in OPTIONS.iter().filter(|option| !options.contains_key(option.key)) {
        let default = option.default().map(|default| format!(" (default: {default})")).unwrap_or_default();
        text.push_str(&app.style.dim(&format!("# {}: {}{default}\n", option.key, option.help)));
    }
    Ok(Reply::new(ConfigDocument { options, file: None, operation: None }, text))
}

/// A command's own name wins over an alias, which would never do anything.
fn refuse_command((key, value): Setting<'_>) -> Result<(), Failure> {
    match key.strip_prefix("alias.").filter(|_| value.is_some()) {
        Some(name) if is_command(name) => Err(Failure::new("config", format!("`{name}` is a command already"))
            .hint("an alias needs another name: a command is never replaced")),
        Some(_) | None => Ok(()),
    }
}

/// An option and what it is to be; `None` is its default.
type Setting<'a> = (&'a str, Option<&'a String>);

fn write(app: &App, setting: Setting<'_>, place: Place, preview: Preview) -> Result<Reply, Failure> {
    if setting.0 == "trunk.branch" {
        let why = if place.global { "a trunk belongs to a repository" } else { "the trunk is changed with" };
        return Err(Failure::usage(format!("{why}: lattice trunk set <branch>")));
    }
    refuse_command(setting)?;
    if place.global { write_global(app, setting, preview) } else { write_own(app, setting, preview) }
}

fn edited(content: &str, (key, value): Setting<'_>) -> Result<String, ConfigEditError> {
    match value {
        Some(value) => edit_setting(content, key, value),
        None => unset_setting(content, key),
    }
}

fn told((key, value): Setting<'_>) -> String {
    match value {
        Some(value) => format!("{key} = {value}\n"),
        None => format!("{key} is no longer set\n"),
    }
}

fn write_own(app: &App, setting: Setting<'_>, preview: Preview) -> Result<Reply, Failure> {
    if setting.1.is_some() {
        // A wrong key is a mistake in the command, whatever state the repository is in.
        edited("", setting)?;
    }
    let build = |_: &Engine, snapshot: &Snapshot| {
        let content = edited(editable(snapshot)?, setting).map_err(refused)?;
        Ok(WriteSettings { content })
    };
    let reply = change(app, ("config", preview), WorkingCopyNeed::No, build)?;
    if previews(app, preview) {
        return Ok(reply.with_field("options", json!({})));
    }
    let options: BTreeMap<_, _> = setting.1.map(|value| (setting.0, value)).into_iter().collect();
    Ok(reply.with_field("options", json!(options)).text(told(setting)))
}

fn editable(snapshot: &Snapshot) -> Result<&str, Refusal> {
    match &snapshot.config {
        ConfigReading::Valid { content, .. } => Ok(content),
        ConfigReading::Absent => Ok(""),
        ConfigReading::Invalid { reason, .. } => {
            Err(Refusal::new("config-invalid", format!("the configuration cannot be read: {reason}"))
                .hint("lattice doctor, or lattice config edit"))
        }
        ConfigReading::Foreign { .. } => {
            Err(Refusal::new("config-foreign", "the configuration is that of another program")
                .hint("lattice doctor offers to convert it"))
        }
    }
}

pub(crate) fn refused(error: ConfigEditError) -> Refusal {
    Refusal::new("config", error.to_string())
}

fn write_global(app: &App, setting: Setting<'_>, preview: Preview) -> Result<Reply, Failure> {
    let path = user_path(app)?;
    let source = Source { text: user_text(&path)?, path: path.clone(), place: Place { global: true } };
    let text = edited(&source.text, setting).map_err(|error| source.unreadable(error))?;
    let options = setting.1.map(|value| (setting.0.to_owned(), value.clone())).into_iter().collect();
    let mut document = ConfigDocument { options, file: Some(path.display().to_string()), operation: None };
    match mode(app, preview) {
        Mode::DryRun => {
            document.options.clear();
            let reply = Reply::new(document, format!("write {}\n", path.display()));
            return Ok(reply.note("this was a dry run: nothing was changed"));
        }
        Mode::Execute | Mode::ExecuteExactly(_) => {}
    }
    write_user_text(&path, &text)?;
    Ok(Reply::new(document, told(setting)))
}

fn user_path(app: &App) -> Result<PathBuf, Failure> {
    app.user_config_path().ok_or_else(|| Failure::new("no-home", "neither XDG_CONFIG_HOME nor HOME is set"))
}

/// The user's own file; only one that does not exist is empty.
fn user_text(path: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::new("io", format!("{} cannot be read: {error}", path.display()))),
    }
}

fn write_user_text(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = folder.and_then(|()| crate::output::write_file(path, text));
    written.map_err(|error| Failure::new("io", format!("{} cannot be written: {error}", path.display())))
}

fn edit(app: &App, place: Place) -> Result<Reply, Failure> {
    if app.mode.is_some() {
        return Err(Failure::usage("what an editor will do cannot be planned").hint("lattice config set <key> <value>"));
    }
    if app.interaction == Interaction::Never {
        return Err(Failure::usage("an editor cannot be opened here").hint("lattice config set <key> <value>"));
    }
    let before = sources(app, place)?.swap_remove(0).text;
    if place.global {
        let path = user_path(app)?;
        let scratch = path.with_extension("toml.edit");
        let text = prompt::edit_whole(app, &scratch, &before)?;
        list_settings(&text)?;
        write_user_text(&path, &text)?;
        return list(app, place);
    }
    let engine = app.engine()?;
    let scratch = engine.draft("config.toml");
    let content = prompt::edit_whole(app, &scratch, &before)?;
    list_settings(&content)?;
    let reply = change(app, ("config", Preview { dry_run: false }), WorkingCopyNeed::No, |_, _| {
        Ok(WriteSettings { content: content.clone() })
    })?;
    Ok(reply.with_field("options", json!(list_settings(&content)?)))
}
