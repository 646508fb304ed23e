//! One request through scan, gate, plan, execute, verify and record. Never prints, never prompts.
