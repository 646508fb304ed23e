//! What a path says about a file.

use crate::language::language_of;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    Source,
    Test,
    /// Data that tests use.
    Fixture,
    Config,
    Docs,
    /// Written by programs, or brought in from elsewhere.
    Generated,
    Data,
}

const TEST_FOLDERS: &[&str] = &["test", "tests", "testing", "__tests__", "spec", "specs", "testdata", "e2e"];
const FIXTURE_FOLDERS: &[&str] = &["fixtures", "fixture", "testdata", "__fixtures__", "__snapshots__", "snapshots"];
const DOC_FOLDERS: &[&str] = &[
    "doc",
    "docs",
    "documentation",
    "examples",
    "example",
    "tutorials",
    "samples",
    "release",
    "releases",
    "changelog",
    "whatsnew",
];
const FOREIGN_FOLDERS: &[&str] = &[
    "vendor",
    "vendored",
    "third_party",
    "thirdparty",
    "node_modules",
    "extern",
    "externals",
    "_vendor",
    "dist",
    "bundled",
    "locale",
];
const CONFIG_NAMES: &[&str] = &[
    "Makefile",
    "Dockerfile",
    "setup.cfg",
    "tox.ini",
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "go.mod",
    "setup.py",
];
const LOCK_NAMES: &[&str] =
    &["Cargo.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "go.sum"];

/// What the folders of a path say about the files in them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FolderSigns {
    is_foreign: bool,
    is_fixture: bool,
    is_test: bool,
    is_docs: bool,
}

impl FolderSigns {
    pub(crate) fn of(folder: &str) -> Self {
        let is_in =
            |names: &[&str]| folder.split('/').any(|folder| names.iter().any(|name| folder.eq_ignore_ascii_case(name)));
        Self {
            is_foreign: is_in(FOREIGN_FOLDERS),
            is_fixture: is_in(FIXTURE_FOLDERS),
            is_test: is_in(TEST_FOLDERS),
            is_docs: is_in(DOC_FOLDERS),
        }
    }

    /// What a file of this name in the folder is for.
    pub(crate) fn kind_of(self, name: &str) -> FileKind {
        let stem = name.split('.').next().unwrap_or(name);
        let language = language_of(name).map(|language| language.name);
        let is_test_name = stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem.ends_with("_tests")
            || stem == "tests"
            || stem == "test"
            || stem == "conftest"
            || name.contains(".test.")
            || name.contains(".spec.")
            || stem.ends_with("Test")
            || stem.ends_with("Tests")
            || stem.ends_with("_spec");
        if LOCK_NAMES.contains(&name) || name.ends_with(".min.js") || name.ends_with(".map") || self.is_foreign {
            return FileKind::Generated;
        }
        if self.is_fixture {
            return FileKind::Fixture;
        }
        if is_test_name || self.is_test {
            return match language {
                Some("json" | "yaml" | "xml" | "html" | "text" | "toml" | "css" | "ini" | "sql") | None => {
                    FileKind::Fixture
                }
                Some(_) => FileKind::Test,
            };
        }
        match language {
            Some("markdown" | "text") => FileKind::Docs,
            _ if self.is_docs => FileKind::Docs,
            Some("toml" | "yaml" | "ini" | "makefile" | "dockerfile" | "json") => FileKind::Config,
            _ if CONFIG_NAMES.contains(&name) => FileKind::Config,
            Some(_) => FileKind::Source,
            None => FileKind::Data,
        }
    }
}

impl FileKind {
    pub fn of(path: &str) -> Self {
        let (folder, name) = in_folder(path);
        FolderSigns::of(folder).kind_of(name)
    }
}

/// The folder of a path, and the name in it.
pub(crate) fn in_folder(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The name of a file without folders and extension.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// What a test's name says that it tests: `test_cart.py` and `cart_test.go` test `cart`.
pub fn tested_stem(path: &str) -> Option<&str> {
    let stem = stem(path);
    let tested = stem
        .strip_prefix("test_")
        .or_else(|| stem.strip_suffix("_test"))
        .or_else(|| stem.strip_suffix("_tests"))
        .or_else(|| stem.strip_suffix("_spec"))
        .or_else(|| stem.strip_suffix("Tests"))
        .or_else(|| stem.strip_suffix("Test"))
        .or_else(|| path.contains(".test.").then_some(stem))
        .or_else(|| path.contains(".spec.").then_some(stem))?;
    (!tested.is_empty()).then_some(tested)
}
