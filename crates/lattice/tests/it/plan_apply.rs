//! Tests of plan_apply.
