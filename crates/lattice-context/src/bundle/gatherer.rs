//! Asks the host for everything that a bundle is made of. The only part of bundles that waits.

use futures_util::future::{OptionFuture, join, join4};
use futures_util::stream::{self, StreamExt as _};
use lattice_forge::ForgeError;

use super::capability::Capability;
use super::data::{Comment, Gathered, Item, ItemType, PullParts, PullRequest};
use super::manifest::ExpansionBudget;
use super::references::references;
use super::trigger::Trigger;

/// References that are looked up if nobody says otherwise.
pub const DEFAULT_EXPANSIONS: usize = 5;

/// References that are looked up at the same time. The questions about one item are at most six.
const AT_ONCE: usize = 6;

/// References that a warning names.
const NAMED: usize = 50;

/// A question to the host that was not answered.
#[derive(Debug, thiserror::Error)]
#[error("{call} for #{number} failed")]
pub struct GatherError {
    pub call: Call,
    pub number: u64,
    #[source]
    pub source: ForgeError,
}

/// The questions, by the names of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    GetIssue,
    ListComments,
    GetPullRequest,
    ListPrFiles,
    ListReviews,
    ListReviewComments,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GetIssue => "get_issue",
            Self::ListComments => "list_comments",
            Self::GetPullRequest => "get_pull_request",
            Self::ListPrFiles => "list_pr_files",
            Self::ListReviews => "list_reviews",
            Self::ListReviewComments => "list_review_comments",
        })
    }
}

/// Asks for the item and all about it at the same time, then for what its texts refer to.
pub async fn fetch(trigger: Trigger, host: &dyn Capability, max_expansions: usize) -> Result<Gathered, GatherError> {
    let number = trigger.number;
    let failed = |call| move |source| GatherError { call, number, source };
    let known = trigger.thread_context.clone();
    let comments = async {
        match known {
            Some(known) => Ok(known),
            None => host.list_comments(number).await,
        }
    };
    let pull = OptionFuture::from(match trigger.kind {
        ItemType::Issue => None,
        ItemType::PullRequest => Some(join4(
            host.get_pull_request(number),
            host.list_pr_files(number),
            host.list_reviews(number),
            host.list_review_comments(number),
        )),
    });
    // All answers are waited for, so that the same failures give the same error.
    let ((item, comments), pull) = join(join(host.get_issue(number), comments), pull).await;
    let item = filled(item.map_err(failed(Call::GetIssue))?, &trigger);
    let comments = in_order(comments.map_err(failed(Call::ListComments))?);
    let pull = match pull {
        None => None,
        Some((pull, files, reviews, comments)) => Some(PullParts {
            pull: with_branches(pull.map_err(failed(Call::GetPullRequest))?, &trigger),
            files: files.map_err(failed(Call::ListPrFiles))?,
            reviews: reviews.map_err(failed(Call::ListReviews))?,
            comments: comments.map_err(failed(Call::ListReviewComments))?,
        }),
    };
    let texts = std::iter::once(&item.body).chain(comments.iter().map(|comment| &comment.body));
    let mut wanted = references(texts.map(String::as_str), number);
    let left_out = wanted.split_off(max_expansions.min(wanted.len()));
    let (linked, mut warnings) = expand(host, &wanted).await;
    warnings.extend(told_left_out(&left_out, max_expansions));
    let expansion_budget = ExpansionBudget { used: wanted.len(), max: max_expansions };
    Ok(Gathered { trigger, item, comments, pull, linked, expansion_budget, warnings })
}

/// The items with these numbers, and a warning for each that could not be had.
async fn expand(host: &dyn Capability, numbers: &[u64]) -> (Vec<Item>, Vec<String>) {
    let questions = numbers.iter().map(|number| async move { (*number, host.get_issue(*number).await) });
    let answers: Vec<_> = stream::iter(questions).buffered(AT_ONCE).collect().await;
    let (mut linked, mut warnings) = (Vec::new(), Vec::new());
    for (number, answer) in answers {
        match answer {
            Ok(item) => linked.push(Item { number, ..item }),
            Err(error) => warnings.push(format!("#{number} was not expanded: {error}")),
        }
    }
    (linked, warnings)
}

/// One warning for all references that the budget did not reach.
fn told_left_out(numbers: &[u64], max: usize) -> Option<String> {
    let mut named: Vec<_> = numbers.iter().take(NAMED).map(|number| format!("#{number}")).collect();
    if numbers.len() > NAMED {
        named.push(format!("and {} more", numbers.len() - NAMED));
    }
    (!numbers.is_empty()).then(|| format!("not expanded, since the budget of {max} was used up: {}", named.join(", ")))
}

/// What the host says counts; the trigger fills in where it says nothing.
fn filled(item: Item, trigger: &Trigger) -> Item {
    let labels = trigger.labels.clone().unwrap_or_default();
    Item {
        kind: trigger.kind,
        number: trigger.number,
        title: or(item.title, &trigger.title),
        body: or(item.body, &trigger.body),
        author: or(item.author, &trigger.author),
        labels: if item.labels.is_empty() { labels } else { item.labels },
        ..item
    }
}

fn with_branches(pull: PullRequest, trigger: &Trigger) -> PullRequest {
    PullRequest {
        head_branch: or(pull.head_branch, &trigger.head_branch),
        base_branch: or(pull.base_branch, &trigger.base_branch),
        ..pull
    }
}

fn or(fetched: String, other: &Option<String>) -> String {
    if fetched.is_empty() { other.clone().unwrap_or_default() } else { fetched }
}

/// Hosts write times in one form, so that their texts sort as they do; equal times keep the host's order.
fn in_order(mut comments: Vec<Comment>) -> Vec<Comment> {
    comments.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    comments
}
