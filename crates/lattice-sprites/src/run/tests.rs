//! Tests of the states of a sprite, as tables.

use super::{Ending, Happening, Verdict, next, verdict};
use crate::store::SpriteState;

#[test]
fn each_state_follows_only_from_what_leads_to_it() {
    let happenings = [
        ("started", Happening::Started),
        ("completed", Happening::Ended(Verdict::Completed)),
        ("failed", Happening::Ended(Verdict::Failed)),
        ("waiting", Happening::Ended(Verdict::Waiting)),
        ("stopped", Happening::Ended(Verdict::Stopped)),
        ("lost", Happening::Lost),
    ];
    let mut table = String::new();
    for state in SpriteState::ALL {
        let follows = happenings
            .iter()
            .filter_map(|(name, happening)| next(state, *happening).map(|next| format!(" {name}->{}", next.as_str())));
        table.push_str(&format!("{}:{}\n", state.as_str(), follows.collect::<String>()));
    }
    let expected = "\
queued: started->running lost->interrupted
running: completed->completed failed->failed waiting->waiting stopped->stopped lost->interrupted
waiting: started->running stopped->stopped
completed: started->running
failed: started->running
stopped: started->running
interrupted: started->running stopped->stopped
";
    assert_eq!(table, expected);
}

#[test]
fn an_end_means_the_first_of_stop_pause_error_and_completion_that_holds() {
    let text = |text: &str| Some(text.to_owned());
    let all = Ending {
        stopped: true,
        limit: None,
        waiting: text("w"),
        completed: Some((true, "c".to_owned())),
        error: text("e"),
        code: Some(0),
        signal: None,
    };
    let mut endings = vec![all.clone(), Ending { stopped: false, ..all.clone() }];
    endings.push(Ending { waiting: None, ..endings[1].clone() });
    endings.push(Ending { error: None, ..endings[2].clone() });
    endings.push(Ending { completed: Some((false, "c".to_owned())), ..endings[3].clone() });
    endings.push(Ending { completed: None, ..endings[3].clone() });
    endings.push(Ending { code: Some(2), ..endings[5].clone() });
    endings.push(Ending { code: None, signal: Some(9), ..endings[5].clone() });
    let found: Vec<_> = endings.iter().map(|ending| verdict(ending).0).collect();
    use Verdict::{Completed, Failed, Stopped, Waiting};
    assert_eq!(found, [Stopped, Waiting, Failed, Completed, Failed, Completed, Failed, Failed]);
    let crashed = Ending { code: None, signal: Some(11), ..endings[3].clone() };
    assert_eq!(verdict(&crashed), (Completed, "c (and then signal 11)".to_owned()), "a crash after success is told");
}
