//! The command line: every name, flag and help text that users see.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;

/// Stacked branches, context and sandboxed agents for Git repositories.
#[derive(Debug, Parser)]
#[command(name = "lattice", version, max_term_width = 100, propagate_version = false)]
#[command(after_help = "`lt` is the same program. `lattice <command> --help` says more about each command.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options for every command")]
pub(crate) struct Global {
    /// Run as if started in this directory
    #[arg(short = 'C', long, global = true, value_name = "PATH")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print exactly one JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for; never ask anything
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Tell each stage of the work on stderr
    #[arg(long, global = true)]
    pub(crate) debug: bool,
    /// Ask questions even if stdin or stderr is no terminal
    #[arg(long, global = true, overrides_with = "no_interactive")]
    pub(crate) interactive: bool,
    /// Never ask anything
    #[arg(long, global = true, overrides_with = "interactive")]
    pub(crate) no_interactive: bool,
    /// Run Git's hooks (this is the default)
    #[arg(long, global = true, overrides_with = "no_verify")]
    pub(crate) verify: bool,
    /// Skip Git's hooks
    #[arg(long, global = true, overrides_with = "verify")]
    pub(crate) no_verify: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// For every command that changes something.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Preview {
    /// Print the plan and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Init(commands::init::Arguments),
    Track(commands::track::Arguments),
    Untrack(commands::untrack::Arguments),
    #[command(visible_alias = "c")]
    Create(commands::create::Arguments),
    #[command(visible_alias = "m")]
    Modify(commands::modify::Arguments),
    #[command(visible_alias = "r")]
    Restack(commands::restack::Arguments),
    Move(commands::reparent::Arguments),
    Absorb(commands::absorb::Arguments),
    Reorder(commands::edit::ReorderArguments),
    Split(commands::edit::SplitArguments),
    Squash(commands::edit::SquashArguments),
    Fold(commands::edit::FoldArguments),
    Pop(commands::edit::PopArguments),
    Delete(commands::edit::DeleteArguments),
    Rename(commands::edit::RenameArguments),
    Revert(commands::edit::RevertArguments),
    Freeze(commands::freeze::Arguments),
    Unfreeze(commands::freeze::UnfreezeArguments),
    #[command(visible_alias = "co")]
    Checkout(commands::checkout::Arguments),
    Up(commands::checkout::UpArguments),
    Down(commands::checkout::DownArguments),
    Top(commands::checkout::TopArguments),
    Bottom(commands::checkout::BottomArguments),
    Log(commands::log::Arguments),
    /// `log --short`
    Ls(commands::log::ShortArguments),
    Info(commands::info::Arguments),
    Parent(commands::look::ParentArguments),
    Children(commands::look::ChildrenArguments),
    Trunk(commands::trunk::Arguments),
    #[command(visible_alias = "s")]
    Submit(commands::submit::Arguments),
    /// `submit --stack`
    Ss(commands::submit::StackArguments),
    Sync(commands::sync::Arguments),
    Get(commands::get::Arguments),
    Merge(commands::merge::Arguments),
    Unlink(commands::unlink::Arguments),
    Pr(commands::pr::Arguments),
    Issue(commands::issue::Arguments),
    Auth(commands::auth::Arguments),
    Continue(commands::resume::ContinueArguments),
    Abort(commands::resume::AbortArguments),
    Undo(commands::undo::UndoArguments),
    Redo(commands::undo::RedoArguments),
    Ops(commands::ops::Arguments),
    Doctor(commands::doctor::Arguments),
    Verify(commands::verify::Arguments),
    Plan(commands::plan::PlanArguments),
    Apply(commands::plan::ApplyArguments),
    Context(commands::context::Arguments),
    Config(commands::config::Arguments),
    Explain(commands::explain::Arguments),
    Run(commands::run::Arguments),
    Resume(commands::sprite::resume::Arguments),
    Sprite(commands::sprite::Arguments),
    Approvals(commands::approvals::ListArguments),
    Approve(commands::approvals::ApproveArguments),
    Deny(commands::approvals::DenyArguments),
    Proposals(commands::proposals::Arguments),
    Emit(commands::emit::Arguments),
    Checkpoint(commands::run::CheckpointArguments),
    Completion(commands::program::CompletionArguments),
    Man(commands::program::ManArguments),
    Schema(commands::program::SchemaArguments),
    Demo(commands::demo::Arguments),
}

impl Global {
    /// What holds when nothing was said.
    pub(crate) fn plain() -> Self {
        Self {
            cwd: None,
            json: false,
            quiet: false,
            debug: false,
            interactive: false,
            no_interactive: false,
            verify: false,
            no_verify: false,
            color: ColorChoice::Auto,
        }
    }

    /// With options that stand further to the right, which win.
    pub(crate) fn then(self, later: Self) -> Self {
        let last = |earlier: bool, opposite: bool, later: bool| later || (earlier && !opposite);
        Self {
            cwd: later.cwd.or(self.cwd),
            json: self.json || later.json,
            quiet: self.quiet || later.quiet,
            debug: self.debug || later.debug,
            interactive: last(self.interactive, later.no_interactive, later.interactive),
            no_interactive: last(self.no_interactive, later.interactive, later.no_interactive),
            verify: last(self.verify, later.no_verify, later.verify),
            no_verify: last(self.no_verify, later.verify, later.no_verify),
            color: if later.color == ColorChoice::Auto { self.color } else { later.color },
        }
    }
}
