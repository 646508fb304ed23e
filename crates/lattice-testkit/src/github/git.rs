//! The Git side of the fake: bare repositories over smart HTTP, and what is computed from them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::http::{Request, Response};

/// A bare repository of the fake.
#[derive(Clone, Debug)]
pub(super) struct Bare {
    pub(super) dir: PathBuf,
}

impl Bare {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.dir).args(args);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Host").env(format!("GIT_{who}_EMAIL"), "host@example.invalid");
            command.env(format!("GIT_{who}_DATE"), "@1767300000 +0000");
        }
        command
    }

    /// What git prints, or nothing if it fails.
    pub(super) fn ask(&self, args: &[&str]) -> Option<String> {
        let output = self.command(args).stderr(Stdio::null()).output().expect("git starts");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    pub(super) fn tip(&self, branch: &str) -> Option<String> {
        self.ask(&["rev-parse", "--quiet", "--verify", &format!("refs/heads/{branch}")])
    }

    /// All branches with their tips, with one process.
    pub(super) fn tips(&self) -> BTreeMap<String, String> {
        let listed =
            self.ask(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/"]).unwrap_or_default();
        let pairs = listed.lines().filter_map(|line| line.strip_prefix("refs/heads/")?.split_once(' '));
        pairs.map(|(name, tip)| (name.to_owned(), tip.to_owned())).collect()
    }

    /// Path, status letter, additions and deletions of each changed file.
    pub(super) fn files(&self, base: &str, head: &str) -> Vec<(String, String, u64, u64)> {
        let fork = self.ask(&["merge-base", base, head]).unwrap_or_else(|| base.to_owned());
        let text = |what: &str| self.ask(&["diff", "--no-renames", what, &fork, head]).unwrap_or_default();
        let letters: Vec<(String, String)> = text("--name-status")
            .lines()
            .filter_map(|l| l.split_once('\t'))
            .map(|(s, p)| (p.into(), s.into()))
            .collect();
        let counts = text("--numstat");
        let count = |path: &str| {
            let line = counts.lines().find(|line| line.ends_with(&format!("\t{path}")))?;
            let mut words = line.split('\t').map(|word| word.parse::<u64>().unwrap_or(0));
            Some((words.next()?, words.next()?))
        };
        letters
            .into_iter()
            .map(|(path, status)| {
                let (added, removed) = count(&path).unwrap_or((0, 0));
                (path, status, added, removed)
            })
            .collect()
    }

    /// Lands `head` on the branch `base`; the new tip, or nothing on a conflict.
    pub(super) fn land(&self, base: &str, head: &str, method: &str, message: &str) -> Option<String> {
        let tip = self.tip(base)?;
        let new = match method {
            "rebase" => {
                let range = format!("{tip}..{head}");
                let mut at = tip.clone();
                for commit in self.ask(&["rev-list", "--reverse", &range])?.lines() {
                    let parent = format!("{commit}^");
                    let tree = self.ask(&["merge-tree", "--write-tree", "--merge-base", &parent, &at, commit])?;
                    let said = self.ask(&["log", "-1", "--format=%B", commit])?;
                    at = self.ask(&["commit-tree", "-p", &at, "-m", &said, tree.lines().next()?])?;
                }
                at
            }
            _ => {
                let tree = self.ask(&["merge-tree", "--write-tree", &tip, head])?;
                let tree = tree.lines().next()?.to_owned();
                let mut args = vec!["commit-tree", "-p", &tip, "-m", message];
                if method == "merge" {
                    args.extend(["-p", head]);
                }
                args.push(&tree);
                self.ask(&args)?
            }
        };
        self.ask(&["update-ref", &format!("refs/heads/{base}"), &new, &tip])?;
        Some(new)
    }
}

/// Answers a request of Git's own HTTP transport through `git http-backend`.
pub fn http_backend(root: &Path, request: &Request) -> Response {
    let mut command = Command::new("git");
    command.arg("http-backend");
    command.env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "someone");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("PATH_INFO", &request.path).env("QUERY_STRING", &request.query);
    command.env("REQUEST_METHOD", &request.method).env("REMOTE_ADDR", "127.0.0.1");
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
    ] {
        if let Some(value) = request.header(header) {
            command.env(variable, value);
        }
    }
    command.env("CONTENT_LENGTH", request.body.len().to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("git http-backend starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let body = request.body.clone();
    std::thread::spawn(move || stdin.write_all(&body).ok());
    let output = child.wait_with_output().expect("git http-backend can be waited for");
    let split = output.stdout.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.stdout.len());
    let head = String::from_utf8_lossy(&output.stdout[..split]).into_owned();
    let mut response = Response {
        status: 200,
        headers: Vec::new(),
        body: output.stdout[(split + 4).min(output.stdout.len())..].to_vec(),
    };
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "Status" => response.status = value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500),
            _ => response.headers.push((name.to_owned(), value.to_owned())),
        }
    }
    response
}
