//! Hermetic repositories, a runner for the program, and a git wrapper for tests.
