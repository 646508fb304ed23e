//! Tests of gits.
