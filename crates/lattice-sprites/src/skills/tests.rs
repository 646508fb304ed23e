//! What the documents must say, and that they arrive through the writer that bundles arrive through.

use std::path::Path;

use lattice_context::deliver::{FileWriter, HostFolder};

use super::{SKILLS, sync};

fn skill(name: &str) -> &'static str {
    SKILLS.iter().find(|(folder, ..)| *folder == name).map(|(_, _, text)| *text).expect("there is such a skill")
}

// proves: SP-1, SP-21, SP-76
#[test]
fn the_protocol_document_names_all_that_an_agent_must_know() {
    let text = skill("protocol");
    let types =
        "INFO PHASE_STARTED PHASE_FINISHED ACTION_REQUEST ARTIFACT WAITING COMPLETED ERROR ENVIRONMENT_PROPOSAL";
    let actions = "OPEN_PR PUSH_TO_BRANCH POST_COMMENT LABEL_ISSUE NOTIFY_USER FETCH_CREDENTIAL";
    let files = "outbox.jsonl resume.json resumed";
    let results = "pr_number pr_url sha url labels value";
    for word in [types, actions, files, results].iter().flat_map(|words| words.split(' ')) {
        assert!(text.contains(&format!("`{word}`")) || text.contains(&format!("/{word}`")), "{word}");
    }
    assert!(text.contains("Be chatty with INFO"));
    assert!(text.contains("you should make one before ERROR, at the borders of phases and before anything risky"));
    assert!(text.contains("id=$(lattice checkpoint)"));
}

// proves: CB-3
// proves partly: CB-95 — that it is found in a sprite
#[test]
fn the_context_document_describes_every_file_and_sends_nobody_to_the_host() {
    let text = skill("context");
    let files = ["manifest.json", "trigger.md", "thread.md", "diff_stats.md", "reviews.md", "linked/issue_<number>.md"];
    for file in files {
        assert!(text.contains(&format!("`{file}`")), "{file}");
    }
    for never in ["gh ", "`gh`", "api.github", "curl", "git fetch"] {
        assert!(!text.contains(never), "{never}");
    }
}

#[test]
fn skills_are_written_with_the_paths_that_the_sprite_sees() {
    let base = tempfile::tempdir().expect("a folder");
    let mut folder = HostFolder::at(base.path(), Path::new("skills"), None).expect("a folder");
    sync("/home/me/work", &mut FileWriter::new(&mut folder)).expect("they are delivered");
    for (_, path, text) in SKILLS {
        let written = std::fs::read_to_string(base.path().join("skills").join(path)).expect("it is there");
        assert!(!written.contains("/workspace") && written.contains("/home/me/work/.lattice"), "{path}");
        assert_eq!(written.replace("/home/me/work", "/workspace"), text);
    }
    sync("/workspace", &mut FileWriter::new(&mut folder)).expect("they are delivered again");
    let written = std::fs::read_to_string(base.path().join("skills/protocol/SKILL.md")).expect("it is there");
    assert_eq!(written, skill("protocol"));
}
