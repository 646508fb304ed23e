//! Fills a budget with chunks: the protocol's pass, and a second one that only improves on it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::outline::{Outline, merged, only_lines, outline, without_bodies};
use super::{abridged, decision};
use crate::chunk::{ChunkType, CompressedContext, ContextChunk, ContextPriority, Fidelity, ScoredChunk, Verdict};
use crate::language::{Language, language_named};
use crate::prioritize::sort;
use crate::prompt;
use crate::retrieve::passage::Passages;
use crate::tokens::TokenCounter;

/// What a chunk costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pricing {
    /// Its content.
    Content,
    /// Its content with heading and fence, as in the prompt.
    Prompt,
}

/// A budget that is being filled.
#[derive(Debug)]
pub struct Fill<'a> {
    counter: &'a dyn TokenCounter,
    pricing: Pricing,
    limit: u64,
    used: u64,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    scored: ScoredChunk,
    state: State,
    /// Bodies that are shown.
    kept: BTreeSet<usize>,
    units: u64,
}

#[derive(Debug)]
enum State {
    Out(String),
    Whole,
    Abridged(Fidelity, ContextChunk),
}

/// A body that could be shown.
struct Offer {
    slot: usize,
    body: usize,
    value: f64,
}

/// Less room than this holds no outline.
const LEAST: u64 = 16;

/// Lines that a second pass must not look for forever.
const MOST_OFFERS: usize = 4000;

impl<'a> Fill<'a> {
    pub fn new(mut chunks: Vec<ScoredChunk>, counter: &'a dyn TokenCounter, pricing: Pricing, limit: u64) -> Self {
        sort(&mut chunks);
        let slot =
            |scored| Slot { scored, state: State::Out("not looked at".to_owned()), kept: BTreeSet::new(), units: 0 };
        Self { counter, pricing, limit, used: 0, slots: chunks.into_iter().map(slot).collect() }
    }

    /// Includes what fits in the order of scores, critical chunks first; truncates code; skips the rest.
    pub fn first_pass(&mut self) {
        let is_critical = |fill: &Self, at: usize| fill.slots[at].scored.chunk.priority == ContextPriority::Critical;
        let (critical, others): (Vec<usize>, Vec<usize>) = (0..self.slots.len()).partition(|at| is_critical(self, *at));
        for at in critical.into_iter().chain(others) {
            self.place(at);
        }
    }

    fn place(&mut self, at: usize) {
        let chunk = self.slots[at].scored.chunk.clone();
        let whole = self.price(&chunk);
        let room = self.room(at);
        if whole <= room {
            return self.show(at, State::Whole, whole);
        }
        if room < LEAST {
            self.slots[at].state = State::Out(format!("needs {} tokens, and the budget is used up", chunk.tokens));
            return;
        }
        let Some(shown) = super::truncate(&chunk, self.counter) else {
            let tokens = chunk.tokens;
            let left = self.counter.tokens_of(room);
            self.slots[at].state =
                State::Out(format!("needs {tokens} tokens, {left} are left, and cannot be truncated"));
            return;
        };
        let price = self.price(&shown);
        if price <= room {
            return self.show(at, State::Abridged(Fidelity::Outline, shown), price);
        }
        let left = self.counter.tokens_of(room);
        self.slots[at].state = State::Out(format!("its outline needs {} tokens, {left} are left", shown.tokens));
    }

    fn show(&mut self, at: usize, state: State, price: u64) {
        let heading = self.heading_price(at);
        let slot = &mut self.slots[at];
        self.used = self.used - slot.units + price + heading;
        slot.units = price + heading;
        slot.state = state;
    }

    /// What this slot may cost at most.
    fn room(&self, at: usize) -> u64 {
        (self.limit + self.slots[at].units).saturating_sub(self.used + self.heading_price(at))
    }

    fn price(&self, chunk: &ContextChunk) -> u64 {
        match self.pricing {
            Pricing::Content => self.counter.units(&chunk.content),
            Pricing::Prompt => self.counter.units(&prompt::block(chunk)),
        }
    }

    /// The heading that the first chunk of a type brings with it.
    fn heading_price(&self, at: usize) -> u64 {
        let kind = &self.slots[at].scored.chunk.chunk_type;
        let is_paid = |slot: &Slot| slot.units > 0 && slot.scored.chunk.chunk_type == *kind;
        let others = self.slots.iter().enumerate().filter(|(other, _)| *other != at);
        match self.pricing {
            Pricing::Content => 0,
            Pricing::Prompt if others.into_iter().any(|(_, slot)| is_paid(slot)) => 0,
            Pricing::Prompt => self.counter.units(&prompt::heading(kind)),
        }
    }

    /// Raises truncated chunks and takes in parts of skipped ones while there is room.
    pub fn improve(&mut self, passages: &Passages, focus: &[(String, u32)]) {
        let outlines: Vec<Option<(&'static Language, Outline)>> = self.slots.iter().map(structure).collect();
        let mut offers = Vec::new();
        for (at, structure) in outlines.iter().enumerate() {
            if let Some((_, outline)) = structure {
                offers.extend(self.offers(at, outline, passages, focus));
            }
        }
        offers.sort_by(|one, other| {
            other.value.total_cmp(&one.value).then_with(|| (one.slot, one.body).cmp(&(other.slot, other.body)))
        });
        for offer in offers.into_iter().take(MOST_OFFERS) {
            if let Some((language, outline)) = &outlines[offer.slot] {
                self.take_body(&offer, language, outline);
            }
        }
        for at in 0..self.slots.len() {
            self.take_lines(at);
        }
    }

    fn offers(&self, at: usize, outline: &Outline, passages: &Passages, focus: &[(String, u32)]) -> Vec<Offer> {
        let slot = &self.slots[at];
        let chunk = &slot.scored.chunk;
        let lines: Vec<&str> = chunk.content.split_inclusive('\n').collect();
        let first_line = chunk.metadata.get("first_line").and_then(serde_json::Value::as_u64).unwrap_or(1);
        let wanted = |body: &Range<usize>| {
            focus.iter().any(|(path, line)| {
                let line = u64::from(*line).saturating_sub(first_line);
                path == chunk.path() && (body.start as u64..body.end as u64).contains(&line)
            })
        };
        let offer = |(body, found): (usize, &super::outline::Body)| {
            let text = lines[found.lines.start.min(lines.len())..found.lines.end.min(lines.len())].concat();
            let relevance = if passages.is_empty() { 1.0 } else { passages.score_named(&found.name, &text) };
            let focused = if wanted(&found.lines) { 1e6 } else { 1.0 };
            let weight = (slot.scored.score / 1000.0).max(0.01).powi(2);
            let cost = (self.counter.units(&text) as f64).max(1.0);
            Offer { slot: at, body, value: focused * weight * relevance / cost.powf(0.35) }
        };
        outline.bodies.iter().enumerate().map(offer).collect()
    }

    fn take_body(&mut self, offer: &Offer, language: &'static Language, outline: &Outline) {
        let slot = &self.slots[offer.slot];
        let mut kept = slot.kept.clone();
        kept.insert(offer.body);
        let chunk = &slot.scored.chunk;
        let (fidelity, rendered) = match &slot.state {
            State::Whole => return,
            State::Abridged(Fidelity::Outline | Fidelity::Bodies, _) => {
                let rendered = without_bodies(language, &chunk.content, outline, |body| kept.contains(&body));
                (Fidelity::Bodies, rendered)
            }
            State::Out(_) | State::Abridged(Fidelity::Excerpt | Fidelity::Path | Fidelity::Full, _) => {
                let bodies = kept.iter().filter_map(|body| outline.bodies.get(*body));
                let ranges: Vec<Range<usize>> = bodies
                    .flat_map(|body| body.frames.iter().cloned().chain(std::iter::once(body.lines.clone())))
                    .collect();
                (Fidelity::Excerpt, only_lines(Some(language), &chunk.content, &ranges))
            }
        };
        let shown = abridged(chunk, rendered, fidelity, self.counter);
        self.offer_shown(offer.slot, fidelity, shown, kept);
    }

    /// Shows a chunk in another form if that fits; a form that costs as much as the whole becomes the whole.
    fn offer_shown(&mut self, at: usize, fidelity: Fidelity, shown: ContextChunk, kept: BTreeSet<usize>) -> bool {
        let room = self.room(at);
        let whole = self.price(&self.slots[at].scored.chunk);
        let price = self.price(&shown);
        if whole <= price.max(1) && whole <= room {
            self.show(at, State::Whole, whole);
            return true;
        }
        if price > room {
            return false;
        }
        self.slots[at].kept = kept;
        self.show(at, State::Abridged(fidelity, shown), price);
        true
    }

    /// Fills with the first lines of what is still out, or whole if that fits.
    fn take_lines(&mut self, at: usize) {
        let chunk = self.slots[at].scored.chunk.clone();
        let whole = self.price(&chunk);
        if !matches!(self.slots[at].state, State::Whole) && whole <= self.room(at) {
            return self.show(at, State::Whole, whole);
        }
        let is_out = matches!(self.slots[at].state, State::Out(_));
        if !is_out || chunk.chunk_type != ChunkType::File {
            return;
        }
        let language = chunk.language().and_then(language_named);
        let lines = chunk.content.lines().count();
        // The most lines that fit, found by halving; one line more never costs less.
        let (mut low, mut high) = (0, lines);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let shown = self.head(&chunk, language, middle);
            if self.price(&shown) <= self.room(at) { low = middle } else { high = middle - 1 }
        }
        if low >= 1 {
            let shown = self.head(&chunk, language, low);
            self.offer_shown(at, Fidelity::Excerpt, shown, BTreeSet::new());
        }
    }

    fn head(&self, chunk: &ContextChunk, language: Option<&Language>, lines: usize) -> ContextChunk {
        let rendered = only_lines(language, &chunk.content, &merged(std::slice::from_ref(&(0..lines)), lines));
        abridged(chunk, rendered, Fidelity::Excerpt, self.counter)
    }

    /// The result, in descending order of score.
    pub fn finish(self, budget: usize) -> CompressedContext {
        let mut result = CompressedContext { budget, ..CompressedContext::default() };
        for (rank, slot) in self.slots.into_iter().enumerate() {
            let critical = slot.scored.chunk.priority == ContextPriority::Critical;
            let (shown, said) = match slot.state {
                State::Whole => {
                    let reason = "fits whole".to_owned();
                    (Some(slot.scored.chunk.clone()), (Verdict::Included, Fidelity::Full, reason))
                }
                State::Abridged(fidelity, shown) => {
                    let reason = format!(
                        "shown as {}: {} of {} tokens",
                        fidelity.as_str(),
                        shown.tokens,
                        slot.scored.chunk.tokens
                    );
                    (Some(shown), (Verdict::Truncated, fidelity, reason))
                }
                State::Out(reason) => {
                    if critical {
                        let source = &slot.scored.chunk.source;
                        result.warnings.push(format!("{source} is critical and does not fit: {reason}"));
                    }
                    (None, (Verdict::Skipped, Fidelity::Path, reason))
                }
            };
            result.decisions.push(decision(rank + 1, &slot.scored, shown.as_ref(), said));
            result.chunks.extend(shown);
        }
        result.chunks_included = result.chunks.len();
        result.tokens_used = result.chunks.iter().map(|chunk| chunk.tokens).sum();
        result.utilization = if budget == 0 { 0.0 } else { result.tokens_used as f64 / budget as f64 };
        result
    }
}

fn structure(slot: &Slot) -> Option<(&'static Language, Outline)> {
    if matches!(slot.state, State::Whole) || slot.scored.chunk.chunk_type != ChunkType::File {
        return None;
    }
    let language = language_named(slot.scored.chunk.language()?)?;
    Some((language, outline(language, &slot.scored.chunk.content)?))
}
