//! Tests of repositories.
