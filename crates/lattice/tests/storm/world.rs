//! What a repository is, read with plain git and by nothing of the program under test.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lattice_testkit::TestRepo;
use serde_json::Value;

pub(crate) const TRUNK: &str = "main";

/// One reading of everything that a command may change.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// All refs but Lattice's own records.
    pub(crate) refs: BTreeMap<String, String>,
    pub(crate) documents: BTreeMap<String, Document>,
    pub(crate) places: Vec<Place>,
    pub(crate) commits: Rc<HashMap<String, Rc<Commit>>>,
    /// The marker of an operation, byte for byte.
    pub(crate) marker: Option<Vec<u8>>,
    /// Every commit that a ref of Lattice holds.
    pub(crate) records: BTreeMap<String, String>,
}

/// What a metadata ref says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Good { name: String, parent: String, on_trunk: bool, base: String, frozen: bool },
    Bad,
}

/// A file, `+` or `-`, and a line that was added to it or removed.
pub(crate) type Change = (String, char, String);

/// A commit by what matters about it, whatever it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) parents: Vec<String>,
    pub(crate) author: String,
    pub(crate) subject: String,
    /// Lines that were added and removed, each with its file and how often.
    pub(crate) changes: BTreeMap<Change, usize>,
}

/// One worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    /// `refs/heads/…`, or the commit of a detached HEAD.
    pub(crate) head: String,
    pub(crate) operation: bool,
    pub(crate) index: Vec<u8>,
    /// The two letters of git by path.
    pub(crate) status: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Place {
    pub(crate) fn branch(&self) -> Option<&str> {
        self.head.strip_prefix("refs/heads/")
    }

    /// The line of the index for a path.
    pub(crate) fn staged(&self, path: &str) -> Option<&[u8]> {
        let is_of_path = |line: &&[u8]| line.ends_with(format!("\t{path}").as_bytes());
        self.index.split(|byte| *byte == 0).find(is_of_path)
    }

    pub(crate) fn unmerged(&self) -> Vec<&str> {
        let both = |letters: &str| letters.contains('U') || letters == "AA" || letters == "DD";
        self.status.iter().filter(|(_, letters)| both(letters)).map(|(path, _)| path.as_str()).collect()
    }
}

impl World {
    pub(crate) fn tip(&self, branch: &str) -> Option<&String> {
        self.refs.get(&format!("refs/heads/{branch}"))
    }

    /// Names for parts of a branch that nothing has.
    pub(crate) fn parts(&self, branch: &str) -> impl Iterator<Item = String> {
        let names = (1..).map(move |number| format!("{branch}-{number}"));
        names.filter(|name| self.tip(name).is_none() && !self.documents.contains_key(name))
    }

    pub(crate) fn branches(&self) -> Vec<&str> {
        self.refs.keys().filter_map(|name| name.strip_prefix("refs/heads/")).collect()
    }

    /// Branches that exist and have a document that can be read.
    pub(crate) fn tracked(&self) -> Vec<&str> {
        let known = |branch: &&str| self.tip(branch).is_some() && self.documents[*branch] != Document::Bad;
        self.documents.keys().map(String::as_str).filter(known).collect()
    }

    pub(crate) fn parent(&self, branch: &str) -> Option<&str> {
        match self.documents.get(branch) {
            Some(Document::Good { parent, .. }) => Some(parent),
            Some(Document::Bad) | None => None,
        }
    }

    pub(crate) fn base(&self, branch: &str) -> Option<&str> {
        match self.documents.get(branch) {
            Some(Document::Good { base, .. }) => Some(base),
            Some(Document::Bad) | None => None,
        }
    }

    pub(crate) fn is_frozen(&self, branch: &str) -> bool {
        matches!(self.documents.get(branch), Some(Document::Good { frozen: true, .. }))
    }

    pub(crate) fn children(&self, branch: &str) -> Vec<&str> {
        self.tracked().into_iter().filter(|child| self.parent(child) == Some(branch)).collect()
    }

    /// Everything that stands on a branch, parents first.
    pub(crate) fn upstack(&self, branch: &str) -> Vec<&str> {
        let mut found: Vec<&str> = self.children(branch);
        let mut next = 0;
        while next < found.len() && found.len() <= self.documents.len() {
            let more = self.children(found[next]);
            found.extend(more);
            next += 1;
        }
        found
    }

    /// What is between a branch and the trunk, the lowest first.
    pub(crate) fn downstack(&self, branch: &str) -> Vec<&str> {
        let mut below = Vec::new();
        let mut current = self.parent(branch);
        while let Some(name) = current.filter(|name| self.documents.contains_key(*name) && !below.contains(name)) {
            below.push(name);
            current = self.parent(name);
        }
        below.reverse();
        below
    }

    pub(crate) fn reachable(&self, from: &str) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(id) = waiting.pop() {
            let Some((id, commit)) = self.commits.get_key_value(id) else { continue };
            if seen.insert(id.as_str()) {
                waiting.extend(commit.parents.iter().map(String::as_str));
            }
        }
        seen
    }

    /// The commits of a branch that are neither below its base nor below its parent, oldest first.
    pub(crate) fn own(&self, branch: &str) -> Vec<Rc<Commit>> {
        let Some(tip) = self.tip(branch) else { return Vec::new() };
        let mut below = self.base(branch).map(|base| self.reachable(base)).unwrap_or_default();
        // A parent that stands on the branch has not made its commits.
        let contained = self.reachable(tip);
        let parent = self.parent(branch).and_then(|parent| self.tip(parent));
        let parent = parent.filter(|parent| contained.contains(parent.as_str()));
        below.extend(parent.map(|tip| self.reachable(tip)).unwrap_or_default());
        // What the trunk has is landed, and nobody's own.
        below.extend(self.tip(TRUNK).map(|tip| self.reachable(tip)).unwrap_or_default());
        let mut own = Vec::new();
        let mut current = Some(tip.as_str());
        while let Some(commit) = current.filter(|id| !below.contains(id)).and_then(|id| self.commits.get(id)) {
            own.push(Rc::clone(commit));
            current = commit.parents.first().map(String::as_str);
        }
        own.reverse();
        own
    }

    pub(crate) fn has_merge(&self, branch: &str) -> bool {
        self.own(branch).iter().any(|commit| commit.parents.len() > 1)
    }

    /// As it is, but for files that were deleted without a word to git: where another branch without them was checked out
    /// in between (`left`), nothing remembers that, and they are there again (`now`).
    pub(crate) fn with_lost_deletions(&self, left: &Self, now: &Self) -> Self {
        let mut world = self.clone();
        for ((place, left), now) in world.places.iter_mut().zip(&left.places).zip(&now.places) {
            let is_known = |path: &String| left.status.contains_key(path) || now.status.contains_key(path);
            let lost = |path: &String, status: &String| status == " D" && !is_known(path);
            let gone: Vec<_> = place.status.extract_if(.., |path, status| lost(path, status)).collect();
            for (path, _) in gone {
                place.files.extend(now.files.get(&path).map(|content| (path.clone(), content.clone())));
            }
        }
        world
    }

    /// What differs, in words; nothing where the two are the same for everyone but the ledger.
    pub(crate) fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let names: BTreeSet<_> = self.refs.keys().chain(after.refs.keys()).collect();
        for name in names.into_iter().filter(|name| self.refs.get(*name) != after.refs.get(*name)) {
            found.push(format!("{name}: {:?} -> {:?}", self.refs.get(name), after.refs.get(name)));
        }
        if self.marker != after.marker {
            let shown =
                |marker: &Option<Vec<u8>>| marker.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            found.push(format!("marker: {:?} -> {:?}", shown(&self.marker), shown(&after.marker)));
        }
        for place in &self.places {
            let dir = place.dir.display();
            match after.places.iter().find(|other| other.dir == place.dir) {
                None => found.push(format!("{dir} is gone")),
                Some(other) => found.extend(place.differences(other).into_iter().map(|line| format!("{dir}: {line}"))),
            }
        }
        found
    }
}

impl Place {
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.head != other.head {
            found.push(format!("HEAD {} -> {}", self.head, other.head));
        }
        if self.operation != other.operation {
            found.push(format!("operation {} -> {}", self.operation, other.operation));
        }
        if self.index != other.index {
            found.push(format!("index\n{}->\n{}", shown(&self.index), shown(&other.index)));
        }
        if self.status != other.status {
            found.push(format!("status {:?} -> {:?}", self.status, other.status));
        }
        let names: BTreeSet<_> = self.files.keys().chain(other.files.keys()).collect();
        for name in names.into_iter().filter(|name| self.files.get(*name) != other.files.get(*name)) {
            let text = |files: &BTreeMap<String, Vec<u8>>| files.get(name).map(|bytes| shown(bytes));
            found.push(format!("file {name}: {:?} -> {:?}", text(&self.files), text(&other.files)));
        }
        found
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\n")
}

/// Reads worlds of one repository; git is asked only for what may be another than before.
pub(crate) struct Reader {
    repo: TestRepo,
    common: PathBuf,
    commits: Rc<HashMap<String, Rc<Commit>>>,
    /// Blobs by their ids.
    texts: HashMap<String, String>,
    /// What git said of a worktree, and what the worktree was then.
    looks: HashMap<PathBuf, (Seen, Look)>,
}

/// All that git's answers about a worktree depend on.
#[derive(PartialEq, Eq)]
struct Seen {
    head: String,
    index: Option<Vec<u8>>,
    files: Files,
}

struct Look {
    index: Vec<u8>,
    status: BTreeMap<String, String>,
}

impl Reader {
    pub(crate) fn new(repo: &TestRepo) -> Self {
        Self {
            repo: repo.clone(),
            common: repo.common_dir(),
            commits: Rc::default(),
            texts: HashMap::new(),
            looks: HashMap::new(),
        }
    }

    pub(crate) fn read(&mut self) -> World {
        let mut world = World { marker: fs::read(self.common.join("lattice/op-state.json")).ok(), ..World::default() };
        let mut bases = Vec::new();
        let format = "--format=%(refname) %(objectname) %(objecttype)";
        let listing = self.repo.git(&["for-each-ref", format]);
        let mut blobs = Vec::new();
        for line in listing.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [name, oid, kind] = words[..] else { continue };
            if name.starts_with("refs/lattice/") {
                world.records.insert(name.to_owned(), oid.to_owned());
                continue;
            }
            world.refs.insert(name.to_owned(), oid.to_owned());
            if let Some(branch) = name.strip_prefix("refs/branch-metadata/") {
                blobs.push((branch.to_owned(), oid.to_owned(), kind == "blob"));
            }
        }
        for (branch, text) in self.contents(&blobs) {
            let document = text.and_then(|text| parse(&text)).unwrap_or(Document::Bad);
            if let Document::Good { base, .. } = &document {
                bases.push(base.clone());
            }
            world.documents.insert(branch, document);
        }
        self.read_commits(&world, &bases);
        world.commits = Rc::clone(&self.commits);
        world.places = self.places(&world.refs);
        world
    }

    fn contents(&mut self, blobs: &[(String, String, bool)]) -> Vec<(String, Option<String>)> {
        let wanted = blobs.iter().filter(|(_, oid, is_blob)| *is_blob && !self.texts.contains_key(oid));
        let wanted: BTreeSet<_> = wanted.map(|(_, oid, _)| oid).collect();
        let input: String = wanted.iter().map(|oid| format!("{oid}\n")).collect();
        let output = match wanted.is_empty() {
            true => Vec::new(),
            false => self.repo.git_with_input(&["cat-file", "--batch"], input.as_bytes()),
        };
        let mut rest = &output[..];
        for oid in wanted {
            let end = rest.iter().position(|byte| *byte == b'\n').expect("a header ends");
            let header = String::from_utf8_lossy(&rest[..end]);
            let size: usize = header.rsplit(' ').next().and_then(|size| size.parse().ok()).expect("a size");
            self.texts.insert(oid.clone(), String::from_utf8_lossy(&rest[end + 1..end + 1 + size]).into_owned());
            rest = &rest[end + 2 + size..];
        }
        let text = |oid: &String, is_blob: bool| self.texts.get(oid).filter(|_| is_blob).cloned();
        blobs.iter().map(|(branch, oid, is_blob)| (branch.clone(), text(oid, *is_blob))).collect()
    }

    /// Reads the commits of all branches and bases that are not known yet.
    fn read_commits(&mut self, world: &World, bases: &[String]) {
        let tips = world.refs.iter().filter(|(name, _)| name.starts_with("refs/heads/")).map(|(_, oid)| oid);
        let new: BTreeSet<_> = tips.chain(bases).filter(|oid| !self.commits.contains_key(*oid)).collect();
        if new.is_empty() {
            return;
        }
        let mut input: String = new.iter().map(|oid| format!("{oid}\n")).collect();
        let known = world.refs.values().filter(|oid| self.commits.contains_key(*oid));
        input.extend(known.map(|oid| format!("^{oid}\n")));
        let format = "--format=%x01%H%x02%P%x02%an <%ae> %at%x02%s";
        let args =
            ["log", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-renames", "--ignore-missing", format, "--stdin"];
        let text = self.repo.git_with_input(&args, input.as_bytes());
        let text = String::from_utf8_lossy(&text);
        let commits = Rc::make_mut(&mut self.commits);
        for record in text.split('\x01').filter(|record| !record.trim().is_empty()) {
            let commit = parse_commit(record);
            commits.insert(commit.id.clone(), Rc::new(commit));
        }
    }

    fn places(&mut self, refs: &BTreeMap<String, String>) -> Vec<Place> {
        let mut dirs = vec![(self.repo.dir().to_owned(), self.common.clone())];
        for entry in fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten() {
            let pointer = fs::read_to_string(entry.path().join("gitdir")).unwrap_or_default();
            if let Some(dir) = Path::new(pointer.trim()).parent().filter(|dir| dir.join(".git").exists()) {
                dirs.push((dir.to_owned(), entry.path()));
            }
        }
        dirs.sort();
        dirs.iter().map(|(dir, git_dir)| self.place(dir, git_dir, refs)).collect()
    }

    fn place(&mut self, dir: &Path, git_dir: &Path, refs: &BTreeMap<String, String>) -> Place {
        let head = fs::read_to_string(git_dir.join("HEAD")).expect("a worktree has a HEAD");
        let head = head.trim().trim_start_matches("ref: ").to_owned();
        let operations = ["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];
        let operation = operations.iter().any(|name| git_dir.join(name).exists());
        let mut files = BTreeMap::new();
        read_files(dir, "", &mut files);
        let at = refs.get(&head).cloned().unwrap_or_else(|| head.clone());
        let seen = Seen { head: at, index: fs::read(git_dir.join("index")).ok(), files };
        let look = match self.looks.remove(dir) {
            Some((before, look)) if before == seen => look,
            Some(_) | None => self.look(dir),
        };
        let place = Place {
            dir: dir.to_owned(),
            head,
            operation,
            index: look.index.clone(),
            status: look.status.clone(),
            files: seen.files.iter().map(|(name, (_, content))| (name.clone(), content.clone())).collect(),
        };
        self.looks.insert(dir.to_owned(), (seen, look));
        place
    }

    fn look(&self, dir: &Path) -> Look {
        let at = dir.to_str().expect("the kit chooses its paths");
        let index = self.repo.git_with_input(&["-C", at, "ls-files", "-z", "--stage"], b"");
        let args = ["-C", at, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
        let status = self.repo.git_with_input(&args, b"");
        let status = String::from_utf8_lossy(&status);
        let status = status.split('\0').filter(|entry| entry.len() > 3);
        let status = status.map(|entry| (entry[3..].to_owned(), entry[..2].to_owned())).collect();
        Look { index, status }
    }
}

/// Files by path, each with its mode.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

fn read_files(dir: &Path, below: &str, files: &mut Files) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if name == ".git" {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read_files(&entry.path(), &format!("{name}/"), files);
        } else {
            let mode = entry.metadata().map_or(0, |metadata| metadata.mode());
            files.insert(name, (mode, fs::read(entry.path()).unwrap_or_default()));
        }
    }
}

fn parse(text: &str) -> Option<Document> {
    let document: Value = serde_json::from_str(text).ok()?;
    let word = |path: &str| document.pointer(path).and_then(Value::as_str).map(str::to_owned);
    if document["schema_version"] != 1 || document["kind"] != "lattice.branch-metadata" {
        return None;
    }
    Some(Document::Good {
        name: word("/branch/name")?,
        parent: word("/parent/name")?,
        on_trunk: word("/parent/kind")? == "trunk",
        base: word("/base/oid")?,
        frozen: word("/freeze/state")? == "frozen",
    })
}

fn parse_commit(record: &str) -> Commit {
    let (head, diff) = record.split_once('\n').unwrap_or((record, ""));
    let fields: Vec<_> = head.split('\x02').collect();
    let [id, parents, author, subject] = fields[..] else { panic!("not a commit: {head:?}") };
    let mut changes = BTreeMap::new();
    let mut file = String::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("diff --git a/") {
            file = name.split(" b/").next().unwrap_or_default().to_owned();
        } else if !line.starts_with("+++ ") && !line.starts_with("--- ") && line.starts_with(['+', '-']) {
            let sign = line.chars().next().expect("it starts with one");
            *changes.entry((file.clone(), sign, line[1..].to_owned())).or_insert(0) += 1;
        }
    }
    let parents = parents.split(' ').filter(|parent| !parent.is_empty()).map(str::to_owned).collect();
    Commit { id: id.to_owned(), parents, author: author.to_owned(), subject: subject.to_owned(), changes }
}
