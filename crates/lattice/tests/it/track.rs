//! Tests of track.
