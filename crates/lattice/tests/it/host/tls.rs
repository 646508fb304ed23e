//! A host whose certificate is vouched for by an authority of one's own.

use serde_json::json;

use super::World;

#[test]
fn a_host_is_trusted_once_its_authority_is_and_not_before() {
    let (world, authority) = World::encrypted("main <- a*");
    let github = world.github.as_ref().expect("a GitHub");
    github.forget();
    let before = world.repo.state();
    let refused = world.lattice().args(["submit", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("host-unreachable"), "{refused}");
    let said = refused["error"].to_string();
    assert!(said.contains("invalid peer certificate") && said.contains("SSL_CERT_FILE"), "{said}");
    assert!(github.log().is_empty(), "not one request, and no token: {:?}", github.requests());
    lattice_testkit::assert_same(&before, &world.repo.state());

    let trusting = || world.lattice().env("SSL_CERT_FILE", &authority);
    trusting().args(["submit"]).ok();
    assert_eq!(world.remote_tip("a"), Some(world.repo.rev("a")));
    assert_eq!(github.pull("acme/tools", 1)["head"]["ref"], json!("a"));
    trusting().args(["merge", "--confirm"]).ok();
    trusting().args(["sync"]).ok();
    assert_eq!(world.remote_tip("main"), Some(world.repo.rev("main")));
    trusting().args(["auth", "login", "--with-token"]).stdin("ghp_marked\n").ok();

    world.repo.git(&["config", "--unset", "http.sslCAInfo"]);
    let refused = trusting().args(["sync", "--json"]).fails(1).json();
    assert_eq!(refused["error"]["code"], json!("remote-unreachable"), "Git has to trust it too: {refused}");
}
