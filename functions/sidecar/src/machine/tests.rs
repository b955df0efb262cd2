//! Every pair of a phase and an event, and every way through them.

use proptest::prelude::*;
use workspace::key::Name;

use super::*;
use crate::delivery::Token;

fn whose(name: &str) -> Whose {
    Whose { workspace: Name::new(name).unwrap(), token: Token::new("token") }
}

/// What of a step can be read at a glance.
fn told(step: &Step) -> String {
    let phase = match &step.phase {
        Phase::Dormant => "Dormant".to_owned(),
        Phase::Waking(_, ending) => format!("Waking{}", ending.map_or(String::new(), |how| format!("({how:?})"))),
        Phase::Ready(_) => "Ready".to_owned(),
        Phase::Reviving(_, tried, ending) => {
            format!("Reviving{tried}{}", ending.map_or(String::new(), |how| format!("({how:?})")))
        }
        Phase::Stopping(_, how) => format!("Stopping({how:?})"),
        Phase::Pushing(_) => "Pushing".to_owned(),
        Phase::Wiping(_) => "Wiping".to_owned(),
        Phase::Held(_) => "Held".to_owned(),
        Phase::Soiled(_) => "Soiled".to_owned(),
    };
    let work = step.work.map_or(String::new(), |work| format!(" +{work:?}"));
    let answer = if step.answer == Answer::Nothing { String::new() } else { format!(" {:?}", step.answer) };
    format!("{phase}{work}{answer}")
}

/// Rows: the phase. Columns: init by the same, by another, deinit, deinit without saving, the server's death, and
/// a work's end: done, failed, with nothing touched.
const TABLE: &[(&str, [&str; 8])] = &[
    (
        "Dormant",
        [
            "Waking +Wake Wait",
            "Waking +Wake Wait",
            "Dormant Done",
            "Dormant Done",
            "Dormant",
            "Dormant",
            "Dormant",
            "Dormant",
        ],
    ),
    (
        "Waking",
        [
            "Waking Wait",
            "Waking Already",
            "Waking(Save) Wait",
            "Waking(Discard) Wait",
            "Waking",
            "Ready",
            "Stopping(Undo) +Stop",
            "Dormant",
        ],
    ),
    (
        "Waking(Save)",
        [
            "Waking(Save) Already",
            "Waking(Save) Already",
            "Waking(Save) Wait",
            "Waking(Save) Wait",
            "Waking(Save)",
            "Stopping(Save) +Stop",
            "Stopping(Undo) +Stop",
            "Dormant",
        ],
    ),
    (
        "Ready",
        [
            "Ready Done",
            "Ready Already",
            "Stopping(Save) +Stop Wait",
            "Stopping(Discard) +Stop Wait",
            "Reviving0 +Revive",
            "Ready",
            "Ready",
            "Ready",
        ],
    ),
    (
        "Reviving0",
        [
            "Reviving0 Wait",
            "Reviving0 Already",
            "Reviving0(Save) Wait",
            "Reviving0(Discard) Wait",
            "Reviving0",
            "Ready",
            "Reviving1 +Revive",
            "Reviving1 +Revive",
        ],
    ),
    (
        "Reviving4",
        [
            "Reviving4 Wait",
            "Reviving4 Already",
            "Reviving4(Save) Wait",
            "Reviving4(Discard) Wait",
            "Reviving4",
            "Ready",
            "Held",
            "Held",
        ],
    ),
    (
        "Reviving0(Save)",
        [
            "Reviving0(Save) Already",
            "Reviving0(Save) Already",
            "Reviving0(Save) Wait",
            "Reviving0(Save) Wait",
            "Reviving0(Save)",
            "Stopping(Save) +Stop",
            "Stopping(Save) +Stop",
            "Stopping(Save) +Stop",
        ],
    ),
    (
        "Stopping(Save)",
        [
            "Stopping(Save) Busy",
            "Stopping(Save) Busy",
            "Stopping(Save) Wait",
            "Stopping(Save) Wait",
            "Stopping(Save)",
            "Pushing +Push",
            "Held",
            "Held",
        ],
    ),
    (
        "Stopping(Discard)",
        [
            "Stopping(Discard) Busy",
            "Stopping(Discard) Busy",
            "Stopping(Discard) Wait",
            "Stopping(Discard) Wait",
            "Stopping(Discard)",
            "Wiping +Wipe",
            "Held",
            "Held",
        ],
    ),
    (
        "Stopping(Undo)",
        [
            "Stopping(Undo) Busy",
            "Stopping(Undo) Busy",
            "Stopping(Undo) Wait",
            "Stopping(Undo) Wait",
            "Stopping(Undo)",
            "Wiping +Wipe",
            "Soiled",
            "Soiled",
        ],
    ),
    (
        "Pushing",
        ["Pushing Busy", "Pushing Busy", "Pushing Wait", "Pushing Wait", "Pushing", "Wiping +Wipe", "Held", "Held"],
    ),
    ("Wiping", ["Wiping Busy", "Wiping Busy", "Wiping Wait", "Wiping Wait", "Wiping", "Dormant", "Soiled", "Soiled"]),
    (
        "Held",
        [
            "Reviving0 +Revive Wait",
            "Held Already",
            "Stopping(Save) +Stop Wait",
            "Stopping(Discard) +Stop Wait",
            "Held",
            "Held",
            "Held",
            "Held",
        ],
    ),
    (
        "Soiled",
        [
            "Soiled Busy",
            "Soiled Busy",
            "Stopping(Undo) +Stop Wait",
            "Stopping(Undo) +Stop Wait",
            "Soiled",
            "Soiled",
            "Soiled",
            "Soiled",
        ],
    ),
];

fn phase(name: &str) -> Phase {
    let a = whose("a");
    match name {
        "Dormant" => Phase::Dormant,
        "Waking" => Phase::Waking(a, None),
        "Waking(Save)" => Phase::Waking(a, Some(How::Save)),
        "Ready" => Phase::Ready(a),
        "Reviving0" => Phase::Reviving(a, 0, None),
        "Reviving4" => Phase::Reviving(a, 4, None),
        "Reviving0(Save)" => Phase::Reviving(a, 0, Some(How::Save)),
        "Stopping(Save)" => Phase::Stopping(a, How::Save),
        "Stopping(Discard)" => Phase::Stopping(a, How::Discard),
        "Stopping(Undo)" => Phase::Stopping(a, How::Undo),
        "Pushing" => Phase::Pushing(a),
        "Wiping" => Phase::Wiping(a),
        "Held" => Phase::Held(a),
        "Soiled" => Phase::Soiled(a),
        other => panic!("no phase `{other}`"),
    }
}

fn events() -> [Event; 8] {
    [
        Event::Init(whose("a")),
        Event::Init(whose("b")),
        Event::Deinit(How::Save),
        Event::Deinit(How::Discard),
        Event::Died,
        Event::Ended(End::Done),
        Event::Ended(End::Failed),
        Event::Ended(End::Untouched),
    ]
}

#[test]
fn every_pair_of_a_phase_and_an_event() {
    let found: Vec<_> =
        TABLE.iter().map(|(name, _)| (*name, events().map(|event| told(&phase(name).step(event))))).collect();
    let wanted: Vec<_> = TABLE.iter().map(|(name, row)| (*name, row.map(str::to_owned))).collect();
    assert_eq!(found, wanted);
}

/// What a driver would do with it, and what the world would be.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not, whatever the others are")]
struct World {
    under_way: Option<Work>,
    /// Somebody's files are there, since a wake that touched something.
    files: bool,
    /// A server was given to somebody and not ended since.
    server: bool,
    /// They were pushed since anything could write.
    saved: bool,
    /// Somebody said that they may be lost, or nobody ever had them.
    may_be_lost: bool,
}

impl World {
    /// A work ends.
    fn end(&mut self, work: Work, end: End) {
        match (work, end) {
            (Work::Wake, End::Untouched) => {}
            (Work::Wake, _) => {
                (self.files, self.server, self.saved) = (true, true, false);
                self.may_be_lost |= end == End::Failed;
            }
            (Work::Revive, _) => (self.server, self.saved) = (true, false),
            (Work::Stop, End::Done) => self.server = false,
            (Work::Push, End::Done) => self.saved = true,
            (Work::Wipe, End::Done) => self.files = false,
            _ => {}
        }
    }

    fn begin(&mut self, work: Work) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.under_way, None, "two works at once");
        match work {
            Work::Wake => prop_assert!(!self.files && !self.server, "a user comes to what another left"),
            Work::Push => prop_assert!(!self.server, "pushed while a server writes"),
            Work::Wipe => prop_assert!(!self.server && (self.saved || self.may_be_lost), "wiped, and not saved"),
            Work::Revive | Work::Stop => {}
        }
        if matches!(work, Work::Wake | Work::Revive) {
            self.may_be_lost = false;
        }
        self.under_way = Some(work);
        Ok(())
    }
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![3 => Just(End::Done), 1 => Just(End::Failed), 1 => Just(End::Untouched)]
}

proptest! {
    #[test]
    fn nobody_s_files_are_lost_or_shown_to_another(
        steps in proptest::collection::vec((0..5_usize, prop_oneof![Just(None), ends().prop_map(Some)]), 1..80),
    ) {
        let (mut phase, mut world) = (Phase::Dormant, World::default());
        for (asked, end) in steps {
            let event = match (world.under_way, end) {
                (Some(work), Some(end)) => {
                    // Only a wake can end without having touched anything.
                    let end = if work == Work::Wake || end != End::Untouched { end } else { End::Failed };
                    world.end(work, end);
                    world.under_way = None;
                    Event::Ended(end)
                }
                _ => events()[asked].clone(),
            };
            if event == Event::Deinit(How::Discard) {
                world.may_be_lost = true;
            }
            let Step { phase: next, work, answer } = phase.step(event);
            if let Some(work) = work {
                world.begin(work)?;
            }
            prop_assert_eq!(next.works(), world.under_way.is_some());
            prop_assert!(next != Phase::Dormant || !world.files && !world.server, "dormant, and not clean");
            prop_assert!(answer != Answer::Wait || next.works(), "somebody waits for nothing");
            phase = next;
        }
    }

    /// Whatever was asked, with works that succeed the sidecar soon rests.
    #[test]
    fn every_phase_that_works_ends(asked in proptest::collection::vec(0..8_usize, 0..40)) {
        let mut phase = Phase::Dormant;
        for event in asked {
            phase = phase.step(events()[event].clone()).phase;
        }
        for _ in 0..4 {
            phase = phase.step(Event::Ended(End::Done)).phase;
        }
        prop_assert!(!phase.works(), "{phase:?}");
    }
}
