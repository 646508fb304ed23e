//! Events and bundles: how fast they are read and stored, that a storm loses none, and how long a host is waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use lattice_testkit::github::GitHub;
use lattice_testkit::{Lattice, TestRepo};
use serde_json::json;

use crate::Failure;
use crate::process::Call;

use super::measure::{ratio, shown};
use super::report::Section;

const ROUNDS: usize = 5;
const COMMENTS: usize = 300;
const LATENCY: Duration = Duration::from_millis(50);

/// What the bundle of a large pull request may take: eight round trips.
const LIMIT: Duration = Duration::from_millis(8 * 50);

const STORM: [(&str, &str); 2] = [("LATTICE_STORM_EVENTS", "1000000"), ("LATTICE_STORM_KILLS", "200")];

pub(super) fn run(root: &Path) -> Result<Vec<Section>, Failure> {
    crate::openapi::ensure()?;
    let figures = figures(root)?;
    Ok(vec![parsing(&figures)?, ingestion(&figures)?, bundle(&root.join("target/release/lattice"))?, storm(root)?])
}

/// A figure of the library's own benchmark.
struct Figure {
    name: String,
    time: Duration,
    amount: f64,
}

fn figures(root: &Path) -> Result<Vec<Figure>, Failure> {
    let arguments = ["bench", "--package", "lattice-sprites", "--bench", "protocol"];
    let manifest = root.join("Cargo.toml").display().to_string();
    let call = Call {
        program: "cargo",
        arguments: &[&arguments[..], &["--manifest-path", &manifest]].concat(),
        environment: &[],
    };
    let text =
        call.answer().ok_or_else(|| Failure::Problems(vec!["the benchmark of the library failed".to_owned()]))?;
    let figure = |line: &str| {
        let mut parts = line.split('\t');
        let (name, micros, amount) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Figure { name: name.to_owned(), time: Duration::from_micros(micros), amount })
    };
    Ok(text.lines().filter_map(figure).collect())
}

fn find<'a>(figures: &'a [Figure], name: &str) -> Result<&'a Figure, Failure> {
    let found = figures.iter().find(|figure| figure.name == name);
    found.ok_or_else(|| Failure::Problems(vec![format!("the benchmark says nothing of `{name}`")]))
}

fn parsing(figures: &[Figure]) -> Result<Section, Failure> {
    let mut section = Section::new(
        "reading",
        "400,000 lines of output, one of ten an event. `serde_json` reads the same events alone, without finding or \
         checking them.",
        &["what", "median", "MB/s of its input", "time by `serde_json`'s", "time by `wc -l`'s"],
    );
    let (wc, serde) = (find(figures, "wc -l")?, find(figures, "serde_json")?);
    for name in ["parser", "serde_json", "wc -l"] {
        let figure = find(figures, name)?;
        section.row(vec![
            name.to_owned(),
            shown(figure.time),
            format!("{:.0}", figure.amount / figure.time.as_secs_f64() / 1e6),
            format!("{:.2}", ratio(figure.time, serde.time)),
            format!("{:.2}", ratio(figure.time, wc.time)),
        ]);
    }
    Ok(section)
}

fn ingestion(figures: &[Figure]) -> Result<Section, Failure> {
    let mut section = Section::new(
        "storing",
        "50,000 events from stdout into the store, each 64 KiB of them durable before the next is read, and the same rows \
         into a table of plain SQLite with the same columns and settings.",
        &["what", "median", "events per second", "time by plain SQLite's"],
    );
    let plain = find(figures, "plain SQLite")?;
    for name in ["ingestion", "plain SQLite"] {
        let figure = find(figures, name)?;
        section.row(vec![
            name.to_owned(),
            shown(figure.time),
            format!("{:.0}", figure.amount / figure.time.as_secs_f64()),
            format!("{:.2}", ratio(figure.time, plain.time)),
        ]);
    }
    Ok(section)
}

/// A pull request with a long thread on a GitHub that answers slowly.
fn bundle(program: &Path) -> Result<Section, Failure> {
    let repo = TestRepo::draw("main*");
    let github = GitHub::start(&repo);
    let url = github.create("acme/tools");
    github.accept("token", "octocat");
    repo.git(&["remote", "add", "origin", &url]);
    let config = repo.sandbox().root().join("home/.config/lattice/config.toml");
    let (web, api) = (github.web_url(), github.api_url());
    let text = format!("[github]\nweb_url = \"{web}\"\napi_url = \"{api}\"\n");
    repo.write(config.to_str().unwrap_or_default(), text);
    let comment = |n: usize| json!({ "user": "bob", "body": format!("Remark {n}, see #{}.", 2 + n % 5), "created_at": format!("2026-01-01T{:02}:{:02}:00Z", n / 60, n % 60) });
    let pull = json!({ "head": "fix", "base": "main", "files": [{ "filename": "a.rs", "status": "modified", "additions": 1, "deletions": 1 }] });
    let comments: Vec<_> = (0..COMMENTS).map(comment).collect();
    github.seed("acme/tools", &json!({ "number": 1, "title": "Large", "body": "", "user": "alice", "comments": comments, "pull_request": pull }));
    (2..7).for_each(|n| {
        github.seed("acme/tools", &json!({ "number": n, "title": "Linked", "body": "", "user": "alice" }))
    });
    github.set_latency(LATENCY);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        github.forget();
        let start = Instant::now();
        let program = program.display().to_string();
        Lattice::new(&program, &repo).env("GH_TOKEN", "token").args(["context", "bundle", "pr", "1"]).ok();
        times.push(start.elapsed());
    }
    times.sort();
    let median = times[times.len() / 2];
    let mut section = Section::new(
        "bundle",
        "A pull request with 300 comments and five linked items, on a GitHub on loopback that takes 50 ms for every request. \
         It may take eight round trips, the program's own start and end included.",
        &["median", "best", "limit", "requests"],
    );
    section.row(vec![shown(median), shown(times[0]), shown(LIMIT), github.requests().len().to_string()]);
    if median > LIMIT {
        return Err(Failure::Problems(vec![format!("a bundle took {}, not {}", shown(median), shown(LIMIT))]));
    }
    Ok(section)
}

/// The large draw of a test that the suite runs with a small one.
fn storm(root: &Path) -> Result<Section, Failure> {
    let manifest = root.join("Cargo.toml").display().to_string();
    let words = "test --release --quiet --package lattice-sprites --test storm --manifest-path";
    let mut arguments: Vec<&str> = words.split(' ').collect();
    arguments.extend([manifest.as_str(), "--", "--nocapture", "nothing_is_lost"]);
    let start = Instant::now();
    let call = Call { program: "cargo", arguments: &arguments, environment: &STORM };
    let text = call.answer().ok_or_else(|| Failure::Problems(vec!["the storm lost or doubled events".to_owned()]))?;
    let told = text.lines().find(|line| line.contains(" kills: ")).unwrap_or_default();
    let mut section = Section::new(
        "storm",
        "Events on stdout in random pieces and in the outbox in another order, one of a hundred twice there; the reader is \
         killed with SIGKILL again and again, and what stdout carried to it is gone. The time includes the build of the test.",
        &["result", "time"],
    );
    section.row(vec![told.to_owned(), format!("{:.0} s", start.elapsed().as_secs_f64())]);
    Ok(section)
}
