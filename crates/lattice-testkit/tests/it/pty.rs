//! Prompts are answered, interrupted and missed on a terminal.

use lattice_testkit::{Lattice, TestRepo};

const PROMPTS: &str = r#"
    test -t 0 && test -t 1 && test -t 2 && test -c /dev/tty || exit 9
    printf '\033[1mWhich?\033[0m '; read answer; echo "chosen: $answer"
    printf 'Sure? ' >/dev/tty; read answer; echo "$answer indeed" >&2
    exit 4
"#;

fn shell(repo: &TestRepo, script: &str) -> Lattice {
    Lattice::new("/bin/sh", repo).args(["-c", script])
}

#[test]
fn prompts_are_answered_on_a_terminal() {
    let repo = TestRepo::new();
    let output = shell(&repo, PROMPTS).terminal().answer("Which?", "api\r").answer("Sure?", "yes\r").run();
    assert_eq!(output.snapshot(), "exit code 4\n--- stdout\nWhich? api\nchosen: api\nSure? yes\nyes indeed\n");
}

#[test]
fn control_c_interrupts_a_prompt() {
    let repo = TestRepo::new();
    let output = shell(&repo, PROMPTS).terminal().answer("Which?", "\x03").run();
    assert_eq!(output.signal, Some(2), "{}", output.snapshot());
}

#[test]
#[should_panic(expected = "ended without \"Really?\"")]
fn a_prompt_that_never_comes_fails_the_test() {
    shell(&TestRepo::new(), "echo nothing to ask").terminal().answer("Really?", "y\r").run();
}
