//! The trunk is replaced in whatever layout a person gave the file.

use super::{BranchName, DocumentMut, Settings};

#[test]
fn the_trunk_is_replaced_in_every_layout_and_nothing_else_is_lost() {
    let layouts = [
        "",
        "[trunk]\nbranch = \"old\"\n",
        "[trunk] # where stacks stand\nbranch = 'old' # for now\n",
        "[ trunk ]\nbranch=\"old\"",
        "trunk = { branch = \"old\" }\n[lock]\ntimeout_ms = 5\n",
        "trunk.branch = \"old\"\n",
        "[\"trunk\"]\n\"branch\" = \"old\"\n",
        "[trunk]\nbranches = \"mine\"\nbranch = \"old\"\n",
        "[trunk]\r\nbranch = \"old\"\r\n[lock]\r\ntimeout_ms = 5\r\n",
        "# a note\n[alias]\nx = \"\"\"\n[trunk]\nbranch = 'no'\n\"\"\"\n[trunk]\n",
        "[lock]\ntimeout_ms = 5 # short\n",
        "[branch]\ntemplate = \"{slug}\"\n[trunk]\n\n[undo]\nkeep_days = 1\n",
    ];
    for layout in layouts {
        for name in ["main", "a\"b", "$(id)", "ünïcode", "a'b"] {
            let trunk = BranchName::new(name).expect("Git allows it");
            let edited = Settings::with_trunk(layout, &trunk);
            let mut after: DocumentMut = edited.parse().unwrap_or_else(|error| panic!("{layout:?}: {error}\n{edited}"));
            assert_eq!(after["trunk"]["branch"].as_str(), Some(name), "{layout:?} became {edited:?}");
            let mut before: DocumentMut = layout.parse().expect("the layouts are valid");
            for document in [&mut before, &mut after] {
                if let Some(table) = document.get_mut("trunk").and_then(|item| item.as_table_like_mut()) {
                    table.remove("branch");
                }
            }
            let rest = |document: &DocumentMut| -> Vec<(String, String)> {
                let tables = document.iter().filter(|(table, _)| *table != "trunk");
                tables.map(|(table, item)| (table.to_owned(), item.to_string())).collect()
            };
            assert_eq!(rest(&after), rest(&before), "the other tables of {layout:?}");
        }
    }
    let kept = Settings::with_trunk(layouts[2], &BranchName::new("main").expect("a name"));
    assert_eq!(kept, "[trunk] # where stacks stand\nbranch = \"main\" # for now\n", "comments stay");
}
