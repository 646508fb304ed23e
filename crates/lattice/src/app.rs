//! The world outside: working directory, clock, environment, terminals. Read here and nowhere else.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use lattice_engine::{Engine, EngineError, Environment, GitProgram, HostEnvironment, INSIDE_OPERATION, Mode, Trace};
use lattice_model::id::OpId;
use lattice_model::plan::Hooks;
use lattice_model::settings::Settings;
use lattice_model::time::Timestamp;

use crate::cli::{ColorChoice, Global};
use crate::output::Style;

/// How the program was started.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) directory: PathBuf,
    pub(crate) now: Timestamp,
    pub(crate) interaction: Interaction,
    pub(crate) hooks: Hooks,
    pub(crate) style: Style,
    pub(crate) format: Format,
    pub(crate) noise: Noise,
    /// What `plan` and `apply` make of the command they carry.
    pub(crate) mode: Option<Mode>,
    /// Whether each stage is told on stderr.
    pub(crate) debug: bool,
    variables: Vec<(OsString, OsString)>,
    trace: Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interaction {
    Allowed,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    Normal,
    Quiet,
}

impl App {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads directory, clock and environment")]
    pub(crate) fn new(global: &Global) -> std::io::Result<Self> {
        let here = std::env::current_dir()?;
        // Who started this need not have said where.
        let mut variables: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "PWD").collect();
        variables.push(("PWD".into(), here.clone().into()));
        let directory = global.cwd.as_ref().map_or(here.clone(), |path| here.join(path));
        let fixed = variable(&variables, "LATTICE_NOW").and_then(|text| Timestamp::new(text).ok());
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now =
            fixed.unwrap_or_else(|| Timestamp::from_unix(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)));
        let terminals = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let quiet = global.quiet || global.no_interactive || global.json;
        let interaction =
            if (terminals || global.interactive) && !quiet { Interaction::Allowed } else { Interaction::Never };
        let plain = variable(&variables, "NO_COLOR").is_some_and(|value| !value.is_empty())
            || variable(&variables, "TERM").is_some_and(|terminal| terminal == "dumb");
        let colour = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => std::io::stdout().is_terminal() && !plain,
        };
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(&variables, name).filter(|v| !v.is_empty()));
        let ascii = locale.is_some_and(|value| !value.to_ascii_lowercase().contains("utf"));
        Ok(Self {
            directory,
            now,
            interaction,
            hooks: if global.no_verify { Hooks::Skip } else { Hooks::Run },
            style: Style { colour, ascii, columns: crate::output::status::columns(std::io::stdout()) },
            format: if global.json { Format::Json } else { Format::Human },
            noise: if global.quiet { Noise::Quiet } else { Noise::Normal },
            mode: None,
            debug: global.debug,
            variables,
            trace: Trace(global.debug.then_some(crate::output::trace)),
        })
    }

    /// The same, for a command that `plan` or `apply` carries.
    pub(crate) fn with_mode(&self, mode: Mode) -> Self {
        let mut app = self.clone();
        app.mode = Some(mode);
        app
    }

    /// Opens the repository that the program was started in.
    pub(crate) fn engine(&self) -> Result<Engine, EngineError> {
        let environment = Environment {
            git: self.git_program(),
            now: self.now.clone(),
            seed: self.seed(),
            user_settings: self.user_settings(),
            inside: self.variable(INSIDE_OPERATION).and_then(|op| OpId::new(op).ok()),
            trace: self.trace,
            hosts: self.hosts(),
        };
        Engine::open(environment, &self.directory)
    }

    /// The time now; `now` is when the program began.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub(crate) fn clock(&self) -> Timestamp {
        if self.variable("LATTICE_NOW").is_some() {
            return self.now.clone();
        }
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX))
    }

    /// The same at a later time.
    pub(crate) fn later(&self) -> Self {
        Self { now: self.clock(), ..self.clone() }
    }

    /// This program, as a path.
    pub(crate) fn program(&self) -> std::io::Result<PathBuf> {
        std::env::current_exe()
    }

    /// Where an agent's workspace is, inside a sprite.
    pub(crate) fn workspace(&self) -> PathBuf {
        let named = self.variable("LATTICE_WORKSPACE").filter(|path| !path.is_empty());
        named.map_or_else(|| PathBuf::from("/workspace"), PathBuf::from)
    }

    /// Waits a moment before looking again.
    pub(crate) fn pause(&self) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }

    /// The git to run, and the environment to run it in.
    pub(crate) fn git_program(&self) -> GitProgram {
        let program = self.variable("LATTICE_GIT").filter(|path| !path.is_empty()).unwrap_or_else(|| "git".to_owned());
        GitProgram { program: self.which(Path::new(&program)), environment: self.variables.clone() }
    }

    /// Where what can be computed again is kept for folders without a repository.
    pub(crate) fn user_cache_dir(&self) -> Option<PathBuf> {
        let base = self.variable("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        base.or_else(|| Some(PathBuf::from(self.variable("HOME").filter(|home| !home.is_empty())?).join(".cache")))
    }

    /// A path as it was typed here, as a path from the root of the workspace.
    pub(crate) fn in_repository(&self, path: &str, root: &Path) -> String {
        let here = std::fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let below = here.strip_prefix(root).unwrap_or(Path::new(""));
        if Path::new(path).is_absolute() { path.to_owned() } else { below.join(path).to_string_lossy().into_owned() }
    }

    /// What makes ids of this run differ from those of others.
    pub(crate) fn seed_and_time(&self) -> String {
        format!("{}\0{}", self.seed(), self.now)
    }

    /// What is known of the user's tokens.
    pub(crate) fn hosts(&self) -> HostEnvironment {
        let set = |name: &str| self.variable(name).filter(|value| !value.is_empty());
        let gh = self.which(Path::new("gh"));
        HostEnvironment {
            home: set("HOME").map(PathBuf::from),
            token: set("GH_TOKEN").or_else(|| set("GITHUB_TOKEN")),
            gh: gh.is_absolute().then_some(gh),
            variables: self.variables.clone(),
            clock: seconds_now,
            notice: crate::output::notice,
            timeout_ms: set("LATTICE_HTTP_TIMEOUT_MS").and_then(|text| text.parse().ok()).unwrap_or(30_000),
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        variable(&self.variables, name)
    }

    /// The environment that the program was started with.
    pub(crate) fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// Where the user's own options are.
    pub(crate) fn user_config_path(&self) -> Option<PathBuf> {
        let base = self.variable("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(".config")));
        base.map(|base| base.join("lattice").join("config.toml"))
    }

    pub(crate) fn user_settings(&self) -> Settings {
        let text = self.user_config_path().and_then(|path| std::fs::read_to_string(path).ok());
        lattice_engine::user_settings(text.as_deref().unwrap_or_default())
    }

    pub(crate) fn seed(&self) -> String {
        self.variable("LATTICE_SEED").unwrap_or_else(|| {
            let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
            format!("{}-{random}", std::process::id())
        })
    }

    /// The program as an absolute path: git is started in other directories than this one.
    pub(crate) fn which(&self, program: &Path) -> PathBuf {
        if program.components().count() > 1 {
            return self.directory.join(program);
        }
        let path = self.variable("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
        found.unwrap_or_else(|| program.to_owned())
    }
}

fn variable(variables: &[(OsString, OsString)], name: &str) -> Option<String> {
    variables.iter().find(|(key, _)| key == name)?.1.to_str().map(str::to_owned)
}

/// The clock, or the time that a test fixed.
#[expect(clippy::disallowed_methods, reason = "the one place that reads directory, clock and environment")]
fn seconds_now() -> i64 {
    let fixed = std::env::var("LATTICE_NOW").ok().and_then(|text| Timestamp::new(text).ok());
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    fixed.map_or_else(|| i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX), |at| at.unix_seconds())
}
