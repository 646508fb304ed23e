//! Attacks from inside a sandbox. Each has its control: the same script gets through without the layer that stops it.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::Command;

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::attacks::{ATTACKS, Attack, SETUID};
use crate::{agent, configure, lattice, log, look, rules};

/// Things of the host that an agent must not reach.
struct Planted {
    key: PathBuf,
    socket: PathBuf,
    _listener: UnixListener,
    memory: String,
    queue: String,
}

impl Planted {
    fn new(repo: &TestRepo) -> Self {
        let folder = repo.dir().join("..");
        let (key, socket) = (folder.join("id_ed25519"), folder.join("agent.sock"));
        std::fs::write(&key, "key").expect("a file");
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("an open socket");
        let made = |kind: &[&str]| {
            let made = Command::new("ipcmk").args(kind).args(["-p", "666"]).output().expect("ipcmk runs").stdout;
            String::from_utf8_lossy(&made).split_whitespace().last().expect("an id").to_owned()
        };
        Self { key, socket, _listener: listener, memory: made(&["-M", "4096"]), queue: made(&["-Q"]) }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = Command::new("ipcrm").args(["-m", &self.memory, "-q", &self.queue]).status();
    }
}

/// Puts a set-uid program of another user where agents find it. Whether it runs as that user on the host: only root can give
/// a program away, and file systems can be mounted so that it means nothing.
fn plant_setuid(repo: &TestRepo) -> bool {
    let (tools, run) = (repo.dir().join("tools"), |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().expect("it runs")
    });
    std::fs::create_dir_all(&tools).expect("a folder");
    let program = tools.join("id");
    std::fs::copy("/usr/bin/id", &program).expect("a copy");
    let path = program.to_str().expect("text");
    let given = run(&["chown", "64814:64814", path]).status.success();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("its mode");
    configure(repo, "[sprite]\nlayers = [\"tools\"]\n");
    given && run(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", path, "-u"]).stdout == b"64814\n"
}

/// A resolver of the host, which answers everyone who asks.
struct Resolver {
    port: u16,
}

impl Resolver {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let _ = socket.send_to(&question[..length], from);
            }
        });
        Self { port }
    }
}

/// Runs attacks in one sandbox that lacks `omitted`, and gives the names of those that got through.
fn succeeding(repo: &TestRepo, name: &str, attacks: &[&Attack], omitted: &str, variables: &str) -> Vec<String> {
    let mut script =
        format!("{variables}\ngit config --global --add safe.directory \"*\"\ngit commit --quiet --allow-empty -m x\n");
    for attack in attacks {
        let quoted = attack.script.replace('\'', "'\\''");
        script.push_str(&format!("if bash -c '{quoted}' >/dev/null 2>&1; then echo \"GOT {}\"; fi\n", attack.name));
    }
    let run = lattice(repo).args(["run", "x", "--name", name, "--", "bash", "-c", &script]);
    let out = run.env("LATTICE_SANDBOX_OMIT", omitted).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(repo, name));
    log(repo, name).lines().filter_map(|line| line.strip_prefix("GOT ").map(str::to_owned)).collect()
}

// proves: SP-95
#[test]
fn no_attack_gets_through_and_each_does_without_the_layer_that_stops_it() {
    let repo = TestRepo::draw("main*");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let listener6 = TcpListener::bind("[::1]:0").expect("a port");
    let port6 = listener6.local_addr().expect("an address").port();
    let resolver = Resolver::new();
    let abstract_name = format!("lattice-test-{port}");
    let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("a socket");
    let secret = repo.dir().join("../secret");
    std::fs::write(&secret, "secret").expect("a file");
    std::fs::set_permissions(repo.dir().join(".."), PermissionsExt::from_mode(0o755)).expect("an open folder");
    let bare = repo.dir().join("../bare.git");
    repo.git(&["init", "--quiet", "--bare", bare.to_str().expect("text")]);
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(&bare).status().expect("chmod").success());
    let planted = Planted::new(&repo);
    let setuid_works = plant_setuid(&repo);
    let path = |path: &std::path::Path| path.canonicalize().expect("a path").display().to_string();
    let variables = format!(
        "export PORT={port} PORT6={port6} DNS={} ABSTRACT={abstract_name} SECRET={} BARE={} REPO={} KEY={} SOCKET={} MEMORY={} QUEUE={}",
        resolver.port,
        path(&secret),
        path(&bare),
        path(repo.dir()),
        path(&planted.key),
        path(&planted.socket),
        planted.memory,
        planted.queue
    );
    let all: Vec<&Attack> = ATTACKS.iter().collect();
    assert_eq!(succeeding(&repo, "strict", &all, "", &variables), [""; 0], "the sandbox holds");
    assert_eq!(repo.git(&["--git-dir", bare.to_str().expect("text"), "for-each-ref"]), "", "nothing was pushed");
    let mut groups: Vec<&str> = ATTACKS.iter().map(|attack| attack.layers).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|layers| *layers != SETUID || setuid_works);
    for (at, layers) in groups.into_iter().enumerate() {
        let attacks: Vec<&Attack> = ATTACKS.iter().filter(|attack| attack.layers == layers).collect();
        let names: Vec<&str> = attacks.iter().map(|attack| attack.name).collect();
        let omitted = format!("{layers},canaries");
        assert_eq!(succeeding(&repo, &format!("c{at}"), &attacks, &omitted, &variables), names, "without {layers}");
    }
}

#[test]
fn a_sandbox_that_lacks_a_layer_is_refused_by_its_canaries() {
    let repo = TestRepo::draw("main*");
    for (at, (layer, what)) in [
        ("network", "reach the network"),
        ("seccomp", "open a socket of the hypervisor"),
        ("root,landlock", "read a file of the host; read the host's repository, where a push would go"),
        ("first-process,privileges,landlock", "leave the root"),
        ("privileges,landlock,seccomp", "mount"),
        ("seccomp,nested-namespaces", "make a user namespace"),
        ("ids", "become root"),
        ("read-only-root,landlock", "write to the system"),
        ("read-only-mail", "write to what was delivered"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("no-{at}");
        let run = lattice(&repo).args(["run", "x", "--name", &name, "--", "true"]).env("LATTICE_SANDBOX_OMIT", layer);
        let out = run.fails(1);
        assert!(out.stderr.contains(what), "without {layer}: {}", out.snapshot());
        assert_eq!(look(&repo, &["show", &name])["sprite"]["state"], json!("failed"));
    }
}

// proves: SP-99
#[test]
fn what_an_agent_configures_in_git_never_runs_on_the_host_and_its_remotes_are_reported() {
    let repo = TestRepo::draw("main*");
    let mark = repo.dir().join("../ran-on-the-host");
    let script = format!(
        "evil='touch {}'; echo \"$evil\" > /tmp/e; chmod +x /tmp/e
        git config core.fsmonitor \"sh -c '$evil'\"; git config core.sshCommand \"$evil\"; git config alias.log \"!$evil\"
        git config filter.x.clean \"$evil; cat\"; git config filter.x.smudge \"$evil; cat\"; echo '* filter=x' > .gitattributes
        mkdir -p .git/hooks; for h in pre-commit post-commit post-checkout reference-transaction; do
          printf '#!/bin/sh\\n%s\\nexit 0\\n' \"$evil\" > .git/hooks/$h; chmod +x .git/hooks/$h; done
        git remote add origin https://example.invalid/x
        echo x > x; git add -A; git commit --quiet --no-verify -m hostile; echo y > y",
        mark.display()
    );
    let out = agent(&repo, "hostile", &script);
    assert_eq!(out.code, Some(0), "{}", out.snapshot());
    assert!(!mark.exists(), "nothing of it ran here");
    assert_eq!(rules(&repo, "hostile"), ["remote-edited"]);
    assert_eq!(repo.git(&["remote"]), "");
    assert_eq!(repo.git(&["log", "--format=%s", "main..sprite/hostile"]), "Do it\nhostile");
}

#[test]
fn commits_that_are_not_sound_do_not_land() {
    let repo = TestRepo::draw("main*");
    let script = "b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\\t.git\\n' $b | git mktree)
        c=$(echo evil | git commit-tree $t -p HEAD); git update-ref refs/heads/evil $c";
    let out = agent(&repo, "unsound", script);
    assert_eq!(out.code, Some(1), "{}", out.snapshot());
    assert!(out.stderr.contains("the sprite's commits were refused"), "{}", out.snapshot());
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
}

// proves: SP-100
#[test]
fn tampering_and_secrets_are_reported() {
    let repo = TestRepo::draw("main*");
    let script =
        "lattice emit info one; lattice emit info two; sleep 0.3; : > .lattice/outbox.jsonl; lattice emit info three
        echo ghp_abcdefghijklmnopqrstuvwxyz0123456789; echo done";
    let out = agent(&repo, "liar", script);
    assert_eq!(out.code, Some(0), "{}", out.snapshot());
    let events = look(&repo, &["events", "liar"]);
    let messages: Vec<_> =
        events["events"].as_array().expect("events").iter().map(|e| &e["payload"]["message"]).collect();
    assert_eq!(messages, ["one", "two", "three"]);
    let mut found = rules(&repo, "liar");
    found.sort();
    assert_eq!(found, ["outbox-tampered", "secret-shown"]);
    assert!(log(&repo, "liar").contains("[masked]\ndone"), "{}", log(&repo, "liar"));
}

#[test]
fn files_that_are_open_where_a_sprite_is_started_are_closed_to_it() {
    let repo = TestRepo::draw("main*");
    std::fs::write(repo.dir().join("../secret"), "secret").expect("a file");
    let started = |name: &str, omitted: &str| {
        let script = format!(
            "exec 9< ../secret; exec \"$0\" run x --name {name} -- bash -c 'cat <&9 && echo GOT; ls /proc/self/fd; true'"
        );
        let shell = lattice_testkit::Lattice::new("/bin/bash", &repo).args(["-c", &script]);
        let out = shell.arg(env!("CARGO_BIN_EXE_lattice")).env("LATTICE_SANDBOX_OMIT", omitted).run();
        assert_eq!(out.code, Some(0), "{}", out.snapshot());
        log(&repo, name)
    };
    assert!(!started("strict", "").contains("GOT"), "{}", log(&repo, "strict"));
    assert!(started("control", "descriptors").contains("secretGOT"), "{}", log(&repo, "control"));
}

#[test]
fn device_nodes_are_not_made_in_any_sandbox() {
    let repo = TestRepo::draw("main*");
    // What is said of failures would come between the lines that count.
    let script = "exec 2> /dev/null; mkdir d; for place in d /tmp; do mkfifo $place/pipe && echo made a pipe in $place
        mknod $place/disk b 254 0 && echo made a disk; mknod $place/null c 1 3 && echo made a device
        ln -s / $place/l && mknod $place/l/hole c 0 0 && echo made a hole; done; mknod d/hole c 0 0 && echo hid something; true";
    assert_eq!(agent(&repo, "nodes", script).code, Some(0));
    let made: Vec<_> = log(&repo, "nodes")
        .lines()
        .filter(|l| l.starts_with("made") || l.starts_with("hid"))
        .map(str::to_owned)
        .collect();
    assert_eq!(made, ["made a pipe in d", "made a pipe in /tmp"], "the same programs make what is harmless");
}

#[test]
fn attributes_of_the_overlay_that_an_agent_forges_mean_nothing_after_a_restore() {
    let repo = TestRepo::draw("main*");
    repo.write("src/inner.txt", "inner\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "a folder"]);
    let script = r#"
        forged() { python3 -c 'import os; print({n: os.getxattr("src", n) for n in sorted(os.listxattr("src"))})'; }
        if [ ! -e .lattice/resume.json ]; then
            python3 -c 'import os
for name, value in (("opaque", b"y"), ("redirect", b"/etc"), ("metacopy", b"")):
    try: os.setxattr("src", "user.overlay." + name, value)
    except OSError as error: print(error)'
            forged > forged; id=$(lattice checkpoint)
            lattice emit waiting --reason r --checkpoint $id --expect ok=boolean; exit
        fi
        forged | diff - forged && echo as forged; ls src; lattice emit completed --status success"#;
    assert_eq!(agent(&repo, "forger", script).code, Some(4), "{}", log(&repo, "forger"));
    let resumed = lattice(&repo).args(["resume", "forger", "--input", "ok=true"]).run();
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.snapshot(), log(&repo, "forger"));
    assert!(log(&repo, "forger").contains("as forged\ninner.txt\n"), "{}", log(&repo, "forger"));
    // The control: an attribute that the overlay does believe hides the folder's content.
    let control = r#"if [ -e .lattice/resume.json ]; then ls src; lattice emit completed --status success; exit; fi
        touch src/new; rm src/new; id=$(lattice checkpoint); lattice emit waiting --reason r --checkpoint $id --expect ok=boolean"#;
    assert_eq!(agent(&repo, "control", control).code, Some(4));
    let upper = repo.dir().join(".git/lattice/sprites/control/upper/src");
    let pack = std::fs::read_dir(repo.dir().join(".git/lattice/sprites/control/packs")).expect("packs").count();
    assert_eq!(pack, 1);
    let believed = "import os, sys; os.setxattr(sys.argv[1], 'user.overlay.opaque', b'y')";
    let set = Command::new("python3").args(["-c", believed]).arg(&upper).status().expect("python runs");
    assert!(set.success());
    let seen = lattice(&repo).args(["sprite", "stop", "control"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.snapshot());
    assert_eq!(
        repo.git(&["ls-tree", "-r", "--name-only", "sprite/control", "--", "src"]),
        "",
        "believed, it hides what was there"
    );
}
