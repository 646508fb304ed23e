//! Tests of metadata.
