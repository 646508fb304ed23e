//! The `lattice` program: arguments to request to outcome to text or JSON.

/// Runs the program with the arguments of this process.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
