//! Commands that concern a host: on a Git remote by path, by daemon and by HTTP, and on a GitHub.

mod auth;
mod faults;
mod foreseen;
mod github;
mod hostile;
mod items;
mod life;
mod native;
mod safety;
mod sync;
mod tls;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use lattice_testkit::github::{GitHub, http_backend};
use lattice_testkit::http::{Reply, Server};
use lattice_testkit::{Lattice, TestRepo};
use serde_json::Value;

use crate::lattice;

/// A repository with a remote, and whatever serves it.
pub(crate) struct World {
    pub(crate) repo: TestRepo,
    /// The bare repository behind the remote.
    pub(crate) remote: TestRepo,
    pub(crate) url: String,
    pub(crate) github: Option<GitHub>,
    _server: Option<Server>,
    _daemon: Option<Daemon>,
}

/// A process that ends with the test.
pub(crate) struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Gives a repository the remote `origin`, a bare repository by path that has its trunk.
pub(crate) fn with_remote(repo: &TestRepo) -> TestRepo {
    let dir = repo.sandbox().root().join("remote/acme/tools.git");
    std::fs::create_dir_all(&dir).expect("the sandbox can be written");
    let bare = repo.beside(&dir);
    bare.git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
    repo.git(&["remote", "add", "origin", dir.to_str().expect("paths of tests are text")]);
    repo.git(&["push", "--quiet", "origin", "main"]);
    bare
}

impl World {
    /// The remote by path.
    pub(crate) fn path(drawing: &str) -> Self {
        let repo = TestRepo::draw(drawing);
        let remote = with_remote(&repo);
        let url = remote.dir().display().to_string();
        Self { repo, remote, url, github: None, _server: None, _daemon: None }
    }

    /// The same remote behind `git daemon`.
    pub(crate) fn daemon(drawing: &str) -> Self {
        let mut world = Self::path(drawing);
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let root = world.repo.sandbox().root().join("remote");
        let mut command = Command::new("git");
        command.args(["daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1"]);
        command.arg(format!("--port={}", free.port())).arg(format!("--base-path={}", root.display())).arg(&root);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("git daemon starts");
        world._daemon = Some(Daemon(child));
        while std::net::TcpStream::connect(free).is_err() {
            std::thread::yield_now();
        }
        world.move_to(format!("git://{free}/acme/tools.git"));
        world
    }

    /// The same remote over smart HTTP.
    pub(crate) fn http(drawing: &str) -> Self {
        let mut world = Self::path(drawing);
        let root = world.repo.sandbox().root().join("remote");
        let server = Server::start(Arc::new(move |request| Reply::Answer(http_backend(&root, request))));
        world.move_to(format!("http://{}/acme/tools.git", server.host()));
        world._server = Some(server);
        world
    }

    /// A GitHub with the token `ghp_marked`.
    pub(crate) fn github(drawing: &str) -> Self {
        let repo = TestRepo::draw(drawing);
        let github = GitHub::start(&repo);
        Self::on(repo, github)
    }

    /// The same behind TLS. Git trusts who vouches for it; the file says who that is.
    pub(crate) fn encrypted(drawing: &str) -> (Self, PathBuf) {
        let repo = TestRepo::draw(drawing);
        let (github, authority) = GitHub::start_encrypted(&repo);
        repo.git(&["config", "http.sslCAInfo", authority.to_str().expect("paths of tests are text")]);
        (Self::on(repo, github), authority)
    }

    fn on(repo: TestRepo, github: GitHub) -> Self {
        let url = github.create("acme/tools");
        github.accept("ghp_marked", "octocat");
        let remote = github.bare(&repo, "acme/tools");
        repo.git(&["remote", "add", "origin", &url]);
        repo.git(&["push", "--quiet", "origin", "main"]);
        github.introduce(&repo);
        Self { repo, remote, url, github: Some(github), _server: None, _daemon: None }
    }

    fn move_to(&mut self, url: String) {
        self.repo.git(&["remote", "set-url", "origin", &url]);
        self.url = url;
    }

    /// The program in the repository, with a token if one is needed.
    pub(crate) fn lattice(&self) -> Lattice {
        self.lattice_in(&self.repo)
    }

    pub(crate) fn lattice_in(&self, repo: &TestRepo) -> Lattice {
        let program = lattice(repo);
        if self.github.is_some() { program.env("GH_TOKEN", "ghp_marked") } else { program }
    }

    pub(crate) fn run(&self, line: &str) -> Value {
        let output = self.lattice().args(line.split_whitespace()).arg("--json").run();
        assert_eq!(output.code, Some(0), "lattice {line}:\n{}", output.snapshot());
        output.json()
    }

    /// A clone of the remote by somebody else, with Lattice set up.
    pub(crate) fn colleague(&self, name: &str) -> TestRepo {
        let dir = self.repo.dir().parent().expect("a sandbox").join(name);
        self.repo.git(&["clone", "--quiet", &self.url, dir.to_str().expect("paths of tests are text")]);
        let clone = self.repo.beside(&dir);
        clone.git(&["config", "user.name", "Bob Colleague"]);
        self.lattice_in(&clone).args(["init", "--trunk", "main"]).ok();
        clone
    }

    pub(crate) fn remote_tip(&self, branch: &str) -> Option<String> {
        self.remote.branch_refs().get(branch).cloned()
    }

    /// The state of the pull request of a branch.
    pub(crate) fn pull(&self, branch: &str) -> Value {
        self.run(&format!("pr show --branch {branch}"))["pulls"][0].clone()
    }
}
