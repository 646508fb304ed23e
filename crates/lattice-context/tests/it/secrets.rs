//! What looks like a secret in a line, and what does not.

use lattice_context::secrets::{find, redact};

#[track_caller]
fn check(line: &str, redacted: &str) {
    assert_eq!(redact(line), redacted, "{line}");
    assert_eq!(find(line).is_empty(), line == redacted, "{line}");
}

#[test]
fn values_of_configurations_are_masked_without_quotes() {
    for (before, value, after) in [
        ("AWS_SECRET_ACCESS_KEY=", "q8Zr3Lk0Vt7Wm2Xn5Yb9", ""),
        ("export API_KEY=", "9f8e7d6c5b4a39281706", ""),
        ("DB_PASSWORD=", "correcthorsebattery9", " # of the database"),
        ("passwd=", "hunter2hunter2", ""),
        ("  secret: ", "value1234", ""),
        ("client_secret = ", "GOCSPX-a1b2c3d4e5", ""),
        ("+GITHUB_TOKEN=", "abcd1234efgh5678ijkl", ""),
        ("spring.datasource.password=", "s3cr3tvalue", ""),
        ("x-api-key: ", "s3cr3tvalue", ""),
        ("password: ", "p@ssword!", ""),
        ("token: \"", "abcd1234efgh5678ijkl", "\""),
    ] {
        check(&format!("{before}{value}{after}"), &format!("{before}[redacted assigned secret]{after}"));
    }
    let bearer = "curl -H 'Authorization: Bearer 0123456789abcdef0123456789abcdef' https://host";
    check(bearer, "curl -H 'Authorization: Bearer [redacted access token]' https://host");
}

#[test]
fn code_names_and_placeholders_are_no_secrets() {
    for line in [
        "password: String",
        "    password: String,",
        "secret = None",
        "token: &str",
        "token: BranchMetadataV1",
        "secret: BranchMetadataV1",
        "let token = next_token2(line);",
        "token = config.token_v2_of_the_host",
        "password = get_password1()",
        "password=$PASSWORD1",
        "password: ${{ secrets.PASSWORD1 }}",
        "private_key: /etc/keys/key1.pem",
        "DB_PASSWORD=changeme1",
        "api_key=your-api-key-1",
        "the password: at least 8 characters",
        "token: \"identifier\"",
        "secrets::find(text)",
        "Authorization: Bearer <token>",
        "max_tokens = 8000000000",
    ] {
        check(line, line);
    }
}

#[test]
fn a_line_without_a_finding_stays_as_it_is() {
    let parts = [
        "secret",
        "token: ",
        "=",
        "abcd1234efgh5678ijkl",
        " ",
        "\"",
        "ä",
        "Authorization: Bearer ",
        "# ",
        "password: ",
    ];
    let mut text = String::new();
    for number in 0..10_000_usize {
        let pick = |nth: u32| parts[number / 10_usize.pow(nth) % 10];
        text.push_str(&format!("{}{}{}{}\n", pick(0), pick(1), pick(2), pick(3)));
    }
    let found: std::collections::BTreeSet<_> = find(&text).iter().map(|finding| finding.line).collect();
    let redacted = redact(&text);
    assert_eq!(redacted.lines().count(), text.lines().count());
    for (at, (before, after)) in text.lines().zip(redacted.lines()).enumerate() {
        assert_eq!(before != after, found.contains(&(at + 1)), "{before} became {after}");
    }
}
