//! Tests of undo.
