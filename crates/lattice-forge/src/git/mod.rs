//! Any Git remote as a host: items are blobs below `refs/lattice/forge/`, changed by compare-and-swap pushes.

mod item;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lattice_model::host::{ForgeKind, Pull, PullState};
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::overview;
use lattice_model::plan::Expected;
use lattice_model::remote::{FileChange, GitRemote, Landed, Landing, RemoteTip, RemoteUpdate};
use lattice_model::time::Timestamp;

use self::item::{CommentV1, ItemV1, MergedV1, PullV1, RemarkV1, ReviewV1};
use self::store::{Put, Reading};
use crate::{
    Comment, Forge, ForgeError, Issue, IssueFilter, ItemState, LabelChange, MergeRequest, NewIssue, NewPull, NewReview,
    PullUpdate, Review, ReviewComment,
};

/// A forge without a server.
pub struct GitForge {
    remote: Arc<dyn GitRemote>,
    now: Timestamp,
}

impl GitForge {
    pub fn new(remote: Arc<dyn GitRemote>, now: Timestamp) -> Self {
        Self { remote, now }
    }

    fn url(&self, number: u64) -> String {
        format!("{}#{number}", self.remote.location())
    }

    fn read(&self) -> Result<Reading, ForgeError> {
        store::read(&*self.remote)
    }

    fn change<T>(
        &self,
        number: u64,
        edit: impl FnMut(&mut ItemV1, &Reading) -> Result<T, ForgeError>,
    ) -> Result<T, ForgeError> {
        let mut answers = store::change(&*self.remote, &[number], self.now.as_str(), edit)?;
        answers.pop().ok_or(ForgeError::NotFound(number))
    }

    /// The pull request and the commits that its head and base are at.
    fn pull_parts(&self, number: u64) -> Result<(store::Stored, Reading), ForgeError> {
        let reading = self.read()?;
        let stored = reading.item(&*self.remote, number)?;
        if stored.item.pull.is_none() {
            return Err(ForgeError::NotAPull(number));
        }
        Ok((stored, reading))
    }

    fn told(&self, item: &ItemV1, reading: &Reading) -> Result<Pull, ForgeError> {
        let head = item.pull.as_ref().and_then(|pull| reading.branch(&pull.head));
        item.to_pull(self.url(item.number), head).ok_or(ForgeError::NotAPull(item.number))
    }
}

#[async_trait]
impl Forge for GitForge {
    fn kind(&self) -> ForgeKind {
        ForgeKind::Git
    }

    async fn identity(&self) -> Result<String, ForgeError> {
        Ok(self.remote.identity()?)
    }

    async fn issue(&self, number: u64) -> Result<Issue, ForgeError> {
        let item = self.read()?.item(&*self.remote, number)?.item;
        Ok(item.to_issue(self.url(number)))
    }

    async fn issues(&self, filter: &IssueFilter) -> Result<Vec<Issue>, ForgeError> {
        let items = self.read()?.all(&*self.remote)?;
        let wanted = |item: &&ItemV1| {
            item.pull.is_none()
                && filter.state.is_none_or(|state| state == item.state)
                && filter.labels.iter().all(|label| item.labels.contains(label))
        };
        Ok(items.iter().filter(wanted).map(|item| item.to_issue(self.url(item.number))).collect())
    }

    async fn open_issue(&self, new: &NewIssue) -> Result<Issue, ForgeError> {
        let mut item = ItemV1::new(&new.title, &new.body, &self.remote.identity()?, self.now.as_str());
        item.labels.clone_from(&new.labels);
        let items = store::create(&*self.remote, vec![item])?;
        Ok(items[0].to_issue(self.url(items[0].number)))
    }

    async fn label(&self, number: u64, change: &LabelChange) -> Result<Vec<String>, ForgeError> {
        self.change(number, |item, _| {
            item.labels.retain(|label| !change.remove.contains(label));
            for label in &change.add {
                if !item.labels.contains(label) {
                    item.labels.push(label.clone());
                }
            }
            Ok(item.labels.clone())
        })
    }

    async fn close(&self, number: u64) -> Result<(), ForgeError> {
        self.change(number, |item, _| {
            item.state = ItemState::Closed;
            Ok(())
        })
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        Ok(self.read()?.item(&*self.remote, number)?.item.to_comments())
    }

    async fn comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError> {
        let author = self.remote.identity()?;
        self.change(number, |item, _| {
            let (id, created_at) = (item.next_id(), self.now.to_string());
            item.comments.push(CommentV1 { id, author: author.clone(), body: body.to_owned(), created_at });
            item.to_comments().pop().ok_or(ForgeError::NotFound(number))
        })
    }

    async fn edit_comment(&self, number: u64, comment: u64, body: &str) -> Result<(), ForgeError> {
        self.change(number, |item, _| {
            let found = item.comments.iter_mut().find(|found| found.id == comment);
            body.clone_into(&mut found.ok_or(ForgeError::NotFound(comment))?.body);
            Ok(())
        })
    }

    async fn pull(&self, number: u64) -> Result<Pull, ForgeError> {
        let (stored, reading) = self.pull_parts(number)?;
        self.told(&stored.item, &reading)
    }

    async fn pulls(&self, state: Option<ItemState>) -> Result<Vec<Pull>, ForgeError> {
        let reading = self.read()?;
        let items = reading.all(&*self.remote)?;
        let pulls = items.iter().rev().filter(|item| item.pull.is_some()).map(|item| self.told(item, &reading));
        // What is shown decides, not what is stored: one whose head is gone is closed without anybody having said so.
        let wanted = |pull: &Result<Pull, ForgeError>| match (pull, state) {
            (Err(_), _) | (Ok(_), None) => true,
            (Ok(pull), Some(ItemState::Open)) => pull.state == PullState::Open,
            (Ok(pull), Some(ItemState::Closed)) => pull.state != PullState::Open,
        };
        pulls.filter(wanted).collect()
    }

    async fn pulls_of(&self, heads: &[BranchName]) -> Result<BTreeMap<BranchName, Pull>, ForgeError> {
        let reading = self.read()?;
        let mut pulls: BTreeMap<BranchName, Pull> = BTreeMap::new();
        for item in reading.all(&*self.remote)? {
            let Some(head) = item.pull.as_ref().map(|pull| pull.head.clone()) else { continue };
            if !heads.contains(&head) {
                continue;
            }
            let pull = self.told(&item, &reading)?;
            let is_open = pulls.get(&head).is_some_and(|known| known.state == PullState::Open);
            // Items come by number, so the newest wins, unless an older one is still open.
            if !is_open || pull.state == PullState::Open {
                pulls.insert(head, pull);
            }
        }
        Ok(pulls)
    }

    async fn open_pulls(&self, new: &[NewPull]) -> Result<Vec<Pull>, ForgeError> {
        let heads: Vec<_> = new.iter().map(|new| new.head.clone()).collect();
        let mut pulls = self.pulls_of(&heads).await?;
        pulls.retain(|_, pull| pull.state == PullState::Open);
        let reading = self.read()?;
        let author = self.remote.identity()?;
        let mut items = Vec::new();
        for new in new.iter().filter(|new| !pulls.contains_key(&new.head)) {
            reading.branch(&new.head).ok_or_else(|| ForgeError::NoSuchHead(new.head.to_string()))?;
            let mut item = ItemV1::new(&new.title, &new.body, &author, self.now.as_str());
            item.pull = Some(PullV1 {
                head: new.head.clone(),
                base: new.base.clone(),
                draft: new.draft,
                reviewers: Vec::new(),
                reviews: Vec::new(),
                merged: None,
            });
            items.push(item);
        }
        if !items.is_empty() {
            for item in store::create(&*self.remote, items)? {
                let pull = self.told(&item, &reading)?;
                pulls.extend(item.pull.map(|part| (part.head, pull)));
            }
        }
        let found = |head: &BranchName| pulls.remove(head).ok_or_else(|| ForgeError::NoSuchHead(head.to_string()));
        heads.iter().map(found).collect()
    }

    async fn update_pulls(&self, updates: &[PullUpdate]) -> Result<(), ForgeError> {
        let numbers: Vec<_> = updates.iter().map(|update| update.number).collect();
        let edit = |item: &mut ItemV1, _: &Reading| {
            let number = item.number;
            let pull = item.pull.as_mut().ok_or(ForgeError::NotAPull(number))?;
            for update in updates.iter().filter(|update| update.number == number) {
                if let Some(base) = &update.base {
                    pull.base = base.clone();
                }
                if let Some(draft) = update.draft {
                    pull.draft = draft;
                }
                if let Some(body) = &update.body {
                    item.body.clone_from(body);
                }
            }
            Ok(())
        };
        store::change(&*self.remote, &numbers, self.now.as_str(), edit).map(drop)
    }

    async fn request_reviewers(&self, number: u64, reviewers: &[String]) -> Result<(), ForgeError> {
        self.change(number, |item, _| {
            let pull = item.pull.as_mut().ok_or(ForgeError::NotAPull(number))?;
            for reviewer in reviewers {
                if !pull.reviewers.contains(reviewer) {
                    pull.reviewers.push(reviewer.clone());
                }
            }
            Ok(())
        })
    }

    async fn merge_pull(&self, merge: &MergeRequest) -> Result<(), ForgeError> {
        let (stored, reading) = self.pull_parts(merge.number)?;
        let mut item = stored.item.clone();
        let refused = |reason: &str| ForgeError::NotMergeable { number: merge.number, reason: reason.to_owned() };
        let pull = item.pull.as_mut().ok_or(ForgeError::NotAPull(merge.number))?;
        if pull.merged.is_some() {
            return Ok(());
        }
        if item.state == ItemState::Closed {
            return Err(refused("it is closed"));
        }
        let head = reading.branch(&pull.head).ok_or_else(|| ForgeError::NoSuchHead(pull.head.to_string()))?;
        let base = reading.branch(&pull.base).ok_or_else(|| ForgeError::NoSuchHead(pull.base.to_string()))?;
        if head != merge.at {
            return Err(refused("its head is not at the commit that was looked at"));
        }
        let (base_branch, head_branch) = (pull.base.clone(), pull.head.clone());
        let landing = Landing {
            base: RemoteTip { branch: base_branch.clone(), at: base },
            head: RemoteTip { branch: head_branch, at: head },
            method: merge.method,
            message: format!("{} (#{})\n\n{}", item.title, item.number, overview::without(&item.body)),
        };
        let commit = match self.remote.land(&landing)? {
            Landed::At(commit) => commit,
            Landed::Conflict => return Err(refused("it conflicts with its base")),
        };
        pull.merged = Some(MergedV1 { head, commit, by: self.remote.identity()?, at: self.now.to_string() });
        item.state = ItemState::Closed;
        self.now.as_str().clone_into(&mut item.updated_at);
        let lands = RemoteUpdate { name: base_branch.branch_ref(), expected: Expected::At(base), to: Some(commit) };
        match store::put(&*self.remote, &[(&item, stored.expected())], &[lands])? {
            Put::Done => Ok(()),
            Put::Lost => Err(refused("its base or the pull request changed meanwhile")),
        }
    }

    async fn files(&self, number: u64) -> Result<Vec<FileChange>, ForgeError> {
        let (stored, reading) = self.pull_parts(number)?;
        let pull = stored.item.pull.ok_or(ForgeError::NotAPull(number))?;
        let tip = |branch: &BranchName, fixed: Option<Oid>| {
            let at = fixed.or_else(|| reading.branch(branch));
            let at = at.ok_or_else(|| ForgeError::NoSuchHead(branch.to_string()))?;
            Ok::<_, ForgeError>(RemoteTip { branch: branch.clone(), at })
        };
        let head = tip(&pull.head, pull.merged.map(|merged| merged.head))?;
        Ok(self.remote.files(&tip(&pull.base, None)?, &head)?)
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        let (stored, _) = self.pull_parts(number)?;
        Ok(stored.item.pull.iter().flat_map(|pull| &pull.reviews).map(ReviewV1::to_review).collect())
    }

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError> {
        let author = self.remote.identity()?;
        self.change(number, |item, reading| {
            let id = item.next_id();
            let pull = item.pull.as_mut().ok_or(ForgeError::NotAPull(number))?;
            let remark = |(path, line, body): &(String, u64, String)| RemarkV1 {
                path: path.clone(),
                line: *line,
                body: body.clone(),
            };
            let review = ReviewV1 {
                id,
                author: author.clone(),
                verdict: new.verdict,
                body: new.body.clone(),
                at: reading.branch(&pull.head),
                remarks: new.remarks.iter().map(remark).collect(),
                created_at: self.now.to_string(),
            };
            let told = review.to_review();
            pull.reviews.push(review);
            Ok(told)
        })
    }

    async fn review_comments(&self, number: u64) -> Result<Vec<ReviewComment>, ForgeError> {
        let (stored, _) = self.pull_parts(number)?;
        let reviews = stored.item.pull.iter().flat_map(|pull| &pull.reviews);
        Ok(reviews.flat_map(ReviewV1::to_comments).collect())
    }
}
