//! Where an agent's program is installed, so that its sandbox can see it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::shim::{self, Target};
use crate::app::App;
use crate::error::Failure;

/// Folders that every sandbox sees.
pub(super) const SEEN: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// What a program needs and no sandbox sees by itself: folders, or the program alone. It is named by its place if its
/// name alone would not be found in them.
///
/// What only starts another program, as the shims of version managers do, brings that one too. `mounts` are what a person
/// named, who then knows better than what can be found out here.
pub(super) fn find(app: &App, program: &mut String, mounts: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let Ok(mut found) = app.which(Path::new(program)).canonicalize() else { return Ok(Vec::new()) };
    let private = private(app)?;
    let mut folders = Vec::new();
    match shim::target(app, Path::new(program), &found) {
        Target::Itself => {}
        Target::Instead(real) => {
            *program = real.display().to_string();
            found = real;
        }
        Target::Also(others) => folders.extend(others.iter().filter_map(|path| belongings(path, &private))),
        Target::Unknown(manager) if mounts.is_empty() => return Err(unknown(program, &found, &manager)),
        Target::Unknown(_) => {}
    }
    let interpreter = interpreter(&found).and_then(|name| app.which(Path::new(&name)).canonicalize().ok());
    let own = belongings(&found, &private);
    if let Some(own) = &own
        && !own.join("bin").join(&*program).exists()
    {
        *program = found.display().to_string();
    }
    folders.extend(own.into_iter().chain(interpreter.and_then(|path| belongings(&path, &private))));
    folders.sort();
    folders.dedup();
    Ok(folders)
}

fn unknown(program: &str, found: &Path, manager: &str) -> Failure {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let text = format!(
        "`{}` only starts another program, and `{manager} which {name}` does not say which: its sandbox would not see it",
        found.display()
    );
    Failure::new("shim", text)
        .hint(format!("have `{manager}` choose a version here, or name the program itself instead of {name}"))
        .hint("or say what the agent needs: [agents.NAME] mounts = [\"/FOLDER\"] in the configuration")
}

/// What no agent sees only because its program lies near: the home of the user and the repository.
struct Private {
    home: Option<PathBuf>,
    repository: Vec<PathBuf>,
}

fn private(app: &App) -> Result<Private, Failure> {
    let home = app.variable("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let engine = app.engine()?;
    let repository = engine.repository();
    let folders = repository.work_dir.iter().chain([&repository.common_dir]);
    Ok(Private { home, repository: folders.filter_map(|folder| folder.canonicalize().ok()).collect() })
}

impl Private {
    /// Whether somebody who sees the folder sees something of it.
    fn is_seen_in(&self, folder: &Path) -> bool {
        self.home.iter().any(|home| home.starts_with(folder))
            || self.repository.iter().any(|place| place.starts_with(folder) || folder.starts_with(place))
    }
}

/// What belongs to a program: a package of Node needs those beside it, a program in a `bin` what lies around that, and any
/// other nothing but itself. Who knows that an agent needs more says so in its `mounts`.
///
/// What lies around a `bin` that all programs of a user share, as in `~/.local` or `~/.cargo`, is not the program's.
fn belongings(program: &Path, private: &Private) -> Option<PathBuf> {
    if SEEN.iter().any(|seen| program.starts_with(seen)) {
        return None;
    }
    let mut above: Vec<_> = program.ancestors().collect();
    above.reverse();
    if let Some(modules) = above.iter().find(|folder| folder.ends_with("node_modules")) {
        return Some(modules.to_path_buf());
    }
    let folder = program.parent()?;
    let Some(around) = folder.parent().filter(|_| folder.ends_with("bin")) else { return Some(program.to_owned()) };
    let of_all = |home: &PathBuf| around == home || around.parent() == Some(home);
    let is_shared = around.parent().is_none() || private.home.as_ref().is_some_and(of_all);
    let belongs = if is_shared { folder } else { around };
    Some(if private.is_seen_in(belongs) { program.to_owned() } else { belongs.to_owned() })
}

/// The program that a script begins with, as in `#!/usr/bin/env node`.
pub(super) fn interpreter(script: &Path) -> Option<String> {
    const LONGEST: u64 = 256;
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(LONGEST)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line.strip_prefix(b"#!")?.to_vec()).ok()?;
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let named = if first.ends_with("/env") { words.find(|word| !word.starts_with('-'))? } else { first };
    Some(named.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Private, belongings};

    #[test]
    fn a_program_brings_what_belongs_to_it_and_nothing_that_others_share() {
        let repository = vec![PathBuf::from("/home/me/work/repo")];
        let private = Private { home: Some(PathBuf::from("/home/me")), repository };
        for (program, wanted) in [
            ("/usr/bin/bash", None),
            ("/opt/agent/bin/agent", Some("/opt/agent")),
            ("/opt/agent/agent", Some("/opt/agent/agent")),
            ("/home/me/agent.sh", Some("/home/me/agent.sh")),
            ("/home/me/work/agent.sh", Some("/home/me/work/agent.sh")),
            ("/home/me/work/repo/tools/agent.sh", Some("/home/me/work/repo/tools/agent.sh")),
            ("/home/me/work/repo/bin/agent.sh", Some("/home/me/work/repo/bin/agent.sh")),
            ("/home/me/work/bin/agent.sh", Some("/home/me/work/bin")),
            ("/home/bin/agent.sh", Some("/home/bin/agent.sh")),
            ("/home/me/.nvm/versions/node/v22/bin/node", Some("/home/me/.nvm/versions/node/v22")),
            ("/home/me/.local/share/claude/versions/2.1", Some("/home/me/.local/share/claude/versions/2.1")),
            ("/home/me/.npm/lib/node_modules/@a/b/node_modules/c/bin/x", Some("/home/me/.npm/lib/node_modules")),
            ("/home/me/.cargo/bin/agent", Some("/home/me/.cargo/bin")),
            ("/home/me/.local/bin/agent", Some("/home/me/.local/bin")),
            ("/home/me/bin/agent", Some("/home/me/bin")),
        ] {
            assert_eq!(belongings(Path::new(program), &private).as_deref(), wanted.map(Path::new), "{program}");
        }
    }
}
