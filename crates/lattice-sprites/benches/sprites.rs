//! What sandboxes, checkpoints and restores cost, beside other ways to have the same.
//!
//! Prints one line per figure, `name<TAB>median in microseconds<TAB>90th percentile<TAB>rounds`; `cargo xtask bench
//! sprites` makes tables of them. `LATTICE_PROGRAM` names the program that is started as the launcher.

#![expect(clippy::print_stdout, reason = "its output is its result")]
#![expect(clippy::disallowed_methods, reason = "a benchmark writes files and starts programs")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_sprites::network::Network;
use lattice_sprites::run::SpritePlace;
use lattice_sprites::sandbox::{Order, Report, Reports, Sandbox, Spec, Started};

const LARGE: usize = 50_000;
const SMALL: usize = 1_000;
const CHANGED: usize = 100;
const NEW: usize = 20_000;

/// How often each thing is done.
const STARTS: usize = 200;
const CHECKPOINTS: usize = 30;
const COPIES: usize = 3;
const RESTORES: usize = 30;
const STATUSES: usize = 10;

/// A repository that sprites start from.
struct Fixture {
    folder: PathBuf,
    program: PathBuf,
    commit: Oid,
    made: usize,
}

fn git(folder: &Path, words: &[&str], input: &str) -> String {
    let mut child = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {words:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Fixture {
    fn new(parent: &Path, program: &Path, files: usize) -> Self {
        let folder = parent.join(format!("files-{files}"));
        fs::create_dir_all(&folder).expect("a folder");
        git(&folder, &["init", "--quiet", "-b", "main"], "");
        let mut stream =
            "commit refs/heads/main\ncommitter Bench <b@example.invalid> 1700000000 +0000\ndata 4\nbase\n".to_owned();
        for file in 0..files {
            let text = format!("line of file {file}\n").repeat(20);
            stream.push_str(&format!("M 100644 inline d{}/f{file}.txt\ndata {}\n{text}\n", file / 250, text.len()));
        }
        git(&folder, &["fast-import", "--quiet"], &stream);
        let commit = Oid::new(&git(&folder, &["rev-parse", "main"], "")).expect("a commit");
        let mut fixture = Self { folder, program: program.to_owned(), commit, made: 0 };
        // The checkout that all share is no part of what is measured.
        fixture.sprite();
        fixture
    }

    /// A new sprite at the commit.
    fn sprite(&mut self) -> SpritePlace {
        self.made += 1;
        let place = SpritePlace::new(&self.folder.join(".git"), &self.program, &format!("s{}", self.made));
        let branch = BranchName::new("work").expect("a name");
        place.create(&branch, self.commit).expect("a place");
        place
    }

    /// The sandbox of a command, with the doors that every agent has.
    fn spec(&self, place: &SpritePlace, words: &[&str]) -> Spec {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let mut spec = place.agent(self.commit, words).expect("a sandbox");
        // As an agent has it, in a control group where there can be one.
        spec.limits.memory_bytes = Some(16 << 30);
        Network::default().with_doors(&spec)
    }

    /// Starts a command that says something at once, and hears it. Its end is no part of what is measured.
    fn start(&self, place: &SpritePlace) -> Sandbox {
        let started = Sandbox::start(&self.program, &self.spec(place, &["echo", "here"])).expect("a sandbox");
        hear(started.stdout);
        started.sandbox
    }
}

fn hear(mut output: impl std::io::Read) {
    let mut byte = [0];
    output.read_exact(&mut byte).expect("it speaks");
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    println!("{name}\t{}\t{}\t{}", at(50), at(90), times.len());
}

fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    times.push(start.elapsed());
    result
}

/// Waits until the kernel has put the network of the sandbox before away, which it does later and with locks.
fn settle() {
    std::thread::sleep(Duration::from_millis(20));
}

/// An agent that does one thing each time it is told to.
struct Agent {
    go: File,
    done: File,
    sandbox: Sandbox,
    reports: Reports,
    previous: Option<String>,
    taken: usize,
    pauses: Vec<Duration>,
}

impl Agent {
    fn new(fixture: &Fixture, place: &SpritePlace, thing: &str) -> Self {
        for name in ["go", "done"] {
            let path = place.mail().join(name);
            assert!(Command::new("mkfifo").args(["-m", "666"]).arg(path).status().expect("mkfifo").success());
        }
        let script = format!(
            "exec 3<>.lattice/go 4<>.lattice/done; while read -r n <&3; do {{ {thing}; }} </dev/null; echo >&4; done"
        );
        let spec = fixture.spec(place, &["bash", "-c", &script]);
        let Started { sandbox, reports, .. } = Sandbox::start(&fixture.program, &spec).expect("a sandbox");
        let open = |name| File::options().read(true).write(true).open(place.mail().join(name)).expect("a pipe");
        Self { go: open("go"), done: open("done"), sandbox, reports, previous: None, taken: 0, pauses: Vec::new() }
    }

    fn work(&mut self) {
        writeln!(self.go, "{}", self.taken).expect("it is told");
        hear(&mut self.done);
    }

    fn checkpoint(&mut self) {
        self.taken += 1;
        let id = format!("chk_b{}", self.taken);
        self.sandbox.order(&Order::Checkpoint { id: id.clone(), previous: self.previous.take() }).expect("an order");
        match self.reports.next() {
            Some(Report::Checkpointed { pause_us, .. }) => self.pauses.push(Duration::from_micros(pause_us)),
            other => panic!("a checkpoint, not {other:?}"),
        }
        self.previous = Some(id);
    }
}

/// Changes 100 files of many folders.
fn change() -> String {
    format!(
        "for i in $(seq 0 {}); do f=$((i * {})); echo \"$n\" >> d$((f / 250))/f$f.txt; done",
        CHANGED - 1,
        LARGE / CHANGED
    )
}

fn starts(large: &mut Fixture) {
    let place = large.sprite();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let folders = "--unshare-all --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 \
        /lib64 --proc /proc --dev /dev --tmpfs /tmp echo here";
    for _ in 0..STARTS {
        settle();
        timed(&mut ours, || large.start(&place));
        settle();
        let mut child = timed(&mut theirs, || {
            let mut child =
                Command::new("bwrap").args(folders.split_whitespace()).stdout(Stdio::piped()).spawn().expect("bwrap");
            hear(child.stdout.take().expect("piped"));
            child
        });
        child.wait().expect("bwrap ends");
    }
    print("sandbox", ours);
    print("bwrap", theirs);
}

fn second_sprites(small: &mut Fixture, large: &mut Fixture) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (fixture, times) in [&mut *small, &mut *large].into_iter().zip(&mut times) {
            settle();
            timed(times, || {
                let place = fixture.sprite();
                fixture.start(&place)
            });
        }
    }
    let [small, large] = times;
    print("second sprite, 1,000 files", small);
    print("second sprite, 50,000 files", large);
}

fn checkpoints(large: &mut Fixture) {
    let place = large.sprite();
    let mut agent = Agent::new(large, &place, &change());
    let mut times = Vec::new();
    for _ in 0..CHECKPOINTS {
        agent.work();
        timed(&mut times, || agent.checkpoint());
    }
    print("checkpoint, 100 changed", times);
    print("pause, 100 changed", std::mem::take(&mut agent.pauses));
    let id = agent.previous.clone().expect("a checkpoint");
    drop(agent);
    let mut times = Vec::new();
    for _ in 0..RESTORES {
        let spec = large.spec(&place, &["bash", "-c", &format!("n=later; {}", change())]);
        Sandbox::run(&large.program, &spec, 1 << 20).expect("it changes as much again");
        settle();
        timed(&mut times, || {
            place.restore(&id).expect("it is restored");
            large.start(&place)
        });
    }
    print("restore", times);
}

/// The same state kept in other ways, of a plain checkout.
fn others(large: &Fixture) {
    let tree = large.folder.join("tree");
    let tree_name = tree.display().to_string();
    git(&large.folder, &["worktree", "add", "--quiet", "--detach", &tree_name, "main"], "");
    let copy = |option: &str, name: String| {
        let to = large.folder.join(name);
        let status = Command::new("cp").arg(option).arg(&tree).arg(to).status().expect("cp");
        assert!(status.success() && Command::new("sync").arg("-f").arg(&tree).status().expect("sync").success());
    };
    let (mut copies, mut links, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..COPIES {
        for file in (0..LARGE).step_by(LARGE / CHANGED) {
            let path = tree.join(format!("d{}/f{file}.txt", file / 250));
            fs::write(path, format!("round {round}\n")).expect("a file");
        }
        timed(&mut copies, || copy("-a", format!("copy-{round}")));
        timed(&mut links, || copy("-al", format!("links-{round}")));
        timed(&mut commits, || {
            git(&tree, &["add", "--all"], "");
            git(&tree, &["commit", "--quiet", "-m", "state"], "");
        });
    }
    print("cp -a", copies);
    print("cp -al", links);
    print("git add and commit", commits);
}

fn many_new(large: &mut Fixture) {
    let thing = format!(
        "if [ ! -e new ]; then mkdir new; cd new; for d in $(seq 1 100); do mkdir $d; done; for i in $(seq 1 {NEW}); do \
         echo \"content of the new file $i\" > $((i % 100 + 1))/$i; done; cd ..; else for i in $(seq 1 {CHANGED}); do \
         echo \"$n\" >> new/$((i % 100 + 1))/$i; done; fi"
    );
    let (mut first, mut next) = (Vec::new(), Vec::new());
    for _ in 0..COPIES {
        let place = large.sprite();
        let mut agent = Agent::new(large, &place, &thing);
        agent.work();
        timed(&mut first, || agent.checkpoint());
        for _ in 0..COPIES {
            agent.work();
            timed(&mut next, || agent.checkpoint());
        }
    }
    print("checkpoint, 20,000 new", first);
    print("checkpoint, 100 on top of 20,000", next);
}

fn first_status(large: &mut Fixture) {
    let mut times = Vec::new();
    for _ in 0..STATUSES {
        let place = large.sprite();
        let spec = large.spec(&place, &["git", "status", "--porcelain"]);
        timed(&mut times, || {
            let said = Sandbox::run(&large.program, &spec, 1 << 20).expect("a status");
            assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
        });
    }
    print("first git status", times);
}

fn main() {
    let Some(program) = std::env::var_os("LATTICE_PROGRAM") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Root's sandboxes belong to someone else, who must get this far.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("an open folder");
    let mut large = Fixture::new(folder.path(), Path::new(&program), LARGE);
    let mut small = Fixture::new(folder.path(), Path::new(&program), SMALL);
    // What was written so far is on its way to the disk for half a minute, beside whatever is measured.
    assert!(Command::new("sync").status().expect("sync").success());
    starts(&mut large);
    second_sprites(&mut small, &mut large);
    first_status(&mut large);
    checkpoints(&mut large);
    many_new(&mut large);
    others(&large);
}
