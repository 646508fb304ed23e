//! Stacks that GitHub keeps itself, where it does: found out from what it answers, never assumed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lattice_model::host::{HostStack, HostStacks};
use serde_json::{Value, json};

use super::GitHub;
use super::client::MERGE_ASYNC;
use super::transport::Verb;
use crate::notes::Notes;
use crate::{ForgeError, MergeRequest, Stacked};

/// How many pull requests one request may put on a stack.
const BATCH: usize = 100;

/// For how long it is believed that a host keeps no stacks.
const SECONDS: i64 = 24 * 3600;

/// How often is asked whether something has landed, and how long it is waited each time: about three minutes.
const QUESTIONS: u64 = 100;
const LONGEST_WAIT_MS: u64 = 2000;

impl GitHub {
    /// Takes note of a pull request that says which stack it is in, be it none.
    pub(super) fn see_stack(&self, pull: &Value) {
        if pull.get("stack").is_some() {
            self.stacks_seen.store(true, Ordering::SeqCst);
        }
    }

    fn without_stacks(&self) -> Option<Notes> {
        self.client.notes("no-stacks", SECONDS)
    }

    pub(super) async fn find_stack(&self, number: u64) -> Result<HostStacks, ForgeError> {
        let known = self.without_stacks();
        if known.as_ref().is_some_and(|known| known.holds(&self.slug)) {
            return Ok(HostStacks::NotKept);
        }
        let path = self.path(&format!("/stacks?pull_request={number}&per_page=100"));
        match self.client.all(&path, None).await {
            Ok(found) => {
                self.stacks_seen.store(true, Ordering::SeqCst);
                Ok(HostStacks::Kept(found.iter().filter_map(stack).find(|stack| stack.pulls.contains(&number))))
            }
            Err(ForgeError::Missing(_)) => {
                known.iter().for_each(|known| known.remember(&self.slug));
                Ok(HostStacks::NotKept)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn put_on_stack(&self, numbers: &[u64], onto: Option<u64>) -> Result<Stacked, ForgeError> {
        // A host that never spoke of stacks is not asked for one. If it keeps them all the same, the next run finds out.
        if onto.is_none() && !self.stacks_seen.load(Ordering::SeqCst) {
            return Ok(Stacked::NotKept);
        }
        let mut onto = onto;
        for numbers in numbers.chunks(BATCH) {
            let body = json!({ "pull_requests": numbers });
            let path = match onto {
                None => self.path("/stacks"),
                Some(stack) => self.path(&format!("/stacks/{stack}/add")),
            };
            let answer = match self.client.send(Verb::Post, &path, &body).await {
                Err(ForgeError::Unprocessable(_)) if onto.is_none() && self.free(numbers).await? => {
                    self.client.send(Verb::Post, &path, &body).await?
                }
                answer => answer?,
            };
            let made = answer["number"].as_u64();
            onto = Some(made.ok_or_else(|| ForgeError::BadAnswer("a stack without a number".to_owned()))?);
        }
        Ok(Stacked::Kept)
    }

    /// Takes pull requests out of whatever stacks they are in; true if one was.
    async fn free(&self, numbers: &[u64]) -> Result<bool, ForgeError> {
        let mut freed = false;
        for number in numbers {
            if let HostStacks::Kept(Some(stack)) = self.find_stack(*number).await? {
                self.take_apart(stack.number).await?;
                freed = true;
            }
        }
        Ok(freed)
    }

    pub(super) async fn take_apart(&self, stack: u64) -> Result<(), ForgeError> {
        let path = self.path(&format!("/stacks/{stack}/unstack"));
        match self.client.send(Verb::Post, &path, &Value::Null).await {
            // One that is not there any more is taken apart.
            Ok(_) | Err(ForgeError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lands a pull request that is in a stack; the host does that in the background and is asked until it has.
    pub(super) async fn land_on_stack(&self, merge: &MergeRequest) -> Result<(), ForgeError> {
        let path = self.path(&format!("/pulls/{}{MERGE_ASYNC}", merge.number));
        let body = json!({ "merge_method": merge.method.as_str(), "sha": merge.at.to_string() });
        let mut answer = self.client.send(Verb::Put, &path, &body).await?;
        let refused = |reason: &str| ForgeError::NotMergeable { number: merge.number, reason: reason.to_owned() };
        for question in 1..=QUESTIONS {
            let said = answer["details"]["message"].as_str().unwrap_or("no reason given");
            match answer["status"].as_str() {
                Some("merged") => return Ok(()),
                Some("failed") => return Err(refused(&said.chars().take(500).collect::<String>())),
                Some("enqueued") => {
                    return Err(refused("it waits in the merge queue; lattice sync takes it in once it has landed"));
                }
                Some("pending") => {}
                Some(_) | None => return Err(ForgeError::BadAnswer("landing without a state".to_owned())),
            }
            let uuid = answer["details"]["uuid"].as_str().map(super::read::segment);
            let uuid = uuid.ok_or_else(|| ForgeError::BadAnswer("landing without an id".to_owned()))?;
            tokio::time::sleep(Duration::from_millis((100 * question).min(LONGEST_WAIT_MS))).await;
            answer = self.client.get(&format!("{path}/{uuid}")).await?;
        }
        Err(refused("the host still works on it; lattice sync takes it in once it has landed"))
    }
}

/// An open stack as GitHub tells it.
fn stack(value: &Value) -> Option<HostStack> {
    let open = value["pull_requests"].as_array()?.iter().filter(|pull| pull["state"] == "open");
    Some(HostStack {
        number: value["number"].as_u64()?,
        pulls: open.filter_map(|pull| pull["number"].as_u64()).collect(),
    })
}
