//! Lets the user pick one of many names: by its number, or by letters of it, which narrow the list.

use crate::output::{err, printable};
use crate::prompt::ask;

/// More are not listed at once; letters find them.
const LISTED: usize = 20;

/// The place of the name that the user picks; `None` for an empty answer or the end of input.
pub(crate) fn pick(question: &str, names: &[String]) -> Option<usize> {
    let mut left: Vec<usize> = (0..names.len()).collect();
    loop {
        for (at, name) in left.iter().take(LISTED).enumerate() {
            err(&format!("  {}) {}\n", at + 1, printable(&names[*name])));
        }
        if left.len() > LISTED {
            err(&format!("  and {} more\n", left.len() - LISTED));
        }
        let answer = ask(&format!("{question} [a number, or letters of the name; empty: none] "))?;
        let listed = left.len().min(LISTED);
        if let Some(number) = answer.parse::<usize>().ok().filter(|number| (1..=listed).contains(number)) {
            return Some(left[number - 1]);
        }
        match matching(&answer, names, &left)[..] {
            [] => err(&format!("no name has these letters: {}\n", printable(&answer))),
            [only] => return Some(only),
            ref several => left = several.to_vec(),
        }
    }
}

/// The names that an answer can mean: the name itself, else those that contain it, else those with its letters in order.
fn matching(answer: &str, names: &[String], among: &[usize]) -> Vec<usize> {
    let wanted = answer.to_lowercase();
    let having = |test: &dyn Fn(&str) -> bool| -> Vec<usize> {
        among.iter().copied().filter(|at| test(&names[*at].to_lowercase())).collect()
    };
    let exact: Vec<_> = among.iter().copied().filter(|at| names[*at] == answer).collect();
    [exact, having(&|name| name.contains(&wanted)), having(&|name| has_in_order(name, &wanted))]
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn has_in_order(name: &str, letters: &str) -> bool {
    let mut rest = name.chars();
    letters.chars().all(|letter| rest.any(|found| found == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_narrow_the_list_and_the_whole_name_wins() {
        let names = ["main", "login", "login-form", "logout", "fix/Layout"].map(str::to_owned);
        let all: Vec<_> = (0..names.len()).collect();
        for (answer, expected) in [
            ("login", &[1][..]),
            ("log", &[1, 2, 3]),
            ("LOGIN", &[1, 2]),
            ("lgf", &[2]),
            ("out", &[3, 4]),
            ("flay", &[4]),
            ("xyz", &[]),
        ] {
            assert_eq!(matching(answer, &names, &all), expected, "{answer}");
        }
        assert_eq!(matching("out", &names, &[0, 3]), [3], "only what is left is asked about");
    }
}
