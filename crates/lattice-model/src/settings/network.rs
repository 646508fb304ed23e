//! What an agent may reach of the network, as a person writes it.

use core::net::{IpAddr, Ipv4Addr};
use std::fmt;

use super::CredentialSource;

/// A host that an agent may reach: `api.example.com`, `*.example.com`, `localhost:8080`, `[::1]:80`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkHost {
    name: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HostName {
    Address(IpAddr),
    Exact(String),
    /// Every name that ends so, with a dot before it.
    Below(String),
}

/// A key that the agent works with and never has: requests get it on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySettings {
    pub source: CredentialSource,
    /// Where requests go, `https://` or `http://`.
    pub url: String,
    /// The header that carries the key, with `{key}` in its place.
    pub header: String,
}

/// The ports of a host without one.
const USUAL_PORTS: [u16; 2] = [443, 80];

impl NetworkHost {
    pub fn new(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no host; it must be like api.example.com, *.example.com or localhost:8080");
        let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':').or(rest.is_empty().then_some(""))),
            None if text.parse::<IpAddr>().is_ok() => (text, Some("")),
            None => text.split_once(':').map_or((text, Some("")), |(name, port)| (name, Some(port))),
        };
        let port = match port.ok_or_else(wrong)? {
            "" => None,
            port => Some(port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
        };
        let fits = |name: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            name.len() < 254 && name.split('.').all(|part| !part.is_empty() && part.bytes().all(letter))
        };
        let lower = name.to_ascii_lowercase();
        let name = match (name.parse(), lower.strip_prefix("*.")) {
            (Ok(address), _) => HostName::Address(address),
            (Err(_), Some(rest)) if fits(rest) => HostName::Below(rest.to_owned()),
            (Err(_), None) if fits(&lower) => HostName::Exact(lower),
            (Err(_), Some(_) | None) => return Err(wrong()),
        };
        Ok(Self { name, port })
    }

    /// Whether a request for this name and port is meant.
    pub fn covers(&self, name: &str, port: u16) -> bool {
        let asked = name.trim_end_matches('.').to_ascii_lowercase();
        let named = match &self.name {
            HostName::Address(address) => asked.parse() == Ok(*address),
            HostName::Exact(name) => asked == *name,
            HostName::Below(name) => asked.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')),
        };
        named && self.ports().contains(&port)
    }

    /// Whether what this name resolved to may be reached: a name in the hands of someone else must not lead to the
    /// services of this machine or of its network.
    pub fn may_be_at(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match &self.name {
            HostName::Address(named) => named.to_canonical() == address,
            HostName::Exact(name) if name == "localhost" => address.is_loopback(),
            HostName::Exact(_) => !is_of_this_machine(address),
            HostName::Below(_) => !is_of_this_machine(address) && !is_private(address),
        }
    }

    pub fn ports(&self) -> Vec<u16> {
        self.port.map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port])
    }

    /// The name, where it is one and not many.
    pub fn exact_name(&self) -> Option<&str> {
        match &self.name {
            HostName::Exact(name) => Some(name),
            HostName::Address(_) | HostName::Below(_) => None,
        }
    }

    /// The address of this machine that was named.
    pub fn own_address(&self) -> Option<IpAddr> {
        match &self.name {
            HostName::Address(address) => address.is_loopback().then_some(*address),
            HostName::Exact(name) => (name == "localhost").then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            HostName::Below(_) => None,
        }
    }
}

impl fmt::Display for NetworkHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::Address(IpAddr::V6(address)) => write!(out, "[{address}]")?,
            HostName::Address(IpAddr::V4(address)) => write!(out, "{address}")?,
            HostName::Exact(name) => write!(out, "{name}")?,
            HostName::Below(name) => write!(out, "*.{name}")?,
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

fn is_of_this_machine(address: IpAddr) -> bool {
    let special = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    special
        || match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests;
