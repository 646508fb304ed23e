//! Pushes of very many refs: all or none, and a clear word where git could not be started.

use lattice_model::id::Oid;
use lattice_model::name::RefName;
use lattice_model::plan::Expected;
use lattice_model::remote::{GitRemote, Pushed, RemoteError, RemoteUpdate};
use lattice_testkit::{TestRepo, git_versions};

use crate::{GitProgram, Repo};

#[test]
fn thousands_of_refs_are_one_push_and_more_than_git_can_be_told_are_refused() {
    let repo = TestRepo::draw("main*");
    let bare = repo.beside(&repo.sandbox().root().join("remote.git"));
    std::fs::create_dir_all(bare.dir()).expect("the sandbox can be written");
    bare.git(&["init", "--quiet", "--bare"]);
    repo.git(&["remote", "add", "origin", bare.dir().to_str().expect("paths of tests are text")]);
    let program = GitProgram { program: git_versions::first_in_path(), environment: Vec::new() };
    let remote = Repo::open(program, repo.dir()).expect("a repository").remote("origin", "origin");
    let tip = Oid::new(&repo.rev("main")).expect("an id");
    let update = |at: usize| RemoteUpdate {
        name: RefName::new(format!("refs/heads/user/a-branch-with-a-long-name-{at}")).expect("a name"),
        expected: Expected::Absent,
        to: Some(tip),
    };
    let many: Vec<_> = (0..3000).map(update).collect();
    assert!(matches!(remote.push(&many), Ok(Pushed::Done)));
    let too_many: Vec<_> = (0..20_000).map(update).collect();
    let refused = remote.push(&too_many);
    assert!(matches!(refused, Err(RemoteError::TooManyRefs { count: 20_000 })), "{refused:?}");
    let names: Vec<_> = too_many.iter().map(|update| update.name.to_string()).collect();
    let there = remote.refs(&names).expect("they can be asked for all the same");
    assert_eq!(there.len(), 3000, "what was there stays, and nothing else came");
}
