//! Addresses as people write them, and as attackers do.

use super::{Address, AddressError};

#[track_caller]
fn slug(url: &str) -> String {
    Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}")).slug.to_string()
}

// proves: ST-5.2-20
#[test]
fn owner_and_name_are_found_in_every_form_that_git_knows() {
    for url in [
        "git@github.com:acme/tools.git",
        "git@github.com:acme/tools",
        "ssh://git@github.com/acme/tools.git",
        "ssh://git@ssh.github.com:443/acme/tools.git",
        "https://github.com/acme/tools",
        "https://user:secret@github.com/acme/tools.git/",
        "github.com:acme/tools.git",
    ] {
        assert_eq!(slug(url), "acme/tools", "{url}");
        assert!(Address::parse(url).is_ok_and(|address| address.is_on("https://github.com")), "{url}");
    }
    assert_eq!(slug("/srv/git/acme/tools.git"), "acme/tools");
    assert_eq!(slug("/srv/acme/tools/.git"), "acme/tools");
    assert_eq!(slug("tools.git"), "local/tools");
    assert_eq!(slug("git://127.0.0.1:9418/tools.git"), "local/tools");
    assert!(Address::parse("https://git.corp.example/acme/tools").is_ok_and(|a| a.is_on("https://git.corp.example")));
    assert!(!Address::parse("https://github.com.evil.example/a/b").is_ok_and(|a| a.is_on("https://github.com")));
    assert!(!Address::parse("/github.com/acme/tools").is_ok_and(|a| a.is_on("https://github.com")), "a path");
}

#[test]
fn addresses_that_start_programs_or_look_like_options_are_refused() {
    for url in ["ext::sh -c 'touch /tmp/x'", "foo::bar", "fd::17", "ftp://host/a/b"] {
        assert!(matches!(Address::parse(url), Err(AddressError::Transport(_))), "{url}");
    }
    for url in ["--upload-pack=touch x", "ssh://-oProxyCommand=x/a/b", "-oProxyCommand=x:a/b", "user@-oX:a/b"] {
        assert_eq!(Address::parse(url), Err(AddressError::Option), "{url}");
    }
    assert_eq!(Address::parse(" "), Err(AddressError::Empty));
}

#[test]
fn what_is_shown_has_neither_user_nor_password() {
    let address = Address::parse("https://user:s3cret@host.example/acme/tools.git").expect("an address");
    assert_eq!(address.shown, "https://host.example/acme/tools.git");
}
