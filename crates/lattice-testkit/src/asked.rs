//! What variables say about a test run: how much it draws, and from where.

/// The seed of a run that names none.
const SEED: u64 = 20_261_116;

/// The number that a variable holds, if it does.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The seed that a variable names, else always the same one: `cargo xtask` draws new ones. It is printed, so that a run
/// can be repeated.
#[expect(clippy::print_stdout, reason = "a test runner shows what failing tests print")]
pub fn seed(name: &str) -> u64 {
    let seed = number(name).unwrap_or(SEED);
    println!("{name}={seed}");
    seed
}
