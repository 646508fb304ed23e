//! The doors of a sandbox: what an agent may reach of the network, and the proxy that goes there for it.
//!
//! A sandbox has a network of its own without any way out. Its launcher listens on loopback addresses inside and hands
//! the listeners to the supervisor, which answers on them. So the agent has no route, whatever it tries, and every name
//! is resolved, compared and connected to on the host. A key is added there too, and never enters the sandbox.

mod head;
mod serve;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lattice_model::settings::NetworkHost;

use crate::sandbox::{Door, Spec, Transport};
pub(crate) use serve::{Refusals, serve};

/// What one sprite may reach.
#[derive(Debug, Clone, Default)]
pub struct Network {
    pub hosts: Vec<NetworkHost>,
    pub key: Option<Key>,
}

/// A key that requests to one place get on their way.
#[derive(Clone)]
pub struct Key {
    /// Where they go.
    pub url: String,
    /// The header with the key in it.
    header: (String, String),
}

/// What stands behind a door.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    /// Requests say where they want to go.
    Proxy,
    /// Everything goes to one place.
    Host(String, u16),
    Key(Key),
    /// Names are asked for; none is told.
    Names,
}

/// Where programs find the proxy.
const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
/// Where requests get the key.
const KEYED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3129);
/// Where names are asked for.
const NAMES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

/// What an agent has in the place of a key. It must not look like a token, or it would be taken for a leak.
pub const PLACEHOLDER: &str = "lattice-keeps-the-real-key";

/// So many hosts can have an address of their own inside; the others are reached through the proxy alone.
const MOST_NAMED: u8 = 60;

impl Key {
    /// A key for requests to `url`. `header` is `NAME: VALUE` with `{key}` in the value.
    pub fn new(url: &str, header: &str, value: &str) -> Self {
        let (name, form) = header.split_once(':').unwrap_or((header, "{key}"));
        Self { url: url.to_owned(), header: (name.trim().to_owned(), form.trim().replace("{key}", value)) }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Key({}, {})", self.url, self.header.0)
    }
}

impl Network {
    /// A sandbox that has these doors.
    pub fn with_doors(&self, spec: &Spec) -> Spec {
        let doors = self.doors().into_iter().map(|(door, _)| door).collect();
        Spec { doors, names: self.names(), ..spec.clone() }
    }

    /// What is behind each of them.
    pub(crate) fn behind(&self) -> impl Iterator<Item = Behind> {
        self.doors().into_iter().map(|(_, behind)| behind)
    }

    /// The doors of the sandbox, each with what is behind it.
    fn doors(&self) -> Vec<(Door, Behind)> {
        let door = |address, transport| Door { address, transport };
        let mut doors =
            vec![(door(PROXY, Transport::Stream), Behind::Proxy), (door(NAMES, Transport::Packets), Behind::Names)];
        doors.extend(self.key.iter().map(|key| (door(KEYED, Transport::Stream), Behind::Key(key.clone()))));
        for (host, address) in self.addresses() {
            for port in host.ports() {
                let behind = match host.exact_name() {
                    Some(name) => Behind::Host(name.to_owned(), port),
                    None => Behind::Host(address.to_string(), port),
                };
                doors.push((door(SocketAddr::new(address, port), Transport::Stream), behind));
            }
        }
        doors
    }

    /// Names that have an address inside, for programs that know no proxy.
    fn names(&self) -> Vec<(String, IpAddr)> {
        let named = self.addresses().into_iter().filter(|(host, _)| host.own_address().is_none());
        named.filter_map(|(host, address)| Some((host.exact_name()?.to_owned(), address))).collect()
    }

    /// Hosts with the address that each has inside: one of this machine the same, any other one of its own.
    fn addresses(&self) -> Vec<(&NetworkHost, IpAddr)> {
        let mut named: Vec<&str> = Vec::new();
        let mut address = |host: &NetworkHost| -> Option<IpAddr> {
            if let Some(own) = host.own_address() {
                return Some(own);
            }
            let name = host.exact_name()?;
            let at = named.iter().position(|known| *known == name);
            let number = u8::try_from(at.unwrap_or(named.len())).ok().filter(|number| *number < MOST_NAMED)?;
            if at.is_none() {
                named.push(self.hosts.iter().find_map(|known| known.exact_name().filter(|known| *known == name))?);
            }
            Some(IpAddr::V4(Ipv4Addr::new(127, 1, 0, number + 1)))
        };
        self.hosts.iter().filter_map(|host| Some((host, address(host)?))).collect()
    }

    /// What programs are told about it.
    pub fn environment() -> Vec<(String, String)> {
        let proxy = format!("http://{PROXY}");
        let here = "localhost,127.0.0.1,::1";
        let told = [
            ("HTTP_PROXY", proxy.as_str()),
            ("HTTPS_PROXY", &proxy),
            ("http_proxy", &proxy),
            ("https_proxy", &proxy),
            ("NO_PROXY", here),
            ("no_proxy", here),
        ];
        told.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// Where the agent's requests get the key.
    pub fn base_url() -> String {
        format!("http://{KEYED}")
    }
}
