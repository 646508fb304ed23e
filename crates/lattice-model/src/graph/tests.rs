//! Shapes of stacks and the ways in which they can be broken.

use proptest::prelude::*;

use super::{BranchName, GraphProblem, StackGraph};

fn name(text: &str) -> BranchName {
    BranchName::new(text).expect("test names are valid")
}

fn graph(edges: &[(&str, &str)]) -> StackGraph {
    StackGraph::new(Some(name("main")), edges.iter().map(|(child, parent)| (name(child), name(parent))))
}

fn names(list: &[BranchName]) -> String {
    list.iter().map(BranchName::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn upstack_lists_parents_before_children() {
    let graph = graph(&[("api", "main"), ("ui", "api"), ("docs", "api"), ("deep", "ui"), ("other", "main")]);
    assert_eq!(names(&graph.upstack(&name("api"))), "docs ui deep");
    assert_eq!(names(&graph.downstack(&name("deep"))), "api ui");
    assert_eq!(names(&graph.topological()), "api docs ui deep other");
}

// proves: ST-13.1-2
#[test]
fn cycles_of_every_length_and_missing_parents_are_found_once() {
    let graph = graph(&[("self", "self"), ("b", "a"), ("a", "b"), ("hang", "a"), ("lost", "gone"), ("ok", "main")]);
    let problems = graph.problems(|branch| branch.as_str() != "gone");
    assert_eq!(
        problems,
        vec![
            GraphProblem::Cycle(vec![name("a"), name("b")]),
            GraphProblem::Cycle(vec![name("self")]),
            GraphProblem::MissingParent { branch: name("lost"), parent: name("gone") },
        ]
    );
}

#[test]
fn a_cycle_of_a_thousand_branches_is_one_problem_and_needs_no_deep_stack() {
    let edges: Vec<_> =
        (0..1000).map(|n| (name(&format!("b{n:04}")), name(&format!("b{:04}", (n + 1) % 1000)))).collect();
    let graph = StackGraph::new(Some(name("main")), edges);
    let problems = graph.problems(|_| true);
    assert_eq!(problems.len(), 1, "one cycle, not one per branch");
    assert!(matches!(&problems[0], GraphProblem::Cycle(trace) if trace.len() == 1000 && trace[0].as_str() == "b0000"));
}

proptest! {
    #[test]
    fn every_tracked_branch_of_a_random_tree_comes_after_its_parent(parents in prop::collection::vec(0usize..50, 1..50)) {
        let branch = |n: usize| if n == 0 { name("main") } else { name(&format!("b{n}")) };
        let edges = parents.iter().enumerate().map(|(at, parent)| (branch(at + 1), branch(parent % (at + 1))));
        let graph = StackGraph::new(Some(name("main")), edges);
        let order = graph.topological();
        prop_assert_eq!(order.len(), parents.len());
        for (at, child) in order.iter().enumerate() {
            let parent = graph.parent(child).expect("tracked");
            prop_assert!(parent.as_str() == "main" || order[..at].contains(parent));
        }
        prop_assert!(graph.problems(|_| true).is_empty());
    }
}
