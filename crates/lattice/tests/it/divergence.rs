//! Tests of divergence.
