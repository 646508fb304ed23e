//! Addresses of Git remotes: what kind of place they name, and which repository there.

use lattice_model::host::Slug;

/// An address that Git can push to and that is safe to hand to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The host, with its port if one is given; none for a path.
    pub host: Option<String>,
    pub scheme: Scheme,
    pub slug: Slug,
    /// The address without user and password, for people.
    pub shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Path,
    Git,
    Http,
    Https,
    Ssh,
}

/// Why an address is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("its address is empty")]
    Empty,
    #[error("its address would be read as an option")]
    Option,
    #[error("its address uses the transport `{0}`, which could start any program")]
    Transport(String),
    #[error("its address names no repository")]
    NoRepository,
}

impl Address {
    /// Takes an address apart as Git does.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        if url.trim().is_empty() {
            return Err(AddressError::Empty);
        }
        if url.starts_with('-') {
            return Err(AddressError::Option);
        }
        if let Some((transport, _)) = url.split_once("::").filter(|(name, _)| is_word(name)) {
            return Err(AddressError::Transport(transport.to_owned()));
        }
        if let Some((scheme, rest)) = url.split_once("://") {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "file" => return Self::path(rest),
                "git" => Scheme::Git,
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                "ssh" | "git+ssh" | "ssh+git" => Scheme::Ssh,
                other => return Err(AddressError::Transport(other.to_owned())),
            };
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            return Self::remote(scheme, authority, path);
        }
        // `host:path`, unless a slash comes first: then it is a path that contains a colon.
        match url.split_once(':') {
            Some((authority, path)) if !authority.contains('/') => Self::remote(Scheme::Ssh, authority, path),
            Some(_) | None => Self::path(url),
        }
    }

    fn remote(scheme: Scheme, authority: &str, path: &str) -> Result<Self, AddressError> {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.is_empty() {
            return Err(AddressError::NoRepository);
        }
        if host.starts_with('-') || authority.starts_with('-') {
            return Err(AddressError::Option);
        }
        let name = match scheme {
            Scheme::Path | Scheme::Ssh => "ssh",
            Scheme::Git => "git",
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let shown = format!("{name}://{host}/{}", path.trim_start_matches('/'));
        Ok(Self { host: Some(host.to_ascii_lowercase()), scheme, slug: slug(path)?, shown })
    }

    fn path(path: &str) -> Result<Self, AddressError> {
        Ok(Self { host: None, scheme: Scheme::Path, slug: slug(path)?, shown: path.to_owned() })
    }

    /// Whether the address is on the host that a web address names. SSH has a port of its own.
    pub fn is_on(&self, web_url: &str) -> bool {
        let host = web_url.split_once("://").map_or(web_url, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let without_port = |host: &str| host.split(':').next().unwrap_or_default().to_owned();
        match (&self.host, self.scheme) {
            (None, _) => false,
            (Some(own), Scheme::Ssh) => {
                let own = without_port(own);
                // GitHub answers SSH on this name too, for networks that block its usual port.
                own == without_port(&host) || own == format!("ssh.{}", without_port(&host))
            }
            (Some(own), Scheme::Path | Scheme::Git | Scheme::Http | Scheme::Https) => *own == host,
        }
    }
}

/// The last two parts of a path, without `.git`.
fn slug(path: &str) -> Result<Slug, AddressError> {
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/.git").or_else(|| path.strip_suffix(".git")).unwrap_or(path);
    let mut parts = path.rsplit('/').filter(|part| !matches!(*part, "" | "." | ".." | "~"));
    let repo = parts.next().ok_or(AddressError::NoRepository)?.to_owned();
    let owner = parts.next().unwrap_or("local").to_owned();
    Ok(Slug { owner, repo })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests;
