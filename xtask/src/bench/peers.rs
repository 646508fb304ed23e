//! Other tools for stacks, measured where they are installed.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::process::Call;

use super::fixture::{Fixture, write};

type Work = fn(&Fixture, &Path) -> Result<(), Failure>;

/// A tool that can bring a stack onto its moved trunk.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    /// What it answers to and others of that name do not.
    probe: &'static str,
    /// Makes the stack known to it.
    pub(super) prepare: Work,
    pub(super) restack: Work,
}

const PEERS: [Peer; 5] = [
    Peer {
        name: "git machete traverse",
        program: "git-machete",
        probe: "--version",
        prepare: prepare_machete,
        restack: |fixture, program| {
            fixture.run(program, &["traverse", "-y", "--no-push", "--start-from=first-root", "--return-to=here"], &[])
        },
    },
    Peer {
        name: "git stack --rebase",
        program: "git-stack",
        probe: "--version",
        prepare: prepare_git_stack,
        restack: |fixture, program| fixture.run(program, &["--rebase", "--base", "main"], &[]),
    },
    Peer {
        name: "latticework's lt restack, once for each branch",
        program: "lt",
        probe: "changelog",
        prepare: prepare_latticework,
        // Once takes one level along.
        restack: |fixture, program| {
            let restack = |branch: &String| fixture.run(program, &["restack", "-q", "--branch", branch], &[]);
            fixture.branches().iter().try_for_each(restack)
        },
    },
    Peer {
        name: "git branchless move",
        program: "git-branchless",
        probe: "--version",
        prepare: |fixture, program| fixture.run(program, &["init", "--main-branch", "main"], &[]),
        restack: |fixture, program| fixture.run(program, &["move", "--base", "HEAD", "--dest", "main"], &[]),
    },
    Peer {
        name: "jj rebase",
        program: "jj",
        probe: "--version",
        prepare: |fixture, program| fixture.run(program, &["git", "init", "--colocate"], &[]),
        restack: |fixture, program| {
            let top = fixture.branches().pop().unwrap_or_default();
            fixture.run(program, &["rebase", "--branch", &top, "--destination", "main"], &[])
        },
    },
];

/// Those that are there, with the path of each.
pub(super) fn installed() -> Vec<(&'static Peer, PathBuf)> {
    let found = |peer: &'static Peer| {
        let program = find(peer.program)?;
        let path = program.display().to_string();
        Call { program: &path, arguments: &[peer.probe], environment: &[] }.answer()?;
        Some((peer, program))
    };
    PEERS.iter().filter_map(found).collect()
}

#[expect(clippy::disallowed_methods, reason = "peers are measured only where they are installed")]
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn prepare_machete(fixture: &Fixture, _: &Path) -> Result<(), Failure> {
    let mut text = String::from("main\n");
    for (depth, branch) in fixture.branches().iter().enumerate() {
        text.push_str(&format!("{}{branch}\n", "  ".repeat(depth + 1)));
    }
    write(&fixture.path.join(".git/machete"), &text)
}

/// It leaves old and large stacks alone unless it is told otherwise.
fn prepare_git_stack(fixture: &Fixture, _: &Path) -> Result<(), Failure> {
    let options = [
        ("stack.protected-branch", "main"),
        ("stack.protect-commit-count", "100000"),
        ("stack.protect-commit-age", "36500days"),
        ("stack.auto-base-commit-count", "100000"),
    ];
    options.iter().try_for_each(|(key, value)| fixture.git(&["config", key, value]))
}

/// It shares names with Lattice and reads other documents.
fn prepare_latticework(fixture: &Fixture, program: &Path) -> Result<(), Failure> {
    let ours =
        fixture.answer(&["for-each-ref", "--format=delete %(refname)", "refs/branch-metadata", "refs/lattice"])?;
    fixture.feed(&["update-ref", "--stdin"], &ours)?;
    let folder = fixture.path.join(".git/lattice");
    std::fs::remove_dir_all(&folder).map_err(|cause| Failure::File { path: folder, cause })?;
    fixture.run(program, &["init", "-q", "--trunk", "main"], &[])?;
    let mut parent = "main".to_owned();
    for branch in fixture.branches() {
        fixture.run(program, &["track", "-q", "--parent", &parent, &branch], &[])?;
        parent = branch;
    }
    Ok(())
}
