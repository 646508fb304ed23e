//! The `lattice` program.

fn main() -> std::process::ExitCode {
    lattice::main()
}
