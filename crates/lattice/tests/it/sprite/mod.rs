//! Tests of sprites through the built program.

mod protocol;
