//! What an agent can reach: nothing, unless a host is named; then that host, through the proxy, and no other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use lattice_testkit::TestRepo;
use serde_json::json;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{lattice, log, look, rules};

/// A server that answers every request with what the request was, and remembers it.
struct Scripted {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

/// A server that shows the certificate for `localhost` of an authority that only tests know.
fn certified() -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem")).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    Arc::new(config.with_single_cert(chain.expect("a certificate"), key).expect("they belong together"))
}

impl Scripted {
    fn new() -> Self {
        Self::start(answer)
    }

    /// The same behind TLS.
    fn encrypted() -> Self {
        let config = certified();
        Self::start(move |stream, requests| {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            answer(StreamOwned::new(connection, stream), requests);
        })
    }

    fn start(serve: impl Fn(TcpStream, &Mutex<Vec<String>>) + Send + Sync + 'static) -> Self {
        let serve = Arc::new(serve);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let requests = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, serve) = (requests.clone(), serve.clone());
                std::thread::spawn(move || serve(stream, &requests));
            }
        });
        Self { port, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().expect("requests").join("\n")
    }
}

/// Reads one request to the end of its head and of the body that it announces.
fn answer(mut stream: impl Read + Write, requests: &Mutex<Vec<String>>) {
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&said).to_ascii_lowercase();
        let body = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if let Some(head) = text.find("\r\n\r\n")
            && said.len() >= head + 4 + body.unwrap_or(0)
        {
            break;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => said.extend(&piece[..count]),
        }
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let line = said.lines().next().unwrap_or_default().to_owned();
    requests.lock().expect("requests").push(said);
    let text = format!("served {line}\n");
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
}

fn run(repo: &TestRepo, name: &str, network: &[&str], script: &str) -> String {
    let words = ["run", "x", "--name", name];
    let out = lattice(repo).args(words).args(network).args(["--", "bash", "-c", script]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(repo, name));
    log(repo, name)
}

// proves: SP-29, SP-97
#[test]
fn without_a_named_host_nothing_can_be_reached_and_each_try_is_reported() {
    let repo = TestRepo::draw("main*");
    let server = Scripted::new();
    let script = format!(
        "env | grep -i 'token\\|github'
        curl -sS -X POST https://api.github.com/repos/o/r/issues/1/comments -d '{{\"body\":\"x\"}}' && echo GOT
        curl -sS --fail --noproxy '*' http://api.github.com/ && echo GOT
        python3 -c 'import urllib.request as u; u.urlopen(\"https://uploads.github.com\")' && echo GOT
        git ls-remote https://github.com/o/r && echo GOT
        curl -sS --fail http://127.0.0.1:{port}/ && echo GOT
        curl -sS --fail --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:{port}/ && echo GOT
        printf 'no request at all\\r\\n\\r\\n' > /dev/tcp/127.0.0.1/3128; true",
        port = server.port
    );
    let said = run(&repo, "none", &[], &script);
    assert!(!said.contains("GOT") && !said.to_lowercase().contains("token="), "{said}");
    assert_eq!(server.heard(), "", "nothing arrived");
    let shown = look(&repo, &["show", "none"]);
    assert_eq!(shown["run"]["network"], json!("none"));
    let reported: Vec<_> = shown["violations"].as_array().expect("a list").iter().map(|v| &v["detail"]).collect();
    let expected = [
        "the agent wanted to reach api.github.com:443".to_owned(),
        "the agent asked for the address of api.github.com".to_owned(),
        "the agent wanted to reach uploads.github.com:443".to_owned(),
        "the agent wanted to reach github.com:443".to_owned(),
        format!("the agent wanted to reach 127.0.0.1:{}", server.port),
    ];
    assert_eq!(reported, expected.iter().collect::<Vec<_>>());
    assert!(rules(&repo, "none").iter().all(|rule| rule == "network-refused"));
}

#[test]
fn a_named_host_is_reached_with_and_without_a_proxy_and_no_other_is() {
    let repo = TestRepo::draw("main*");
    let (server, other) = (Scripted::new(), Scripted::new());
    let script = format!(
        "curl -sS http://localhost:{port}/straight
        curl -sS --noproxy '' -x http://127.0.0.1:3128 http://localhost:{port}/asked
        curl -sS --noproxy '' -x http://127.0.0.1:3128 --proxytunnel http://localhost:{port}/tunnel
        curl -sS --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:{port}/by-address
        curl -sS --noproxy '' -x http://127.0.0.1:3128 --proxytunnel http://localhost:{other}/tunnel
        curl -sS http://localhost:{other}/straight
        curl -sS http://192.0.2.1/
        test $(wc -l < /proc/net/route) -le 1 && echo no route; true",
        port = server.port,
        other = other.port
    );
    let said = run(&repo, "named", &["--network", &format!("localhost:{}", server.port)], &script);
    for served in ["served GET /straight", "served GET /asked", "served GET /tunnel", "no route"] {
        assert!(said.contains(served), "{served} in:\n{said}");
    }
    let address = format!("this sprite may not reach 127.0.0.1:{}", server.port);
    assert!(said.contains(&address) && !said.contains("served GET /by-address"), "{said}");
    assert_eq!(other.heard(), "");
    let mut details: Vec<_> = look(&repo, &["show", "named"])["violations"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|violation| violation["detail"].as_str().unwrap_or_default().to_owned())
        .collect();
    details.sort();
    let mut expected = [
        format!("the agent wanted to reach 127.0.0.1:{}", server.port),
        "the agent wanted to reach 192.0.2.1:80".to_owned(),
        format!("the agent wanted to reach localhost:{}", other.port),
    ];
    expected.sort();
    assert_eq!(details, expected);
}

#[test]
fn a_key_reaches_the_server_and_is_nowhere_in_the_sandbox() {
    let repo = TestRepo::draw("main*");
    let server = Scripted::new();
    let key = "q7-the-real-one-9x";
    // The pattern must not be what it looks for, or the search would find itself.
    let search = "(env; cat /proc/*/environ /proc/*/cmdline; grep -arsh 'q7-th[e]-real' /workspace /home /tmp /run /etc /dev/shm) \
        2>/dev/null | grep -a 'q7-th[e]-real' && echo LEAKED";
    let script =
        format!("curl -sS -X POST {{base_url}}/v1/messages -H 'X-Api-Key: '$MODEL_KEY -d hello; {search}; echo done");
    let config = format!(
        "[agents.model]\ncommand = [\"bash\", \"-c\", '''{script}''']\nenv = {{ MODEL_KEY = \"{{key}}\" }}\n\
         key = {{ env = \"REAL_KEY\", url = \"http://127.0.0.1:{}/api\", header = \"X-Api-Key: {{key}}\" }}\n",
        server.port
    );
    let path = repo.dir().join(".git/lattice/config.toml");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, format!("{old}\n{config}")).expect("a configuration");
    let missing = lattice(&repo).args(["run", "x", "--agent", "model"]).fails(1);
    assert!(missing.stderr.contains("the variable REAL_KEY is not set"), "{}", missing.snapshot());
    let out = lattice(&repo).args(["run", "x", "--name", "keyed", "--agent", "model"]).env("REAL_KEY", key).run();
    let said = log(&repo, "keyed");
    assert_eq!(out.code, Some(0), "{}\n{said}", out.snapshot());
    assert_eq!(said, "served POST /api/v1/messages HTTP/1.1\ndone\n");
    let heard = server.heard();
    assert!(heard.contains(&format!("X-Api-Key: {key}\r\n")) && heard.ends_with("hello"), "{heard}");
    assert!(!heard.contains("lattice-keeps"), "the agent's own header is gone: {heard}");
    let shown = look(&repo, &["show", "keyed"]);
    assert_eq!(shown["run"]["key"], json!(format!("http://127.0.0.1:{}/api", server.port)));
    assert!(!shown.to_string().contains(key), "the record does not have it");
    assert_eq!(rules(&repo, "keyed"), [""; 0]);
    let planted = run(&repo, "control", &[], &format!("echo {key} > /tmp/planted; {search}"));
    assert!(planted.contains("LEAKED"), "the search finds what is there: {planted}");
}

#[test]
fn a_key_goes_through_tls_to_a_server_that_the_system_trusts_and_to_no_other() {
    let repo = TestRepo::draw("main*");
    let server = Scripted::encrypted();
    let config = format!(
        "[agents.model]\ncommand = [\"bash\", \"-c\", \"curl -sS --fail {{base_url}}/v1/models; true\"]\n\
         key = {{ env = \"REAL_KEY\", url = \"https://localhost:{}/api\", header = \"Authorization: Bearer {{key}}\" }}\n",
        server.port
    );
    let path = repo.dir().join(".git/lattice/config.toml");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, format!("{old}\n{config}")).expect("a configuration");
    let run = |name: &str, authority: &std::path::Path| {
        let run = lattice(&repo).args(["run", "x", "--name", name, "--agent", "model"]).env("REAL_KEY", "q7-real-9x");
        let out = run.env("SSL_CERT_FILE", authority).run();
        assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, name));
        log(&repo, name)
    };
    let empty = repo.dir().join("../empty.pem");
    std::fs::write(&empty, "").expect("a file");
    let said = run("unknown", &empty);
    assert!(!said.contains("served") && server.heard().is_empty(), "an unknown server gets no key: {said}");
    let authority = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sprites/tls/authority.pem");
    assert_eq!(run("known", &authority), "served GET /api/v1/models HTTP/1.1\n");
    assert!(server.heard().contains("Authorization: Bearer q7-real-9x\r\n"), "{}", server.heard());
}

#[test]
fn hosts_that_are_none_and_agents_without_their_key_are_refused_with_a_way_out() {
    let repo = TestRepo::draw("main*");
    let wrong = lattice(&repo).args(["run", "x", "--network", "http://x", "--", "true"]).fails(2);
    assert!(wrong.stderr.contains("`http://x` is no host"), "{}", wrong.snapshot());
    let claude = lattice(&repo).args(["run", "x", "--agent", "claude"]).fails(1);
    assert!(claude.stderr.contains("ANTHROPIC_API_KEY is not set"), "{}", claude.snapshot());
    assert!(claude.stderr.contains("--network none runs it without"), "{}", claude.snapshot());
    assert_eq!(look(&repo, &["list"])["sprites"], json!([]), "nothing was begun");
}
