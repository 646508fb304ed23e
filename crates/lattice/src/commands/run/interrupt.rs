//! What Ctrl-C says while a sprite runs. The kernel ends the sandbox with this process.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, Noise};
use crate::commands::sprite;
use crate::output::err;

/// As shells count what a signal ended.
const INTERRUPTED: i32 = 130;

/// As long as there is one, whoever interrupts a sprite is told what can be done with it.
pub(super) struct Interruptible(());

/// What is said.
static REMARK: Mutex<Option<String>> = Mutex::new(None);
static LISTENER: Once = Once::new();

fn remark() -> MutexGuard<'static, Option<String>> {
    REMARK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interruptible {
    pub(super) fn begin(app: &App, sprite: &str) -> Self {
        *remark() = (app.noise != Noise::Quiet).then(|| format!("\n{}\n", sprite::interrupted(sprite)));
        LISTENER.call_once(|| drop(std::thread::spawn(listen)));
        Self(())
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        *remark() = None;
    }
}

/// A process that cannot listen ends without a word.
fn listen() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        if let Ok(mut interrupts) = signal(SignalKind::interrupt()) {
            interrupts.recv().await;
            remark().iter().for_each(|remark| err(remark));
            std::process::exit(INTERRUPTED);
        }
    });
}
