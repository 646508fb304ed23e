//! Where sprites live: with the repository's own files, or below `sprite.dir`.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use lattice_model::id::ContentDigest;

use crate::app::App;
use crate::error::Failure;

/// The folder for new sprites of this repository, if one is configured. What cannot be used is refused before anything is made.
pub(super) fn chosen(app: &App) -> Result<Option<PathBuf>, Failure> {
    let engine = app.engine()?;
    let Some(named) = engine.settings().sprites.dir else { return Ok(None) };
    let refused = |why: String| {
        Failure::new("sprite-dir", format!("sprites cannot live in `{named}` (sprite.dir): {why}"))
            .hint("lattice config set sprite.dir FOLDER, with one of your own outside of the repository")
    };
    let (folder, paths) = (canonical(Path::new(&named)), engine.repository());
    if paths.work_dir.as_deref().is_some_and(|work_dir| folder.starts_with(canonical(work_dir))) {
        return Err(refused("it is inside of the working tree, and Git would see what agents do there".to_owned()));
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| refused(format!("it cannot be made: {error}")))?;
    let found = folder.metadata().map_err(|error| refused(format!("it cannot be read: {error}")))?;
    if found.uid() != lattice_sprites::run::user() {
        return Err(refused("it belongs to somebody else".to_owned()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused("others can write to it; chmod go-w would change that".to_owned()));
    }
    // Other repositories may have it too, and sprites of the same names.
    let digest = ContentDigest::of(canonical(&paths.common_dir).display().to_string().as_bytes());
    Ok(Some(folder.join(&digest.as_str()[..16])))
}

/// A path without links, as far as it is there.
fn canonical(path: &Path) -> PathBuf {
    let real = |there: &Path| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?));
    path.ancestors().find_map(real).unwrap_or_else(|| path.to_owned())
}
