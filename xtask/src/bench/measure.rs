//! Times things in turns, so that a noisy machine disturbs all of them alike.

use std::time::{Duration, Instant};

use crate::Failure;
use crate::process::Call;

/// Something to be timed: what precedes each run is not counted.
pub(super) struct Contestant<'a> {
    pub(super) name: String,
    pub(super) prepare: Box<dyn FnMut() -> Result<(), Failure> + 'a>,
    pub(super) run: Box<dyn FnMut() -> Result<(), Failure> + 'a>,
}

/// What was seen of one contestant.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    pub(super) name: String,
    pub(super) median: Duration,
    pub(super) best: Duration,
}

/// Runs everyone once per round, after one round that is not counted.
pub(super) fn in_turns(rounds: usize, contestants: &mut [Contestant<'_>]) -> Result<Vec<Timing>, Failure> {
    let mut times = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            (contestant.prepare)()?;
            settle()?;
            let start = Instant::now();
            (contestant.run)()?;
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    let timing = |(contestant, mut times): (&Contestant<'_>, Vec<Duration>)| {
        times.sort();
        Timing { name: contestant.name.clone(), median: times[times.len() / 2], best: times[0] }
    };
    Ok(contestants.iter().zip(times).map(timing).collect())
}

/// What others left to be written is written now: whoever makes its own work durable would pay for it.
fn settle() -> Result<(), Failure> {
    let sync = Call { program: "sync", arguments: &[], environment: &[] };
    sync.answer().map(|_| ()).ok_or_else(|| Failure::Problems(vec!["`sync` does not run here".to_owned()]))
}

/// `12.3 ms`.
pub(super) fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Name and times of a contestant, and how they compare with the first one's.
pub(super) fn compared(timing: &Timing, first: &Timing) -> Vec<String> {
    vec![
        timing.name.clone(),
        shown(timing.median),
        shown(timing.best),
        format!("{:.2}", ratio(timing.median, first.median)),
        format!("{:.2}", ratio(timing.best, first.best)),
    ]
}

/// How many times longer `this` took than `that`.
pub(super) fn ratio(this: Duration, that: Duration) -> f64 {
    this.as_secs_f64() / that.as_secs_f64()
}
