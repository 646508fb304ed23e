//! A repository on GitHub that is only read, for which none is needed here.

use std::future::Future;

use lattice_forge::Forge;
use lattice_forge::github::GitHub;
use lattice_model::host::Slug;
use lattice_model::settings::GitHubSettings;

use super::connect::{HostEnvironment, connection, token, web_host};
use super::{new_runtime, not_authenticated};
use crate::EngineError;

/// Any repository that the user's token can see.
pub struct GitHubReader {
    forge: GitHub,
    runtime: tokio::runtime::Runtime,
}

impl GitHubReader {
    /// Finds a token. Asks nobody.
    pub fn new(slug: Slug, hosts: &HostEnvironment, settings: &GitHubSettings) -> Result<Self, EngineError> {
        let runtime = new_runtime()?;
        let (tokens, _) = token(hosts, &web_host(&settings.web_url), settings)?.map_err(not_authenticated)?;
        let inside = runtime.enter();
        let forge = GitHub::new(slug, connection(hosts, settings, tokens))?;
        drop(inside);
        Ok(Self { forge, runtime })
    }

    pub fn forge(&self) -> &dyn Forge {
        &self.forge
    }

    /// Waits for an answer of the forge.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }
}
