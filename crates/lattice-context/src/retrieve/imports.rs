//! From what a file brings in to the files that are meant.

use std::collections::HashMap;

/// Files by the end of their paths, for finding what an import means.
#[derive(Debug)]
pub struct ModuleMap {
    /// Last two parts of the module path, such as `models/query`, to files.
    by_tail: HashMap<String, Vec<u32>>,
    modules: Vec<String>,
}

/// An import that could mean more files than this means none of them.
const MOST_MEANT: usize = 4;

impl ModuleMap {
    pub fn new<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let modules: Vec<String> = paths.map(module_path).collect();
        let mut by_tail: HashMap<String, Vec<u32>> = HashMap::new();
        for (number, module) in modules.iter().enumerate() {
            let last = module.rsplit('/').next().unwrap_or(module);
            by_tail.entry(last.to_owned()).or_default().push(u32::try_from(number).unwrap_or(u32::MAX));
        }
        Self { by_tail, modules }
    }

    /// The files that an import in the file `from` may mean.
    pub fn resolve(&self, from: &str, import: &str) -> Vec<u32> {
        let wanted = normalized(from, import);
        if wanted.is_empty() {
            return Vec::new();
        }
        // `a.b.C` may name something inside the module `a.b`.
        let mut wanted = wanted.as_str();
        for _ in 0..3 {
            let found = self.ending_with(wanted);
            if !found.is_empty() {
                return if found.len() <= MOST_MEANT { found } else { Vec::new() };
            }
            match wanted.rsplit_once('/') {
                Some((shorter, _)) if shorter.contains('/') || wanted.matches('/').count() == 1 => wanted = shorter,
                Some(_) | None => break,
            }
        }
        Vec::new()
    }

    /// The files whose module path ends with `tail`, the whole of it if several do.
    pub fn ending_with(&self, tail: &str) -> Vec<u32> {
        let last = tail.rsplit('/').next().unwrap_or(tail);
        let Some(candidates) = self.by_tail.get(last) else { return Vec::new() };
        let fits = |number: &&u32| {
            let module = &self.modules[**number as usize];
            module.strip_suffix(tail).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let found: Vec<u32> = candidates.iter().filter(fits).copied().collect();
        let exact: Vec<u32> = found.iter().filter(|number| self.modules[**number as usize] == tail).copied().collect();
        if exact.is_empty() { found } else { exact }
    }
}

/// A path without its extension; a file that stands for its folder is the folder.
fn module_path(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) => {
            let stem = name.split('.').next().unwrap_or(name);
            match stem {
                "__init__" | "index" | "mod" | "lib" => folder.to_owned(),
                _ => format!("{folder}/{stem}"),
            }
        }
        None => path.split('.').next().unwrap_or(path).to_owned(),
    }
}

fn normalized(from: &str, import: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let import = import.trim_matches(['"', '\'', '`']);
    if let Some(rest) = import.strip_prefix("./") {
        return joined(folder, strip_extension(rest));
    }
    if import.starts_with("../") {
        let mut folder = folder;
        let mut rest = import;
        while let Some(after) = rest.strip_prefix("../") {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            rest = after;
        }
        return joined(folder, strip_extension(rest));
    }
    if import.contains("::") {
        let path: Vec<&str> =
            import.split("::").filter(|part| !matches!(*part, "crate" | "self" | "super" | "")).collect();
        return path.join("/");
    }
    if import.contains('/') {
        return strip_extension(import).trim_start_matches('/').to_owned();
    }
    let dots = import.len() - import.trim_start_matches('.').len();
    let path = import.trim_start_matches('.').replace('.', "/");
    if dots == 0 {
        return path;
    }
    let mut folder = folder;
    for _ in 1..dots {
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
    joined(folder, &path)
}

fn joined(folder: &str, rest: &str) -> String {
    if folder.is_empty() { rest.to_owned() } else { format!("{folder}/{rest}") }
}

fn strip_extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) if extension.len() <= 4 => &path[..path.len() - extension.len() - 1],
        Some(_) | None => path,
    }
}
