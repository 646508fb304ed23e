//! A small HTTP server on loopback. It controls every byte, so that it can also misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a client asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// How a request ends.
#[derive(Clone, Debug)]
pub enum Reply {
    Answer(Response),
    /// The whole length is promised and half of the body is sent.
    Half(Response),
    /// The connection is closed without a word.
    Drop,
    /// Nothing is sent, and the connection stays open until the server ends.
    Hang,
}

/// Answers requests.
pub type Handler = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A server that ends with the test.
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: Handler) -> Self {
        Self::listen("http", move |stream, ended| serve(stream, &handler, ended))
    }

    /// The same behind TLS.
    pub fn start_encrypted(handler: Handler, config: Arc<ServerConfig>) -> Self {
        Self::listen("https", move |stream, ended| {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("the configuration is complete");
            serve(StreamOwned::new(connection, stream), &handler, ended);
        })
    }

    fn listen(scheme: &'static str, answer: impl Fn(TcpStream, &AtomicBool) + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let stopped = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stopped);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (answer, ended) = (Arc::clone(&answer), Arc::clone(&ended));
                if let Ok(stream) = stream {
                    thread::spawn(move || answer(stream, &ended));
                }
            }
        });
        Self { address, scheme, stopped }
    }

    /// `127.0.0.1:<port>`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Where it is, without a slash at the end.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener up.
        let _ = TcpStream::connect(self.address);
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A value of the query.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, v)| v)
    }
}

impl Response {
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json; charset=utf-8".to_owned())];
        Self { status, headers, body: body.to_string().into_bytes() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

fn serve(stream: impl Read + Write, handler: &Handler, ended: &AtomicBool) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let (response, whole) = match handler(&request) {
            Reply::Answer(response) => (response, true),
            Reply::Half(response) => (response, false),
            Reply::Drop => return,
            Reply::Hang => {
                while !ended.load(Ordering::SeqCst) {
                    thread::park_timeout(std::time::Duration::from_millis(50));
                }
                return;
            }
        };
        let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", response.status, response.body.len());
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = if whole { &response.body[..] } else { &response.body[..response.body.len() / 2] };
        let output = stream.get_mut();
        let sent = output.write_all(format!("{head}\r\n").as_bytes()).and_then(|()| output.write_all(body));
        let sent = sent.and_then(|()| output.flush());
        if sent.is_err() || !whole {
            return;
        }
    }
}

/// One request, or nothing if the client has gone.
fn read<S: Read + Write>(input: &mut BufReader<S>) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = Request { method, path: path.to_owned(), query: query.to_owned(), headers, body: Vec::new() };
    if request.header("expect").is_some() {
        input.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        input.get_mut().flush().ok()?;
    }
    request.body = body(&request, input)?;
    Some(request)
}

fn body(request: &Request, input: &mut impl BufRead) -> Option<Vec<u8>> {
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            input.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
    let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(body)
}
