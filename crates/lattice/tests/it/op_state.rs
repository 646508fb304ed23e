//! Tests of op_state.
