//! Where a sprite lives on the host.
//!
//! ```text
//! base/<commit>/        a checkout that all sprites from this commit share, never written again
//! <sprite>/upper/       what the sprite changed in its workspace
//! <sprite>/home/        its home
//! <sprite>/mail/        becomes /workspace/.lattice
//! <sprite>/packs/       checkpoints
//! <sprite>/restoring    names the checkpoint that is being restored
//! <sprite>/lock         held by who starts the sprite or changes its layers
//! <sprite>/alive        held by sandboxes of the sprite until they are gone
//! <sprite>/work-*/      what overlays work in
//! <sprite>/sessions/    session records, one for each checkpoint
//! <sprite>/context.json what code was put together for it
//! <sprite>/log          what the agent printed, masked
//! ```
//!
//! Without a sandbox there are no layers: `upper/` is the whole checkout, `home/` the home, and a link leads to `mail/`.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lattice_context::chunk::CompressedContext;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_repo::workspace;
use rustix::fs::FlockOperation;

use crate::checkpoint::{Checkpoint, RestoreError};
use crate::sandbox::{Bind, ID_FOR_ROOT, Isolation, Layer, Limits, Probe, Sandbox, SandboxError, Spec, Tree};
use crate::tree::{give, remove_all};

/// Why a place could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("`{path}` could not be made")]
    Io { path: String, source: io::Error },
    #[error("the checkout of {commit} could not be made")]
    Base { commit: String, source: SandboxError },
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// The folders of one sprite.
#[derive(Debug, Clone)]
pub struct SpritePlace {
    /// All sprites of the repository.
    pub all: PathBuf,
    pub own: PathBuf,
    /// The repository's common directory.
    pub repository: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Whose the files are if this is root's.
    pub owner: Option<u32>,
    pub isolation: Isolation,
    /// Layers of isolation that a test leaves out.
    pub omit: Vec<Layer>,
}

/// Names the checkpoint that the layers are becoming, for as long as they are something in between.
const RESTORING: &str = "restoring";

/// How folders begin that overlays work in.
const WORK: &str = "work-";

/// How long a sandbox may take to end, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);

/// Where the agent sees this program.
const PROGRAM_INSIDE: &str = "/run/lattice/lattice";

/// The file that the code is remembered in.
const CONTEXT: &str = "context.json";

fn at(path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
    let path = path.display().to_string();
    move |source| PlaceError::Io { path, source }
}

impl SpritePlace {
    pub fn new(repository: &Path, program: &Path, name: &str) -> Self {
        let all = repository.join("lattice").join("sprites");
        let is_root = rustix::process::geteuid().is_root();
        Self {
            own: all.join(name),
            all,
            repository: repository.to_owned(),
            program: program.to_owned(),
            owner: is_root.then_some(ID_FOR_ROOT),
            isolation: Isolation::Strict,
            omit: Vec::new(),
        }
    }

    /// The same sprite below another folder than the repository's own.
    pub fn below(self, folder: &Path) -> Self {
        let name = self.own.file_name().unwrap_or_default().to_owned();
        Self { own: folder.join(name), all: folder.to_owned(), ..self }
    }

    /// Where the agent sees its workspace.
    pub fn workspace(&self) -> PathBuf {
        match self.isolation {
            Isolation::Strict => PathBuf::from("/workspace"),
            Isolation::None => self.own.join("upper"),
        }
    }

    pub fn mail(&self) -> PathBuf {
        self.own.join("mail")
    }

    pub fn packs(&self) -> PathBuf {
        self.own.join("packs")
    }

    pub fn log(&self) -> PathBuf {
        self.own.join("log")
    }

    pub fn outbox(&self) -> PathBuf {
        self.mail().join("outbox.jsonl")
    }

    /// Session records, one for each checkpoint.
    pub fn sessions(&self) -> PathBuf {
        self.own.join("sessions")
    }

    /// What code was put together for the agent; nothing if that was not done or cannot be read.
    pub(super) fn context(&self) -> CompressedContext {
        let text = fs::read(self.own.join(CONTEXT)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Remembers what code was put together for the agent.
    pub fn remember_context(&self, context: &CompressedContext) -> Result<(), PlaceError> {
        let text = serde_json::to_string(context).map_err(io::Error::other);
        let path = self.own.join(CONTEXT);
        text.and_then(|text| write(&path, &text)).map_err(at(&path))
    }

    fn base(&self, commit: Oid) -> PathBuf {
        self.all.join("base").join(commit.to_string())
    }

    /// Makes all folders of a new sprite, with its branch checked out at `commit`.
    pub fn create(&self, branch: &BranchName, commit: Oid) -> Result<(), PlaceError> {
        match self.isolation {
            Isolation::Strict => self.make_base(commit)?,
            Isolation::None => {}
        }
        // The place itself stays the host's: what is said in it about the sprite is not for an agent to change.
        new_folder(&self.own).map_err(at(&self.own))?;
        for name in ["root", "mail", "mail/context", "mail/skills", "packs", "upper", "home"] {
            self.folder(&self.own.join(name))?;
        }
        if self.owner.is_none() {
            // A set-uid program that an agent makes is the user's, for whoever else of the host could reach it.
            fs::set_permissions(&self.own, fs::Permissions::from_mode(0o700)).map_err(at(&self.own))?;
        }
        match self.isolation {
            Isolation::Strict => {}
            Isolation::None => self.check_out(commit)?,
        }
        for (path, text) in workspace::branch_files(branch, commit) {
            let mut folder = self.own.join("upper");
            for part in path.parent().into_iter().flat_map(Path::components) {
                folder.push(part);
                self.folder(&folder)?;
            }
            self.file(&self.own.join("upper").join(path), &text)?;
        }
        self.file(&self.outbox(), "")
    }

    /// Makes the checkout that sprites from `commit` share, unless there is one.
    fn make_base(&self, commit: Oid) -> Result<(), PlaceError> {
        let base = self.base(commit);
        if base.exists() {
            return Ok(());
        }
        let making = self.all.join("base").join(format!(".{commit}.{}", std::process::id()));
        for folder in [
            &self.all,
            &self.all.join("base"),
            &making,
            &making.join("tree"),
            &making.join("root"),
            &making.join("home"),
        ] {
            self.folder(folder)?;
        }
        let trees = [Tree::Plain(making.join("tree")), Tree::Plain(making.join("home"))];
        let mut spec = self.spec(trees, workspace::base_command(commit, Path::new(workspace::OBJECTS_INSIDE)));
        spec.root = making.join("root");
        spec.alive = None;
        let made = Sandbox::run(&self.program, &spec, 1 << 20);
        made.map_err(|source| PlaceError::Base { commit: commit.short(), source })?;
        // Whoever is first wins; a second checkout of the same commit is the same.
        rename(&making.join("tree"), &base)
            .or_else(|error| if base.exists() { Ok(()) } else { Err(error) })
            .map_err(at(&base))?;
        fs::remove_dir_all(&making).map_err(at(&making))
    }

    /// Makes a checkout of the sprite's own, with the mailbox where a sandbox would have it.
    fn check_out(&self, commit: Oid) -> Result<(), PlaceError> {
        let command = workspace::base_command(commit, &self.repository.join("objects"));
        let spec = self.spec(self.layers(commit)?, command);
        let made = Sandbox::run(&self.program, &spec, 1 << 20);
        made.map_err(|source| PlaceError::Base { commit: commit.short(), source })?;
        let mail = self.own.join("upper/.lattice");
        let linked = remove_all(&mail).and_then(|()| std::os::unix::fs::symlink("../mail", &mail));
        linked.and_then(|()| give(&mail, self.owner)).map_err(at(&mail))
    }

    /// A sandbox that can see the repository's objects and nothing else of the host.
    fn spec(&self, [workspace, home]: [Tree; 2], command: Vec<String>) -> Spec {
        let from = self.repository.join("objects");
        Spec {
            isolation: self.isolation,
            root: self.own.join("root"),
            workspace,
            home,
            mail: None,
            binds: vec![Bind { from, to: workspace::OBJECTS_INSIDE.into() }],
            alive: Some(self.alive()),
            checkpoints: None,
            command,
            environment: self.environment(),
            host_id: self.owner,
            limits: Limits::default(),
            entrances: Vec::new(),
            doors: Vec::new(),
            names: Vec::new(),
            probe: Probe {
                secret: self.repository.join("lattice").join("sprites.db"),
                repository: self.repository.join("HEAD"),
                port: 0,
            },
            omit: self.omit.clone(),
        }
    }

    /// The sandbox of the agent itself.
    pub fn agent(&self, commit: Oid, command: Vec<String>) -> Result<Spec, PlaceError> {
        let mut spec = self.spec(self.layers(commit)?, command);
        spec.binds.push(Bind { from: self.program.clone(), to: PROGRAM_INSIDE.into() });
        Ok(Spec { mail: Some(self.mail()), checkpoints: Some(self.packs()), ..spec })
    }

    /// A sandbox over what the agent left, for a command of ours.
    pub fn after(&self, commit: Oid, command: Vec<String>) -> Result<Spec, PlaceError> {
        Ok(self.spec(self.layers(commit)?, command))
    }

    /// Checkouts that no sprite has any more, by their commits.
    pub fn unused_bases(all: &Path, used: &[String]) -> Vec<PathBuf> {
        let entries = fs::read_dir(all.join("base")).into_iter().flatten().flatten();
        let is_used = |name: &str| used.iter().any(|commit| commit == name) || name.starts_with('.');
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| !is_used(name)))
            .map(|e| e.path())
            .collect()
    }

    /// Workspace and home, as the agent or a restore left them.
    fn layers(&self, commit: Oid) -> Result<[Tree; 2], PlaceError> {
        self.finish_restore()?;
        let upper = self.own.join("upper");
        let workspace = match self.isolation {
            Isolation::Strict => Tree::Overlay { lower: vec![self.base(commit)], upper, work: self.new_work()? },
            Isolation::None => Tree::Plain(upper),
        };
        // Nothing is below a home, so it needs no overlay, which is what a sandbox takes longest to make.
        Ok([workspace, Tree::Plain(self.own.join("home"))])
    }

    /// A work folder for one mount, since one that was used cannot be used again.
    fn new_work(&self) -> Result<PathBuf, PlaceError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let work = self.own.join(format!("{WORK}{}-{number}", std::process::id()));
        remove_all(&work).map_err(at(&work))?;
        self.folder(&work)?;
        Ok(work)
    }

    /// Removes work folders that were used. Nothing of the sprite may run.
    pub fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.own)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(WORK.as_bytes()) {
                remove_all(&entry.path())?;
            }
        }
        Ok(())
    }

    /// What every command finds in its environment.
    fn environment(&self) -> Vec<(String, String)> {
        let (home, programs) = match self.isolation {
            Isolation::Strict => (PathBuf::from("/home/agent"), Path::new(PROGRAM_INSIDE).parent()),
            Isolation::None => (self.own.join("home"), self.program.parent()),
        };
        let programs = programs.unwrap_or(Path::new("/")).display();
        let fixed = [
            ("HOME", home.display().to_string()),
            ("USER", "agent".to_owned()),
            ("LOGNAME", "agent".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TMPDIR", "/tmp".to_owned()),
            ("TERM", "dumb".to_owned()),
            ("PATH", format!("{programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("LATTICE_WORKSPACE", self.workspace().display().to_string()),
            ("LATTICE_SANDBOX", self.isolation.as_str().to_owned()),
        ];
        fixed.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Makes the layers what they were at a checkpoint.
    pub fn restore(&self, id: &str) -> Result<(), RestoreError> {
        // Before anything changes: what is not there as a whole is no checkpoint.
        let checkpoint = Checkpoint::open(&self.packs(), id)?;
        let mark = self.own.join(RESTORING);
        let wrong = |source| RestoreError::Io { path: mark.display().to_string(), source };
        set_mark(&mark, id).map_err(wrong)?;
        checkpoint.restore((&self.own.join("upper"), &self.own.join("home")), self.owner)?;
        fs::remove_file(&mark).map_err(wrong)
    }

    /// Finishes a restore that was cut off.
    fn finish_restore(&self) -> Result<(), PlaceError> {
        let mark = self.own.join(RESTORING);
        match fs::read_link(&mark) {
            Ok(id) => Ok(self.restore(&id.to_string_lossy())?),
            // Earlier versions made new layers in a folder of this name, and left the old ones alone until they were done.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(()),
            Err(error) => Err(at(&mark)(error)),
        }
    }

    /// A file that the sandbox can read.
    pub fn file(&self, path: &Path, text: &str) -> Result<(), PlaceError> {
        // An agent may have put a link in its place.
        remove_all(path).and_then(|()| write(path, text)).and_then(|()| give(path, self.owner)).map_err(at(path))
    }

    /// A file that only the sandbox can read. An agent may have put a link in its place.
    pub fn secret_file(&self, path: &Path, text: &str) -> Result<(), PlaceError> {
        let make = || {
            remove_all(path)?;
            let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            give(path, self.owner)
        };
        make().map_err(at(path))
    }

    /// Removes a file, or whatever an agent put in its place.
    pub fn remove(&self, path: &Path) -> Result<(), PlaceError> {
        remove_all(path).map_err(at(path))
    }

    pub fn folder(&self, path: &Path) -> Result<(), PlaceError> {
        new_folder(path).and_then(|()| give(path, self.owner)).map_err(at(path))
    }

    fn alive(&self) -> PathBuf {
        self.own.join("alive")
    }

    /// Keeps other processes from starting the sprite or changing its layers for as long as the file is open.
    ///
    /// A supervisor that was killed leaves a sandbox that is about to end, for which this waits.
    pub fn hold(&self) -> io::Result<fs::File> {
        let file = open_lock(&self.own.join("lock"))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let alive = open_lock(&self.alive())?;
        let mut rest = PATIENCE;
        while let Err(error) = rustix::fs::flock(&alive, FlockOperation::NonBlockingLockExclusive) {
            rest = rest.checked_sub(TICK).ok_or(error)?;
            std::thread::sleep(TICK);
        }
        Ok(file)
    }

    /// Removes everything of the sprite.
    pub fn destroy(&self) -> io::Result<()> {
        remove_all(&self.own)
    }
}

fn open_lock(path: &Path) -> io::Result<fs::File> {
    fs::File::options().create(true).append(true).open(path)
}

fn new_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Says which checkpoint the layers are becoming. The target of a link is there as a whole or not at all, also after a
/// power cut, and before anything that is changed later.
fn set_mark(mark: &Path, id: &str) -> io::Result<()> {
    let new = mark.with_extension("new");
    remove_all(&new)?;
    if mark.is_dir() && !mark.is_symlink() {
        remove_all(mark)?;
    }
    std::os::unix::fs::symlink(id, &new)?;
    rename(&new, mark)
}

/// Removes a checkout that no sprite has any more.
pub fn remove_base(path: &Path) -> io::Result<()> {
    remove_all(path)
}

#[expect(clippy::disallowed_methods, reason = "files of a sprite, which its checkpoints make durable")]
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

#[expect(clippy::disallowed_methods, reason = "files and folders of a sprite, which its checkpoints make durable")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}
