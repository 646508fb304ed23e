//! Checkpoints and restores, again and again, of whatever a sprite did, with kills in the middle of both.
//!
//! A test run makes a few cycles from a new seed, which a failure prints; `cargo xtask cycles` makes a thousand.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_sprites::run::SpritePlace;
use lattice_sprites::sandbox::{Order, Report, Sandbox, Started};
use lattice_testkit::TestRepo;
use lattice_testkit::asked::number;

/// How many cycles every test run makes.
const CYCLES: u64 = 30;
const FOLDER: &str = "LATTICE_CYCLES_FOLDER";
const CHECKPOINT: &str = "LATTICE_CYCLES_CHECKPOINT";

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 27) ^ mixed) % sides
    }
}

fn place(common: &Path) -> SpritePlace {
    SpritePlace::new(common, Path::new(env!("CARGO_BIN_EXE_lattice")), "cycles")
}

/// Restores a checkpoint; a process of its own, so that it can be killed. A part of the test below, and nothing by itself.
#[test]
fn restorer() {
    let (Ok(folder), Ok(checkpoint)) = (std::env::var(FOLDER), std::env::var(CHECKPOINT)) else { return };
    place(Path::new(&folder)).restore(&checkpoint).expect("a restore");
}

/// A sprite with everything that is known of its checkpoints.
struct World {
    repo: TestRepo,
    place: SpritePlace,
    base: Oid,
    dice: Dice,
    /// How everything looked, by the checkpoint.
    looks: BTreeMap<String, String>,
    kills: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let repo = TestRepo::draw("main*");
        for path in ["a", "b", "src/a", "src/b", "src/deep/a", "src/deep/c", "lib/a", "lib/deep/b"] {
            repo.write(path, format!("{path}\n").repeat(50));
        }
        repo.git(&["add", "."]);
        repo.git(&["commit", "--quiet", "-m", "files"]);
        let base = Oid::new(&repo.git(&["rev-parse", "HEAD"])).expect("a commit");
        let place = place(&repo.common_dir());
        place.create(&BranchName::new("sprite/cycles").expect("a name"), base).expect("a place");
        place.file(&place.mail().join("agent.py"), include_str!("cycles.py")).expect("a script");
        Self { repo, place, base, dice: Dice(seed), looks: BTreeMap::new(), kills: 0 }
    }

    /// Runs the agent for some rounds with a checkpoint after each; a kill may end it anywhere. Gives how it began.
    fn session(&mut self, number: u64) -> Option<String> {
        let rounds = 1 + self.dice.roll(3);
        for round in 0..rounds {
            self.place.remove(&self.place.mail().join(format!("go{round}"))).expect("a file");
        }
        let words =
            ["python3", "/workspace/.lattice/agent.py", &self.dice.roll(u64::MAX).to_string(), &rounds.to_string()];
        let spec = self.place.agent(self.base, words.map(str::to_owned).into()).expect("a sandbox");
        let Started { mut sandbox, mut reports, stdout, mut stderr, .. } =
            Sandbox::start(&self.place.program, &spec).expect("it starts");
        let mut lines = BufReader::new(stdout).lines();
        let began = lines.next()?.expect("a line");
        if self.dice.roll(8) == 0 {
            self.kill(&sandbox, 3000);
            return Some(began);
        }
        let mut previous = None;
        for round in 0..rounds {
            let Some(look) = lines.next() else {
                let mut said = String::new();
                std::io::Read::read_to_string(&mut stderr, &mut said).expect("its last words");
                panic!("the agent ended: {said}");
            };
            let look = look.expect("a line");
            let id = format!("chk_{number}r{round}");
            sandbox.order(&Order::Checkpoint { id: id.clone(), previous: previous.clone() }).expect("it listens");
            if self.dice.roll(6) == 0 {
                self.kill(&sandbox, 6000);
                // It is there as a whole, or not at all.
                if self.place.packs().join(lattice_sprites::checkpoint::pack_name(&id)).exists() {
                    self.looks.insert(id, look);
                }
                return Some(began);
            }
            match reports.next() {
                Some(Report::Checkpointed { id, .. }) => drop(self.looks.insert(id, look)),
                other => panic!("no checkpoint: {other:?}"),
            }
            previous = Some(id);
            self.place.file(&self.place.mail().join(format!("go{round}")), "").expect("a file");
        }
        sandbox.order(&Order::End).expect("it listens");
        sandbox.wait().expect("it ends");
        Some(began)
    }

    /// Kills the first process of the sandbox at some moment.
    fn kill(&mut self, sandbox: &Sandbox, most_us: u64) {
        self.pass(most_us);
        let launcher = sandbox.process();
        let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"));
        let children = children.expect("the launcher lives");
        let status = Command::new("kill").args(["-9", children.trim()]).status().expect("kill runs");
        assert!(status.success());
        self.kills += 1;
    }

    /// Lets some of the work of others pass.
    fn pass(&mut self, most_us: u64) {
        let (began, wanted) = (std::time::Instant::now(), u128::from(self.dice.roll(most_us)));
        while began.elapsed().as_micros() < wanted {
            std::thread::yield_now();
        }
    }

    /// Goes back to one of the checkpoints; who does it may be killed, and then it is done again, or another one, or
    /// whoever starts the agent finishes it.
    fn restore(&mut self) -> String {
        loop {
            let at = self.dice.roll(self.looks.len() as u64) as usize;
            let id = self.looks.keys().nth(at).expect("a checkpoint").clone();
            if self.dice.roll(5) > 0 {
                self.place.restore(&id).expect("a restore");
                return id;
            }
            let program = std::env::current_exe().expect("this test is a program");
            let mut restorer = Command::new(program)
                .args(["--exact", "cycles::restorer", "--quiet"])
                .envs([(FOLDER, self.repo.common_dir().as_os_str()), (CHECKPOINT, id.as_ref())])
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("it starts");
            self.pass(20_000);
            restorer.kill().expect("it can be killed");
            restorer.wait().expect("it ends");
            self.kills += 1;
            if self.place.own.join("restoring").exists() && self.dice.roll(2) == 0 {
                return id;
            }
        }
    }
}

#[test]
fn whatever_a_sprite_did_is_restored_as_it_was_also_after_kills() {
    let seed = number("LATTICE_CYCLES_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let cycles = number("LATTICE_CYCLES").unwrap_or(CYCLES);
    println!("seed {seed}");
    let mut world = World::new(seed);
    let mut expected: Option<String> = None;
    for number in 0..cycles {
        let began = world.session(number).expect("the agent says how it finds everything");
        if let Some(id) = expected.take() {
            assert_same(&world.looks[&id], &began, &format!("seed {seed}, cycle {number}, {id}"));
        }
        if !world.looks.is_empty() {
            expected = Some(world.restore());
        }
    }
    println!("{cycles} cycles, {} checkpoints, {} kills: every tree as it was", world.looks.len(), world.kills);
}

/// Compares what an agent saw; says which paths differ.
#[track_caller]
fn assert_same(was: &str, is: &str, place: &str) {
    if was == is {
        return;
    }
    let [was, is] = [was, is].map(|text| serde_json::from_str::<serde_json::Value>(text).expect("a description"));
    let mut differences = Vec::new();
    for top in ["/workspace", "/home/agent"] {
        let (was, is) = (was[top].as_object().expect("paths"), is[top].as_object().expect("paths"));
        let paths: std::collections::BTreeSet<_> = was.keys().chain(is.keys()).collect();
        let differs = paths.into_iter().filter(|path| was.get(*path) != is.get(*path));
        differences.extend(differs.map(|path| format!("{top}/{path}: {:?} became {:?}", was.get(path), is.get(path))));
    }
    panic!("{place}:\n{}", differences.join("\n"));
}
