//! `lt`, the short name of the `lattice` program.

fn main() -> std::process::ExitCode {
    lattice::main()
}
