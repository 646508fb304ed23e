//! Tests of hosts that agents may reach.

use core::net::IpAddr;

use super::NetworkHost;

#[test]
fn a_host_covers_what_it_names_and_nothing_else() {
    let check = |host: &str, asked: &str, port: u16| NetworkHost::new(host).expect("a host").covers(asked, port);
    for (host, asked, port) in [
        ("api.example.com", "API.example.com.", 443),
        ("api.example.com", "api.example.com", 80),
        ("*.example.com", "a.b.example.com", 443),
        ("localhost:8080", "localhost", 8080),
        ("[::1]:80", "::1", 80),
        ("127.0.0.1", "127.0.0.1", 443),
    ] {
        assert!(check(host, asked, port), "{host} covers {asked}:{port}");
    }
    for (host, asked, port) in [
        ("api.example.com", "example.com", 443),
        ("api.example.com", "evil-api.example.com", 443),
        ("api.example.com", "api.example.com", 22),
        ("*.example.com", "example.com", 443),
        ("*.example.com", "evilexample.com", 443),
        ("localhost:8080", "localhost", 443),
        ("127.0.0.1", "127.0.0.2", 443),
    ] {
        assert!(!check(host, asked, port), "{host} does not cover {asked}:{port}");
    }
}

#[test]
fn a_name_never_leads_to_this_machine_unless_the_machine_is_named() {
    let check = |host: &str, at: &str| {
        NetworkHost::new(host).expect("a host").may_be_at(at.parse::<IpAddr>().expect("an address"))
    };
    for at in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0", "fe80::1", "224.0.0.1"] {
        assert!(!check("api.example.com", at), "{at}");
        assert!(!check("*.example.com", at), "{at}");
    }
    for at in ["10.0.0.1", "192.168.1.1", "100.64.0.1", "fd00::1"] {
        assert!(check("git.example.com", at), "a host of one's own network can be named: {at}");
        assert!(!check("*.example.com", at), "{at}");
    }
    assert!(check("localhost", "127.0.0.1") && check("[::1]", "::1") && check("api.example.com", "192.0.2.1"));
    assert!(!check("localhost", "192.0.2.1") && !check("127.0.0.1", "127.0.0.2"));
}

#[test]
fn what_is_no_host_is_refused_and_what_is_one_is_written_as_it_was() {
    for text in
        ["", "*", "*.", "a b", "http://x", "a:0", "a:99999", "a:x", "a..b", "[::1", "[::1]x", "user@host", "a/b"]
    {
        assert!(NetworkHost::new(text).is_err(), "{text}");
    }
    for text in ["api.example.com", "*.example.com:8443", "localhost:8080", "[::1]:80", "127.0.0.1"] {
        assert_eq!(NetworkHost::new(text).map(|host| host.to_string()), Ok(text.to_owned()));
    }
}
