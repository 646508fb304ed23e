//! What commands cost that talk to a host: round trips, on a GitHub that answers slowly.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lattice_testkit::github::GitHub;
use lattice_testkit::{Lattice, TestRepo};

use crate::Failure;

use super::measure::shown;
use super::report::Section;

const ROUNDS: usize = 5;
const BRANCHES: usize = 20;
const LATENCY: Duration = Duration::from_millis(50);

/// What an unchanged stack may take: four round trips, and a second for everything else.
const LIMIT: Duration = Duration::from_millis(4 * 50 + 1000);

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    crate::openapi::ensure()?;
    let program = root.join("target/release/lattice");
    let bench = Bench::new(program);
    let mut section = Section::new(
        "submit",
        "A stack of 20 branches on a GitHub on loopback that takes 50 ms for every request, Git's own included. \
         An unchanged stack may take four round trips and one second.",
        &["what", "median", "best", "limit", "requests to the API", "requests of Git"],
    );
    let first = bench.time(1, "submit of 20 new branches");
    section.row(first.row("")?);
    let unchanged = bench.time(ROUNDS, "submit of 20 unchanged branches");
    let limit = shown(LIMIT);
    section.row(unchanged.row(&limit)?);
    if unchanged.median > LIMIT {
        return Err(Failure::Problems(vec![format!("it took {}, not {limit}", shown(unchanged.median))]));
    }
    Ok(vec![section])
}

struct Bench {
    program: PathBuf,
    repo: TestRepo,
    github: GitHub,
}

/// What was seen of one command.
struct Seen {
    what: &'static str,
    median: Duration,
    best: Duration,
    asked: Vec<String>,
    git: usize,
}

impl Seen {
    fn row(&self, limit: &str) -> Result<Vec<String>, Failure> {
        let distinct = |line: &String| line.split('/').take(5).collect::<Vec<_>>().join("/");
        let mut kinds: Vec<_> = self.asked.iter().map(distinct).collect();
        kinds.sort();
        kinds.dedup();
        let api = format!("{} ({})", self.asked.len(), kinds.join(", "));
        Ok(vec![
            self.what.to_owned(),
            shown(self.median),
            shown(self.best),
            limit.to_owned(),
            api,
            self.git.to_string(),
        ])
    }
}

impl Bench {
    fn new(program: PathBuf) -> Self {
        let names: Vec<_> = (1..=BRANCHES).map(|number| format!("b{number:02}")).collect();
        let repo = TestRepo::draw(&format!("main <- {}*", names.join(" <- ")));
        let github = GitHub::start(&repo);
        let url = github.create("acme/tools");
        github.accept("token", "octocat");
        repo.git(&["remote", "add", "origin", &url]);
        repo.git(&["push", "--quiet", "origin", "main"]);
        let folder = repo.sandbox().root().join("home/.config/lattice");
        let (web, api) = (github.web_url(), github.api_url());
        repo.write(
            folder.join("config.toml").to_str().unwrap_or_default(),
            format!("[github]\nweb_url = \"{web}\"\napi_url = \"{api}\"\n"),
        );
        github.set_latency(LATENCY);
        Self { program, repo, github }
    }

    fn time(&self, rounds: usize, what: &'static str) -> Seen {
        let program = self.program.display().to_string();
        let mut times = Vec::new();
        for _ in 0..rounds {
            self.github.forget();
            let start = Instant::now();
            Lattice::new(&program, &self.repo).env("GH_TOKEN", "token").args(["submit", "--stack"]).ok();
            times.push(start.elapsed());
        }
        times.sort();
        let asked = self.github.requests();
        let git = self.github.log().len() - asked.len();
        Seen { what, median: times[times.len() / 2], best: times[0], asked, git }
    }
}
