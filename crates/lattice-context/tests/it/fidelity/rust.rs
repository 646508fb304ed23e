//! Judges outlines of Rust by `syn`.

use std::path::{Path, PathBuf};
use std::process::Command;

use quote::ToTokens;
use serde_json::Value;
use syn::visit_mut::{self, VisitMut};

use super::{Judgement, sources, text_of};

/// Packages that this workspace is built from anyway, in the versions of its lock file.
pub(super) const PROJECTS: [&str; 3] = ["octocrab", "clap_builder", "rusqlite"];

/// Where cargo has the sources of a package.
pub(super) fn project(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let options = ["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", &platform];
    let output = Command::new(cargo).args(options).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == name).expect("a package of the lock file");
    Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder").to_owned()
}

/// Leaves of every function its attributes and its signature.
#[derive(Default)]
struct Stripped {
    imports: usize,
    signatures: usize,
}

impl Stripped {
    fn strip(&mut self, attributes: &mut Vec<syn::Attribute>, block: &mut syn::Block) {
        self.signatures += 1;
        // Inner ones stand in the body.
        attributes.retain(|attribute| matches!(attribute.style, syn::AttrStyle::Outer));
        block.stmts.clear();
    }
}

impl VisitMut for Stripped {
    fn visit_item_fn_mut(&mut self, item: &mut syn::ItemFn) {
        self.strip(&mut item.attrs, &mut item.block);
        visit_mut::visit_item_fn_mut(self, item);
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut syn::ImplItemFn) {
        self.strip(&mut item.attrs, &mut item.block);
        visit_mut::visit_impl_item_fn_mut(self, item);
    }

    fn visit_trait_item_fn_mut(&mut self, item: &mut syn::TraitItemFn) {
        if let Some(block) = &mut item.default {
            self.strip(&mut item.attrs, block);
        }
        visit_mut::visit_trait_item_fn_mut(self, item);
    }

    fn visit_item_use_mut(&mut self, item: &mut syn::ItemUse) {
        self.imports += 1;
        visit_mut::visit_item_use_mut(self, item);
    }
}

fn stripped(path: &Path) -> Result<(Vec<String>, Stripped), syn::Error> {
    let mut file = syn::parse_file(&text_of(path))?;
    let mut counts = Stripped::default();
    counts.visit_file_mut(&mut file);
    let head = file.attrs.iter().map(|attribute| attribute.to_token_stream().to_string());
    let items = file.items.iter().map(|item| item.to_token_stream().to_string());
    Ok((head.chain(items).collect(), counts))
}

/// Compares each file with its outline.
pub(super) fn judge(files: &Path, outlines: &Path) -> Judgement {
    let mut found = Judgement::default();
    for outline in sources(outlines, &[".rs"]) {
        let name = outline.strip_prefix(outlines).expect("below its root");
        let shown = name.display();
        match (stripped(&files.join(name)), stripped(&outline)) {
            (Ok((here, counts)), Ok((there, _))) => {
                found.files += 1;
                found.imports += counts.imports;
                found.signatures += counts.signatures;
                let differing = here.iter().zip(&there).find(|(one, other)| one != other);
                if here != there {
                    found.problems.push(format!("{shown}: {differing:?}"));
                }
            }
            (Err(error), _) | (_, Err(error)) => found.problems.push(format!("{shown}: {error}")),
        }
    }
    found
}
