//! Tests of kill.
