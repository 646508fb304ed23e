//! What a launcher is told, and what it tells.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A sandbox to be made. All paths are those of the host unless said otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    pub isolation: Isolation,
    /// An empty folder that the new root is mounted on.
    pub root: PathBuf,
    pub workspace: Tree,
    pub home: Tree,
    /// The folder that becomes `/workspace/.lattice`.
    pub mail: Option<PathBuf>,
    /// What else can be seen, and never written.
    pub binds: Vec<Bind>,
    /// A file that is held, by as many as want to, until everything inside is gone.
    pub alive: Option<PathBuf>,
    /// Where packs of checkpoints are written.
    pub checkpoints: Option<PathBuf>,
    /// Program and arguments, as seen from inside.
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Whose the sandbox is on the host; `None` for the user who starts it.
    pub host_id: Option<u32>,
    pub limits: Limits,
    /// The entrances of its control group.
    pub entrances: Vec<PathBuf>,
    /// Where it listens on its own network; the listeners go to the supervisor.
    pub doors: Vec<Door>,
    /// Names with the addresses that they have inside.
    pub names: Vec<(String, IpAddr)>,
    /// What must not be reachable.
    pub probe: Probe,
    /// Layers that are left out, to show that a test fails without them.
    pub omit: Vec<Layer>,
}

/// How much a command is kept apart from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// By every layer; if one cannot be had, nothing is run.
    Strict,
    /// By none, because a person asked for that by name: it runs on the host, in a clone of its own.
    None,
}

impl Isolation {
    /// The hard rules of the protocol, which only a sandbox makes facts.
    const RULES: [&'static str; 6] =
        ["no push", "no GitHub", "no remote edits", "no secrets", "no environment changes", "append-only events"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::None => "none",
        }
    }

    /// The hard rules that nothing enforces.
    pub fn not_enforced(self) -> &'static [&'static str] {
        match self {
            Self::Strict => &[],
            Self::None => &Self::RULES,
        }
    }
}

/// A folder of the sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Tree {
    /// A folder of the host, written directly.
    Plain(PathBuf),
    /// What is below stays as it is; changes go to `upper`. The first of `lower` lies on top.
    Overlay { lower: Vec<PathBuf>, upper: PathBuf, work: PathBuf },
    /// Layers without a place for changes, at least two.
    View { lower: Vec<PathBuf> },
}

/// A file or folder of the host at a place inside, read-only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bind {
    pub from: PathBuf,
    /// Absolute, inside.
    pub to: PathBuf,
}

/// A place on the sandbox's own network that the supervisor answers at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Door {
    pub address: SocketAddr,
    pub transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    Stream,
    Packets,
}

/// What one sandbox may use at most.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Limits {
    pub processes: u64,
    /// Of everything in it together, where the kernel counts that for this user.
    pub memory_bytes: Option<u64>,
    pub file_bytes: u64,
    pub open_files: u64,
    /// Of `/tmp` and the other folders in memory.
    pub temporary_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { processes: 2048, memory_bytes: None, file_bytes: 8 << 30, open_files: 8192, temporary_bytes: 1 << 30 }
    }
}

/// Things of the host that a canary tries to reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probe {
    /// A file outside of every sandbox.
    pub secret: PathBuf,
    /// The repository that the sprite works for.
    pub repository: PathBuf,
    /// A port of the host on which someone listens while the sandbox is made.
    pub port: u16,
}

/// One layer of isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    Network,
    Root,
    /// Of what the root itself holds, such as `/etc`.
    ReadOnlyRoot,
    Ipc,
    /// A user inside who is not root.
    Ids,
    /// A first process that nobody inside can look into.
    FirstProcess,
    /// No second user inside, to whom a program could belong.
    OneId,
    /// Programs that never run as whom they belong to.
    Setuid,
    /// No file that was open when the sandbox was started.
    Descriptors,
    /// Arguments of the launcher that say nothing about the host.
    Arguments,
    Landlock,
    Seccomp,
    Privileges,
    NestedNamespaces,
    ReadOnlyMail,
    Limits,
    /// The control group.
    Group,
    Canaries,
}

/// An order to the first process of a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Make a checkpoint with this id; files that are as in the previous one are not written again.
    Checkpoint { id: String, previous: Option<String> },
    /// End every process.
    Kill,
    /// Nothing more is wanted.
    End,
}

/// What a launcher has to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The command runs, in a sandbox whose canaries found nothing or, where that was asked for, in none.
    Started,
    /// There is no sandbox; nothing was run.
    Refused {
        stage: Stage,
        detail: String,
        errno: i32,
    },
    Checkpointed {
        id: String,
        files: u64,
        bytes: u64,
        pause_us: u64,
    },
    CheckpointFailed {
        id: String,
        detail: String,
    },
    /// The command ended, and every process that it left with it.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
}

/// The steps of making a sandbox, for a refusal that can be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Order,
    Namespaces,
    Doors,
    Ids,
    Folders,
    Root,
    Overlay,
    Bind,
    Proc,
    Privileges,
    Limits,
    Landlock,
    Seccomp,
    /// A canary got where nothing may get.
    Canary,
    Command,
}
