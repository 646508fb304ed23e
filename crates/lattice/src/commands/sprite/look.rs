//! `sprite list`, `show`, `events` and `artifacts`: what is known of sprites.

use lattice_model::name::BranchName;
use lattice_sprites::checkpoint::{Difference, ManifestError, difference, difference_left, difference_since};
use lattice_sprites::run::{SpritePlace, supervisor};
use lattice_sprites::sandbox::Isolation;
use lattice_sprites::store::{Sprite, SpriteState, Store, StoreError};
use serde_json::Value;

use super::documents::{
    ActionDocument, ArtifactDocument, BranchState, CheckpointDocument, EventDocument, NoticeDocument,
    SpriteArtifactsDocument, SpriteDiffDocument, SpriteDocument, SpriteEventsDocument, SpriteListDocument,
    SpriteLogsDocument, SpriteShowDocument, ViolationDocument,
};
use super::store;
use crate::app::{App, Format};
use crate::commands::run;
use crate::error::Failure;
use crate::output::table::table;
use crate::output::{Reply, out, printable};

/// So many events are read at once.
const PAGE: u64 = 1000;

pub(super) fn list(app: &App) -> Result<Reply, Failure> {
    let sprites = match store(app)? {
        Some(store) => store.sprites()?,
        None => Vec::new(),
    };
    let branches = app.engine()?.branches()?;
    let sprites: Vec<_> =
        sprites.iter().map(|sprite| document(app, sprite, &branches)).collect::<Result<_, Failure>>()?;
    let row = |sprite: &SpriteDocument| {
        let phase = sprite.phase.as_deref().map(|phase| format!(" ({})", printable(phase))).unwrap_or_default();
        let outcome = sprite.outcome.as_deref().map(|text| format!(": {}", first_line(text))).unwrap_or_default();
        let bare = if sprite.sandbox == Isolation::None.as_str() { " (no sandbox)" } else { "" };
        let left = format!("{}{}", branch_remark(sprite), if sprite.destroyed { " (destroyed)" } else { "" });
        let rest = format!("{}{bare}{left}{phase}{outcome}", sprite.branch);
        vec![sprite.id.clone(), sprite.state.to_owned(), rest]
    };
    let text = table(&sprites.iter().map(row).collect::<Vec<_>>(), app.style);
    let notes: Vec<_> = sprites.iter().filter_map(way_on).collect();
    let reply = Reply::new(SpriteListDocument { sprites }, text.clone());
    Ok(if text.is_empty() {
        reply.note("there are no sprites yet; lattice run \"TEXT\" -- CMD starts one")
    } else {
        notes.into_iter().fold(reply, Reply::note)
    })
}

/// A sprite with what is left of it in the repository.
fn document(app: &App, sprite: &Sprite, branches: &[BranchName]) -> Result<SpriteDocument, Failure> {
    let place = run::place(app, sprite)?;
    let branch = match branches.iter().any(|branch| branch.as_str() == sprite.branch) {
        true => BranchState::Here,
        false if run::recorded(sprite)["landed"][&sprite.branch].is_string() => BranchState::Gone,
        false => BranchState::NotLanded,
    };
    Ok(SpriteDocument { destroyed: is_destroyed(&place, sprite), branch_state: branch, ..SpriteDocument::of(sprite) })
}

/// Whether the files of a sprite were removed.
pub(super) fn is_destroyed(place: &SpritePlace, sprite: &Sprite) -> bool {
    sprite.state.is_over() && !place.own.exists()
}

/// Whether the branch of a sprite is one of yours.
fn branch_remark(sprite: &SpriteDocument) -> &'static str {
    match sprite.branch_state {
        BranchState::Here => "",
        BranchState::NotLanded => " (not landed)",
        BranchState::Gone => " (gone)",
    }
}

/// What can be done with a sprite that nothing comes from by itself.
fn way_on(sprite: &SpriteDocument) -> Option<String> {
    (sprite.state == SpriteState::Interrupted.as_str()).then(|| interrupted(&sprite.id))
}

/// What can be done with a sprite that was interrupted.
pub(crate) fn interrupted(id: &str) -> String {
    format!("{id} was interrupted: lattice resume {id} goes on, lattice sprite stop {id} lands what is there")
}

pub(super) fn show(app: &App, id: &str) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    let notices = store.notices(sprite.key)?;
    let document = SpriteShowDocument {
        sprite: document(app, &sprite, &app.engine()?.branches()?)?,
        task: sprite.task.clone(),
        checkpoints: store.checkpoints(sprite.key)?.into_iter().map(CheckpointDocument::of).collect(),
        violations: store.violations(sprite.key)?.into_iter().map(ViolationDocument::of).collect(),
        actions: store.actions(Some(sprite.key))?.into_iter().map(ActionDocument::of).collect(),
        notices: notices.into_iter().map(|(at, message)| NoticeDocument { at, message }).collect(),
        run: serde_json::from_str(&sprite.run).unwrap_or_default(),
    };
    let text = show_text(&document);
    let note = way_on(&document.sprite);
    Ok(note.into_iter().fold(Reply::new(document, text), Reply::note))
}

/// What a sprite may reach, if that is anything.
fn reach(run: &Value) -> Option<String> {
    if run["sandbox"] == Isolation::None.as_str() {
        return run["network"].as_str().map(printable);
    }
    let hosts = run["network"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let key = run["key"].as_str().map(|url| format!("{url} with a key"));
    let all: Vec<_> = hosts.chain(key).collect();
    (!all.is_empty()).then(|| printable(&all.join(", ")))
}

fn show_text(document: &SpriteShowDocument) -> String {
    let sprite = &document.sprite;
    let optional = |value: &Option<String>| value.as_deref().map(printable);
    let lines = [
        ("state", Some(sprite.state.to_owned())),
        ("outcome", optional(&sprite.outcome)),
        ("task", Some(printable(&document.task))),
        ("work item", Some(printable(&sprite.work_item_id))),
        ("branch", Some(format!("{}{} on {}", sprite.branch, branch_remark(sprite), sprite.parent))),
        ("files", sprite.destroyed.then(|| "removed; events stay".to_owned())),
        ("agent", Some(printable(&sprite.agent))),
        ("sandbox", run::bare::described(&document.run).as_deref().map(printable)),
        ("limits", document.run["limits"]["by"].as_str().map(printable)),
        ("network", reach(&document.run)),
        ("phase", optional(&sprite.phase)),
        ("events", Some(sprite.events.to_string())),
        ("started", Some(sprite.started_at.clone())),
        ("ended", sprite.ended_at.clone()),
    ];
    let mut text = format!("{}\n", sprite.id);
    for (name, value) in lines {
        text.extend(value.map(|value| format!("  {name:<10} {}\n", value.replace('\n', "\n             "))));
    }
    for checkpoint in &document.checkpoints {
        let cost = checkpoint.bytes.zip(checkpoint.pause_us);
        let cost = cost.map(|(bytes, pause)| format!(", {} kB in {} ms", bytes.div_ceil(1000), pause.div_ceil(1000)));
        let cost = cost.unwrap_or_default();
        text.push_str(&format!("  checkpoint {} at {}{cost}\n", checkpoint.id, checkpoint.made_at));
    }
    for action in &document.actions {
        let reason = action.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
        text.push_str(&format!("  action {} {} {}{reason}\n", action.id, printable(&action.action), action.state));
    }
    for notice in &document.notices {
        text.push_str(&format!("  says at {}: {}\n", notice.at, printable(&notice.message)));
    }
    for violation in &document.violations {
        text.push_str(&format!("  {} {}: {}\n", violation.weight, violation.rule, printable(&violation.detail)));
    }
    text
}

pub(super) fn events(app: &App, id: &str) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    let mut events = Vec::new();
    loop {
        let after = events.last().map_or(0, |event: &EventDocument| event.seq);
        let page = store.events(sprite.key, after, PAGE)?;
        if page.is_empty() {
            break;
        }
        events.extend(page.into_iter().map(EventDocument::of));
    }
    let text: String = events.iter().map(event_line).collect();
    Ok(Reply::new(SpriteEventsDocument { events }, text))
}

/// Follows a sprite and shows what became of it, which one without events has nothing else to say about.
pub(super) fn show_followed(app: &App, id: &str) -> Result<Reply, Failure> {
    let followed = follow(app, id)?;
    match app.format {
        Format::Human => show(app, id),
        // One object per line, each of them an event.
        Format::Json => Ok(followed),
    }
}

/// Prints events as they are stored, until the sprite is over or nobody watches it any more.
pub(super) fn follow(app: &App, id: &str) -> Result<Reply, Failure> {
    let (mut store, _) = find(app, id)?;
    let mut after = 0;
    loop {
        let mut sprite = store.sprite(id)?;
        if sprite.state == SpriteState::Running && supervisor(&sprite).is_none() {
            (store, sprite) = find(app, id)?;
        }
        let page = store.events(sprite.key, after, PAGE)?;
        for event in page.into_iter().map(EventDocument::of) {
            after = event.seq;
            out(&match app.format {
                Format::Human => event_line(&event),
                Format::Json => format!("{}\n", serde_json::to_string(&event).unwrap_or_default()),
            });
        }
        let nothing_comes = sprite.state.is_over() || sprite.state == SpriteState::Interrupted;
        if nothing_comes && sprite.events <= after {
            return Ok(Reply::said());
        }
        app.pause();
    }
}

pub(super) fn artifacts(app: &App, id: &str) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    let rows = store.artifacts(sprite.key)?;
    let line = |row: &lattice_sprites::store::ArtifactRow| {
        let place = row.reference.as_deref().or(row.url.as_deref()).unwrap_or_default();
        vec![printable(&row.kind), printable(place)]
    };
    let text = table(&rows.iter().map(line).collect::<Vec<_>>(), app.style);
    let artifacts = rows.into_iter().map(ArtifactDocument::of).collect();
    Ok(Reply::new(SpriteArtifactsDocument { work_item_id: sprite.work_item_id, artifacts }, text))
}

pub(super) fn logs(app: &App, id: &str) -> Result<Reply, Failure> {
    let (_, sprite) = find(app, id)?;
    let path = run::place(app, &sprite)?.log();
    let bytes = std::fs::read(&path).unwrap_or_default();
    let log = String::from_utf8_lossy(&bytes).into_owned();
    let text = printable(&log);
    Ok(Reply::new(SpriteLogsDocument { log }, text))
}

pub(super) fn diff(app: &App, id: &str, since: Option<&str>) -> Result<Reply, Failure> {
    let (_, sprite) = find(app, id)?;
    let place = run::place(app, &sprite)?;
    let isolation = run::bare::isolation(&sprite);
    if since.is_none() && isolation == Isolation::None {
        // Without layers a checkpoint is everything that is there.
        let failure = Failure::new("needs-sandbox", format!("`{id}` has no sandbox, so its checkpoints know no base"));
        return Err(failure.hint(format!("lattice sprite diff {id} --since CHECKPOINT compares two of them")));
    }
    if is_destroyed(&place, &sprite) {
        let failure = Failure::new("destroyed", format!("`{id}` is destroyed, and its files with it"));
        return Err(failure.hint(format!("what it landed: lattice info {} --stat", sprite.branch)));
    }
    let is_running = supervisor(&sprite).is_some();
    // What runs may change while it is looked at, so that has to be frozen first.
    let checkpoint = match isolation {
        Isolation::None => sprite.checkpoint.clone(),
        Isolation::Strict => sprite.checkpoint.clone().filter(|_| is_running),
    };
    let (upper, base) = (place.own.join("upper"), place.all.join("base").join(&sprite.base));
    let unknown = |error: ManifestError| {
        Failure::new("no-such-checkpoint", error.to_string()).hint(format!("lattice sprite show {id}"))
    };
    let files = match (&checkpoint, since) {
        (Some(checkpoint), _) => {
            let base = (isolation == Isolation::Strict).then_some(base.as_path());
            difference(&place.packs(), since, checkpoint, base).map_err(unknown)?
        }
        (None, _) if is_running => {
            return Err(Failure::new("no-checkpoint", format!("`{id}` runs and has no checkpoint"))
                .hint(format!("lattice sprite checkpoint {id}")));
        }
        (None, Some(_)) if sprite.checkpoint.is_none() => {
            return Err(Failure::new("no-such-checkpoint", format!("`{id}` has no checkpoint"))
                .hint(format!("lattice sprite diff {id} compares what it left with its base")));
        }
        (None, Some(since)) => difference_since(&place.packs(), since, (&upper, &base)).map_err(unknown)?,
        (None, None) => difference_left(&upper, &base)
            .map_err(|error| Failure::new("io", format!("the files of `{id}` cannot be read: {error}")))?,
    };
    let word = |difference| match difference {
        Difference::Added => "added",
        Difference::Changed => "changed",
        Difference::Removed => "removed",
    };
    let files: std::collections::BTreeMap<_, _> = files.into_iter().map(|(path, is)| (path, word(is))).collect();
    let text: String = files.iter().map(|(path, is)| format!("{is:<8} {}\n", printable(path))).collect();
    let later = checkpoint
        .as_ref()
        .filter(|_| is_running)
        .map(|checkpoint| format!("what it did since {checkpoint} is not shown: lattice sprite checkpoint {id}"));
    let document = SpriteDiffDocument { checkpoint, since: since.map(str::to_owned), files };
    Ok(later.into_iter().fold(Reply::new(document, text), Reply::note))
}

/// The sprite with this name, and the store it is in.
pub(super) fn find(app: &App, id: &str) -> Result<(Store, Sprite), Failure> {
    let store = store(app)?
        .ok_or_else(|| Failure::from(StoreError::NoSuchSprite { name: id.to_owned(), meant: String::new() }))?;
    let sprite = store.sprite(id)?;
    Ok((store, sprite))
}

/// One event for people: number, time, type, and what it says.
pub(crate) fn event_line(event: &EventDocument) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let envelope = &event.envelope;
    let payload = &envelope["payload"];
    let main = ["message", "phase", "action", "reason", "status", "kind"];
    let said = main.iter().find_map(|name| text(&payload[*name]));
    let more = ["summary", "ref", "checkpoint_id", "success"];
    let more = more.iter().find_map(|name| match &payload[*name] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    let said = said.or_else(|| text(&payload["suggested_adjustment"]["type"])).unwrap_or_default();
    let more = more.map(|more| format!(" ({})", first_line(&more))).unwrap_or_default();
    let time = text(&envelope["timestamp"]).unwrap_or_default();
    let kind = text(&envelope["event_type"]).unwrap_or_default();
    format!("{:>5} {} {kind:<20} {}{more}\n", event.seq, printable(&time), first_line(&said))
}

/// The beginning of a text that may be long.
fn first_line(text: &str) -> String {
    const MOST: usize = 160;
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(MOST).collect();
    let cut = if short.len() < text.trim_end().len() { "…" } else { "" };
    format!("{}{cut}", printable(&short))
}
