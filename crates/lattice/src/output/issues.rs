//! Issues and their choices, for people.

use lattice_model::issue::{FixEffect, Issue, Severity};

use super::{Style, printable};

/// Each issue with its fixes by id.
pub(crate) fn text(issues: &[Issue], style: Style) -> String {
    let mut text = String::new();
    for issue in issues {
        let severity = match issue.severity {
            Severity::Blocking => style.bad("blocking"),
            Severity::Warning => style.warn("warning"),
            Severity::Info => style.dim("info"),
        };
        text.push_str(&format!("{severity}  {}  {}\n", style.bold(issue.id.as_str()), printable(&issue.summary)));
        text.push_str(&choices(issue, style));
    }
    text
}

/// What can be done about an issue: fixes by id, and what only the user can do.
pub(crate) fn choices(issue: &Issue, style: Style) -> String {
    let mut text = String::new();
    for fix in &issue.fixes {
        match &fix.effect {
            FixEffect::Plan(plan) => {
                text.push_str(&format!("  fix {}  {}\n", style.bold(fix.id.as_str()), printable(&fix.summary)));
                for line in plan.preview() {
                    text.push_str(&format!("      {}\n", style.dim(&line)));
                }
            }
            FixEffect::UserAction(action) => {
                text.push_str(&format!("  you can {}: {}\n", printable(&fix.summary), printable(action)));
            }
        }
    }
    text
}
