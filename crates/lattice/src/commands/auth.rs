//! `auth`: credentials for GitHub.

use clap::{Args, Subcommand};
use lattice_engine::{api_url, web_host};
use lattice_forge::Forge;
use lattice_forge::device_flow::{self, DeviceError};
use lattice_forge::github::{Connection, GitHub};
use lattice_forge::secret::{Removed, SecretStore, TokenBundle, TokenKind, Validity};
use lattice_forge::token::{FixedToken, from_gh};
use lattice_model::host::Slug;
use lattice_model::settings::GitHubSettings;
use lattice_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

use crate::app::{App, Interaction};
use crate::commands::hosted::one_line;
use crate::error::Failure;
use crate::output::{Document, Reply, err};
use crate::prompt;

/// Log in to GitHub, see how you are logged in, or log out
///
/// A Git remote that is no GitHub needs none of this: Git's own transport decides.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Get a token, by typing a code on a page or from stdin
    Login {
        /// The host; `github.web_url` says which one is usual
        #[arg(long)]
        host: Option<String>,
        /// Only print the address of the page
        #[arg(long)]
        no_browser: bool,
        /// Read a token from stdin instead
        #[arg(long)]
        with_token: bool,
    },
    /// Say where the token comes from, whose it is and how long it lasts
    Status {
        #[arg(long)]
        host: Option<String>,
    },
    /// Forget the stored token
    Logout {
        #[arg(long)]
        host: Option<String>,
    },
}

/// How one is logged in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuthDocument {
    host: String,
    authenticated: bool,
    /// `environment`, `stored` or `gh`.
    source: Option<&'static str>,
    user: Option<String>,
    kind: Option<&'static str>,
    expires_at: Option<String>,
    refreshable: bool,
}

impl Document for AuthDocument {
    const COMMAND: &'static str = "auth";
}

/// Where credentials are kept and for whom.
struct Place {
    host: String,
    github: GitHubSettings,
    store: SecretStore,
    now: i64,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.action {
        Action::Login { host, with_token: true, .. } => {
            let place = place(app, host.as_deref())?;
            let token = prompt::secret("token: ").map_err(|error| Failure::new("io", error.to_string()))?;
            let token = token.trim();
            if token.is_empty() || token.contains(char::is_whitespace) {
                return Err(
                    Failure::usage("one token is expected on stdin").hint("lattice auth login --with-token < file")
                );
            }
            let user = identity(app, &place, token)?;
            save(&place, &TokenBundle::personal(token, Some(user)))
        }
        Action::Login { host, no_browser, with_token: false } => {
            let place = place(app, host.as_deref())?;
            let browser = if *no_browser { Browser::Leave } else { Browser::Open };
            device(app, &place, browser)
        }
        Action::Status { host } => status(app, &place(app, host.as_deref())?),
        Action::Logout { host } => {
            let place = place(app, host.as_deref())?;
            let text = match place.store.remove(&place.host)? {
                Removed::Yes => format!("logged out of {}\n", place.host),
                Removed::WasNotThere => format!("no token was stored for {}\n", place.host),
            };
            let document = AuthDocument { authenticated: false, ..nobody(&place) };
            Ok(Reply::new(document, text).story())
        }
    }
}

fn place(app: &App, host: Option<&str>) -> Result<Place, Failure> {
    // Outside of a repository the user's own options hold.
    let settings = app.engine().map_or_else(|_| app.user_settings(), |engine| engine.settings());
    let mut github = settings.forge.github;
    if let Some(host) = host.filter(|host| *host != web_host(&github.web_url)) {
        github.web_url = format!("https://{host}");
        github.api_url = None;
    }
    let hosts = app.hosts();
    let home = hosts.home.ok_or_else(|| Failure::new("no-home", "HOME is not set, so tokens have no place"))?;
    let host = web_host(&github.web_url);
    Ok(Place { host, github, store: SecretStore::new(&home), now: (hosts.clock)() })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Browser {
    Open,
    Leave,
}

fn device(app: &App, place: &Place, browser: Browser) -> Result<Reply, Failure> {
    let Some(client) = place.github.client_id.as_deref() else {
        return Err(Failure::new(
            "no-client-id",
            "no client id of a GitHub App is configured, so a code cannot be asked for",
        )
        .hint("give a token: lattice auth login --with-token < file")
        .hint("or log in with gh, whose token is used too: gh auth login")
        .hint("or name your App: lattice config set --global github.client_id <id>"));
    };
    let runtime = runtime()?;
    let web = place.github.web_url.trim_end_matches('/');
    let code = runtime.block_on(device_flow::begin(web, client)).map_err(refused)?;
    err(&format!("Open {} and type {}\n", one_line(&code.verification_uri), one_line(&code.user_code)));
    let same_host = web_host(&code.verification_uri) == place.host;
    if browser == Browser::Open && app.interaction == Interaction::Allowed && same_host {
        // Without a browser the address above is enough.
        let _ = prompt::browse(app, &code.verification_uri);
    }
    let granted = runtime.block_on(device_flow::finish(web, client, &code)).map_err(refused)?;
    let user = identity(app, place, granted.token())?;
    save(place, &granted.bundle(TokenKind::App, Some(user), place.now))
}

fn refused(error: DeviceError) -> Failure {
    let text = error.to_string();
    match error {
        DeviceError::Expired => Failure::new("code-expired", text).hint("begin again: lattice auth login"),
        DeviceError::Denied => Failure::new("denied", text),
        DeviceError::Disabled => Failure::new("device-flow-disabled", text).hint("lattice auth login --with-token"),
        DeviceError::Refused(_) => Failure::new("login-refused", crate::output::printable(&text)),
        DeviceError::Host(error) => error.into(),
    }
}

/// Asks the host whose token it is, which also shows that it works.
fn identity(app: &App, place: &Place, token: &str) -> Result<String, Failure> {
    let runtime = runtime()?;
    let _inside = runtime.enter();
    let connection = Connection {
        api_url: api_url(&place.github),
        tokens: Arc::new(FixedToken(token.to_owned())),
        cache: None,
        notice: Arc::new(crate::output::notice),
        clock: Arc::new(app.hosts().clock),
        timeout_ms: app.hosts().timeout_ms,
    };
    let nowhere = Slug { owner: String::new(), repo: String::new() };
    let github = GitHub::new(nowhere, connection)?;
    Ok(runtime.block_on(github.identity())?)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::new("no-runtime", error.to_string()))
}

fn save(place: &Place, bundle: &TokenBundle) -> Result<Reply, Failure> {
    place.store.save(&place.host, bundle)?;
    let user = bundle.user.clone().unwrap_or_default();
    let text = format!("logged in to {} as {}\n", place.host, one_line(&user));
    Ok(Reply::new(document(place, "stored", bundle), text).story())
}

fn status(app: &App, place: &Place) -> Result<Reply, Failure> {
    let hosts = app.hosts();
    let by_others = |source: &'static str| AuthDocument {
        authenticated: true,
        source: Some(source),
        kind: Some("personal"),
        ..nobody(place)
    };
    let found = if hosts.token.is_some() {
        by_others("environment")
    } else if let Some(bundle) = place.store.load(&place.host)? {
        document(place, "stored", &bundle)
    } else if hosts.gh.as_deref().and_then(|gh| from_gh(gh, &place.host, &hosts.variables)).is_some() {
        by_others("gh")
    } else {
        nobody(place)
    };
    let text = match (&found.source, found.authenticated) {
        (None, _) => format!("{}: not logged in\n", found.host),
        (Some(source), true) => {
            let user = found.user.as_deref().map(|user| format!(" as {}", one_line(user))).unwrap_or_default();
            let until = found.expires_at.as_deref().map(|at| format!(", until {at}")).unwrap_or_default();
            let refresh = if found.refreshable { ", then refreshed" } else { "" };
            format!("{}: logged in{user} ({source}{until}{refresh})\n", found.host)
        }
        (Some(_), false) => format!("{}: the stored token has expired\n", found.host),
    };
    let reply = Reply::new(found, text);
    Ok(if reply.field("authenticated") == true { reply } else { reply.note("log in: lattice auth login") })
}

fn nobody(place: &Place) -> AuthDocument {
    AuthDocument {
        host: place.host.clone(),
        authenticated: false,
        source: None,
        user: None,
        kind: None,
        expires_at: None,
        refreshable: false,
    }
}

fn document(place: &Place, source: &'static str, bundle: &TokenBundle) -> AuthDocument {
    AuthDocument {
        host: place.host.clone(),
        authenticated: bundle.validity(place.now) != Validity::Expired,
        source: Some(source),
        user: bundle.user.clone(),
        kind: Some(match bundle.kind {
            TokenKind::App => "app",
            TokenKind::Personal => "personal",
        }),
        expires_at: bundle.expires_at.map(|at| Timestamp::from_unix(at).to_string()),
        refreshable: bundle.refresh_token.is_some(),
    }
}
