//! `sprite checkpoint`, `restore`, `stop` and `destroy`.

use lattice_engine::Outcome;
use lattice_model::id::Oid;
use lattice_sprites::run::{
    Collect, Happening, SpritePlace, Verdict, next, recover, stop as stop_supervisor, supervisor,
};
use lattice_sprites::store::{Sprite, SpriteState, Store};

use super::Unlanded;
use super::documents::SpriteManageDocument;
use super::look::find;
use crate::app::App;
use crate::commands::run;
use crate::error::Failure;
use crate::output::Reply;

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
    place(app, &sprite)?.restore(checkpoint).map_err(not_restored)?;
    Ok(done(&sprite, "restored", Vec::new(), format!("{id} is as it was at {checkpoint}\n")))
}

pub(super) fn stop(app: &App, id: &str) -> Result<Reply, Failure> {
    let (mut store, sprite) = find(app, id)?;
    let place = place(app, &sprite)?;
    if next(sprite.state, Happening::Ended(Verdict::Stopped)).is_none() {
        return Err(Failure::new("not-running", format!("`{id}` is {}", sprite.state.as_str())));
    }
    stop_supervisor(&sprite).map_err(|error| Failure::new("io", format!("`{id}` could not be ended: {error}")))?;
    recover(&place, &sprite, &mut store, app.now.as_str())?;
    let landing = run::land_work(app, &store, (&place, &sprite), Collect::Everything)?;
    let at = app.clock();
    store.set_state(sprite.key, SpriteState::Stopped, Some("stopped by a person"), at.as_str())?;
    let branches: Vec<_> = landing.branches.iter().map(|landed| landed.branch.to_string()).collect();
    let text = format!("{id} stopped\n{}", branches.iter().map(|name| format!("  {name}\n")).collect::<String>());
    Ok(done(&sprite, "stopped", branches, text))
}

pub(super) fn destroy(app: &App, id: &str, unlanded: Unlanded) -> Result<Reply, Failure> {
    let (store, sprite) = find(app, id)?;
    refuse_running(&sprite)?;
    let place = place(app, &sprite)?;
    let mut branches = Vec::new();
    if place.own.exists() && unlanded == Unlanded::Refuse {
        // What is on no branch yet is landed first; what cannot be landed is not removed.
        let landing = run::land_work(app, &store, (&place, &sprite), Collect::Everything)?;
        branches = landing.branches.iter().map(|landed| landed.branch.to_string()).collect();
    }
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
    Ok(done(&sprite, "destroyed", branches, format!("{id} destroyed; its events stay\n")))
}

pub(crate) fn place(app: &App, sprite: &Sprite) -> Result<SpritePlace, Failure> {
    run::place(app, &app.engine()?.repository().common_dir, &sprite.name)
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

pub(super) fn not_restored(error: lattice_sprites::checkpoint::RestoreError) -> Failure {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::new("not-restored", format!("{error}{cause}"))
}

fn done(sprite: &Sprite, done: &'static str, branches: Vec<String>, text: String) -> Reply {
    Reply::new(SpriteManageDocument { sprite: sprite.name.clone(), done, branches }, text).story()
}
