//! Where a sprite lives on the host.
//!
//! ```text
//! base/<commit>/        a checkout that all sprites from this commit share, never written again
//! <sprite>/upper/       what the sprite changed in its workspace
//! <sprite>/home/        the same for its home
//! <sprite>/mail/        becomes /workspace/.lattice
//! <sprite>/packs/       checkpoints
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
use std::thread::JoinHandle;

use lattice_context::chunk::CompressedContext;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_repo::workspace;

use crate::sandbox::{Bind, ID_FOR_ROOT, Isolation, Layer, Limits, Probe, Sandbox, SandboxError, Spec, Tree};

/// Why a place could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("`{path}` could not be made")]
    Io { path: String, source: io::Error },
    #[error("the checkout of {commit} could not be made")]
    Base { commit: String, source: SandboxError },
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

/// Layers of a checkpoint that are whole.
const RESTORED: &str = "restored";

/// Layers that a restore put aside.
const REPLACED: &str = "replaced";

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
        for name in ["", "root", "mail", "mail/context", "mail/skills", "packs", "upper", "home", "empty"] {
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
        let mut spec = self.spec(workspace::base_command(commit, Path::new(workspace::OBJECTS_INSIDE)));
        spec.root = making.join("root");
        spec.workspace = Tree::Plain(making.join("tree"));
        spec.home = Tree::Plain(making.join("home"));
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
        let [workspace, home] = self.layers(commit)?;
        let spec = Spec { workspace, home, ..self.spec(command) };
        let made = Sandbox::run(&self.program, &spec, 1 << 20);
        made.map_err(|source| PlaceError::Base { commit: commit.short(), source })?;
        let mail = self.own.join("upper/.lattice");
        let linked = remove_all(&mail).and_then(|()| std::os::unix::fs::symlink("../mail", &mail));
        linked.and_then(|()| self.own(&mail)).map_err(at(&mail))
    }

    /// A sandbox that can see the repository's objects and nothing else of the host.
    fn spec(&self, command: Vec<String>) -> Spec {
        let from = self.repository.join("objects");
        Spec {
            isolation: self.isolation,
            root: self.own.join("root"),
            workspace: Tree::Plain(self.own.join("empty")),
            home: Tree::Plain(self.own.join("empty")),
            mail: None,
            binds: vec![Bind { from, to: workspace::OBJECTS_INSIDE.into() }],
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
        let [workspace, home] = self.layers(commit)?;
        let mut spec = self.spec(command);
        spec.binds.push(Bind { from: self.program.clone(), to: PROGRAM_INSIDE.into() });
        Ok(Spec { workspace, home, mail: Some(self.mail()), checkpoints: Some(self.packs()), ..spec })
    }

    /// A sandbox over what the agent left, for a command of ours.
    pub fn after(&self, commit: Oid, command: Vec<String>) -> Result<Spec, PlaceError> {
        let [workspace, home] = self.layers(commit)?;
        Ok(Spec { workspace, home, ..self.spec(command) })
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
        self.finish_restore().map_err(at(&self.own))?;
        if self.isolation == Isolation::None {
            return Ok([Tree::Plain(self.own.join("upper")), Tree::Plain(self.own.join("home"))]);
        }
        Ok([self.overlay("upper", &self.base(commit))?, self.overlay("home", &self.own.join("empty"))?])
    }

    /// An overlay; each mount gets a work folder of its own, since one that was used cannot be used again.
    fn overlay(&self, upper: &str, lower: &Path) -> Result<Tree, PlaceError> {
        let work = self.own.join(format!("work-{upper}"));
        remove_all(&work).map_err(at(&work))?;
        self.folder(&work)?;
        Ok(Tree::Overlay { lower: vec![lower.to_owned()], upper: self.own.join(upper), work })
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

    /// Puts the layers of a checkpoint in the place of those that are there.
    pub fn restore(&self, id: &str) -> Result<Replaced, crate::checkpoint::RestoreError> {
        let wrong =
            |path: &Path, source| crate::checkpoint::RestoreError::Io { path: path.display().to_string(), source };
        let (fresh, replaced) = (self.own.join("restoring"), self.own.join(REPLACED));
        self.finish_restore().map_err(|source| wrong(&self.own, source))?;
        for left in [&fresh, &replaced] {
            remove_all(left).map_err(|source| wrong(left, source))?;
        }
        let (upper, home) = (fresh.join("upper"), fresh.join("home"));
        for folder in [&fresh, &upper, &home] {
            self.folder(folder).map_err(|error| wrong(folder, io::Error::other(error.to_string())))?;
        }
        crate::checkpoint::restore(&self.packs(), id, (&upper, &home), self.owner)?;
        // From here on the layers are those of the checkpoint; whoever needs them finishes what is cut off.
        let ready = self.own.join(RESTORED);
        rename(&fresh, &ready).and_then(|()| self.finish_restore()).map_err(|source| wrong(&ready, source))?;
        Ok(Replaced::remove(replaced))
    }

    /// Puts restored layers in the place of the old ones, if a restore got that far.
    fn finish_restore(&self) -> io::Result<()> {
        let (ready, replaced) = (self.own.join(RESTORED), self.own.join(REPLACED));
        for name in ["upper", "home"] {
            let (new, old) = (ready.join(name), self.own.join(name));
            if new.exists() {
                if old.exists() {
                    fs::create_dir_all(&replaced)?;
                    rename(&old, &replaced.join(name))?;
                }
                rename(&new, &old)?;
            }
        }
        remove_all(&ready)
    }

    /// A file that the sandbox can read.
    pub fn file(&self, path: &Path, text: &str) -> Result<(), PlaceError> {
        // An agent may have put a link in its place.
        remove_all(path).and_then(|()| write(path, text)).and_then(|()| self.own(path)).map_err(at(path))
    }

    /// A file that only the sandbox can read. An agent may have put a link in its place.
    pub fn secret_file(&self, path: &Path, text: &str) -> Result<(), PlaceError> {
        let make = || {
            remove_all(path)?;
            let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            self.own(path)
        };
        make().map_err(at(path))
    }

    /// Removes a file, or whatever an agent put in its place.
    pub fn remove(&self, path: &Path) -> Result<(), PlaceError> {
        remove_all(path).map_err(at(path))
    }

    pub fn folder(&self, path: &Path) -> Result<(), PlaceError> {
        match fs::DirBuilder::new().recursive(true).mode(0o755).create(path) {
            Ok(()) => self.own(path).map_err(at(path)),
            Err(error) => Err(at(path)(error)),
        }
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some(owner) => std::os::unix::fs::lchown(path, Some(owner), Some(owner)),
            None => Ok(()),
        }
    }

    /// Keeps other processes from starting the sprite for as long as the file is open.
    pub fn hold(&self) -> io::Result<fs::File> {
        let file = fs::File::options().create(true).append(true).open(self.own.join("lock"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    }

    /// Removes everything of the sprite.
    pub fn destroy(&self) -> io::Result<()> {
        remove_all(&self.own)
    }
}

/// Layers that a restore put aside. They are removed while others go on; who drops this waits until they are gone.
#[derive(Debug)]
pub struct Replaced(Option<JoinHandle<()>>);

impl Replaced {
    fn remove(folder: PathBuf) -> Self {
        // What cannot be removed now is tried, and reported, by the next restore.
        Self(Some(std::thread::spawn(move || drop(remove_all(&folder)))))
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        if let Some(removal) = self.0.take() {
            let _ = removal.join();
        }
    }
}

/// Removes a checkout that no sprite has any more.
pub fn remove_base(path: &Path) -> io::Result<()> {
    remove_all(path)
}

/// Removes a tree, also one whose folders were closed, as the work folder of an overlay is.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        remove_all(&entry?.path())?;
    }
    fs::remove_dir(path)
}

#[expect(clippy::disallowed_methods, reason = "files of a sprite, which its checkpoints make durable")]
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

#[expect(clippy::disallowed_methods, reason = "folders of a sprite, moved as a whole")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}
