//! Tests of log.
