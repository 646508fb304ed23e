//! The only code that reads or writes a Git repository.
