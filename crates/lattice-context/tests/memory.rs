//! How much memory the builders and their utilities take, as the allocator counts it and as the system does.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use lattice_context::builders::validation::ValidationOutput;
use lattice_context::builders::window::truncate_stream;
use lattice_context::builders::{
    ContextDict, GitHubIssue, build_fix_context, build_implementation_context, build_issue_context,
    build_review_context, fit_to_budget, truncate_file,
};
use lattice_context::tokens::{Tokenizer, estimate_tokens};
use lattice_context::workspace::Workspace;
use lattice_repo::GitProgram;
use lattice_testkit::TestRepo;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What an operation may take; each input alone is longer, or has lines whose list would be.
const MOST: usize = 100_000_000;

/// Writes so many bytes of lines, without holding them.
fn write_lines(path: &Path, bytes: usize) {
    let line = format!("{}\n", "0123456789abcdef".repeat(62));
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    for _ in 0..bytes / line.len() {
        file.write_all(line.as_bytes()).expect("room on the disk");
    }
    file.flush().expect("room on the disk");
}

/// Runs an operation and fails if its heap grew beyond the limit.
#[track_caller]
fn bounded<T>(name: &str, operation: impl FnOnce() -> T) -> T {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let result = operation();
    let most = HEAP.peak_usage() - before;
    assert!(most < MOST, "{name} had {most} bytes");
    result
}

/// The most memory that this process ever had, as the system says.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

// proves: BU-78
#[test]
fn no_builder_and_no_utility_takes_a_hundred_megabytes() {
    let repo = TestRepo::new();
    repo.git(&["config", "core.compression", "0"]);
    repo.git(&["checkout", "--quiet", "-b", "feature"]);
    write_lines(&repo.dir().join("changed.txt"), 300_000_000);
    repo.git(&["add", "changed.txt"]);
    repo.git(&["commit", "--quiet", "-m", "a diff that is too long to be held"]);
    let large = repo.dir().join("large.txt");
    write_lines(&large, 500_000_000);
    repo.write("breaks.txt", "\n".repeat(9_000_000));

    let environment = repo.sandbox().variables().into_iter().map(|(name, value)| (name.into(), value)).collect();
    let git = GitProgram { program: repo.sandbox().git().to_owned(), environment };
    let workspace = Workspace::open(&git, repo.dir(), None, Tokenizer::Estimate.counter()).expect("a repository");
    let cut = |context: &ContextDict| context.get("_metadata").expect("it is always there")["truncated"] == true;

    let review = bounded("review", || build_review_context(&workspace, "main")).expect("a context");
    assert!(cut(&review));
    drop(review);
    for tasks in ["large.txt", "breaks.txt"] {
        assert!(cut(&bounded("implement", || build_implementation_context(&workspace, tasks)).expect("a context")));
    }
    let errors = ValidationOutput::parse("large.txt:7: wrong\nbreaks.txt:9: wrong\nchanged.txt:1: wrong\n");
    let (errors, files) = (errors.expect("errors"), ["large.txt", "breaks.txt", "changed.txt"].map(str::to_owned));
    assert!(cut(&bounded("fix", || build_fix_context(&workspace, &errors, &files))));
    let elsewhere = ValidationOutput::parse("other.txt:1: wrong\n").expect("an error");
    assert!(cut(&bounded("fix what has no errors", || build_fix_context(&workspace, &elsewhere, &files[1..2]))));
    let issue = GitHubIssue {
        number: 1,
        title: "it is large".to_owned(),
        body: "see changed.txt".to_owned(),
        labels: Vec::new(),
        state: "open".to_owned(),
        assignees: Vec::new(),
        url: String::new(),
    };
    assert!(cut(&bounded("issue", || build_issue_context(&workspace, &issue)).expect("a context")));

    let open = || Ok(BufReader::new(File::open(&large)?));
    let kept = bounded("truncate a stream", || truncate_stream(open, 30, &[100_000], 8 << 20)).expect("a file");
    assert_eq!(kept.lines().count(), 23, "a window between two markers");
    let breaks = "\n".repeat(12_000_000);
    bounded("truncate", || truncate_file(&breaks, 30, &[10_000_000]));
    assert_eq!(bounded("estimate", || estimate_tokens(&breaks)), 3_000_000);
    let mut sections = ContextDict::default();
    sections.insert("text", breaks);
    bounded("fit", || fit_to_budget(&sections, 1000, &Tokenizer::Estimate)).expect("sections");
    drop(sections);
    assert!(peak_kib() < 100_000, "{} KiB", peak_kib());
}
