//! `sprite checkpoint`, `restore`, `stop`, `destroy` and `gc`.

use std::collections::{BTreeMap, BTreeSet};

use lattice_engine::Outcome;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_sprites::run::{
    Collect, Happening, Inside, SpritePlace, Verdict, look_inside, next, recover, remove_base, stop as stop_supervisor,
    supervisor,
};
use lattice_sprites::store::{Sprite, SpriteState, Store};

use super::Unlanded;
use super::documents::{SpriteGcDocument, SpriteManageDocument};
use super::look::{find, is_destroyed};
use crate::app::App;
use crate::cli::Preview;
use crate::commands::run;
use crate::error::Failure;
use crate::output::{Reply, printable};

pub(super) fn checkpoint(app: &App, id: &str) -> Result<Reply, Failure> {
    let (_, sprite) = find(app, id)?;
    if supervisor(&sprite).is_none() {
        return Err(Failure::new(
            "not-running",
            format!("`{id}` does not run; its files are as its last checkpoint or its end left them"),
        ));
    }
    run::asked(&place(app, &sprite)?.mail())
}

pub(super) fn restore(app: &App, id: &str, checkpoint: &str) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    refuse_running(&sprite)?;
    check_owned(&store, &sprite, checkpoint)?;
    let place = place(app, &sprite)?;
    let _held = run::hold(&place)?;
    place.restore(checkpoint)?;
    Ok(done(&sprite, "restored", Vec::new(), format!("{id} is as it was at {checkpoint}\n")))
}

pub(super) fn stop(app: &App, id: &str) -> Result<Reply, Failure> {
    let (mut store, sprite) = find(app, id)?;
    let place = place(app, &sprite)?;
    if next(sprite.state, Happening::Ended(Verdict::Stopped)).is_none() {
        return Err(Failure::new("not-running", format!("`{id}` is {}", sprite.state.as_str())));
    }
    stop_supervisor(&sprite).map_err(|error| Failure::new("io", format!("`{id}` could not be ended: {error}")))?;
    let _held = run::hold(&place)?;
    recover(&place, &sprite, &mut store, app.now.as_str())?;
    let landing = run::land_work(app, &store, (&place, &sprite), Collect::Everything)?;
    let at = app.clock();
    store.set_state(sprite.key, SpriteState::Stopped, Some("stopped by a person"), at.as_str())?;
    let branches: Vec<_> = landing.branches.iter().map(|landed| landed.branch.to_string()).collect();
    let text = format!("{id} stopped\n{}", branches.iter().map(|name| format!("  {name}\n")).collect::<String>());
    Ok(run::left::noted(done(&sprite, "stopped", branches, text), id, &landing.uncommitted))
}

pub(super) fn destroy(app: &App, id: &str, unlanded: Unlanded) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    refuse_running(&sprite)?;
    let place = place(app, &sprite)?;
    refuse_destroyed(app, (&place, &sprite))?;
    let _held = place.own.exists().then(|| run::hold(&place)).transpose()?;
    let (mut branches, mut lost) = (Vec::new(), Vec::new());
    match unlanded {
        // What is on no branch yet is landed first; what cannot be landed is not removed.
        Unlanded::Refuse => branches = landed(app, &store, (&place, &sprite))?,
        Unlanded::Drop => lost = only_inside(app, (&place, &sprite)),
    }
    remove(app, &store, (&place, &sprite))?;
    let mut text = format!("{id} destroyed; its events stay\n");
    branches.iter().for_each(|branch| text.push_str(&format!("  landed before: {branch}\n")));
    lost.iter().for_each(|branch| text.push_str(&format!("  lost: {branch}\n")));
    let document = SpriteManageDocument { sprite: sprite.name.clone(), done: "destroyed", branches, lost };
    Ok(Reply::new(document, text).story())
}

/// A removal that was cut off after the files still has a base to let go, and is finished.
fn refuse_destroyed(app: &App, (place, sprite): (&SpritePlace, &Sprite)) -> Result<(), Failure> {
    let id = &sprite.name;
    let base = app.engine()?.find_commit(&format!("refs/lattice/sprites/{id}/base"));
    if is_destroyed(place, sprite) && base.is_none() {
        let failure = Failure::new("destroyed", format!("`{id}` is destroyed already"));
        return Err(failure.hint(format!("its events stay: lattice sprite events {id}")));
    }
    Ok(())
}

/// Removes the files of a sprite, and lets its base go.
fn remove(app: &App, store: &Store, (place, sprite): (&SpritePlace, &Sprite)) -> Result<(), Failure> {
    let id = &sprite.name;
    place
        .destroy()
        .map_err(|error| Failure::new("io", format!("the files of `{id}` could not be removed: {error}")))?;
    let base = Oid::new(&sprite.base).map_err(|error| Failure::new("store", error.to_string()))?;
    if let Outcome::Gated(bundle) = app.later().engine()?.for_sprite(id).release_base(id, base)? {
        return Err(bundle.into());
    }
    if !sprite.state.is_over() {
        store.set_state(sprite.key, SpriteState::Stopped, Some("destroyed"), app.clock().as_str())?;
    }
    Ok(())
}

/// Lands what a sprite has, and names the branches that moved; refused if something is left that cannot be landed.
fn landed(app: &App, store: &Store, (place, sprite): (&SpritePlace, &Sprite)) -> Result<Vec<String>, Failure> {
    if !place.own.exists() {
        return Ok(Vec::new());
    }
    let landing = run::land_work(app, store, (place, sprite), Collect::Everything)?;
    run::left::refuse(&sprite.name, &landing.uncommitted)?;
    Ok(landing.branches.iter().map(|landed| landed.branch.to_string()).collect())
}

/// Branches whose commits are in the sprite and nowhere else. A sprite that cannot be read has nothing to name.
fn only_inside(app: &App, (place, sprite): (&SpritePlace, &Sprite)) -> Vec<String> {
    let (Ok(inside), Ok(engine)) = (inside(place, sprite), app.engine()) else { return Vec::new() };
    let unknown = inside.branches.into_iter().filter(|(_, tip)| engine.find_commit(&tip.to_string()).is_none());
    unknown.map(|(name, tip)| format!("{} at {}", printable(&name), tip.short())).collect()
}

/// The branches that would be landed before a sprite is removed; refused if something is left that cannot be landed.
fn would_land(app: &App, (place, sprite): (&SpritePlace, &Sprite)) -> Result<Vec<String>, Failure> {
    let engine = app.engine()?;
    let inside = inside(place, sprite)?;
    run::left::refuse(&sprite.name, &inside.uncommitted)?;
    let unknown = inside.branches.into_iter().filter(|(_, tip)| engine.find_commit(&tip.to_string()).is_none());
    Ok(unknown.map(|(name, _)| printable(&name)).collect())
}

fn inside(place: &SpritePlace, sprite: &Sprite) -> Result<Inside, Failure> {
    let base = Oid::new(&sprite.base).map_err(|error| Failure::new("store", error.to_string()))?;
    let own = BranchName::new(&sprite.branch).map_err(|error| Failure::new("store", error.to_string()))?;
    Ok(look_inside(place, &own, base)?)
}

/// Removes what nobody needs: files of sprites that are over and landed, and checkouts without sprites.
pub(super) fn gc(app: &App, preview: Preview) -> Result<Reply, Failure> {
    let mut document =
        SpriteGcDocument { sprites: Vec::new(), landed: Vec::new(), checkouts: Vec::new(), kept: BTreeMap::new() };
    let Some(store) = super::store(app)? else { return Ok(Reply::new(document, "").note("there are no sprites")) };
    let mut used = Vec::new();
    let mut folders = BTreeSet::new();
    for sprite in store.sprites()? {
        let place = place(app, &sprite)?;
        folders.insert(place.all.clone());
        if !place.own.exists() {
            continue;
        }
        match unneeded(app, &store, (&place, &sprite), preview) {
            Ok(branches) => {
                document.sprites.push(sprite.name.clone());
                document.landed.extend(branches);
            }
            Err(why) => {
                used.push(sprite.base.clone());
                document.kept.insert(sprite.name.clone(), why);
            }
        }
    }
    for path in folders.iter().flat_map(|all| SpritePlace::unused_bases(all, &used)) {
        if !preview.dry_run {
            remove_base(&path).map_err(|error| Failure::new("io", format!("{} stays: {error}", path.display())))?;
        }
        document.checkouts.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    let (removed, landed, kept) =
        if preview.dry_run { ("would remove", "would land", "would keep") } else { ("removed", "landed", "kept") };
    let mut text: String = document.sprites.iter().map(|name| format!("{removed} {name}\n")).collect();
    document.landed.iter().for_each(|branch| text.push_str(&format!("{landed} {branch} before\n")));
    document.checkouts.iter().for_each(|commit| text.push_str(&format!("{removed} the checkout of {commit}\n")));
    document.kept.iter().for_each(|(name, why)| text.push_str(&format!("{kept} {name}: {}\n", printable(why))));
    let reply = Reply::new(document, text);
    Ok(if preview.dry_run { reply.note("this was a dry run: nothing was removed") } else { reply })
}

/// Lands and removes a sprite that is over, and names the branches that moved; else says why it stays.
fn unneeded(
    app: &App,
    store: &Store,
    (place, sprite): (&SpritePlace, &Sprite),
    preview: Preview,
) -> Result<Vec<String>, String> {
    if !sprite.state.is_over() {
        return Err(format!("it is {}", sprite.state.as_str()));
    }
    let actions = store.actions(Some(sprite.key)).map_err(|error| error.to_string())?;
    if actions.iter().any(|row| !row.state.is_settled()) {
        return Err("it asks for something: lattice approvals".to_owned());
    }
    let _held = run::hold(place).map_err(|failure| failure.message)?;
    let cannot_land = |failure: Failure| format!("its work cannot be landed: {}", failure.message);
    if preview.dry_run {
        return would_land(app, (place, sprite)).map_err(cannot_land);
    }
    let branches = landed(app, store, (place, sprite)).map_err(cannot_land)?;
    remove(app, store, (place, sprite)).map_err(|failure| failure.message)?;
    Ok(branches)
}

pub(crate) fn place(app: &App, sprite: &Sprite) -> Result<SpritePlace, Failure> {
    run::place(app, sprite)
}

pub(super) fn refuse_running(sprite: &Sprite) -> Result<(), Failure> {
    match supervisor(sprite) {
        None => Ok(()),
        Some(_) => Err(Failure::new("running", format!("`{}` runs", sprite.name))
            .hint(format!("lattice sprite stop {}", sprite.name))),
    }
}

/// A checkpoint is this sprite's own or none.
pub(super) fn check_owned(store: &Store, sprite: &Sprite, checkpoint: &str) -> Result<(), Failure> {
    if store.checkpoints(sprite.key)?.iter().any(|row| row.id == checkpoint) {
        return Ok(());
    }
    Err(Failure::new("no-such-checkpoint", format!("`{}` has no checkpoint `{checkpoint}`", sprite.name))
        .hint(format!("lattice sprite show {}", sprite.name)))
}

fn done(sprite: &Sprite, done: &'static str, branches: Vec<String>, text: String) -> Reply {
    Reply::new(SpriteManageDocument { sprite: sprite.name.clone(), done, branches, lost: Vec::new() }, text).story()
}
