//! Tests of navigate.
