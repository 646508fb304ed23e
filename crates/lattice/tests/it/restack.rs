//! Tests of restack.
