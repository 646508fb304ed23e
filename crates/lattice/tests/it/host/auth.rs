//! Tokens: where they come from, how they are refreshed, and that nothing of them gets out.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::World;
use crate::lattice;

/// Logs in with the device flow.
pub(super) fn log_in_with_app(world: &World) {
    let output = lattice(&world.repo).args(["auth", "login", "--no-browser"]).ok();
    assert!(output.stdout.contains("as octocat"), "{}", output.snapshot());
}

pub(super) fn token_file(world: &World) -> PathBuf {
    let folder = world.repo.sandbox().root().join("home/.lattice/auth");
    let host = world.github.as_ref().expect("a GitHub").web_url().replace("http://", "");
    folder.join(format!("token.{host}.json"))
}

/// Stores tokens as a login would, with these times of expiry.
#[track_caller]
pub(super) fn store(world: &World, access: &str, expires: &str, refresh_expires: &str) {
    let seconds = |at: &str| at.parse::<i64>().expect("seconds");
    let bundle = json!({
        "schema_version": 1, "kind": "app", "user": "octocat", "access_token": access,
        "expires_at": seconds(expires), "refresh_token": "ghr_stored", "refresh_expires_at": seconds(refresh_expires),
    });
    let path = token_file(world);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the sandbox can be written");
    std::fs::write(&path, bundle.to_string()).expect("the sandbox can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    world.github.as_ref().expect("a GitHub").accept_refresh("ghr_stored", "octocat");
}

/// Long before and long after the clock of every test.
pub(super) const PAST: &str = "1000000000";
pub(super) const FUTURE: &str = "4000000000";

pub(super) fn refreshes(world: &World) -> usize {
    let requests = world.github.as_ref().expect("a GitHub").requests();
    requests.iter().filter(|line| line.ends_with("/login/oauth/access_token")).count()
}

// proves: ST-5.2-12, ST-5.2-18, ST-5.2-19, ST-8.2-11, ST-8.2-12, ST-8.2-14, ST-11.3-2
#[test]
fn a_command_for_github_needs_a_token_that_is_valid_or_can_be_refreshed() {
    let world = World::github("main <- a*");
    let submit = || {
        let output = lattice(&world.repo).args(["submit", "--json"]).run();
        (output.code, output.json())
    };
    let (code, document) = submit();
    assert_eq!(code, Some(1));
    assert_eq!(document["issues"][0]["summary"], json!("Not authenticated. Run `lattice auth login`."));
    assert!(document["issues"][0]["fixes"][0]["user_action"].is_string(), "{document:#}");
    store(&world, "ghu_old", PAST, PAST);
    let (code, document) = submit();
    assert_eq!(code, Some(1));
    assert_eq!(document["issues"][0]["summary"], json!("Authentication expired. Run `lattice auth login` again."));
    assert!(world.github.as_ref().expect("a GitHub").requests().is_empty(), "nobody was asked");
    store(&world, "ghu_old", PAST, FUTURE);
    assert_eq!(submit().0, Some(0), "an expired one that can be refreshed is enough");
    assert_eq!(refreshes(&world), 1);
}

// proves: ST-6.3-6, ST-11.3-3, ST-11.3-7, ST-11.3-9, ST-11.3-11
#[test]
fn ten_processes_with_an_expired_token_refresh_it_once() {
    let world = World::github("main*");
    store(&world, "ghu_old", PAST, FUTURE);
    let running: Vec<_> = (0..10).map(|_| lattice(&world.repo).args(["issue", "list"]).spawn()).collect();
    for running in running {
        let output = running.wait();
        assert_eq!(output.code, Some(0), "{}", output.snapshot());
    }
    assert_eq!(refreshes(&world), 1, "exactly one refresh");
    let stored = std::fs::read_to_string(token_file(&world)).expect("it is stored");
    assert!(stored.contains("ghu_access1") && stored.contains("ghr_refresh1"), "the rotated pair is kept");
    let lock = token_file(&world).with_file_name("");
    let names: Vec<_> = std::fs::read_dir(lock).expect("a folder").map(|e| e.expect("a file").file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("lock.127.0.0.1")), "{names:?}");
}

// proves: ST-11.3-1, ST-11.3-15
#[test]
fn a_token_that_the_host_no_longer_takes_is_refreshed_in_the_middle_of_a_command() {
    let world = World::github("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    store(&world, "ghu_early", FUTURE, FUTURE);
    let output = lattice(&world.repo).args(["submit"]).run();
    assert_eq!(output.code, Some(0), "the first request is refused, and the rest is done:\n{}", output.snapshot());
    assert_eq!((refreshes(&world), github.items("acme/tools")), (1, 1));
}

// proves: ST-11.3-13
#[test]
fn a_refresh_that_is_refused_keeps_the_old_tokens_and_says_to_log_in_again() {
    let world = World::github("main*");
    store(&world, "ghu_old", PAST, FUTURE);
    let before = std::fs::read(token_file(&world)).expect("stored");
    let bundle = String::from_utf8_lossy(&before).replace("ghr_stored", "ghr_unknown");
    std::fs::write(token_file(&world), &bundle).expect("the sandbox can be written");
    let document = lattice(&world.repo).args(["issue", "list", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("refresh-failed"), "{document:#}");
    assert!(document["error"]["hints"][0].as_str().is_some_and(|hint| hint.contains("lattice auth login")));
    assert_eq!(std::fs::read_to_string(token_file(&world)).expect("stored"), bundle, "the old bundle is kept");
}

#[test]
fn the_device_flow_waits_slows_down_and_says_why_it_failed() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    github.login_answers(&["authorization_pending", "authorization_pending"]);
    let output = lattice(&world.repo).args(["auth", "login"]).ok();
    assert!(output.stderr.contains("ABCD-1234"), "{}", output.snapshot());
    for (answer, code) in [("expired_token", "code-expired"), ("access_denied", "denied"), ("odd", "login-refused")] {
        github.login_answers(&[answer]);
        let document = lattice(&world.repo).args(["auth", "login", "--json"]).fails(1).json();
        assert_eq!(document["error"]["code"], json!(code));
    }
    github.disable_device_flow();
    let document = lattice(&world.repo).args(["auth", "login", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("device-flow-disabled"));
    let status = lattice(&world.repo).args(["auth", "status"]).json();
    assert_eq!([&status["authenticated"], &status["user"]], [&json!(true), &json!("octocat")], "the first login holds");
    lattice(&world.repo).args(["auth", "logout"]).ok();
    assert_eq!(lattice(&world.repo).args(["auth", "status"]).json()["authenticated"], json!(false));
}

#[test]
fn tokens_come_from_stdin_the_environment_and_gh_and_without_an_app_login_names_them() {
    let world = World::github("main*");
    let github = world.github.as_ref().expect("a GitHub");
    github.accept("ghp_stdin", "ann");
    lattice(&world.repo).args(["auth", "login", "--with-token"]).stdin("ghp_stdin\n").ok();
    assert_eq!(lattice(&world.repo).args(["auth", "status"]).json()["user"], json!("ann"));
    let refused = lattice(&world.repo).args(["auth", "login", "--with-token", "--json"]).stdin("ghp_wrong\n").fails(1);
    assert_eq!(refused.json()["error"]["code"], json!("unauthorized"), "a token that does not work is not stored");
    lattice(&world.repo).args(["auth", "logout"]).ok();
    let bin = world.repo.sandbox().root().join("bin");
    std::fs::create_dir_all(&bin).expect("the sandbox can be written");
    std::fs::write(bin.join("gh"), "#!/bin/sh\necho ghp_marked\n").expect("the sandbox can be written");
    std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    let status = lattice(&world.repo).env("PATH", &path).args(["auth", "status"]).json();
    assert_eq!(status["source"], json!("gh"), "{status:#}");
    lattice(&world.repo).env("PATH", &path).args(["issue", "list"]).ok();
    let config = world.repo.sandbox().root().join("home/.config/lattice/config.toml");
    let text = std::fs::read_to_string(&config).expect("a configuration").replace("client_id", "app");
    std::fs::write(&config, text).expect("the sandbox can be written");
    let document = lattice(&world.repo).args(["auth", "login", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("no-client-id"), "{document:#}");
    let hints = document["error"]["hints"].to_string();
    assert!(hints.contains("--with-token") && hints.contains("gh auth login"), "{hints}");
}

// proves: ST-6.3-8
#[test]
fn stored_tokens_are_for_their_owner_alone() {
    let world = World::github("main*");
    log_in_with_app(&world);
    let file = token_file(&world);
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let document = lattice(&world.repo).args(["issue", "list", "--json"]).fails(1).json();
    assert_eq!(document["error"]["code"], json!("secret-exposed"), "{document:#}");
}

// proves: ST-6.3-7, ST-11.3-4, ST-11.3-5
#[test]
fn no_token_is_in_any_output_or_in_any_file_but_its_own() {
    let world = World::github("main <- a <- b*");
    log_in_with_app(&world);
    let marks = ["ghu_access", "ghr_refresh", "ghp_marked"];
    let mut said = String::new();
    let mut run = |line: &str, marked: bool| {
        let program = lattice(&world.repo).args(line.split(' ')).arg("--debug");
        let program = if marked { program.env("GH_TOKEN", "ghp_marked") } else { program };
        let output = program.run();
        said.push_str(&format!("{}{}", output.stdout, output.stderr));
    };
    for line in
        ["auth status", "submit --stack", "sync", "pr show", "issue new --title x", "issue list", "ops", "doctor"]
    {
        run(line, false);
        run(line, true);
    }
    world.github.as_ref().expect("a GitHub").revoke("ghp_marked");
    run("submit --stack --always", true);
    for mark in marks {
        assert!(!said.contains(mark), "{mark} was printed:\n{said}");
    }
    let mut files = Vec::new();
    collect(world.repo.sandbox().root(), &mut files);
    for path in files.iter().filter(|path| **path != token_file(&world)) {
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for mark in marks {
            assert!(!text.contains(mark), "{mark} is in {}", path.display());
        }
    }
    let objects = world.repo.git_with_input(&["cat-file", "--batch-all-objects", "--batch"], b"");
    let objects = String::from_utf8_lossy(&objects);
    assert!(!marks.iter().any(|mark| objects.contains(mark)), "nor in any object");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}
