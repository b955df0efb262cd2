use super::*;

const WORKED: Seen = Seen { worked: true, busy: false };
const BUSY: Seen = Seen { worked: false, busy: true };
const NOTHING: Seen = Seen { worked: false, busy: false };

fn at(seconds: i64) -> Time {
    Time::from_millis(1_764_500_000_000 + seconds * 1_000)
}

fn tracker() -> Tracker {
    Tracker::new(Duration::from_mins(1))
}

fn taken(seconds: u64) -> Answered {
    Answered::Taken { wait: Duration::from_secs(seconds) }
}

fn beat(busy_for: Option<Duration>) -> Todo {
    Todo { beat: Some(busy_for), save: false }
}

const NO: Todo = Todo { beat: None, save: false };
const SAVE: Todo = Todo { beat: None, save: true };

#[test]
fn where_nothing_is_done_nothing_is_told_and_nothing_pushed() {
    let mut tracker = tracker();
    for second in (0..600).step_by(15) {
        assert_eq!(tracker.seen(NOTHING, at(second)), NO);
    }
}

#[test]
fn what_was_seen_is_told_once_and_not_before_the_next_one_says_something_new() {
    let mut tracker = tracker();
    assert_eq!(tracker.seen(WORKED, at(0)), beat(None));
    assert!(!tracker.told(taken(30), at(0)));
    assert_eq!(tracker.seen(WORKED, at(15)), NO);
    assert_eq!(tracker.seen(NOTHING, at(30)), beat(None), "it was seen, and is told when it may be");
    tracker.told(taken(30), at(30));
    assert_eq!(tracker.seen(NOTHING, at(60)), NO);
}

#[test]
fn while_something_runs_it_is_told_again_and_again_with_how_long() {
    let mut tracker = tracker();
    for second in [0, 30, 60] {
        assert_eq!(tracker.seen(BUSY, at(second)), beat(Some(BUSY_FOR)));
        tracker.told(taken(30), at(second));
    }
}

#[test]
fn it_is_pushed_once_a_while_after_the_last_sign() {
    let mut tracker = tracker();
    tracker.seen(BUSY, at(0));
    tracker.told(taken(300), at(0));
    tracker.seen(WORKED, at(30));
    assert_eq!(tracker.seen(NOTHING, at(89)), NO);
    assert_eq!(tracker.seen(NOTHING, at(90)), SAVE);
    assert_eq!(tracker.seen(NOTHING, at(200)), NO);
}

#[test]
fn one_that_nobody_took_is_sent_again() {
    let mut tracker = tracker();
    tracker.seen(WORKED, at(0));
    assert!(!tracker.told(Answered::NONE, at(0)));
    assert_eq!(tracker.seen(NOTHING, at(9)), NO);
    assert_eq!(tracker.seen(NOTHING, at(10)), beat(None));
}

#[test]
fn a_runtime_that_is_about_to_stop_is_wanted_again_and_pushed_once() {
    let mut tracker = tracker();
    let stopping = Answered::NotRunning { wait: Duration::from_secs(30) };
    tracker.seen(BUSY, at(0));
    assert!(tracker.told(stopping, at(0)), "what there is is pushed while it runs");
    assert_eq!(tracker.seen(NOTHING, at(30)), beat(None));
    assert!(!tracker.told(stopping, at(30)));
    assert_eq!(tracker.seen(BUSY, at(60)), beat(Some(BUSY_FOR)));
    assert!(!tracker.told(taken(30), at(60)));
    tracker.seen(BUSY, at(90));
    assert!(tracker.told(stopping, at(90)), "another stop");
}

#[test]
fn after_its_registration_nothing_is_told_and_what_there_is_is_pushed() {
    for end in [End::Superseded, End::Gone] {
        let mut tracker = tracker();
        tracker.seen(WORKED, at(0));
        assert!(tracker.told(Answered::Ended(end), at(0)));
        assert_eq!(tracker.seen(WORKED, at(600)), NO);
        assert_eq!(tracker.seen(NOTHING, at(660)), SAVE, "it is pushed as before");
    }
}

#[test]
fn a_clock_that_goes_back_is_not_waited_for() {
    let mut tracker = tracker();
    tracker.seen(WORKED, at(100_000));
    tracker.told(taken(30), at(100_000));
    assert_eq!(tracker.seen(WORKED, at(0)), beat(None));
}

#[test]
fn a_request_is_under_way_from_one_look_to_the_next_until_it_is_dropped() {
    let signs = Signs::default();
    let request = signs.begin();
    assert_eq!(signs.take(), NOTHING, "it may be refused yet");
    assert_eq!((signs.take(), signs.take()), (BUSY, BUSY));
    let refused = signs.begin();
    drop(refused);
    request.sign();
    drop(request);
    assert_eq!((signs.take(), signs.take()), (WORKED, NOTHING));
}
