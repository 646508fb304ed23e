//! Where an agent's program is installed, so that its sandbox can see it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::shim::{self, Target};
use crate::app::App;
use crate::error::Failure;

/// Folders that every sandbox sees.
pub(super) const SEEN: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// The folders that a program needs and that no sandbox sees by itself. The program is named by its place if its name
/// alone would not be found in them.
///
/// What only starts another program, as the shims of version managers do, brings that one too. `mounts` are what a person
/// named, who then knows better than what can be found out here.
pub(super) fn find(app: &App, program: &mut String, mounts: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let Ok(mut found) = app.which(Path::new(program)).canonicalize() else { return Ok(Vec::new()) };
    let home = app.variable("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let mut folders = Vec::new();
    match shim::target(app, Path::new(program), &found) {
        Target::Itself => {}
        Target::Instead(real) => {
            *program = real.display().to_string();
            found = real;
        }
        Target::Also(others) => folders.extend(others.iter().filter_map(|path| folder(path, home.as_deref()))),
        Target::Unknown(manager) if mounts.is_empty() => return Err(unknown(program, &found, &manager)),
        Target::Unknown(_) => {}
    }
    let interpreter = interpreter(&found).and_then(|name| app.which(Path::new(&name)).canonicalize().ok());
    let own = folder(&found, home.as_deref());
    if let Some(own) = &own
        && !own.join("bin").join(&*program).exists()
    {
        *program = found.display().to_string();
    }
    folders.extend(own.into_iter().chain(interpreter.and_then(|path| folder(&path, home.as_deref()))));
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

/// What belongs to a program: a package of Node needs those beside it, any other program what lies around its `bin`.
///
/// What lies around a `bin` that all programs of a user share, as in `~/.local` or `~/.cargo`, is not the program's.
fn folder(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if SEEN.iter().any(|seen| program.starts_with(seen)) {
        return None;
    }
    let mut above: Vec<_> = program.ancestors().collect();
    above.reverse();
    if let Some(modules) = above.iter().find(|folder| folder.ends_with("node_modules")) {
        return Some(modules.to_path_buf());
    }
    let folder = program.parent()?;
    let Some(around) = folder.parent().filter(|_| folder.ends_with("bin")) else { return Some(folder.to_owned()) };
    let is_shared =
        around.parent().is_none() || home.is_some_and(|home| around == home || around.parent() == Some(home));
    Some(if is_shared { folder.to_owned() } else { around.to_owned() })
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
    use std::path::Path;

    use super::folder;

    #[test]
    fn a_program_brings_what_belongs_to_it_and_nothing_that_others_share() {
        let home = Path::new("/home/me");
        for (program, wanted) in [
            ("/usr/bin/bash", None),
            ("/opt/agent/bin/agent", Some("/opt/agent")),
            ("/opt/agent/agent", Some("/opt/agent")),
            ("/home/me/.nvm/versions/node/v22/bin/node", Some("/home/me/.nvm/versions/node/v22")),
            ("/home/me/.local/share/claude/versions/2.1", Some("/home/me/.local/share/claude/versions")),
            ("/home/me/.npm/lib/node_modules/@a/b/node_modules/c/bin/x", Some("/home/me/.npm/lib/node_modules")),
            ("/home/me/.cargo/bin/agent", Some("/home/me/.cargo/bin")),
            ("/home/me/.local/bin/agent", Some("/home/me/.local/bin")),
            ("/home/me/bin/agent", Some("/home/me/bin")),
        ] {
            assert_eq!(folder(Path::new(program), Some(home)).as_deref(), wanted.map(Path::new), "{program}");
        }
    }
}
