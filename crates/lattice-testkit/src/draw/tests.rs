//! Drawings as text, what they mean as text.

use super::Drawing;

#[track_caller]
fn check(drawing: &str, expected: &str) {
    let drawing = Drawing::parse(drawing);
    let lines = drawing.branches.iter().map(|branch| {
        format!(
            "{} on {} with {}{}{}",
            branch.name,
            branch.parent.as_deref().unwrap_or("nothing"),
            branch.commits.unwrap_or(1),
            if branch.frozen { " frozen" } else { "" },
            if branch.checked_out { " checked out" } else { "" },
        )
    });
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
}

#[test]
fn chains_share_names_and_marks_stand_in_any_order() {
    check(
        "main(3) <- team/api(2)! <- ui!(0)*; main <- docs\n docs <- more",
        "main on nothing with 3\n\
         team/api on main with 2 frozen\n\
         docs on main with 1\n\
         ui on team/api with 0 frozen checked out\n\
         more on docs with 1",
    );
}

#[test]
fn a_parent_may_be_drawn_after_its_child() {
    check("api <- ui; main <- api", "main on nothing with 1\napi on main with 1\nui on api with 1");
}

#[test]
#[should_panic(expected = "drawn in a circle")]
fn a_circle_is_refused() {
    Drawing::parse("main <- docs; api <- ui <- api");
}

#[test]
#[should_panic(expected = "one trunk")]
fn two_trunks_are_refused() {
    Drawing::parse("main <- api; other <- ui");
}

#[test]
#[should_panic(expected = "is drawn on")]
fn two_parents_are_refused() {
    Drawing::parse("main <- api <- ui; main <- ui");
}
