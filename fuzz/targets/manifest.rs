//! Manifests: one that is read names files of a bundle and nothing else.
#![no_main]

use lattice_context::bundle::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::parse(bytes) {
        assert!(manifest.files.iter().all(|file| !file.path.contains("..") && !file.path.starts_with('/')));
        assert_eq!(Manifest::parse(manifest.render().as_bytes()).expect("it was just written"), manifest);
    }
});
