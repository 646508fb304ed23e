//! Files and texts that somebody made on purpose.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use lattice_context::builders::validation::ErrorItem;
use lattice_context::chunk::ContextPriority;
use lattice_context::gather::{ContextGatherer, file_chunk};
use lattice_context::log::Log;
use lattice_context::pack::{PackError, Packed, Secrets, pack};
use lattice_context::secrets;
use lattice_context::session::{ContextCheckpoint, SessionState};
use lattice_context::task::TaskType;
use lattice_context::workspace::Skip;
use lattice_testkit::TestRepo;

use crate::extension::request;
use crate::{envelope, now, workspace};

fn packed(repo: &TestRepo, input: &str, budget: usize) -> Result<Packed, PackError> {
    lattice_context::drive(pack(workspace(repo), request(TaskType::Implement, input, budget), Log::SILENT))
}

#[test]
fn nothing_outside_the_root_is_read_whatever_names_it() {
    let repo = TestRepo::new();
    let outside = repo.dir().parent().expect("a parent").join("outside.py");
    std::fs::write(&outside, "SECRET_OUTSIDE = 1\n").expect("a file");
    std::os::unix::fs::symlink(&outside, repo.dir().join("link.py")).expect("a link");
    std::os::unix::fs::symlink("loop.py", repo.dir().join("loop.py")).expect("a link to itself");
    repo.git(&["add", "."]);
    let shared = workspace(&repo);
    for (path, expected) in [
        ("../outside.py", Skip::Outside),
        ("a/../../outside.py", Skip::Outside),
        (outside.to_str().expect("text"), Skip::Outside),
        ("link.py", Skip::Outside),
        (".git/config", Skip::Outside),
        (".GIT/config", Skip::Outside),
        ("loop.py", Skip::NotAFile),
        ("absent.py", Skip::Missing),
    ] {
        assert_eq!(file_chunk(&shared, path, ContextPriority::High).expect_err("refused"), expected, "{path}");
    }
    let mut wanted = request(TaskType::Debug, "see ../outside.py link.py /etc/passwd .git/config", 2000);
    let error = |file: &str| ErrorItem {
        file: file.to_owned(),
        line: 1,
        message: "x".to_owned(),
        severity: lattice_context::builders::validation::Severity::Error,
        code: None,
    };
    wanted.errors = vec![error("../outside.py"), error("link.py"), error("/etc/passwd"), error(".git/config")];
    let made = lattice_context::drive(pack(shared, wanted, Log::SILENT)).expect("a prompt");
    assert!(!made.prompt.contains("SECRET_OUTSIDE") && !made.prompt.contains("[core]"), "{}", made.prompt);
    let mut focused = request(TaskType::Implement, "x", 2000);
    focused.focus = vec![("../outside.py".to_owned(), None)];
    let refused = lattice_context::drive(pack(workspace(&repo), focused, Log::SILENT));
    assert!(matches!(refused, Err(PackError::Focus { .. })));
}

#[test]
fn pipes_sockets_and_folders_are_left_alone_and_nothing_waits() {
    let repo = TestRepo::new();
    repo.write("real.py", "x = 1\n");
    let status = std::process::Command::new("mkfifo").arg(repo.dir().join("pipe.py")).status();
    assert!(status.expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(repo.dir().join("socket.py")).expect("a socket");
    std::fs::create_dir(repo.dir().join("folder.py")).expect("a folder");
    let shared = workspace(&repo);
    for path in ["pipe.py", "socket.py", "folder.py"] {
        assert!(matches!(file_chunk(&shared, path, ContextPriority::High), Err(Skip::NotAFile)), "{path}");
    }
    let all = lattice_context::drive(ContextGatherer::new(Arc::clone(&shared)).gather_files(&["**".to_owned()], 50));
    assert!(all.chunks.iter().any(|chunk| chunk.source == "real.py"));
    assert!(packed(&repo, "change real", 500).is_ok());
}

// proves: CE-108
#[test]
fn files_that_vanish_or_cannot_be_read_are_warnings() {
    let repo = TestRepo::new();
    repo.commit_file("here.py", "def here():\n    return 1\n", "here");
    repo.commit_file("gone.py", "def gone():\n    return 1\n", "gone");
    let shared = workspace(&repo);
    shared.entries().expect("a listing");
    std::fs::remove_file(repo.dir().join("gone.py")).expect("it was there");
    let found =
        lattice_context::drive(ContextGatherer::new(Arc::clone(&shared)).gather_files(&["*.py".to_owned()], 50));
    assert_eq!(found.chunks.len(), 1);
    assert_eq!(found.warnings, ["gone.py was left out: there is no such file"]);
    let made = lattice_context::drive(pack(shared, request(TaskType::Debug, "gone and here", 900), Log::SILENT));
    let made = made.expect("the rest goes on");
    assert!(
        made.prompt.contains("def here()") && made.warnings.iter().any(|warning| warning.starts_with("gone.py")),
        "{:?}",
        made.warnings
    );
    let plain = repo.dir().parent().expect("a parent").join("plain");
    std::fs::create_dir(&plain).expect("a folder");
    std::fs::write(plain.join("a.py"), "x = 1\n").expect("a file");
    let outside_git = packed_there(&repo, &plain);
    assert!(
        outside_git.warnings.iter().any(|warning| warning.contains("no Git repository")),
        "{:?}",
        outside_git.warnings
    );
}

fn packed_there(repo: &TestRepo, folder: &std::path::Path) -> Packed {
    let there = workspace(&repo.beside(folder));
    lattice_context::drive(pack(there, request(TaskType::Debug, "x", 900), Log::SILENT)).expect("a prompt")
}

#[test]
fn budgets_of_nothing_are_refused_and_huge_ones_hold_everything() {
    let repo = TestRepo::new();
    repo.commit_file("a.py", "x = 1\n", "a");
    for budget in [0, 1] {
        let refused = packed(&repo, "x", budget).expect_err("no room for the request");
        assert!(matches!(refused, PackError::TooSmall { limit, .. } if limit == budget), "{refused}");
    }
    let refused = packed(&repo, &"word ".repeat(2000), 500).expect_err("never cut silently");
    assert!(refused.to_string().contains("the request alone needs"), "{refused}");
    let all = packed(&repo, "the value of x in a.py", 10_000_000).expect("a prompt");
    assert!(all.prompt.contains("## a.py"));
}

#[test]
fn names_that_are_no_text_and_texts_in_other_codes_come_through() {
    let repo = TestRepo::new();
    let odd = repo.dir().join(std::ffi::OsStr::from_bytes(b"caf\xe9.py"));
    std::fs::write(odd, "latin = 1\n").expect("a file");
    repo.write("new\nline.py", "newline = 1\n");
    repo.write("quote\"d.py", "quoted = 1\n");
    repo.write("utf16.txt", [0xff, 0xfe, b'h', 0, b'i', 0].as_slice());
    repo.write("broken.txt", b"ok \xff\xfe end\n".as_slice());
    let found = lattice_context::drive(ContextGatherer::new(workspace(&repo)).gather_files(&["**".to_owned()], 50));
    let content =
        |source: &str| found.chunks.iter().find(|chunk| chunk.source == source).map(|chunk| chunk.content.clone());
    assert_eq!(content("\"caf\\351.py\"").as_deref(), Some("latin = 1\n"), "{:?}", found);
    assert_eq!(content("new\nline.py").as_deref(), Some("newline = 1\n"));
    assert_eq!(content("quote\"d.py").as_deref(), Some("quoted = 1\n"));
    assert_eq!(content("utf16.txt").as_deref(), Some("hi"));
    assert_eq!(content("broken.txt").as_deref(), Some("ok \u{fffd}\u{fffd} end\n"));
    let json = serde_json::to_string(&found.chunks).expect("valid JSON");
    let back: Vec<lattice_context::chunk::ContextChunk> = serde_json::from_str(&json).expect("the same again");
    assert_eq!(back, found.chunks);
}

#[test]
fn secrets_of_every_kind_are_found_and_masked() {
    let token = format!("ghp_{}", "Zz09".repeat(9));
    let cases = [
        (format!("x = \"{token}\""), token.clone()),
        ("url = https://user:hunter2pass@example.invalid/x".to_owned(), "hunter2pass".to_owned()),
        ("API_KEY: 'kjh234kjh234kjh'".to_owned(), "kjh234kjh234kjh".to_owned()),
        (
            "a\n\nAWS_SECRET_ACCESS_KEY=\"aB3xK9mQaB3xK9mQ\"\nthe secret of it: none\n".to_owned(),
            "aB3xK9mQaB3xK9mQ".to_owned(),
        ),
        (
            "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.SflKxwRJSMeKKF2QT4".to_owned(),
            "SflKxwRJSMeKKF2QT4".to_owned(),
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\nafter".to_owned(),
            "MIIEpAIBAAKCAQEA".to_owned(),
        ),
    ];
    for (text, value) in cases {
        assert!(!secrets::find(&text).is_empty(), "{text}");
        assert!(!secrets::redact(&text).contains(&value), "{}", secrets::redact(&text));
        assert!(!secrets::warnings("f", &text).join("\n").contains(&value));
        assert_eq!(secrets::redact(&text).lines().count(), text.lines().count(), "line breaks stay");
    }
    for harmless in ["password = get()", "password: \"changeme-please\"", "sk-short", "https://host/a:b@c"] {
        assert_eq!(secrets::find(harmless), [], "{harmless}");
    }
    let repo = TestRepo::new();
    repo.commit_file("conf.py", format!("TOKEN = '{token}'\n"), "oops");
    let warned = packed(&repo, "change conf", 900).expect("a prompt");
    assert!(
        warned.warnings.iter().any(|warning| warning.starts_with("conf.py:1 looks like a secret")),
        "{:?}",
        warned.warnings
    );
    let mut masked = request(TaskType::Implement, "change conf", 900);
    masked.secrets = Secrets::Redact;
    let masked = lattice_context::drive(pack(workspace(&repo), masked, Log::SILENT)).expect("a prompt");
    assert!(!masked.prompt.contains(&token) && masked.prompt.contains("[redacted access token]"), "{}", masked.prompt);
}

// proves: CE-92, CE-93
#[test]
fn sessions_stay_in_their_folder_and_damage_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = ContextCheckpoint::new(folder.path().join("sessions"));
    let state = || SessionState::from(&envelope(TaskType::Implement, "x"));
    for id in ["../../x", "a/b", "", ".hidden", "x\0y"] {
        assert!(sessions.save(id, state(), now()).is_err(), "{id:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing was written");
    assert!(sessions.restore("nope").expect_err("unknown").to_string().contains("`nope`"));
    sessions.save("session_a", state(), now()).expect("saved");
    let path = sessions.storage_dir().join("session_a.json");
    let whole = std::fs::read(&path).expect("the record");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("cut in half");
    assert!(sessions.restore("session_a").expect_err("damaged").to_string().contains("session_a.json"));
}
