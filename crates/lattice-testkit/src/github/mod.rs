//! A GitHub on loopback: real Git repositories over smart HTTP, and as much of the API as Lattice uses.

mod api;
mod git;
mod graphql;
mod login;
mod seed;
mod shape;
mod site;
mod stacks;
mod state;
mod tls;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

pub use git::http_backend;
pub use shape::DESCRIPTION_FILE;
pub use site::Click;
pub use state::Fault;

use self::git::Bare;
use self::state::{Repository, State};
use crate::http::{Handler, Reply, Request, Response, Server};
use crate::repo::TestRepo;

/// The API is below this, as on Enterprise.
const API: &str = "/api/v3";

/// A running fake.
pub struct GitHub {
    server: Server,
    shared: Arc<Shared>,
}

struct Shared {
    root: PathBuf,
    state: Mutex<State>,
    log: Mutex<Vec<Request>>,
    latency: Mutex<Duration>,
    web: Mutex<String>,
}

impl GitHub {
    /// Starts one whose repositories lie in the sandbox of `repo`.
    pub fn start(repo: &TestRepo) -> Self {
        Self::start_with(repo, Server::start)
    }

    /// One behind TLS, and the file with the certificate of the authority that vouches for it.
    pub fn start_encrypted(repo: &TestRepo) -> (Self, PathBuf) {
        let (config, authority) = tls::vouched_for();
        let file = repo.sandbox().root().join("authority.pem");
        std::fs::write(&file, authority).expect("the sandbox can be written");
        (Self::start_with(repo, |handler| Server::start_encrypted(handler, config)), file)
    }

    fn start_with(repo: &TestRepo, serve: impl FnOnce(Handler) -> Server) -> Self {
        shape::require();
        let root = repo.sandbox().root().join("github");
        std::fs::create_dir_all(&root).expect("the sandbox can be written");
        let shared = Arc::new(Shared {
            root,
            state: Mutex::new(State::default()),
            log: Mutex::new(Vec::new()),
            latency: Mutex::new(Duration::ZERO),
            web: Mutex::new(String::new()),
        });
        let serving = Arc::clone(&shared);
        let server = serve(Arc::new(move |request: &Request| serving.answer(request)));
        *shared.web.lock().expect("no test panics with it") = server.url();
        Self { server, shared }
    }

    /// Where people would look.
    pub fn web_url(&self) -> String {
        self.server.url()
    }

    pub fn api_url(&self) -> String {
        format!("{}{API}", self.web_url())
    }

    /// Makes an empty repository that the App is installed for; its address is for Git.
    pub fn create(&self, slug: &str) -> String {
        let dir = self.shared.root.join(format!("{slug}.git"));
        std::fs::create_dir_all(&dir).expect("the sandbox can be written");
        let bare = Bare { dir };
        bare.ask(&["init", "--quiet", "--bare", "--initial-branch=main"]).expect("git makes repositories");
        let mut state = self.state();
        let (items, landing) = Default::default();
        state.repositories.insert(slug.to_owned(), Repository { bare, items, stacks: None, landing });
        state.installed.push(slug.to_owned());
        format!("{}/{slug}.git", self.web_url())
    }

    /// From now on this repository keeps stacks of pull requests.
    pub fn keep_stacks(&self, slug: &str) {
        let mut state = self.state();
        state.repositories.get_mut(slug).expect("the repository was made").stacks = Some(Default::default());
    }

    /// The stacks that are kept: the numbers of their pull requests, lowest first.
    pub fn stacks(&self, slug: &str) -> Vec<Vec<u64>> {
        self.state().repositories[slug].stacks.iter().flat_map(|stacks| stacks.values().cloned()).collect()
    }

    /// A handle to the bare repository.
    pub fn bare(&self, repo: &TestRepo, slug: &str) -> TestRepo {
        repo.beside(&self.shared.root.join(format!("{slug}.git")))
    }

    /// Tells Lattice where this GitHub is, for all repositories of the sandbox.
    pub fn introduce(&self, repo: &TestRepo) {
        let folder = repo.sandbox().root().join("home/.config/lattice");
        std::fs::create_dir_all(&folder).expect("the sandbox can be written");
        let (web, api) = (self.web_url(), self.api_url());
        let config = format!("[github]\nweb_url = \"{web}\"\napi_url = \"{api}\"\nclient_id = \"Iv1.client\"\n");
        std::fs::write(folder.join("config.toml"), config).expect("the sandbox can be written");
    }

    /// Accepts a token as this user's.
    pub fn accept(&self, token: &str, user: &str) {
        self.state().tokens.insert(token.to_owned(), user.to_owned());
    }

    /// Accepts a refresh token as this user's.
    pub fn accept_refresh(&self, token: &str, user: &str) {
        self.state().refresh_tokens.insert(token.to_owned(), user.to_owned());
    }

    /// No longer accepts a token.
    pub fn revoke(&self, token: &str) {
        self.state().tokens.remove(token);
    }

    /// The App is installed nowhere.
    pub fn uninstall(&self) {
        self.state().installed.clear();
    }

    /// Tokens may only read this repository.
    pub fn make_read_only(&self, slug: &str) {
        self.state().read_only.push(slug.to_owned());
    }

    /// What the next logins are told before one is granted.
    pub fn login_answers(&self, answers: &[&str]) {
        self.state().login_answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
    }

    pub fn disable_device_flow(&self) {
        self.state().device_flow_disabled = true;
    }

    /// Misbehaves.
    pub fn fault(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// From now on requests of Git are sent to another place.
    pub fn redirect_git(&self, to: &str) {
        self.state().git_elsewhere = Some(to.to_owned());
    }

    /// Every answer takes this long.
    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock().expect("no test panics with it") = latency;
    }

    /// Adds an issue directly.
    pub fn add_issue(&self, slug: &str, title: &str, body: &str) -> u64 {
        let mut state = self.state();
        let repository = state.repositories.get_mut(slug).expect("the repository was made");
        let number = repository.next_number();
        repository.items.insert(number, api::new_item(number, title, body, "octocat"));
        number
    }

    /// Adds a whole item as a document tells it: see `seed`.
    pub fn seed(&self, slug: &str, document: &Value) {
        let item = seed::item(document);
        let mut state = self.state();
        state.repositories.get_mut(slug).expect("the repository was made").items.insert(item.number, item);
    }

    /// Adds a pull request whose head is in somebody's fork, at a commit that the repository has.
    pub fn add_fork_pull(&self, slug: &str, (fork, head): (&str, &str), commit: &str) -> u64 {
        let mut state = self.state();
        let repository = state.repositories.get_mut(slug).expect("the repository was made");
        let number = repository.next_number();
        repository.bare.ask(&["update-ref", &format!("refs/pull/{number}/head"), commit]).expect("the commit is there");
        let mut item = api::new_item(number, "from a fork", "", "mallory");
        let pull = state::PullPart::new(head.to_owned(), "main".to_owned());
        item.pull = Some(state::PullPart { head_at: commit.to_owned(), fork: Some(fork.to_owned()), ..pull });
        repository.items.insert(number, item);
        number
    }

    /// A pull request as it is now.
    pub fn pull(&self, slug: &str, number: u64) -> Value {
        let web = self.web_url();
        let mut state = self.state();
        let repository = state.repositories.get_mut(slug).expect("the repository was made");
        repository.follow();
        repository.items[&number].pull_json(&web, slug).expect("it is a pull request")
    }

    /// Says what the checks of a pull request came to, in GitHub's words; `None` hides them from the token.
    pub fn set_checks(&self, slug: &str, number: u64, state: Option<&str>) {
        let mut whole = self.state();
        let item = whole.repositories.get_mut(slug).and_then(|repository| repository.items.get_mut(&number));
        let pull = item.and_then(|item| item.pull.as_mut()).expect("it is a pull request");
        pull.checks = Some(state.unwrap_or(state::HIDDEN_CHECKS).to_owned());
    }

    /// How many issues and pull requests there are.
    pub fn items(&self, slug: &str) -> usize {
        self.state().repositories[slug].items.len()
    }

    /// The requests so far, as `METHOD /path`, with the API's prefix left out; Git's own are left out too.
    pub fn requests(&self) -> Vec<String> {
        let log = self.shared.log.lock().expect("no test panics with it");
        log.iter().filter(|request| !is_git(request)).map(line).collect()
    }

    /// Everything that was sent here.
    pub fn log(&self) -> Vec<Request> {
        self.shared.log.lock().expect("no test panics with it").clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.log.lock().expect("no test panics with it").clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("no test panics with it")
    }
}

impl Drop for GitHub {
    /// A test that saw something that GitHub does not do has shown nothing.
    #[expect(clippy::print_stderr, reason = "a test that fails already cannot fail again")]
    fn drop(&mut self) {
        let unlike = self.state().unlike.join("\n");
        match (unlike.is_empty(), std::thread::panicking()) {
            (true, _) => {}
            (false, true) => eprintln!("unlike GitHub:\n{unlike}"),
            (false, false) => panic!("unlike GitHub:\n{unlike}"),
        }
    }
}

fn is_git(request: &Request) -> bool {
    request.path.contains(".git/")
}

fn line(request: &Request) -> String {
    format!("{} {}", request.method, request.path.strip_prefix(API).unwrap_or(&request.path))
}

impl Shared {
    fn answer(&self, request: &Request) -> Reply {
        self.log.lock().expect("no test panics with it").push(request.clone());
        let latency = *self.latency.lock().expect("no test panics with it");
        if !latency.is_zero() {
            std::thread::sleep(latency);
        }
        if is_git(request) {
            let elsewhere = self.state.lock().expect("no test panics with it").git_elsewhere.clone();
            if let Some(to) = elsewhere {
                let place = format!("{to}{}?{}", request.path, request.query);
                return Reply::Answer(Response::json(302, &json!({})).with("location", &place));
            }
            return Reply::Answer(http_backend(&self.root, request));
        }
        let mut state = self.state.lock().expect("no test panics with it");
        let at = state.faults.iter().position(|fault| fault.times > 0 && line(request).starts_with(&fault.on));
        let fault = at.map(|at| {
            state.faults[at].times -= 1;
            (state.faults[at].carried_out, state.faults[at].reply.clone())
        });
        if let Some((false, reply)) = fault {
            return reply;
        }
        let web = self.web.lock().expect("no test panics with it").clone();
        let response = respond(&mut state, request, &web);
        match fault {
            Some((_, reply)) => reply,
            None => Reply::Answer(response),
        }
    }
}

fn respond(state: &mut State, request: &Request, web: &str) -> Response {
    if let Some(answer) = login::respond(state, request) {
        return answer;
    }
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let Some(user) = bearer.and_then(|token| state.tokens.get(token)).cloned() else {
        return Response::json(401, &json!({ "message": "Bad credentials" }));
    };
    let mut response = if request.path == "/api/graphql" {
        graphql::respond(state, request, web)
    } else {
        match request.path.strip_prefix(API) {
            Some(path) => {
                let answer = api::respond(state, request, path, (&user, web));
                match shape::completed(request, path, answer) {
                    Ok(answer) => answer,
                    Err(problems) => {
                        state.unlike.extend(problems);
                        return Response::json(500, &json!({ "message": "the fake is not like GitHub" }));
                    }
                }
            }
            None => missing(),
        }
    };
    if request.method == "GET" && response.status == 200 {
        let sum = response.body.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let etag = format!("\"{sum:x}\"");
        if request.header("if-none-match") == Some(&etag) {
            return Response { status: 304, headers: vec![("etag".to_owned(), etag)], body: Vec::new() };
        }
        response = response.with("etag", &etag);
    }
    response
}

fn missing() -> Response {
    Response::json(404, &json!({ "message": "Not Found" }))
}
