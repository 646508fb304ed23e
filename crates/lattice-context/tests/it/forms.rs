//! Every form of import and signature of each language: what is no line of a body stays as it is.

use lattice_context::compress::outline::{outline, without_bodies};
use lattice_context::language::{BodyStyle, Language, language_of};

use crate::outline::has_errors;

/// Files in which the lines of bodies, and only those, say that they will be gone.
const FORMS: [(&str, &str); 10] = [
    ("forms.rs", include_str!("forms/rust.txt")),
    ("forms.py", include_str!("forms/forms.py")),
    ("forms.mjs", include_str!("forms/forms.mjs")),
    ("forms.ts", include_str!("forms/forms.ts")),
    ("forms.go", include_str!("forms/forms.go")),
    ("Forms.java", include_str!("forms/Forms.java")),
    ("forms.c", include_str!("forms/forms.c")),
    ("forms.cpp", include_str!("forms/forms.cpp")),
    ("Forms.cs", include_str!("forms/Forms.cs")),
    ("forms.rb", include_str!("forms/forms.rb")),
];

/// The file with a marker in the place of each body.
fn expected(language: &Language, source: &str) -> String {
    let goes = |line: &&str| line.to_lowercase().contains("gone");
    let lines: Vec<&str> = source.lines().collect();
    let mut shown = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let cut = lines[at..].iter().take_while(|line| goes(line)).count();
        if cut == 0 {
            shown.push((*line).to_owned());
            at += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let marker = language.comment(&format!("... ({cut} lines)"));
        let is_documented = lines[at - 1].ends_with('"');
        let needs_more = language.grammar.as_ref().is_some_and(|grammar| grammar.body == BodyStyle::Docstring);
        let filler = if needs_more && !is_documented { "...  " } else { "" };
        shown.push(format!("{indent}{filler}{marker}"));
        at += cut;
    }
    shown.join("\n") + "\n"
}

// proves: CE-71
#[test]
fn every_form_of_import_and_signature_stays_and_the_outline_parses() {
    for (path, source) in FORMS {
        let language = language_of(path).expect("a known language");
        assert!(!has_errors(path, source), "{path} is known to its grammar");
        let found = outline(language, source).expect("a language with a grammar");
        let shown = without_bodies(language, source, &found, |_| false).content;
        pretty(path, &expected(language, source), &shown);
        assert!(!has_errors(path, &shown), "the outline of {path} parses:\n{shown}");
    }
}

/// Fails with the first line that differs.
#[track_caller]
fn pretty(path: &str, expected: &str, shown: &str) {
    for (number, (one, other)) in expected.lines().zip(shown.lines()).enumerate() {
        assert_eq!(one, other, "{path}, line {} of its outline", number + 1);
    }
    assert_eq!(expected, shown, "{path}");
}
