//! From a remote's address to its forge and the token for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use lattice_forge::Forge;
use lattice_forge::access;
use lattice_forge::git::GitForge;
use lattice_forge::github::cache::Cache;
use lattice_forge::github::{Connection, GitHub};
use lattice_forge::secret::{SecretStore, TokenKind, Validity};
use lattice_forge::token::{AuthManager, FixedToken, TokenProvider, from_gh, git_header};
use lattice_forge::url::{Address, Scheme};
use lattice_model::gate::Refusal;
use lattice_model::host::{AccessReading, AuthReading, ForgeKind, RemoteReading};
use lattice_model::settings::GitHubSettings;
use lattice_repo::{Credential, Remote};

use super::{Host, Parts};
use crate::{Engine, EngineError};

/// What people call the remote that their own was forked from.
const ORIGINAL: &str = "upstream";

/// What the program knows of the user's tokens.
#[derive(Clone)]
pub struct HostEnvironment {
    /// Where `.lattice/auth` is.
    pub home: Option<PathBuf>,
    /// A token from the environment.
    pub token: Option<String>,
    /// The program `gh`, if it is installed.
    pub gh: Option<PathBuf>,
    pub variables: Vec<(OsString, OsString)>,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
    /// Hears of waits.
    pub notice: fn(&str),
    pub timeout_ms: u64,
}

impl std::fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostEnvironment").field("home", &self.home).finish_non_exhaustive()
    }
}

/// What only GitHub has.
pub(super) struct GitHubParts {
    github: Arc<GitHub>,
    tokens: Arc<dyn TokenProvider>,
    kind: TokenKind,
    host: String,
    app: String,
    /// The beginning of addresses that a token may be sent to by Git.
    git_base: Option<String>,
}

pub(super) struct Found {
    pub(super) reading: RemoteReading,
    pub(super) auth: AuthReading,
    pub(super) parts: Option<Parts>,
}

/// A token and what kind it is of, or why there is none.
type Token = Result<(Arc<dyn TokenProvider>, TokenKind), AuthReading>;

impl Engine {
    pub(super) fn find_host(&self) -> Result<Found, EngineError> {
        let settings = self.settings();
        let name = settings.forge.remote().to_owned();
        let nothing = |reading| Found { reading, auth: AuthReading::NotNeeded, parts: None };
        let Some(url) = self.repo.remote_url(&name)? else {
            return Ok(nothing(RemoteReading::Missing { name }));
        };
        let address = match Address::parse(&url.0) {
            Ok(address) => address,
            Err(error) => return Ok(nothing(RemoteReading::Unusable { name, reason: error.to_string() })),
        };
        let remote = self.repo.remote(&name, &address.shown);
        let is_github = match settings.forge.kind.as_str() {
            "github" => true,
            "git" => false,
            _ => address.is_on(&settings.forge.github.web_url),
        };
        if is_github {
            return self.github(remote, name, address, &settings.forge.github);
        }
        let items = Arc::new(remote.without_hooks());
        let forge: Arc<dyn Forge> = Arc::new(GitForge::new(items, self.environment.now.clone()));
        let reading = RemoteReading::Resolved { name, slug: address.slug, forge: forge.kind() };
        Ok(Found { reading, auth: AuthReading::NotNeeded, parts: Some(Parts { remote, forge, github: None }) })
    }

    /// Refuses where it is open which repository is meant: a fork, or the original beside it.
    pub(super) fn one_repository(&self, host: &Host) -> Result<(), EngineError> {
        let forge = self.settings().forge;
        let RemoteReading::Resolved { name, slug, forge: ForgeKind::GitHub } = &host.reading else { return Ok(()) };
        if forge.remote.is_some() {
            return Ok(());
        }
        let Some(url) = self.repo.remote_url(ORIGINAL)? else { return Ok(()) };
        let original = Address::parse(&url.0).ok().filter(|address| address.is_on(&forge.github.web_url));
        match original.map(|address| address.slug.to_string()) {
            Some(original) if !original.eq_ignore_ascii_case(&slug.to_string()) => {
                let both = format!("`{name}` is {slug} and `{ORIGINAL}` is {original}");
                let why = "branches and pull requests of a stack are in one repository";
                let choose = |what: &dyn std::fmt::Display, name: &str| {
                    format!("to have it in {what}: lattice config set forge.remote {name}")
                };
                let refusal = Refusal::new("fork", format!("{both}; {why}")).hint(choose(slug, name));
                Err(refusal.hint(choose(&original, ORIGINAL)).into())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn github(
        &self,
        remote: Remote,
        name: String,
        address: Address,
        settings: &GitHubSettings,
    ) -> Result<Found, EngineError> {
        let host = web_host(&settings.web_url);
        let forge = ForgeKind::GitHub;
        let reading = RemoteReading::Resolved { name, slug: address.slug.clone(), forge };
        let hosts = &self.environment.hosts;
        let (tokens, kind) = match token(hosts, &host, settings)? {
            Ok(found) => found,
            Err(auth) => return Ok(Found { reading, auth, parts: None }),
        };
        let github = Arc::new(GitHub::new(address.slug, connection(hosts, settings, Arc::clone(&tokens)))?);
        let over_http = matches!(address.scheme, Scheme::Http | Scheme::Https);
        let git_base = over_http.then(|| format!("{}/", settings.web_url.trim_end_matches('/')));
        let app = settings.app.clone();
        let forge: Arc<dyn Forge> = Arc::<GitHub>::clone(&github);
        let parts = GitHubParts { github, tokens, kind, host, app, git_base };
        Ok(Found { reading, auth: AuthReading::Available, parts: Some(Parts { remote, forge, github: Some(parts) }) })
    }

    /// Whether the token was found to reach the repository a moment ago.
    pub(super) fn remembered_access(&self, host: &Host) -> AccessReading {
        let hosts = &self.environment.hosts;
        match (&host.parts, hosts.home.as_deref()) {
            (Some(Parts { github: None, .. }), _) => AccessReading::Granted,
            (Some(Parts { github: Some(parts), .. }), Some(home)) => {
                let known = access::notes(&SecretStore::new(home), &parts.host, (hosts.clock)());
                if known.holds(parts.github.slug()) { AccessReading::Granted } else { AccessReading::NotAsked }
            }
            (Some(Parts { github: Some(_), .. }), None) | (None, _) => AccessReading::NotAsked,
        }
    }

    /// Whether the token reaches the repository; on a Git remote the transport itself decides.
    pub(super) fn access(&self, host: &Host) -> Result<AccessReading, EngineError> {
        let Some(parts) = &host.parts()?.github else { return Ok(AccessReading::Granted) };
        let hosts = &self.environment.hosts;
        let Some(home) = hosts.home.as_deref() else { return Ok(AccessReading::Granted) };
        let store = SecretStore::new(home);
        let known = access::notes(&store, &parts.host, (hosts.clock)());
        Ok(host.wait(access::read(&parts.github, parts.kind, &parts.app, &known))?)
    }
}

impl Host {
    /// The remote, with a token for Git where one is needed.
    pub(super) fn remote(&self) -> Result<Remote, EngineError> {
        let parts = self.parts()?;
        let Some((github, url)) = parts.github.as_ref().and_then(|github| Some((github, github.git_base.clone()?)))
        else {
            return Ok(parts.remote.clone());
        };
        let token = self.wait(github.tokens.bearer_token());
        let token = token.map_err(lattice_forge::ForgeError::Auth)?;
        Ok(parts.remote.with_credential(Credential { url, header: git_header(&token) }))
    }
}

/// The environment first, then what was stored, then `gh`.
pub(super) fn token(hosts: &HostEnvironment, host: &str, settings: &GitHubSettings) -> Result<Token, EngineError> {
    let fixed = |token: String| -> Token { Ok((Arc::new(FixedToken(token)), TokenKind::Personal)) };
    if let Some(token) = &hosts.token {
        return Ok(fixed(token.clone()));
    }
    if let Some(store) = hosts.home.as_deref().map(SecretStore::new)
        && let Some(bundle) = store.load(host).map_err(|error| lattice_forge::ForgeError::Auth(error.into()))?
    {
        if bundle.validity((hosts.clock)()) == Validity::Expired {
            return Ok(Err(AuthReading::Expired { host: host.to_owned() }));
        }
        let manager = AuthManager {
            store,
            host: host.to_owned(),
            web_url: settings.web_url.clone(),
            client_id: settings.client_id.clone(),
            clock: Arc::new(hosts.clock),
        };
        return Ok(Ok((Arc::new(manager), bundle.kind)));
    }
    let gh = hosts.gh.as_deref().and_then(|gh| from_gh(gh, host, &hosts.variables));
    Ok(gh.map_or_else(|| Err(AuthReading::Missing { host: host.to_owned() }), fixed))
}

/// How GitHub is talked to.
pub(super) fn connection(
    hosts: &HostEnvironment,
    settings: &GitHubSettings,
    tokens: Arc<dyn TokenProvider>,
) -> Connection {
    let store = hosts.home.as_deref().map(SecretStore::new);
    Connection {
        api_url: api_url(settings),
        tokens,
        cache: store.map(|store| Cache { store, host: web_host(&settings.web_url) }),
        notice: Arc::new(hosts.notice),
        clock: Arc::new(hosts.clock),
        timeout_ms: hosts.timeout_ms,
    }
}

/// The host that tokens are stored for.
pub fn web_host(web_url: &str) -> String {
    let rest = web_url.split_once("://").map_or(web_url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Where programs ask: a host of its own for github.com, a path of the same one for Enterprise.
pub fn api_url(settings: &GitHubSettings) -> String {
    match (&settings.api_url, web_host(&settings.web_url).as_str()) {
        (Some(url), _) => url.clone(),
        (None, "github.com") => "https://api.github.com".to_owned(),
        (None, _) => format!("{}/api/v3", settings.web_url.trim_end_matches('/')),
    }
}
