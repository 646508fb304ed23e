//! Draws stacks: tips on top, the trunk at the bottom, one column per line of work as long as they are few.

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
    side: &'static str,
}

const LINES: Symbols =
    Symbols { here: "●", branch: "○", line: "│", join: "─┴", end: "─┘", side: "├─" };
const ASCII: Symbols = Symbols { here: "*", branch: "o", line: "|", join: "-+", end: "-'", side: "|-" };

/// More columns than this side by side are hard to follow, and soon wider than a terminal.
const MOST_COLUMNS: usize = 6;

/// The rows for `root` and everything above it that `shown` contains.
pub(crate) fn draw(
    graph: &StackGraph,
    root: &BranchName,
    current: Option<&BranchName>,
    shown: &BTreeSet<BranchName>,
    style: Style,
) -> Vec<Row> {
    let symbols = if style.ascii { &ASCII } else { &LINES };
    let wide = columns(graph, root, shown) > MOST_COLUMNS;
    let mut rows = Vec::new();
    // A stack of our own instead of recursion: stacks may be thousands of branches deep.
    let mut work = vec![Visit::Enter(root.clone(), 0, false)];
    let mut seen = BTreeSet::new();
    while let Some(visit) = work.pop() {
        match visit {
            Visit::Enter(branch, column, is_side) => {
                if !seen.insert(branch.clone()) {
                    continue;
                }
                let children: Vec<_> =
                    graph.children(&branch).filter(|child| shown.contains(*child)).cloned().collect();
                let forks = if wide { 0 } else { children.len() };
                work.push(Visit::Leave(branch, column, forks, is_side));
                for (at, child) in children.into_iter().enumerate().rev() {
                    // What stands beside the first is drawn at its side, one below the other, where columns are too many.
                    let to_the_right = if wide { at.min(1) } else { at };
                    work.push(Visit::Enter(child, column + to_the_right, wide && at > 0));
                }
            }
            Visit::Leave(branch, column, forks, is_side) => {
                let mut row = row(symbols, branch, (column, forks), current);
                if is_side {
                    let left = format!("{} ", symbols.line).repeat(column - 1);
                    row.below = format!("{left}{}", symbols.line);
                    row.drawing = format!("{left}{}{}", symbols.side, row.drawing.trim_start_matches([' ', '│', '|']));
                }
                rows.push(row);
            }
        }
    }
    rows
}

enum Visit {
    /// A branch, its column, and whether it stands at the side of a line.
    Enter(BranchName, usize, bool),
    /// The same, with how many lines come together in it.
    Leave(BranchName, usize, usize, bool),
}

/// How many columns a drawing takes that gives each line of work one.
fn columns(graph: &StackGraph, root: &BranchName, shown: &BTreeSet<BranchName>) -> usize {
    let mut most = 0;
    let mut seen = BTreeSet::new();
    let mut work = vec![(root, 1)];
    while let Some((branch, column)) = work.pop() {
        if seen.insert(branch) {
            most = most.max(column);
            let children = graph.children(branch).filter(|child| shown.contains(*child));
            work.extend(children.enumerate().map(|(at, child)| (child, column + at)));
        }
    }
    most
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
        let style = Style { colour: false, ascii: false, columns: None };
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

    #[test]
    fn many_lines_of_work_stand_below_each_other() {
        let name = |text: &str| BranchName::new(text).expect("valid");
        let mut edges: Vec<_> = (1..=7).map(|number| (name(&format!("b{number}")), name("main"))).collect();
        edges.extend([(name("c1"), name("b3")), (name("c2"), name("b3")), (name("top"), name("b1"))]);
        let shown: BTreeSet<_> = edges.iter().map(|(child, _)| child.clone()).collect();
        let graph = StackGraph::new(Some(name("main")), edges);
        let style = Style { colour: false, ascii: false, columns: None };
        let rows = draw(&graph, &name("main"), Some(&name("c1")), &shown, style);
        let text: String = rows.iter().map(|row| format!("{} {}\n{}\n", row.drawing, row.branch, row.below)).collect();
        expect![[r#"
            ○ top
            │
            ○ b1
            │
            ├─○ b2
            │
            │ ● c1
            │ │
            │ ├─○ c2
            │ │
            ├─○ b3
            │
            ├─○ b4
            │
            ├─○ b5
            │
            ├─○ b6
            │
            ├─○ b7
            │
            ○ main
            │
        "#]]
        .assert_eq(&text);
    }
}
