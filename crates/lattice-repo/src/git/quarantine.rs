//! Takes objects from outside: checked in a place of their own before the repository has them.

use std::fs;
use std::io;
use std::path::Path;

use lattice_model::id::Oid;

use super::error::GitError;
use super::process::Git;

/// What the workspace of a sprite is made with and what leaves it; both run inside its sandbox, if it has one.
pub(crate) const MAKE_BASE: &str = r#"set -e
cd "$LATTICE_WORKSPACE"
git init --quiet --template= --object-format="$2" .
mkdir -p .git/objects/info .git/info .git/refs/heads .lattice
echo "$3" > .git/objects/info/alternates
echo "/.lattice" > .git/info/exclude
echo "$1" > .git/HEAD
git config gc.auto 0
git config maintenance.auto false
git config core.checkStat minimal
git config core.trustctime false
git config core.untrackedCache true
git config index.version 4
git config advice.detachedHead false
git reset --quiet --hard
git status --porcelain > /dev/null
"#;

/// Removes locks of a Git that was killed. Only for a workspace in which no process lives.
pub(crate) const UNLOCK: &str = r#"cd "$LATTICE_WORKSPACE" || exit 1
rm -f .git/index.lock .git/HEAD.lock
find .git/refs/heads -name '*.lock' -type f -delete 2>/dev/null
"#;

/// After the removal of locks: first a list, then an empty line, then a pack of what the base does not have.
///
/// An agent can leave its repository in any state, and what is not collected is removed with the sprite. So where Git
/// fails, what it stumbles over is put away, and what it then still does not take is said.
pub(crate) const EXPORT: &str = r#"export GIT_OPTIONAL_LOCKS=0
own() {
  git --git-dir=.git --work-tree=. -c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false \
    -c gc.auto=0 -c core.safecrlf=false -c status.showUntrackedFiles=normal "$@"
}
is_in_the_middle() { [ -e .git/MERGE_HEAD ] || [ -d .git/rebase-merge ] || [ -d .git/rebase-apply ]; }
is_clean() { open=$(own status --porcelain) && [ -z "$open" ]; }
make_readable() {
  # Only what needs it: every change of a file of the base would copy it into the layer.
  find . -xdev -type d ! -perm -700 -exec chmod u+rwx {} \;
  find . -xdev -type f ! -perm -600 -exec chmod u+rw {} +
}
add_all() {
  said=$(own add -A 2>&1) && [ -z "$said" ] && return
  make_readable
  own add -A --ignore-errors
}
collect() {
  own status --porcelain > /dev/null || { rm -f .git/index && own reset -q; }
  # Warnings count: what is in a folder that cannot be opened is not in the list.
  [ -z "$(own status --porcelain 2>&1)" ] && return
  add_all
  own commit --quiet --no-verify -m "$1" && echo collected >&3
  is_clean
}
if is_in_the_middle; then
  echo left
else
  [ "$2" != collect ] || collect "$3" 3>&1 > /dev/null 2>&1 || echo failed
  head=$(own rev-parse -q --verify 'HEAD^{commit}')
  if [ -n "$head" ] && ! own merge-base --is-ancestor "$head" "$1" \
    && [ -z "$(own for-each-ref --contains "$head" refs/heads)" ]; then
    echo "head $head"
  else
    head=
  fi
fi
if own rev-parse -q --verify refs/stash > /dev/null; then echo stash; fi
own remote | sed 's/^/remote /'
own for-each-ref --format='ref %(objectname) %(refname)' refs/heads
echo
{ own for-each-ref --format='%(objectname)' refs/heads; echo "$head"; echo "^$1"; } | sed '/^$/d' \
  | own pack-objects --revs --thin --delta-base-offset --stdout -q
"#;

/// Why objects were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("the objects are not sound")]
    Unsound(#[source] GitError),
    #[error("the objects are not complete")]
    Incomplete(#[source] GitError),
    #[error("the objects could not be stored")]
    Io(#[from] io::Error),
}

impl Git {
    /// Checks a pack in `quarantine`, an empty folder, and moves it to `objects` if `tips` are complete with it.
    pub(crate) fn receive_pack(
        &self,
        pack: Vec<u8>,
        tips: &[Oid],
        quarantine: &Path,
        objects: &Path,
    ) -> Result<(), ReceiveError> {
        fs::create_dir_all(quarantine.join("pack"))?;
        let inside = |command: &'static str| {
            self.call(command).env("GIT_OBJECT_DIRECTORY", quarantine).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects)
        };
        inside("index-pack")
            .args(["--stdin", "--fix-thin", "--strict", "--max-input-size=2147483648"])
            .stdin(pack)
            .run()
            .map_err(ReceiveError::Unsound)?;
        let mut wanted: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        wanted.push_str("--not\n--all\n");
        inside("rev-list")
            .args(["--objects", "--stdin", "--quiet"])
            .stdin(wanted.into_bytes())
            .run()
            .map_err(ReceiveError::Incomplete)?;
        migrate(&quarantine.join("pack"), &objects.join("pack"))?;
        Ok(())
    }

    /// An option of Git, as the user has it.
    pub(crate) fn option(&self, name: &str) -> Result<Option<String>, GitError> {
        let finished = self.call("config").args(["--get", name]).finish()?;
        let text = String::from_utf8_lossy(&finished.stdout).trim_end().to_owned();
        Ok((finished.code == 0 && !text.is_empty()).then_some(text))
    }
}

/// Moves packs; the index comes last, since it is what makes a pack count.
#[expect(clippy::disallowed_methods, reason = "Git's packs are moved as Git moves them")]
fn migrate(from: &Path, to: &Path) -> io::Result<()> {
    crate::durable::create_folder(to)?;
    let mut files: Vec<_> = fs::read_dir(from)?.collect::<Result<_, _>>()?;
    files.sort_by_key(|file| file.path().extension().is_some_and(|extension| extension == "idx"));
    for file in files {
        fs::rename(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}
