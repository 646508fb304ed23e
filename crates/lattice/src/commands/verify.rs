//! `verify`: checks every invariant and changes nothing.

use clap::Args;
use lattice_engine::Depth;

use crate::app::App;
use crate::error::{Code, Failure};
use crate::output::documents::VerifyDocument;
use crate::output::{Reply, printable};

/// Check every invariant; change nothing
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also every record of the ledger and every object that a ref leads to
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let depth = if arguments.full { Depth::Full } else { Depth::Quick };
    let verification = app.engine()?.verify(depth)?;
    let holds = verification.violations.is_empty();
    let document = VerifyDocument {
        holds,
        checked: verification.checked.iter().map(|name| (*name).to_owned()).collect(),
        violations: verification.violations.clone(),
    };
    let mut text: String = verification.violations.iter().map(|line| format!("{}\n", printable(line))).collect();
    if holds {
        text = format!("holds: {}\n", verification.checked.join(", "));
    }
    Ok(Reply::new(document, text).code(if holds { Code::Done } else { Code::Failed }))
}
