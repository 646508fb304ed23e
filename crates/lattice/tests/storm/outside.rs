//! What people and other tools do to a repository without Lattice.

use std::fs;

use crate::action::{Action, Kind};
use crate::commands::pick;
use crate::storm::{Storm, Violation};
use crate::world::TRUNK;

impl Storm {
    /// Does what is no command of Lattice; `false` if the action is one.
    pub(crate) fn outside(&mut self, action: &Action, place: usize) -> Result<bool, Violation> {
        let dir = self.world.places[place].dir.to_str().expect("the kit chooses its paths").to_owned();
        let free: Vec<_> = self.free_branches();
        let free: Vec<&str> = free.iter().map(String::as_str).collect();
        let all: Vec<String> = self.world.branches().into_iter().map(str::to_owned).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        self.show("outside", &dir, &[action.to_string()]);
        let git = |args: &[&str]| {
            self.show("git", &dir, args);
            drop(self.repo.try_git(&[&["-C", &dir], args].concat()));
        };
        match action.kind {
            Kind::Edit => self.edit(place, action),
            Kind::Stage => git(&["add", "-A"]),
            Kind::Remove => {
                let files: Vec<_> = self.world.places[place].files.keys().map(String::as_str).collect();
                pick(&files, action.a).into_iter().for_each(|file| drop(fs::remove_file(format!("{dir}/{file}"))));
            }
            Kind::Clean => {
                git(&["rebase", "--abort"]);
                git(&["merge", "--abort"]);
                git(&["reset", "--quiet", "--hard"]);
                git(&["clean", "--quiet", "-fd"]);
            }
            Kind::GitCommit => {
                self.edit(place, action);
                git(&["add", "-A"]);
                git(&["commit", "--quiet", "-m", &format!("git {}", self.step)]);
            }
            Kind::GitAmend => git(&["commit", "--quiet", "--amend", "-a", "-m", &format!("amended {}", self.step)]),
            Kind::GitReset => git(&["reset", "--quiet", "--hard", "HEAD~1"]),
            Kind::GitRename => {
                pick(&free, action.a)
                    .into_iter()
                    .filter(|b| *b != TRUNK)
                    .for_each(|b| git(&["branch", "-m", b, &format!("g{}", self.step)]));
            }
            Kind::GitDelete => {
                pick(&free, action.a).into_iter().filter(|b| *b != TRUNK).for_each(|b| git(&["branch", "-D", b]))
            }
            Kind::GitRebase => pick(&all, action.a).into_iter().for_each(|onto| git(&["rebase", "--quiet", onto])),
            Kind::GitMerge => {
                pick(&all, action.a).into_iter().for_each(|other| git(&["merge", "--quiet", "--no-edit", other]))
            }
            Kind::GitCheckout => {
                pick(&all, action.a).into_iter().for_each(|branch| git(&["checkout", "--quiet", branch]))
            }
            Kind::GitUpdateRef => self.move_ref(&free, action),
            Kind::GitPack => git(&["pack-refs", "--all"]),
            Kind::GitCollect => git(&["gc", "--quiet", "--prune=now"]),
            Kind::WorktreeAdd => {
                let path = format!("{}/w{}", self.repo.sandbox().root().display(), self.step);
                if self.world.places.len() < 4 {
                    pick(&free, action.a)
                        .into_iter()
                        .for_each(|branch| git(&["worktree", "add", "--quiet", &path, branch]));
                }
            }
            Kind::WorktreeRemove => self.remove_worktree(action),
            Kind::MetadataGarbage | Kind::MetadataDelete | Kind::MetadataParent | Kind::MetadataBase => {
                self.damage_metadata(action);
            }
            Kind::MarkerGarbage => {
                let path = self.repo.op_state_path();
                let _ = fs::create_dir_all(path.parent().expect("it is a file"));
                fs::write(path, "{ no marker").expect("the sandbox can be written");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts a branch where another one is.
    fn move_ref(&self, free: &[&str], action: &Action) {
        let tips: Vec<_> = self.world.branches().into_iter().filter_map(|branch| self.world.tip(branch)).collect();
        let tips: Vec<&str> = tips.into_iter().map(String::as_str).collect();
        if let (Some(branch), Some(tip)) = (pick(free, action.a), pick(&tips, action.b)) {
            drop(self.repo.try_git(&["update-ref", &format!("refs/heads/{branch}"), tip]));
        }
    }

    /// Branches that no worktree has checked out.
    fn free_branches(&self) -> Vec<String> {
        let free = |branch: &&str| self.world.places.iter().all(|place| place.branch() != Some(branch));
        self.world.branches().into_iter().filter(free).map(str::to_owned).collect()
    }

    /// Adds a line, replaces one, or makes a file; no line is ever written twice.
    fn edit(&self, place: usize, action: &Action) {
        let dir = &self.world.places[place].dir;
        let name = match action.a % 8 {
            0 => format!("new/{}.txt", self.step),
            1..=3 => "shared.txt".to_owned(),
            number => {
                let files: Vec<_> = self.world.places[place].files.keys().map(String::as_str).collect();
                pick(&files, number.wrapping_add(action.b)).unwrap_or("README").to_owned()
            }
        };
        let path = dir.join(&name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let new = format!("line {} of {}", self.step, action.b);
        let at = usize::from(action.b) % (lines.len() + 1);
        match action.b % 3 {
            0 if at < lines.len() => lines[at] = new,
            1 => lines.insert(at, new),
            _ => lines.push(new),
        }
        let _ = fs::create_dir_all(path.parent().expect("it lies in a folder"));
        fs::write(path, lines.join("\n") + "\n").expect("the sandbox can be written");
    }

    fn remove_worktree(&self, action: &Action) {
        let linked: Vec<_> = self.world.places.iter().filter(|place| place.dir != self.repo.dir()).collect();
        let Some(place) = linked.get(usize::from(action.a) % linked.len().max(1)) else { return };
        if action.b.is_multiple_of(2) {
            fs::remove_dir_all(&place.dir).expect("the sandbox can be written");
            return;
        }
        let dir = place.dir.to_str().expect("the kit chooses its paths");
        drop(self.repo.try_git(&["worktree", "remove", "--force", dir]));
    }

    fn damage_metadata(&self, action: &Action) {
        let documents: Vec<_> = self.world.documents.keys().map(String::as_str).collect();
        let Some(branch) = pick(&documents, action.a) else { return };
        let name = format!("refs/branch-metadata/{branch}");
        if action.kind == Kind::MetadataDelete {
            drop(self.repo.try_git(&["update-ref", "-d", &name]));
            return;
        }
        let text = self.repo.try_git(&["cat-file", "blob", &name]).unwrap_or_default();
        let Ok(mut document) = serde_json::from_str::<serde_json::Value>(&text) else { return };
        let all = self.world.branches();
        match action.kind {
            Kind::MetadataParent => {
                let parent = pick(&all, action.b).unwrap_or(TRUNK);
                let kind = if parent == TRUNK { "trunk" } else { "branch" };
                document["parent"] = serde_json::json!({ "kind": kind, "name": parent });
            }
            Kind::MetadataBase => {
                let tip = pick(&all, action.b).and_then(|branch| self.world.tip(branch)).cloned();
                document["base"]["oid"] = tip.unwrap_or_default().into();
            }
            _ => document = serde_json::json!({ "kind": "lattice.branch-metadata" }),
        }
        self.repo.set_metadata_raw(branch, document.to_string().as_bytes());
    }

    pub(crate) fn resolve(&mut self, place: usize, choice: u8) {
        let place = &self.world.places[place];
        let dir = place.dir.to_str().expect("the kit chooses its paths").to_owned();
        let unmerged: Vec<String> = place.unmerged().into_iter().map(str::to_owned).collect();
        for file in unmerged {
            let path = place.dir.join(&file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let marks = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
            let lines = text.lines().filter(|line| !marks.iter().any(|mark| line.starts_with(mark)));
            let mut kept: Vec<&str> = lines.collect();
            let resolved = format!("resolved {} {choice}", self.step);
            kept.push(&resolved);
            let _ = fs::create_dir_all(path.parent().expect("it lies in a folder"));
            fs::write(&path, kept.join("\n") + "\n").expect("the sandbox can be written");
            // This file alone: what else lies around is no part of the resolution.
            drop(self.repo.try_git(&["-C", &dir, "add", "--", &file]));
        }
    }
}
