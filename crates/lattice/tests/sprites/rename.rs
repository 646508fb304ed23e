//! Folders of the checkout that an agent renames: the file system below cannot, the sandbox can.

use lattice_testkit::TestRepo;
use serde_json::json;

use crate::{agent, lattice, log, look};

fn repo() -> TestRepo {
    let repo = TestRepo::draw("main*");
    for number in 0..20 {
        repo.write(&format!("folder/deep/er/f{number}"), format!("{number}\n"));
    }
    for path in ["folder/top", "other/one", "third/two", "closed/three", "py/four"] {
        repo.write(path, "text\n");
    }
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "-m", "folders"]);
    repo
}

/// Renames in every way that programs rename, and stops with an error where the result is not that of a rename.
const RENAMES: &str = r#"
    set -e
    if [ -e .lattice/resume.json ]; then
        lattice emit info resumed
        test "$(ls moved/deep/er | wc -l)" = 20; test ! -e folder; test -e moved/top; test "$(cat moved/deep/er/f7)" = 7
        git mv moved again; git commit --quiet -m "Moved again"
        lattice emit completed --status success; exit 0
    fi
    exec 7>>folder/top; echo new > folder/new; mkdir folder/empty; ln folder/new folder/linked; ln -s nowhere folder/link
    touch -d @1000000000 folder/deep folder/top; chmod 750 folder/deep
    git mv folder moved
    echo more >&7; grep -q more moved/top
    test "$(stat -c '%a %Y' moved/deep)" = "750 1000000000"; test "$(stat -c %h moved/new)" = 2
    test "$(readlink moved/link)" = nowhere; test -d moved/empty; test ! -e folder
    python3 - <<'END'
import errno, os
def refused(code, old, new):
    try: os.rename(old, new)
    except OSError as error: assert error.errno == code, (error, old, new)
    else: raise SystemExit(f"{old} became {new}")
os.rename("py", "py2")
refused(errno.ENOTEMPTY, "py2", "other")
refused(errno.EXDEV, "other", "/tmp/other")
refused(errno.EINVAL, "other", "other/inner")
refused(errno.ENOENT, "nothing", "else")
refused(errno.EBUSY, ".lattice", "lattice")
os.mkdir("empty"); os.rename("other", "empty"); assert os.listdir("empty") == ["one"]
os.chdir("py2"); os.rename("../third", "third"); os.chdir("..")
at = os.open("py2", os.O_RDONLY); os.rename("third", "up", src_dir_fd=at, dst_dir_fd=at)
os.setxattr("closed", "user.note", b"kept"); os.chmod("closed", 0o555); os.rename("closed", "shut")
assert os.getxattr("shut", "user.note") == b"kept" and os.stat("shut").st_mode & 0o777 == 0o555
os.chmod("shut", 0o755)
END
    perl -e 'rename("empty", "other") or die $!'
    git add -A; git commit --quiet -m "Moved"
    id=$(lattice checkpoint)
    rm -r moved
    lattice emit waiting --reason look --checkpoint "$id" --expect ok=boolean
"#;

#[test]
fn a_folder_of_the_checkout_is_renamed_checkpointed_restored_and_landed() {
    let repo = repo();
    let out = agent(&repo, "mover", RENAMES);
    assert_eq!(out.code, Some(4), "{}\n{}", out.snapshot(), log(&repo, "mover"));
    let id = look(&repo, &["show", "mover"])["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    lattice(&repo).args(["sprite", "restore", "mover", &id]).ok();
    let shown = look(&repo, &["diff", "mover"]);
    let files = &shown["files"];
    let names = ["folder/deep/er/f7", "moved/deep/er/f7"];
    assert_eq!(names.map(|name| &files[name]), [&json!("removed"), &json!("added")], "{shown:#}");
    let out = lattice(&repo).args(["resume", "mover", "--input", "ok=true"]).run();
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "mover"));
    let renamed = repo.git(&["diff", "--name-status", "-M", "main", "sprite/mover"]);
    for part in ["R100\tfolder/deep/er/f7\tagain/deep/er/f7", "R100\tthird/two\tpy2/up/two", "R100\tpy/four\tpy2/four"]
    {
        assert!(renamed.contains(part), "{part}: {renamed}");
    }
    assert!(!renamed.contains("other/"), "it is where it was: {renamed}");
}

/// Renames the same folder to and fro while checkpoints are taken.
const RENAMES_ALL_THE_TIME: &str = r#"
    python3 - <<'END' &
import os
names = ["folder", "moved"]
while not os.path.exists("/tmp/stop"):
    os.rename(names[0], names[1]); names.reverse()
END
    for number in $(seq 30); do lattice checkpoint > /dev/null || exit 1; done
    touch /tmp/stop; wait $! || exit 2
"#;

#[test]
fn a_checkpoint_never_sees_a_folder_that_is_half_renamed() {
    let repo = repo();
    let out = agent(&repo, "busy", RENAMES_ALL_THE_TIME);
    assert_eq!(out.code, Some(0), "{}\n{}", out.snapshot(), log(&repo, "busy"));
    let shown = look(&repo, &["show", "busy"]);
    let checkpoints = shown["checkpoints"].as_array().expect("a list");
    assert_eq!(checkpoints.len(), 30);
    for checkpoint in checkpoints {
        lattice(&repo).args(["sprite", "restore", "busy", checkpoint["id"].as_str().expect("an id")]).ok();
        let upper = repo.dir().join(".git/lattice/sprites/busy/upper");
        let count = |name: &str| std::fs::read_dir(upper.join(name).join("deep/er")).map_or(0, |found| found.count());
        assert!(matches!((count("folder"), count("moved")), (0 | 20, 0) | (0, 20)), "{checkpoint:#}");
    }
}
