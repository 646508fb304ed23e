//! Fills a budget with chunks: the protocol's pass, and a second one that only improves on it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::outline::{Rendered, only_lines, without_bodies};
use super::outlines::Outlines;
use super::sheet::Sheet;
use super::{Structure, abridged, decision, longest_note};
use crate::chunk::{ChunkType, CompressedContext, ContextChunk, ContextPriority, Fidelity, ScoredChunk, Verdict};
use crate::language::language_named;
use crate::parallel::parallel;
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

/// What a fill works with.
#[derive(Debug, Clone, Copy)]
pub struct Means<'a> {
    pub counter: &'a dyn TokenCounter,
    pub outlines: &'a Outlines,
    pub threads: usize,
}

/// A budget that is being filled.
#[derive(Debug)]
pub struct Fill<'a> {
    means: Means<'a>,
    pricing: Pricing,
    limit: u64,
    used: u64,
    slots: Vec<Slot>,
    has_structures: bool,
}

#[derive(Debug)]
struct Slot {
    scored: ScoredChunk,
    /// The price of the whole chunk.
    whole: u64,
    state: State,
    /// Bodies that are shown.
    kept: BTreeSet<usize>,
    units: u64,
    structure: Option<Structure>,
    sheet: Option<Sheet>,
}

#[derive(Debug)]
enum State {
    Out(String),
    Whole,
    /// As the first pass left it.
    Outline(ContextChunk),
    /// The bodies that are kept, the rest outlined.
    Bodies,
    /// These lines and nothing else.
    Excerpt(Vec<Range<usize>>),
}

/// A body that could be shown.
struct Offer {
    slot: usize,
    body: usize,
    value: f64,
    characters: usize,
}

/// Less room than this holds no outline.
const LEAST: u64 = 16;

/// Lines that a second pass must not look for forever.
const MOST_OFFERS: usize = 4000;

/// A token of code is never this long for the length of a body.
const LONGEST_TOKEN: usize = 16;

impl<'a> Fill<'a> {
    pub fn new(mut chunks: Vec<ScoredChunk>, means: Means<'a>, pricing: Pricing, limit: u64) -> Self {
        sort(&mut chunks);
        let slot = |scored: ScoredChunk| Slot {
            whole: price(&scored.chunk, pricing, means.counter),
            scored,
            state: State::Out("not looked at".to_owned()),
            kept: BTreeSet::new(),
            units: 0,
            structure: None,
            sheet: None,
        };
        let slots = chunks.into_iter().map(slot).collect();
        Self { means, pricing, limit, used: 0, slots, has_structures: false }
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
        let (whole, room) = (self.slots[at].whole, self.room(at));
        if whole <= room {
            return self.show(at, State::Whole, whole);
        }
        let chunk = &self.slots[at].scored.chunk;
        if room < LEAST {
            self.slots[at].state = State::Out(format!("needs {} tokens, and the budget is used up", chunk.tokens));
            return;
        }
        let left = self.means.counter.tokens_of(room);
        self.find_structures();
        let slot = &self.slots[at];
        let chunk = &slot.scored.chunk;
        let shown =
            slot.structure.as_ref().and_then(|structure| super::truncated(chunk, structure, self.means.counter));
        let Some(shown) = shown else {
            let tokens = chunk.tokens;
            self.slots[at].state =
                State::Out(format!("needs {tokens} tokens, {left} are left, and cannot be truncated"));
            return;
        };
        let price = price(&shown, self.pricing, self.means.counter);
        if price <= room {
            return self.show(at, State::Outline(shown), price);
        }
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

    /// The heading that the first chunk of a type brings with it.
    fn heading_price(&self, at: usize) -> u64 {
        let kind = &self.slots[at].scored.chunk.chunk_type;
        let has_own = self.pricing == Pricing::Content || matches!(kind, ChunkType::File | ChunkType::Structure);
        let is_paid = |slot: &Slot| slot.units > 0 && slot.scored.chunk.chunk_type == *kind;
        let others = self.slots.iter().enumerate().filter(|(other, _)| *other != at);
        if has_own || others.into_iter().any(|(_, slot)| is_paid(slot)) {
            return 0;
        }
        self.means.counter.units(&prompt::heading(kind))
    }

    /// Raises truncated chunks and takes in parts of skipped ones while there is room.
    pub fn improve(&mut self, passages: &Passages, focus: &[(String, u32)]) {
        self.find_structures();
        let numbered: Vec<(usize, &Slot)> = self.slots.iter().enumerate().collect();
        let offers = parallel(self.means.threads, &numbered, |(at, slot)| offers(*at, slot, passages, focus));
        let mut offers: Vec<Offer> = offers.into_iter().flatten().collect();
        offers.sort_by(|one, other| {
            other.value.total_cmp(&one.value).then_with(|| (one.slot, one.body).cmp(&(other.slot, other.body)))
        });
        for offer in offers.into_iter().take(MOST_OFFERS) {
            self.take_body(&offer);
        }
        for at in 0..self.slots.len() {
            self.take_lines(at);
        }
    }

    /// Finds the structure of everything that is not shown whole by now, all at once: the passes go one by one.
    fn find_structures(&mut self) {
        if !self.has_structures {
            let outlines = self.means.outlines;
            let structures = parallel(self.means.threads, &self.slots, |slot| structure(slot, outlines));
            self.slots.iter_mut().zip(structures).for_each(|(slot, structure)| slot.structure = structure);
            self.has_structures = true;
        }
    }

    fn take_body(&mut self, offer: &Offer) {
        let room = self.room(offer.slot);
        let is_hopeless = offer.characters > (self.means.counter.tokens_of(room) + 4) * LONGEST_TOKEN;
        let slot = &self.slots[offer.slot];
        let Some((language, outline)) = slot.structure.clone().filter(|_| !is_hopeless) else { return };
        let mut kept = slot.kept.clone();
        kept.insert(offer.body);
        let counter = self.means.counter;
        let (state, price) = match &slot.state {
            State::Whole => return,
            State::Outline(_) | State::Bodies => {
                let price = self.sheet(offer.slot).with_bodies((language, &outline), &kept, counter);
                (State::Bodies, price)
            }
            State::Out(_) | State::Excerpt(_) => {
                let bodies = kept.iter().filter_map(|body| outline.bodies.get(*body));
                let ranges: Vec<Range<usize>> = bodies
                    .flat_map(|body| body.frames.iter().cloned().chain(std::iter::once(body.lines.clone())))
                    .collect();
                let price = self.sheet(offer.slot).with_lines(Some(language), &ranges, counter);
                (State::Excerpt(ranges), price)
            }
        };
        if self.settle(offer.slot, state, price) {
            self.slots[offer.slot].kept = kept;
        }
    }

    fn sheet(&mut self, at: usize) -> &mut Sheet {
        let Self { means, pricing, slots, .. } = self;
        let Slot { scored, sheet, structure, .. } = &mut slots[at];
        sheet.get_or_insert_with(|| {
            let chunk = &scored.chunk;
            let bodies = structure.as_ref().map_or(0, |(_, outline)| outline.bodies.len());
            let around = match pricing {
                Pricing::Content => String::new(),
                Pricing::Prompt => prompt::surroundings(chunk),
            };
            let frame = means.counter.units(&around) + means.counter.units(&longest_note(chunk, bodies));
            Sheet::new(chunk, frame, means.counter)
        })
    }

    /// Shows a chunk in another form if that fits; a form that costs as much as the whole becomes the whole.
    fn settle(&mut self, at: usize, state: State, price: u64) -> bool {
        let (room, whole) = (self.room(at), self.slots[at].whole);
        if whole <= price.max(1) && whole <= room {
            self.show(at, State::Whole, whole);
            return true;
        }
        if price > room {
            return false;
        }
        self.show(at, state, price);
        true
    }

    /// Fills with the first lines of what is still out, or whole if that fits.
    fn take_lines(&mut self, at: usize) {
        let (whole, room) = (self.slots[at].whole, self.room(at));
        if !matches!(self.slots[at].state, State::Whole) && whole <= room {
            return self.show(at, State::Whole, whole);
        }
        let slot = &self.slots[at];
        let is_out = matches!(slot.state, State::Out(_));
        if !is_out || slot.scored.chunk.chunk_type != ChunkType::File || room < LEAST {
            return;
        }
        let language = slot.scored.chunk.language().and_then(language_named);
        let lines = slot.scored.chunk.content.lines().count();
        let counter = self.means.counter;
        let sheet = self.sheet(at);
        let price_of = |lines: usize| sheet.with_lines(language, std::slice::from_ref(&(0..lines)), counter);
        // The most lines that fit, found by halving; one line more never costs less.
        let (mut low, mut high) = (0, lines);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if price_of(middle) <= room { low = middle } else { high = middle - 1 }
        }
        let price = price_of(low);
        if low >= 1 {
            self.settle(at, State::Excerpt(std::iter::once(0..low).collect()), price);
        }
    }

    /// The result, in descending order of score.
    pub fn finish(self, budget: usize) -> CompressedContext {
        let mut result = CompressedContext { budget, ..CompressedContext::default() };
        for (rank, slot) in self.slots.into_iter().enumerate() {
            let critical = slot.scored.chunk.priority == ContextPriority::Critical;
            let (shown, said) = match slot.shown(self.means.counter) {
                Ok((Fidelity::Full, shown)) => {
                    (Some(shown), (Verdict::Included, Fidelity::Full, "fits whole".to_owned()))
                }
                Ok((fidelity, shown)) => {
                    let all = slot.scored.chunk.tokens;
                    let reason = format!("shown as {}: {} of {all} tokens", fidelity.as_str(), shown.tokens);
                    (Some(shown), (Verdict::Truncated, fidelity, reason))
                }
                Err(reason) => {
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

impl Slot {
    /// What is shown of the chunk, or the reason why nothing is.
    fn shown(&self, counter: &dyn TokenCounter) -> Result<(Fidelity, ContextChunk), String> {
        let chunk = &self.scored.chunk;
        let (language, outline) = match &self.structure {
            Some((language, outline)) => (Some(*language), Some(outline)),
            None => (chunk.language().and_then(language_named), None),
        };
        let made = |rendered: Rendered, fidelity| Ok((fidelity, abridged(chunk, rendered, fidelity, counter)));
        match (&self.state, language, outline) {
            (State::Out(reason), ..) => Err(reason.clone()),
            (State::Outline(shown), ..) => Ok((Fidelity::Outline, shown.clone())),
            (State::Bodies, Some(language), Some(outline)) => {
                let keep = |body| self.kept.contains(&body);
                made(without_bodies(language, &chunk.content, outline, keep), Fidelity::Bodies)
            }
            (State::Excerpt(lines), language, _) => {
                made(only_lines(language, &chunk.content, lines), Fidelity::Excerpt)
            }
            (State::Whole, ..) | (State::Bodies, ..) => Ok((Fidelity::Full, chunk.clone())),
        }
    }
}

fn price(chunk: &ContextChunk, pricing: Pricing, counter: &dyn TokenCounter) -> u64 {
    match (pricing, counter.known_units(chunk.tokens)) {
        (Pricing::Content, _) => counter.units(&chunk.content),
        (Pricing::Prompt, None) => counter.units(&prompt::block(chunk)),
        (Pricing::Prompt, Some(known)) => known + counter.units(&prompt::surroundings(chunk)),
    }
}

fn structure(slot: &Slot, outlines: &Outlines) -> Option<Structure> {
    if matches!(slot.state, State::Whole) {
        return None;
    }
    super::structure(&slot.scored.chunk, outlines)
}

fn offers(at: usize, slot: &Slot, passages: &Passages, focus: &[(String, u32)]) -> Vec<Offer> {
    let is_file = slot.scored.chunk.chunk_type == ChunkType::File;
    let structure = slot.structure.as_ref().filter(|_| is_file && !matches!(slot.state, State::Whole));
    let Some((_, outline)) = structure else { return Vec::new() };
    let chunk = &slot.scored.chunk;
    let starts = crate::text::line_starts(&chunk.content);
    let marks = passages.marks(&chunk.content);
    let start_of = |line: usize| starts[line.min(starts.len() - 1)];
    let first_line = chunk.metadata.get("first_line").and_then(serde_json::Value::as_u64).unwrap_or(1);
    let wanted = |body: &Range<usize>| {
        focus.iter().any(|(path, line)| {
            let line = u64::from(*line).saturating_sub(first_line);
            path == chunk.path() && (body.start as u64..body.end as u64).contains(&line)
        })
    };
    let offer = |(body, found): (usize, &super::outline::Body)| {
        let bytes = start_of(found.lines.start)..start_of(found.lines.end);
        let relevance = if passages.is_empty() { 1.0 } else { passages.score_named(&found.name, &marks, &bytes) };
        let focused = if wanted(&found.lines) { 1e6 } else { 1.0 };
        let weight = (slot.scored.score / 1000.0).max(0.01).powi(2);
        let characters = chunk.content[bytes].chars().count();
        let value = focused * weight * relevance / (characters as f64).max(1.0).powf(0.35);
        Offer { slot: at, body, value, characters }
    };
    outline.bodies.iter().enumerate().map(offer).collect()
}
