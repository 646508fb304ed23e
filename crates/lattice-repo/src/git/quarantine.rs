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

/// First a list, then an empty line, then a pack of what the base does not have.
pub(crate) const EXPORT: &str = r#"cd "$LATTICE_WORKSPACE" || exit 1
export GIT_OPTIONAL_LOCKS=0
quiet="-c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false -c gc.auto=0"
if [ "$2" = collect ] && [ -n "$(git $quiet status --porcelain 2>/dev/null)" ]; then
  if git symbolic-ref -q HEAD > /dev/null && [ ! -e .git/MERGE_HEAD ] && [ ! -d .git/rebase-merge ] && [ ! -d .git/rebase-apply ]; then
    git $quiet add -A && git $quiet commit --quiet --no-verify -m "$3" && echo "collected"
  else
    echo "left"
  fi
fi
git $quiet remote | sed 's/^/remote /'
git $quiet for-each-ref --format='ref %(objectname) %(refname)' refs/heads
echo
{ git $quiet for-each-ref --format='%(objectname)' refs/heads; echo "^$1"; } \
  | git $quiet pack-objects --revs --thin --delta-base-offset --stdout -q
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
