//! What someone may have meant who named something that does not exist.

/// How alike two names have to be, from 0 to 1.
const ENOUGH: f64 = 0.85;

/// The candidate that is most like a name: the last part of it, or the same but for a slip.
pub fn similar<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|candidate| (likeness(name, candidate), candidate));
    let best = scored.filter(|(score, _)| *score >= ENOUGH).max_by(|(one, a), (other, b)| {
        // Of two that are equally alike the first in the alphabet is named, whatever the order is they come in.
        one.total_cmp(other).then_with(|| b.cmp(a))
    });
    best.map(|(_, candidate)| candidate)
}

/// Puts what is most like a name first.
pub fn closest_first(name: &str, candidates: &mut [String]) {
    candidates.sort_by(|a, b| likeness(name, b).total_cmp(&likeness(name, a)).then_with(|| a.cmp(b)));
}

fn likeness(name: &str, candidate: &str) -> f64 {
    let last = candidate.rsplit('/').next().unwrap_or(candidate);
    strsim::jaro_winkler(name, candidate).max(strsim::jaro_winkler(name, last))
}

/// The end of a sentence that says that there is no such thing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    similar(name, candidates).map(|found| format!("; did you mean `{found}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_slip_and_the_last_part_of_a_name_are_understood_and_a_stranger_is_not() {
        let names = ["feature/login", "feature/logout", "api", "main"];
        for (typed, meant) in
            [("login", "feature/login"), ("apii", "api"), ("mian", "main"), ("feature/logn", "feature/login")]
        {
            assert_eq!(similar(typed, names), Some(meant), "{typed}");
        }
        assert_eq!(similar("zebra", names), None);
        assert_eq!(similar("", names), None);
    }
}
