//! What every sprite is taught, as files that it can read and not change.

use lattice_context::deliver::{DeliveryError, FileWriter, Tree};

/// Where a sprite sees its workspace, and what the documents call it.
const WORKSPACE: &str = "/workspace";

/// The documents by their folder; `priv/sprite_skills` has them as they are shipped.
const SKILLS: [(&str, &str, &str); 2] = [
    ("context", "context/SKILL.md", include_str!("../../../priv/sprite_skills/context/SKILL.md")),
    ("protocol", "protocol/SKILL.md", include_str!("../../../priv/sprite_skills/protocol/SKILL.md")),
];

/// Replaces the skills of a sprite by those of this program. `workspace` is what the sprite calls its workspace.
pub fn sync(workspace: &str, writer: &mut FileWriter<'_>) -> Result<(), DeliveryError> {
    let rendered: Vec<_> = SKILLS.iter().map(|(_, path, text)| (*path, text.replace(WORKSPACE, workspace))).collect();
    let folders = SKILLS.iter().map(|(folder, ..)| *folder).collect();
    writer.replace(&Tree { folders, files: rendered.iter().map(|(path, text)| (*path, text.as_bytes())).collect() })
}

#[cfg(test)]
mod tests;
