//! How a test repository is to be made: object format, ref storage, layout, git.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::draw::Drawing;
use crate::env::Sandbox;
use crate::import;
use crate::repo::TestRepo;

/// A repository to be; the default is what `git init` makes.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    object_format: Option<String>,
    ref_format: Option<String>,
    layout: Layout,
    git: Option<PathBuf>,
    place: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Layout {
    #[default]
    WorkTree,
    Bare,
}

impl Setup {
    /// Uses another hash than SHA-1.
    #[must_use]
    pub fn object_format(mut self, format: &str) -> Self {
        self.object_format = Some(format.to_owned());
        self
    }

    /// Keeps refs in another way than files; needs Git 2.45.
    #[must_use]
    pub fn ref_format(mut self, format: &str) -> Self {
        self.ref_format = Some(format.to_owned());
        self
    }

    /// Makes a repository without a working tree.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.layout = Layout::Bare;
        self
    }

    /// Uses this git for the kit and, as `LATTICE_GIT`, for the program.
    #[must_use]
    pub fn git(mut self, git: &Path) -> Self {
        self.git = Some(git.to_owned());
        self
    }

    /// Puts the repository at `<dir>/repo`, for example on a disk whose power can be cut.
    #[must_use]
    pub fn at(mut self, dir: &Path) -> Self {
        self.place = Some(dir.to_owned());
        self
    }

    /// Makes the repository with one commit on `main` and without any trace of Lattice.
    #[track_caller]
    pub fn init(&self) -> TestRepo {
        self.make("main").0
    }

    /// Makes the repository of a drawing, with metadata for every branch, and configures its trunk.
    ///
    /// Chains are separated by `;` or newlines; `a <- b` puts b on a. After a name, `*` checks it out, `!` freezes
    /// it, `(n)` gives it n commits instead of one. Each commit adds a line to `<branch>.txt` (slashes become `-`),
    /// which no other branch touches.
    #[track_caller]
    pub fn draw(&self, drawing: &str) -> TestRepo {
        let (repo, drawing, tips) = self.make(drawing);
        import::metadata(&repo, &drawing, &tips);
        repo.write_config(&format!("[trunk]\nbranch = \"{}\"\n", drawing.trunk().name));
        repo
    }

    #[track_caller]
    fn make(&self, drawing: &str) -> (TestRepo, Drawing, std::collections::BTreeMap<String, String>) {
        let drawing = Drawing::parse(drawing);
        let sandbox = Arc::new(Sandbox::new(self.git.clone()));
        let place = self.place.as_deref().unwrap_or(sandbox.root());
        let dir = place.join("repo");
        fs::create_dir(&dir).unwrap_or_else(|error| panic!("cannot make {}: {error}", dir.display()));
        let repo = TestRepo::handle(sandbox, dir);
        self.git_init(&repo, &drawing.trunk().name);
        let tips = import::commits(&repo, &drawing);
        self.check_out(&repo, &drawing.head().name);
        (repo, drawing, tips)
    }

    fn git_init(&self, repo: &TestRepo, trunk: &str) {
        let branch = format!("--initial-branch={trunk}");
        let objects = self.object_format.as_ref().map(|format| format!("--object-format={format}"));
        let refs = self.ref_format.as_ref().map(|format| format!("--ref-format={format}"));
        let mut args = vec!["init", "--quiet", &branch];
        args.extend(objects.as_deref());
        args.extend(refs.as_deref());
        match self.layout {
            Layout::WorkTree => {}
            Layout::Bare => args.push("--bare"),
        }
        repo.git(&args);
    }

    fn check_out(&self, repo: &TestRepo, branch: &str) {
        match self.layout {
            Layout::WorkTree => repo.git(&["checkout", "--quiet", "--force", branch, "--"]),
            Layout::Bare => repo.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")]),
        };
    }
}
