//! Where issues and pull requests are read from: the repository's host, or any repository on GitHub.

use lattice_context::bundle::RepoName;
use lattice_engine::{Engine, GitHubReader, Host};
use lattice_forge::Forge;
use lattice_model::host::{RemoteReading, Slug};
use lattice_model::settings::GitHubSettings;

use crate::app::App;
use crate::error::Failure;

/// A host that is only read.
pub(super) struct Source {
    pub(super) repo: RepoName,
    from: From,
}

enum From {
    /// The host of the repository here.
    Here(Box<Host>),
    GitHub(Box<GitHubReader>),
}

impl Source {
    /// The named repository, or the one here. Reading needs no repository if one is named, and no valid stack.
    pub(super) fn open(app: &App, named: Option<RepoName>) -> Result<Self, Failure> {
        let engine = app.engine();
        let here = match (&engine, &named) {
            (Ok(engine), _) => here(engine)?,
            (Err(_), Some(_)) => None,
            (Err(_), None) => {
                return Err(Failure::new("no-repository", "it is not known which repository the item is in")
                    .hint("lattice context bundle can name it: --repo <owner>/<name>")
                    .hint("or run this in a repository with a remote"));
            }
        };
        match (here, named) {
            (Some((repo, host)), None) => Self::of_host(repo, host),
            (Some((repo, host)), Some(named)) if repo == named => Self::of_host(repo, host),
            (_, Some(named)) => {
                let settings = engine.map_or_else(|_| app.user_settings(), |engine| engine.settings());
                Self::on_github(app, named, &settings.forge.github)
            }
            (None, None) => Err(Failure::new("no-repository", "this repository has no remote that can be used")
                .hint("add one: git remote add origin <url>")
                .hint("lattice context bundle can name a repository on GitHub: --repo <owner>/<name>")),
        }
    }

    fn of_host(repo: RepoName, host: Host) -> Result<Self, Failure> {
        host.forge()?;
        Ok(Self { repo, from: From::Here(Box::new(host)) })
    }

    fn on_github(app: &App, repo: RepoName, settings: &GitHubSettings) -> Result<Self, Failure> {
        let slug = Slug { owner: repo.owner().to_owned(), repo: repo.name().to_owned() };
        let reader = GitHubReader::new(slug, &app.hosts(), settings)?;
        Ok(Self { repo, from: From::GitHub(Box::new(reader)) })
    }

    pub(super) fn forge(&self) -> Result<&dyn Forge, Failure> {
        match &self.from {
            From::Here(host) => Ok(host.forge()?),
            From::GitHub(reader) => Ok(reader.forge()),
        }
    }

    pub(super) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        match &self.from {
            From::Here(host) => host.wait(answer),
            From::GitHub(reader) => reader.wait(answer),
        }
    }
}

/// The host of this repository and what it calls it; none if it has no remote.
fn here(engine: &Engine) -> Result<Option<(RepoName, Host)>, Failure> {
    let host = engine.host()?;
    let RemoteReading::Resolved { slug, .. } = &host.reading else { return Ok(None) };
    let repo = RepoName::new(&slug.to_string()).map_err(|error| Failure::new("no-repository", error.to_string()))?;
    Ok(Some((repo, host)))
}
