//! Tasks for developers: test, bench, conformance.

fn main() {}
