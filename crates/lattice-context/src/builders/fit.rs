//! `fit_to_budget`: sections cut in proportion until they fit together.

use serde_json::{Value, json};

use super::dict::ContextDict;
use crate::text::at_most;
use crate::tokens::TokenCounter;

/// The budget when none is given.
pub const DEFAULT_BUDGET: usize = 32_000;

/// Sections that cannot be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    #[error("a section cannot be called `_metadata`: that is where the result says what was cut")]
    Reserved,
    #[error("the section `{0}` is not a text")]
    NotText(String),
}

/// What each section had and got.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Allocation {
    pub section: String,
    pub tokens: usize,
    pub allocation: usize,
}

/// The sections, unchanged if they fit; else cut, with `_metadata`.
pub fn fit_to_budget(
    sections: &ContextDict,
    budget: usize,
    counter: &dyn TokenCounter,
) -> Result<ContextDict, FitError> {
    let texts = texts(sections)?;
    let allocations = allocations(&texts, budget, counter);
    if allocations.iter().map(|allocation| allocation.tokens).sum::<usize>() <= budget {
        return Ok(sections.clone());
    }
    let mut fitted = ContextDict::default();
    let mut metadata = super::metadata::TruncationMetadata::default();
    for ((name, text), allocation) in texts.iter().zip(&allocations) {
        let (kept, whole_lines) = cut(text, units_of(allocation.allocation, counter), counter);
        let lines = text.split_inclusive('\n').count() as u64;
        metadata.section(name, lines, if kept.len() == text.len() { lines } else { whole_lines });
        fitted.insert(name, kept);
    }
    let mut document = json!(metadata);
    if let Some(fields) = document.as_object_mut() {
        ["missing", "skipped_binary", "warnings"].iter().for_each(|key| drop(fields.remove(*key)));
    }
    fitted.insert("_metadata", document);
    Ok(fitted)
}

/// Tokens and allocation of each section, in the order of the sections.
pub fn explain(sections: &ContextDict, budget: usize, counter: &dyn TokenCounter) -> Result<Vec<Allocation>, FitError> {
    Ok(allocations(&texts(sections)?, budget, counter))
}

fn texts(sections: &ContextDict) -> Result<Vec<(&str, &str)>, FitError> {
    if sections.get("_metadata").is_some() {
        return Err(FitError::Reserved);
    }
    let text = |(name, value): (&'_ str, &'_ Value)| {
        value.as_str().ok_or_else(|| FitError::NotText(name.to_owned())).map(|_| ())
    };
    sections.iter().try_for_each(text)?;
    Ok(sections.iter().filter_map(|(name, value)| Some((name, value.as_str()?))).collect())
}

/// Shares in proportion to size; what rounding leaves goes to the first sections.
fn allocations(texts: &[(&str, &str)], budget: usize, counter: &dyn TokenCounter) -> Vec<Allocation> {
    let sizes: Vec<usize> = texts.iter().map(|(_, text)| counter.count(text)).collect();
    let all: usize = sizes.iter().sum();
    let share = |size: usize| {
        let share = size as u128 * budget as u128 / all.max(1) as u128;
        if all <= budget { size } else { usize::try_from(share).unwrap_or(usize::MAX) }
    };
    let mut allocations: Vec<Allocation> = texts
        .iter()
        .zip(sizes)
        .map(|((name, _), tokens)| Allocation { section: (*name).to_owned(), tokens, allocation: share(tokens) })
        .collect();
    let given: usize = allocations.iter().map(|allocation| allocation.allocation).sum();
    if all > budget {
        let short = allocations.iter_mut().filter(|allocation| allocation.allocation < allocation.tokens);
        short.take(budget - given).for_each(|allocation| allocation.allocation += 1);
    }
    allocations
}

/// Units for an allocation. The remainder of the estimate's division belongs to the whole, not to each section.
fn units_of(tokens: usize, counter: &dyn TokenCounter) -> u64 {
    counter.most_units(tokens) - counter.most_units(0)
}

/// The longest beginning within `room`, and how many whole lines it has. It ends at a line if that wastes little.
fn cut<'t>(text: &'t str, room: u64, counter: &dyn TokenCounter) -> (&'t str, u64) {
    if counter.units(text) <= room {
        return (text, text.split_inclusive('\n').count() as u64);
    }
    let fits = |length: usize| counter.units(at_most(text, length)) <= room;
    // Doubled first, so that a short cut of a long text does not count all of it again and again.
    let mut high = usize::try_from(room).unwrap_or(usize::MAX).saturating_mul(4).max(16).min(text.len());
    while high < text.len() && fits(high) {
        high = high.saturating_mul(2).min(text.len());
    }
    let mut low = 0;
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    let mut kept = at_most(text, low);
    if let Some(at) = kept.rfind('\n') {
        let to_line = &kept[..=at];
        // Two per cent for the lines of each section leave 95 for all of them.
        if counter.units(to_line) * 100 >= room * 98 {
            kept = to_line;
        }
    }
    let whole = kept.split_inclusive('\n').filter(|line| line.ends_with('\n')).count() as u64;
    (kept, whole)
}
