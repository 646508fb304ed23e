//! Names are accepted and refused as Git does it.

use super::{BranchName, RefName};

#[test]
fn names_that_git_accepts_are_accepted() {
    for name in ["main", "feature/a", "grün", "a@b", "x.y", "refs/heads/x", "$(id)", "a;id", "a'b", "日本"] {
        assert!(BranchName::new(name).is_ok(), "{name} is a valid branch name for Git");
    }
}

// proves: ST-3.2.2-7
#[test]
fn names_that_git_refuses_or_that_look_like_options_are_refused() {
    let bad = [
        "",
        "-x",
        "--output=/tmp/f",
        "HEAD",
        "@",
        "a b",
        "a..b",
        "a~",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.lock",
        "a.lock/b",
        "a.",
        "a@{b",
        "a\nb",
        "a\u{7f}",
        "../x",
    ];
    for name in bad {
        assert!(BranchName::new(name).is_err(), "{name:?} must be refused");
    }
}

#[test]
fn refs_of_a_branch_lead_back_to_it() {
    let name = BranchName::new("feature/a").expect("valid");
    assert_eq!(name.branch_ref().as_branch(), Some(name.clone()));
    assert_eq!(name.metadata_ref().as_metadata_of(), Some(name.clone()));
    assert_eq!(name.metadata_ref().as_branch(), None);
    assert!(RefName::new("HEAD").is_err());
}
