//! Draws stacks: tips on top, the trunk at the bottom, one column per line of work.

use std::collections::BTreeSet;

use lattice_model::graph::StackGraph;
use lattice_model::name::BranchName;

use super::Style;

/// One branch of a drawing: the graph to the left of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) drawing: String,
    pub(crate) below: String,
    pub(crate) branch: BranchName,
}

struct Symbols {
    here: &'static str,
    branch: &'static str,
    line: &'static str,
    join: &'static str,
    end: &'static str,
}

const LINES: Symbols = Symbols { here: "●", branch: "○", line: "│", join: "─┴", end: "─┘" };
const ASCII: Symbols = Symbols { here: "*", branch: "o", line: "|", join: "-+", end: "-'" };

/// The rows for `root` and everything above it that `shown` contains.
pub(crate) fn draw(
    graph: &StackGraph,
    root: &BranchName,
    current: Option<&BranchName>,
    shown: &BTreeSet<BranchName>,
    style: Style,
) -> Vec<Row> {
    let symbols = if style.ascii { &ASCII } else { &LINES };
    let mut rows = Vec::new();
    // A stack of our own instead of recursion: stacks may be thousands of branches deep.
    let mut work = vec![Visit::Enter(root.clone(), 0)];
    let mut seen = BTreeSet::new();
    while let Some(visit) = work.pop() {
        match visit {
            Visit::Enter(branch, column) => {
                if !seen.insert(branch.clone()) {
                    continue;
                }
                let children: Vec<_> =
                    graph.children(&branch).filter(|child| shown.contains(*child)).cloned().collect();
                work.push(Visit::Leave(branch, column, children.len()));
                for (at, child) in children.into_iter().enumerate().rev() {
                    work.push(Visit::Enter(child, column + at));
                }
            }
            Visit::Leave(branch, column, children) => rows.push(row(symbols, branch, (column, children), current)),
        }
    }
    rows
}

enum Visit {
    Enter(BranchName, usize),
    Leave(BranchName, usize, usize),
}

fn row(symbols: &Symbols, branch: BranchName, (column, children): (usize, usize), current: Option<&BranchName>) -> Row {
    let left = format!("{} ", symbols.line).repeat(column);
    let dot = if current == Some(&branch) { symbols.here } else { symbols.branch };
    let forks = match children {
        0 | 1 => String::new(),
        more => symbols.join.repeat(more - 2) + symbols.end,
    };
    Row { drawing: format!("{left}{dot}{forks}"), below: format!("{left}{}", symbols.line), branch }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::expect;
    use lattice_model::graph::StackGraph;
    use lattice_model::name::BranchName;

    use super::{Style, draw};

    #[test]
    fn forks_open_columns_and_chains_do_not() {
        let name = |text: &str| BranchName::new(text).expect("valid");
        let edges =
            [("api", "main"), ("docs", "api"), ("ui", "api"), ("more", "api"), ("other", "main"), ("top", "other")];
        let edges: Vec<_> = edges.iter().map(|(child, parent)| (name(child), name(parent))).collect();
        let shown: BTreeSet<_> = edges.iter().map(|(child, _)| child.clone()).collect();
        let graph = StackGraph::new(Some(name("main")), edges);
        let style = Style { colour: false, ascii: false };
        let rows = draw(&graph, &name("main"), Some(&name("ui")), &shown, style);
        let text: String = rows.iter().map(|row| format!("{} {}\n", row.drawing, row.branch)).collect();
        expect![[r#"
            ○ docs
            │ ○ more
            │ │ ● ui
            ○─┴─┘ api
            │ ○ top
            │ ○ other
            ○─┘ main
        "#]]
        .assert_eq(&text);
    }
}
