//! Tests of create.
