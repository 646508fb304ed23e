//! Puts a bundle where an agent reads it.

use std::collections::BTreeMap;

use super::manifest::{Bundle, MANIFEST, is_file_of_a_bundle};
use crate::deliver::{DeliveryError, FileWriter, Tree};

/// The folder of linked items, which every bundle has.
const LINKED: &str = "linked";

/// Replaces what was delivered before: clears, makes the folders, writes the manifest and then each file, and
/// verifies. A failed delivery leaves what was there.
pub fn deliver(bundle: &Bundle, writer: &mut FileWriter<'_>) -> Result<(), DeliveryError> {
    let manifest = bundle.manifest.render();
    let files = bundle.files.iter().map(|file| (file.path.as_str(), file.content.as_bytes()));
    let files = std::iter::once((MANIFEST, manifest.as_bytes())).chain(files).collect();
    writer.replace(&Tree { folders: vec![LINKED], files })
}

/// Whether a folder with these files is empty or an older bundle, so that nobody loses anything if it is replaced.
pub fn is_replaceable(files: &BTreeMap<String, Option<u64>>) -> bool {
    files.is_empty()
        || files.contains_key(MANIFEST) && files.keys().all(|path| path == MANIFEST || is_file_of_a_bundle(path))
}
