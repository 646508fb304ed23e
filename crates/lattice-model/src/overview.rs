//! The list of a stack's pull requests, as it stands in each of them.

use crate::host::Pull;

const BEGIN: &str = "<!-- lattice:stack -->";
const END: &str = "<!-- /lattice:stack -->";

/// The list for the pull request `current`; numbers come lowest first.
pub fn section(numbers: &[u64], current: u64) -> String {
    let mut text = format!("{BEGIN}\nThis pull request is part of a stack, lowest first:\n\n");
    for number in numbers {
        let here = if *number == current { " (this one)" } else { "" };
        text.push_str(&format!("- #{number}{here}\n"));
    }
    text.push_str(END);
    text
}

/// A body with the list put in or brought up to date; everything else stays as people wrote it.
pub fn put_into(body: &str, section: &str) -> String {
    if let Some((before, rest)) = body.split_once(BEGIN)
        && let Some((_, after)) = rest.split_once(END)
    {
        return format!("{before}{section}{after}");
    }
    if body.trim().is_empty() { section.to_owned() } else { format!("{}\n\n{section}", body.trim_end()) }
}

/// A body without the list.
pub fn without(body: &str) -> String {
    match body.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1))) {
        Some((before, after)) => format!("{}{}", before.trim_end(), after).trim().to_owned(),
        None => body.trim().to_owned(),
    }
}

/// A body as people read it: with the list, and without what stands around it for programs.
pub fn without_marks(body: &str) -> String {
    body.replace(&format!("{BEGIN}\n"), "").replace(END, "").trim_end().to_owned()
}

/// Whether text holds such a list.
pub fn is_in(text: &str) -> bool {
    text.contains(BEGIN)
}

/// Whether each of these pull requests, lowest first, lists all of them as it should.
pub fn is_shown(pulls: &[&Pull]) -> bool {
    let numbers: Vec<_> = pulls.iter().map(|pull| pull.number).collect();
    pulls.iter().all(|pull| put_into(&pull.body, &section(&numbers, pull.number)) == pull.body)
}

#[cfg(test)]
mod tests {
    use super::{put_into, section};

    #[test]
    fn a_list_is_added_once_and_replaced_in_place() {
        let first = put_into("What it does.\n", &section(&[1, 2], 2));
        assert!(first.starts_with("What it does.\n\n<!-- lattice:stack -->"), "{first}");
        let edited = format!("{first}\n\nAdded later.");
        let second = put_into(&edited, &section(&[1, 2, 3], 2));
        assert!(second.contains("- #3\n") && second.ends_with("Added later."), "{second}");
        assert_eq!(second.matches("lattice:stack").count(), 2, "one list: {second}");
        assert_eq!(put_into(&second, &section(&[1, 2, 3], 2)), second);
    }
}
