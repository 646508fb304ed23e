//! The public face of tokens: a provider of one's own, and the one that looks after stored tokens.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lattice_forge::Forge;
use lattice_forge::github::{Connection, GitHub};
use lattice_forge::secret::{SecretStore, TokenBundle, TokenKind};
use lattice_forge::token::{AuthError, AuthManager, TokenProvider};
use lattice_model::host::Slug;
use lattice_testkit::{TestRepo, github};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn manager(home: &Path, host: &github::GitHub) -> AuthManager {
    AuthManager {
        store: SecretStore::new(home),
        host: "github.com".to_owned(),
        web_url: host.web_url(),
        client_id: Some("Iv1.client".to_owned()),
        clock: Arc::new(|| 2_000_000_000),
    }
}

fn expired() -> TokenBundle {
    TokenBundle {
        schema_version: 1,
        kind: TokenKind::App,
        user: None,
        access_token: "ghu_old".to_owned(),
        expires_at: Some(1_000_000_000),
        refresh_token: Some("ghr_stored".to_owned()),
        refresh_expires_at: Some(3_000_000_000),
    }
}

struct Counting(AtomicUsize);

#[async_trait]
impl TokenProvider for Counting {
    async fn bearer_token(&self) -> Result<String, AuthError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok("ghp_own".to_owned())
    }

    fn is_authenticated(&self) -> bool {
        true
    }
}

// proves: ST-11.3-6
#[test]
fn a_provider_of_ones_own_drives_the_adapter_and_is_asked_for_each_request() {
    let repo = TestRepo::new();
    let host = github::GitHub::start(&repo);
    host.create("acme/tools");
    host.accept("ghp_own", "ann");
    let number = host.add_issue("acme/tools", "one", "text");
    let tokens = Arc::new(Counting(AtomicUsize::new(0)));
    let runtime = runtime();
    let inside = runtime.enter();
    let slug = Slug { owner: "acme".to_owned(), repo: "tools".to_owned() };
    let connection = Connection {
        api_url: host.api_url(),
        tokens: Arc::clone(&tokens) as Arc<dyn TokenProvider>,
        cache: None,
        notice: Arc::new(|_| {}),
        clock: Arc::new(|| 2_000_000_000),
        timeout_ms: 10_000,
    };
    let forge = GitHub::new(slug, connection).expect("an address");
    drop(inside);
    assert_eq!(runtime.block_on(forge.identity()).expect("an answer"), "ann");
    assert_eq!(runtime.block_on(forge.issue(number)).expect("an answer").title, "one");
    assert_eq!(tokens.0.load(Ordering::SeqCst), 2, "once for each request");
}

// proves: ST-11.3-8, ST-11.3-12
#[test]
fn whether_one_is_authenticated_is_answered_without_a_request() {
    let repo = TestRepo::new();
    let host = github::GitHub::start(&repo);
    let manager = manager(repo.dir(), &host);
    assert!(!manager.is_authenticated(), "no token");
    let nothing = runtime().block_on(manager.bearer_token());
    assert!(matches!(nothing, Err(AuthError::NotAuthenticated)), "{nothing:?}");
    manager.store.save("github.com", &expired()).expect("it can be written");
    assert!(manager.is_authenticated(), "it can be refreshed");
    assert!(host.requests().is_empty(), "and nobody was asked");
}

// proves: ST-11.3-10, ST-11.3-14
#[test]
fn while_another_process_holds_the_lock_nothing_is_refreshed() {
    let repo = TestRepo::new();
    let host = github::GitHub::start(&repo);
    host.accept_refresh("ghr_stored", "ann");
    let manager = manager(repo.dir(), &host);
    manager.store.save("github.com", &expired()).expect("it can be written");
    let path = manager.store.lock_path("github.com");
    assert!(path.ends_with(".lattice/auth/lock.github.com"), "{}", path.display());
    let held = std::fs::File::create(&path).expect("the folder is there");
    held.lock().expect("nobody has it");
    // With the clock of the runtime stopped, its waits pass at once and are still counted.
    let waits = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let contended = waits.expect("a runtime").block_on(async {
        let began = tokio::time::Instant::now();
        let token = manager.bearer_token().await;
        (token, began.elapsed().as_secs())
    });
    assert!(matches!(contended.0, Err(AuthError::LockContention)), "{:?}", contended.0);
    assert!((5..60).contains(&contended.1), "after {} s of growing waits", contended.1);
    assert!(host.requests().is_empty(), "no refresh without the lock");
    drop(held);
    assert_eq!(runtime().block_on(manager.bearer_token()).expect("a token"), "ghu_access1");
}
