//! Answers at the doors of a sandbox.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lattice_model::settings::NetworkHost;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, pki_types::ServerName};

use super::head::{Head, host_and_port, parts_of_url};
use super::{Behind, Key};

/// The proxy of one sandbox; it ends with this.
#[derive(Debug)]
pub(crate) struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What was refused, each once, in words. An agent that tries without end is not written down without end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    all: BTreeSet<String>,
    new: Vec<String>,
}

const MOST_REFUSALS: usize = 100;
/// So many connections go through at once; more wait.
const MOST_CONNECTIONS: usize = 256;
/// How long a request may take to say where it goes, and a host to answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Refusals {
    fn note(&self, what: String) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.all.len() < MOST_REFUSALS && seen.all.insert(what.clone()) {
            seen.new.push(what);
        }
    }

    /// What was refused since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).new)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Begins to answer.
pub(crate) fn serve(doors: Vec<(OwnedFd, Behind)>, hosts: &[NetworkHost], refusals: Refusals) -> io::Result<Serving> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let house = Arc::new(House { hosts: hosts.to_vec(), refusals, places: Semaphore::new(MOST_CONNECTIONS) });
    let thread = thread::spawn(move || {
        runtime.block_on(async move {
            for (listener, behind) in doors {
                tokio::spawn(house.clone().answer(listener, behind));
            }
            // The other end says nothing; it goes away.
            let _ = stopped.await;
        });
        // A name that is still being resolved is waited for by nobody.
        runtime.shutdown_background();
    });
    Ok(Serving { stop: Some(stop), thread: Some(thread) })
}

struct House {
    hosts: Vec<NetworkHost>,
    refusals: Refusals,
    places: Semaphore,
}

/// Why a request goes nowhere, as an answer in HTTP.
struct Answer {
    status: &'static str,
    text: String,
}

fn answer(status: &'static str, text: impl Into<String>) -> Answer {
    Answer { status, text: text.into() }
}

impl From<io::Error> for Answer {
    fn from(error: io::Error) -> Self {
        answer("502 Bad Gateway", error.to_string())
    }
}

impl House {
    async fn answer(self: Arc<Self>, door: OwnedFd, behind: Behind) {
        match &behind {
            Behind::Names => {
                let socket = std::net::UdpSocket::from(door);
                if socket.set_nonblocking(true).is_ok()
                    && let Ok(socket) = UdpSocket::from_std(socket)
                {
                    self.names(&socket).await;
                }
            }
            Behind::Proxy | Behind::Host(..) | Behind::Key(_) => {
                let listener = std::net::TcpListener::from(door);
                if listener.set_nonblocking(true).is_ok()
                    && let Ok(listener) = TcpListener::from_std(listener)
                {
                    self.streams(&listener, &behind).await;
                }
            }
        }
    }

    async fn streams(self: Arc<Self>, listener: &TcpListener, behind: &Behind) {
        // A listener fails when its sandbox is gone, or for a moment when there are no more descriptors.
        while let Ok((stream, _)) = listener.accept().await {
            let (house, behind) = (self.clone(), behind.clone());
            tokio::spawn(async move {
                let Ok(_place) = house.places.acquire().await else { return };
                // A connection that breaks concerns the two who speak over it.
                let _ = house.one(stream, &behind).await;
            });
        }
    }

    async fn one(&self, mut stream: TcpStream, behind: &Behind) -> io::Result<()> {
        let done = match behind {
            Behind::Proxy => self.proxy(&mut stream).await,
            Behind::Key(key) => keyed(&mut stream, key).await,
            Behind::Host(name, port) => match self.connect(name, *port).await {
                Ok(mut there) => return copy_bidirectional(&mut stream, &mut there).await.map(drop),
                // There is no telling what is spoken here, so nothing can be answered.
                Err(_) => return Ok(()),
            },
            Behind::Names => return Ok(()),
        };
        match done {
            Ok(()) => Ok(()),
            Err(Answer { status, text }) => {
                let text = format!("lattice: {text}\n");
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    text.len()
                );
                stream.write_all((head + &text).as_bytes()).await?;
                stream.shutdown().await
            }
        }
    }

    /// A request that says where it goes: a tunnel, or a request in the clear.
    async fn proxy(&self, stream: &mut TcpStream) -> Result<(), Answer> {
        let head = in_time(Head::read(stream)).await?;
        if head.method == "CONNECT" {
            let (name, port) = host_and_port(&head.target, 443).ok_or_else(unreadable)?;
            let mut there = self.connect(&name, port).await?;
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            there.write_all(&head.rest).await?;
            return pass(stream, &mut there).await;
        }
        let target = head.target.clone();
        let (encrypted, host, path) = parts_of_url(&target).ok_or_else(unreadable)?;
        let (name, port) = host_and_port(host, 80).filter(|_| !encrypted).ok_or_else(unreadable)?;
        let mut there = self.connect(&name, port).await?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        there.write_all(&head.for_host(host, &path, None)).await?;
        pass(stream, &mut there).await
    }

    /// Connects to a host that the agent may reach.
    async fn connect(&self, name: &str, port: u16) -> Result<TcpStream, Answer> {
        let Some(host) = self.hosts.iter().find(|host| host.covers(name, port)) else {
            self.refusals.note(format!("the agent wanted to reach {}:{port}", shown(name)));
            return Err(answer("403 Forbidden", refusal(&shown(name), port)));
        };
        let found: Vec<SocketAddr> = in_time(tokio::net::lookup_host((name, port))).await?.collect();
        let fit: Vec<_> = found.iter().copied().filter(|address| host.may_be_at(address.ip())).collect();
        if fit.is_empty() && !found.is_empty() {
            self.refusals.note(format!("{}:{port} leads to an address of this machine or its network", shown(name)));
            return Err(answer("403 Forbidden", format!("{} leads to an address of the host", shown(name))));
        }
        Ok(connect_to(&fit).await?)
    }

    /// Says that there is no such name, and remembers who was asked for.
    async fn names(&self, socket: &UdpSocket) {
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet).await {
            let Some((name, reply)) = no_such_name(&packet[..length]) else { continue };
            // A name that is allowed is asked for because it is not in the sandbox's list, as below a wildcard.
            if !self.hosts.iter().any(|host| host.ports().iter().any(|port| host.covers(&name, *port))) {
                self.refusals.note(format!("the agent asked for the address of {}", shown(&name)));
            }
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

fn unreadable() -> Answer {
    answer("400 Bad Request", "this proxy takes CONNECT and requests for http:// URLs")
}

/// What an agent is told that may not go there. A name alone allows the usual ports and no other.
fn refusal(name: &str, port: u16) -> String {
    let allowed = match port {
        80 | 443 => name.to_owned(),
        other => format!("{name}:{other}"),
    };
    format!("this sprite may not reach {name}:{port}; a person can allow it: lattice run --network {allowed}")
}

/// A name from inside, fit to be shown.
fn shown(name: &str) -> String {
    name.chars().filter(char::is_ascii_graphic).take(253).collect()
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn connect_to(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match in_time(TcpStream::connect(address)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn pass(here: &mut TcpStream, there: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), Answer> {
    // One that breaks off is seen by the other as an end.
    let _ = copy_bidirectional(here, there).await;
    Ok(())
}

/// A request that gets the key on its way.
async fn keyed(stream: &mut TcpStream, key: &Key) -> Result<(), Answer> {
    let head = in_time(Head::read(stream)).await?;
    let wrong = || answer("502 Bad Gateway", format!("{} is no URL", key.url));
    let (encrypted, host, prefix) = parts_of_url(&key.url).ok_or_else(wrong)?;
    let (name, port) = host_and_port(host, if encrypted { 443 } else { 80 }).ok_or_else(wrong)?;
    if !head.target.starts_with('/') {
        return Err(unreadable());
    }
    let path = format!("{}{}", prefix.trim_end_matches('/'), head.target);
    let sent = head.for_host(host, &path, Some(&key.header));
    let found: Vec<SocketAddr> = in_time(tokio::net::lookup_host((name.as_str(), port))).await?.collect();
    let mut there = connect_to(&found).await?;
    if !encrypted {
        there.write_all(&sent).await?;
        return pass(stream, &mut there).await;
    }
    let name = match name.parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => ServerName::try_from(name).map_err(|_| wrong())?,
    };
    let mut there = in_time(TlsConnector::from(Arc::new(trust()?)).connect(name, there)).await?;
    there.write_all(&sent).await?;
    pass(stream, &mut there).await
}

/// Whom the system trusts.
fn trust() -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth())
}

/// The name that a DNS query asks for, and the answer that there is none.
fn no_such_name(query: &[u8]) -> Option<(String, Vec<u8>)> {
    const HEADER: usize = 12;
    let header: &[u8; HEADER] = query.first_chunk()?;
    let is_response = header[2] & 0x80 != 0;
    if is_response || header[4..6] != [0, 1] {
        return None;
    }
    let (mut name, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // Longer ones are pointers, which a first question has no use for.
        let label = query.get(at..at + length).filter(|_| length < 64)?;
        name.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
    const TYPE_AND_CLASS: usize = 4;
    let question = query.get(HEADER..at + TYPE_AND_CLASS)?;
    let mut reply = vec![header[0], header[1], 0x80 | (header[2] & 0x01), 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
    reply.extend(question);
    Some((name.join("."), reply))
}

#[cfg(test)]
mod tests {
    use super::{Refusals, no_such_name};

    #[test]
    fn a_question_for_a_name_is_answered_with_no_such_name() {
        let mut query = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(b"\x03api\x07example\x00\x00\x01\x00\x01");
        let (name, reply) = no_such_name(&query).expect("a question");
        assert_eq!(name, "api.example");
        assert_eq!((&reply[..4], &reply[12..]), (&[7, 9, 0x81, 0x83][..], &query[12..]));
        for length in 0..query.len() {
            assert!(no_such_name(&query[..length]).is_none(), "cut after {length}");
        }
    }

    #[test]
    fn an_agent_that_tries_without_end_is_written_down_with_an_end() {
        let refusals = Refusals::default();
        for number in 0..1000 {
            refusals.note(format!("host {}", number % 500));
        }
        assert_eq!(refusals.take().len(), 100);
        assert_eq!(refusals.take(), [""; 0]);
    }
}
