//! Verdicts on single runtimes, told as what happened in the field.

use std::time::Duration;

use lifecycle::{
    Action, Activity, Busy, Cannot, Capabilities, Claim, Incarnation, Loss, NativeDeadline, NativeEffect,
    NativeObserved, Ownership, Reason, Role, SignalSet, State, Tier, Time,
    policy::{FileRules, NativeMode, Overrides, Retention, Rules, WorkspaceRule},
    record::Hold,
};

use super::worlds::{
    NOW, SLACK, ago, archiving, container, days, decided, hours, just_past, mins, rules, running, short, suspended,
    usual, verdict, verdict_at, worktree,
};

const IDLE: Reason = Reason::Idle { after: mins(30) };

fn idle_limit() -> Rules {
    Rules { idle_after: Some(mins(30)), ..rules() }
}

#[test]
fn idle_is_strictly_more_than_the_limit_and_the_slack() {
    let at_limit = running("a").active(mins(30) + SLACK);
    let due = just_past(ago(mins(30) + SLACK), mins(30));
    assert_eq!(decided(container(), idle_limit(), at_limit.clone()), Err((Reason::Active, Some(due))));
    assert_eq!(short(verdict_at(container(), idle_limit(), at_limit, due)), Ok((Action::Suspend, IDLE)));
}

/// software-agent-sdk#1769: a warm runtime was claimed, and paused 6 s later for idle time from before.
#[test]
fn a_full_idle_period_passes_after_a_start_whatever_the_idle_time_says() {
    let old = running("a").active(hours(5));
    let started = old.clone().seen(|seen| seen.running_since = Some(ago(mins(1))));
    let entered = old.clone().seen(|seen| seen.state_since = Some(ago(mins(1))));
    let registered = old.recorded().record(|record| record.idle_from = ago(mins(1)));
    let keep = Err((Reason::Active, Some(just_past(ago(mins(1)), mins(30)))));
    for runtime in [started, entered, registered] {
        assert_eq!(decided(container(), idle_limit(), runtime), keep);
    }
}

/// software-agent-sdk#1770, sablier#576: one fresh signal suffices, whichever it is.
#[test]
fn one_fresh_signal_of_any_kind_keeps() {
    let fresh = Some(ago(mins(1)));
    let keep = Err((Reason::Active, Some(just_past(ago(mins(1)), mins(30)))));
    let heartbeat = running("a").active(hours(5)).heartbeat(mins(1));
    let provider = running("a").active(mins(1)).heartbeat(hours(5));
    let probe = running("a").active(hours(5)).heartbeat(hours(5)).probed(fresh, Busy::No);
    for runtime in [heartbeat, provider, probe] {
        assert_eq!(decided(container(), idle_limit(), runtime), keep);
    }
}

/// software-agent-sdk#1634: killed while serving, since a signal that could not be read looked idle.
#[test]
fn an_unread_probe_and_an_unknown_signal_are_never_idle() {
    let unread = running("a").heartbeat(hours(5)).probed(None, Busy::Unread);
    assert_eq!(decided(container(), idle_limit(), unread), Err((Reason::Unread, None)));
    assert_eq!(decided(container(), idle_limit(), running("a").recorded()), Err((Reason::Unknown, None)));
    assert_eq!(decided(worktree(), usual(), running("a").recorded()), Err((Reason::Unknown, None)));
}

/// coder#12012: an open dashboard counted as use. A signal that the policy leaves out proves nothing,
/// neither use nor idleness.
#[test]
fn a_signal_that_the_policy_leaves_out_proves_nothing() {
    let only_heartbeats = SignalSet { heartbeat: true, provider: false, probe: false };
    let strict = Rules { signals: only_heartbeats, ..idle_limit() };
    let used = running("a").active(mins(1)).heartbeat(hours(5)).probed(Some(NOW), Busy::No);
    assert_eq!(decided(container(), strict.clone(), used), Ok((Action::Suspend, IDLE)));
    let idle = running("a").active(hours(5)).recorded();
    assert_eq!(decided(container(), strict.clone(), idle), Err((Reason::Unknown, None)));
    let frozen = running("a").recorded().seen(|seen| seen.activity = Activity::Frozen);
    assert_eq!(decided(container(), strict, frozen), Err((Reason::Unknown, None)));
}

/// software-agent-sdk#2698, ColeMurray/background-agents#1263: `sleep 900` was stopped in mid-command.
#[test]
fn work_under_way_vetoes_up_to_twelve_hours() {
    let until = |hours_ahead| NOW.plus(hours(hours_ahead));
    let idle = || running("a").heartbeat(hours(1));
    let keep = |at| Err((Reason::Busy { until: at }, Some(at)));
    let seen = idle().seen(|seen| seen.busy = Busy::Until(until(2)));
    let probed = idle().probed(None, Busy::Until(until(2)));
    let told = idle().record(|record| record.busy_until = Some(until(2)));
    for runtime in [seen, probed, told] {
        assert_eq!(decided(container(), idle_limit(), runtime), keep(until(2)));
    }
    let endless = idle().seen(|seen| seen.busy = Busy::Until(Time::MAX));
    assert_eq!(decided(container(), idle_limit(), endless), keep(until(12)));
    // What a heartbeat told an hour ago vetoes for eleven more.
    let endless = idle().record(|record| record.busy_until = Some(Time::MAX));
    assert_eq!(decided(container(), idle_limit(), endless.clone()), keep(until(11)));
    let later = short(verdict_at(container(), idle_limit(), endless, until(11)));
    assert_eq!(later, Ok((Action::Suspend, IDLE)));
}

/// proliferate#2160: abandoned work made a runtime unreapable.
#[test]
fn neither_work_nor_activity_nor_an_unread_probe_extends_the_lifetime() {
    let limited = Rules { lifetime_max: Some(days(1)), ..idle_limit() };
    let up = || running("a").heartbeat(Duration::ZERO).seen(|seen| seen.running_since = Some(ago(days(2))));
    let up = || up().record(|record| record.running_since = Some(ago(days(2))));
    let over = Ok((Action::Suspend, Reason::Lifetime { max: days(1) }));
    assert_eq!(decided(container(), limited.clone(), up().seen(|seen| seen.busy = Busy::Until(Time::MAX))), over);
    assert_eq!(decided(container(), limited.clone(), up().probed(Some(NOW), Busy::Unread)), over);
    let young = up().record(|record| record.running_since = Some(ago(hours(1))));
    let next = NOW.plus(mins(30) + SLACK + Duration::from_millis(1));
    assert_eq!(decided(container(), limited, young), Err((Reason::Active, Some(next))));
}

/// hermes-agent#73671: clean-up hit a newer run of the same id; cloudflare/sandbox-sdk#415: one came back.
#[test]
fn another_run_of_the_same_id_is_observed_first() {
    let idle = || running("a").heartbeat(hours(5));
    let newer = idle().seen(|seen| seen.incarnation = Incarnation::new("run-2"));
    let back = idle().record(|record| record.state = State::Gone);
    for runtime in [newer, back] {
        assert_eq!(decided(container(), usual(), runtime), Err((Reason::Moved, None)));
    }
}

/// OpenHands/software-agent-sdk#4893: the record is not the truth on the state.
#[test]
fn what_was_woken_outside_is_not_idle_since_before() {
    let woken = running("a").active(hours(5)).heartbeat(hours(5)).record(|record| record.state = State::Suspended);
    let since_then = woken.clone().seen(|seen| seen.running_since = Some(ago(mins(1))));
    let unknown = woken.seen(|seen| seen.running_since = None).record(|record| record.running_since = None);
    let due = just_past(ago(mins(1)), mins(30));
    assert_eq!(decided(container(), idle_limit(), since_then), Err((Reason::Active, Some(due))));
    assert_eq!(decided(container(), idle_limit(), unknown), Err((Reason::FirstSeen, None)));
}

#[test]
fn whoever_has_a_claim_is_left_alone_and_a_middle_state_is_only_looked_at() {
    let until = NOW.plus(mins(5));
    let claim = |until| Some(Claim { owner: "pass".into(), until });
    let claimed = running("a").heartbeat(hours(5)).record(|record| record.claim = claim(until));
    assert_eq!(decided(container(), usual(), claimed.clone()), Err((Reason::Claimed { until }, Some(until))));
    assert_eq!(short(verdict_at(container(), usual(), claimed, until)), Ok((Action::Suspend, IDLE)));
    let died = running("a").heartbeat(hours(5)).record(|record| {
        record.state = State::Suspending;
        record.claim = claim(ago(mins(5)));
    });
    assert_eq!(decided(container(), usual(), died), Err((Reason::Middle { state: State::Suspending }, None)));
    let by_itself = running("a").heartbeat(hours(5)).seen(|seen| seen.state = State::Deleting);
    assert_eq!(decided(container(), usual(), by_itself), Err((Reason::Middle { state: State::Deleting }, None)));
}

#[test]
fn a_hold_holds_and_an_unreadable_one_too() {
    let idle = || running("a").heartbeat(hours(5));
    let until = NOW.plus(hours(1));
    let recorded = |hold| idle().record(|record| record.hold_until = Some(hold));
    let held = |until| Err((Reason::Held { until }, until));
    let label = |text: &str| idle().label("furlough.hold", text);
    assert_eq!(decided(container(), usual(), recorded(Hold::Until(until))), held(Some(until)));
    assert_eq!(decided(container(), usual(), recorded(Hold::Forever)), held(None));
    assert_eq!(decided(container(), usual(), label(&until.to_string())), held(Some(until)));
    for unreadable in [recorded(Hold::Unreadable), label(""), label("tomorrow"), label("2026-06-15"), label("0")] {
        assert_eq!(decided(container(), usual(), unreadable), Err((Reason::HoldUnreadable, None)));
    }
    let both = recorded(Hold::Until(until)).label("furlough.hold", &NOW.plus(hours(9)).to_string());
    assert_eq!(decided(container(), usual(), both), held(Some(NOW.plus(hours(9)))));
    let over = recorded(Hold::Until(NOW)).label("furlough.hold", &ago(mins(1)).to_string());
    assert_eq!(decided(container(), usual(), over), Ok((Action::Suspend, IDLE)));
}

#[test]
fn what_somebody_was_refused_is_theirs_for_twelve_hours() {
    let wanted =
        |before| suspended("a", days(20)).recorded().record(move |record| record.wanted_at = Some(ago(before)));
    let until = NOW.plus(hours(2));
    assert_eq!(decided(container(), usual(), wanted(hours(10))), Err((Reason::Wanted, Some(until))));
    // After that its retention counts from when it was last asked for.
    let next = just_past(ago(hours(13)), days(14));
    let keep = Err((Reason::NotYet { action: Action::Delete }, Some(next)));
    assert_eq!(decided(container(), usual(), wanted(hours(13))), keep);
}

/// coder#13719: a poisoned delete ate every tick.
#[test]
fn what_failed_waits_alone() {
    let due = NOW.plus(mins(7));
    let failed = running("a").heartbeat(hours(5)).record(|record| {
        record.attempts = 3;
        record.due_at = Some(due);
    });
    assert_eq!(decided(container(), usual(), failed.clone()), Err((Reason::BackingOff { attempts: 3 }, Some(due))));
    assert_eq!(short(verdict_at(container(), usual(), failed, due)), Ok((Action::Suspend, IDLE)));
}

/// opengeni#241, suna#3571: foreign and untagged live boxes were at risk.
#[test]
fn what_is_not_ours_is_only_reported() {
    let idle = |ownership| running("a").heartbeat(hours(5)).seen(|seen| seen.ownership = ownership);
    assert_eq!(decided(container(), usual(), idle(Ownership::Foreign)), Err((Reason::Foreign, None)));
    assert_eq!(decided(container(), usual(), idle(Ownership::Unlabelled)), Err((Reason::Unlabelled, None)));
}

/// knative/serving#4021, sablier#713: no timestamp, so never eligible; or eligible from "now" each time.
#[test]
fn a_missing_clock_counts_from_the_first_sighting() {
    let patient = Rules { unknown_after: Some(days(7)), ..usual() };
    let never = |reason| Err((reason, None));
    assert_eq!(decided(container(), patient.clone(), running("a")), never(Reason::FirstSeen));
    let young = running("a").recorded().record(|record| {
        record.first_seen = ago(days(5));
        record.idle_from = ago(days(5));
    });
    let due = just_past(ago(days(5)), days(7));
    assert_eq!(decided(container(), patient.clone(), young), Err((Reason::Unknown, Some(due))));
    let old = || running("a").recorded();
    let suspend = Ok((Action::Suspend, Reason::NeverActive { after: days(7) }));
    assert_eq!(decided(container(), patient.clone(), old()), suspend);
    // Never deleted, even where a deletion is all that there is.
    assert_eq!(decided(worktree(), patient.clone(), old()), never(Reason::Unknown));
    // It was started again: seven more days.
    let again = old().seen(|seen| seen.running_since = Some(ago(hours(1))));
    let due = just_past(ago(hours(1)), days(7));
    assert_eq!(decided(container(), patient.clone(), again), Err((Reason::Unknown, Some(due))));
    let no_since = suspended("a", days(30)).seen(|seen| seen.state_since = None);
    assert_eq!(decided(container(), patient, no_since), never(Reason::FirstSeen));
}

#[test]
fn what_is_frozen_is_idle_since_it_was_first_seen_so() {
    let frozen = || running("a").recorded().seen(|seen| seen.activity = Activity::Frozen);
    assert_eq!(decided(container(), idle_limit(), frozen()), Err((Reason::FirstSeen, None)));
    let since = |before| frozen().record(move |record| record.frozen_since = Some(ago(before)));
    assert_eq!(decided(container(), idle_limit(), since(hours(1))), Ok((Action::Suspend, IDLE)));
    let due = just_past(ago(mins(5)), mins(30));
    assert_eq!(decided(container(), idle_limit(), since(mins(5))), Err((Reason::Active, Some(due))));
}

#[test]
fn activity_in_the_future_is_activity() {
    let ahead = running("a").seen(|seen| seen.activity = Activity::At(NOW.plus(hours(3))));
    let due = just_past(NOW.plus(hours(3)), mins(30));
    assert_eq!(decided(container(), idle_limit(), ahead), Err((Reason::Active, Some(due))));
}

/// proliferate#1264: paused boxes never died.
#[test]
fn what_is_suspended_ages_to_the_archive_or_where_there_is_none_to_deletion() {
    let old = || suspended("a", days(15));
    let over = Reason::Retention { stage: State::Suspended, keep: days(14) };
    assert_eq!(decided(container(), usual(), old()), Ok((Action::Delete, over.clone())));
    assert_eq!(decided(archiving(), usual(), old()), Ok((Action::Archive, over)));
    let young = suspended("a", days(13));
    let due = just_past(ago(days(13)), days(14));
    let keep = Err((Reason::NotYet { action: Action::Archive }, Some(due)));
    assert_eq!(decided(archiving(), usual(), young), keep);
    let archived = suspended("a", days(181)).seen(|seen| seen.state = State::Archived);
    let over = Reason::Retention { stage: State::Archived, keep: days(180) };
    assert_eq!(decided(archiving(), usual(), archived), Ok((Action::Delete, over)));
}

#[test]
fn a_stage_counts_from_the_later_of_what_the_record_and_the_backend_say() {
    let both = suspended("a", days(20)).recorded();
    let young = Err((Reason::NotYet { action: Action::Delete }, Some(just_past(ago(days(1)), days(14)))));
    let by_record = both.clone().record(|record| record.state_since = ago(days(1)));
    let by_backend = both.clone().seen(|seen| seen.state_since = Some(ago(days(1))));
    assert_eq!(decided(container(), usual(), by_record), young.clone());
    assert_eq!(decided(container(), usual(), by_backend), young);
    // Stopped outside: the record's state is another, and so is its time.
    let outside = both.record(|record| {
        record.state = State::Running;
        record.state_since = ago(days(1));
    });
    let over = Reason::Retention { stage: State::Suspended, keep: days(14) };
    assert_eq!(decided(container(), usual(), outside), Ok((Action::Delete, over)));
}

/// anthropics/claude-code#74719: a sweep deleted dirty and unpushed worktrees.
#[test]
fn what_is_not_saved_is_not_deleted() {
    let save = Rules { workspace: WorkspaceRule::Save, ..usual() };
    let lost = vec!["3 untracked files".into()];
    let with = |loss| suspended("a", days(20)).heartbeat(days(21)).seen(|seen| seen.loss = loss);
    let work = || with(Loss::Work(lost.clone()));
    let over = Reason::Retention { stage: State::Suspended, keep: days(14) };
    let delete = Ok((Action::Delete, over.clone()));
    assert_eq!(decided(container(), save.clone(), work()), Err((Reason::NotSaved { lost: lost.clone() }, None)));
    let unknown = Err((Reason::NotSaved { lost: Vec::new() }, None));
    assert_eq!(decided(container(), save.clone(), with(Loss::Unknown)), unknown);
    assert_eq!(decided(container(), save.clone(), with(Loss::Nothing)), delete.clone());
    // Saved as of the start of the scan, which must not be before the last activity.
    let saved = |as_of| work().record(move |record| record.saved_as_of = Some(as_of));
    assert_eq!(decided(container(), save.clone(), saved(ago(days(21)))), delete.clone());
    let stale = saved(ago(days(21) + mins(1)));
    assert_eq!(decided(container(), save.clone(), stale), Err((Reason::NotSaved { lost: lost.clone() }, None)));
    // A backend that saves first, and a user who says that it may be lost.
    let saves_first = Capabilities { saves_first: true, ..container() };
    assert_eq!(decided(saves_first, save, work()), delete.clone());
    assert_eq!(decided(container(), usual(), work()), delete);
}

#[test]
fn a_deletion_waits_until_notice_of_it_was_given_for_long_enough() {
    let polite = Rules { notice_before_delete: Some(hours(48)), ..usual() };
    let over = Reason::Retention { stage: State::Suspended, keep: days(14) };
    let old = || suspended("a", days(20)).recorded();
    let noticed = |condemned, sent: Time| {
        old().record(move |record| {
            record.condemned_at = Some(condemned);
            record.noticed_at = Some(sent);
        })
    };
    let notify = Ok((Action::Notify, over.clone()));
    assert_eq!(decided(container(), polite.clone(), suspended("a", days(20))), notify.clone());
    assert_eq!(decided(container(), polite.clone(), old()), notify.clone());
    let undelivered = old().record(|record| record.condemned_at = Some(ago(days(3))));
    assert_eq!(decided(container(), polite.clone(), undelivered), notify.clone());
    let sent = ago(hours(47));
    let keep = Err((Reason::Notice { sent: Some(sent) }, Some(just_past(sent, hours(48)))));
    assert_eq!(decided(container(), polite.clone(), noticed(ago(days(3)), sent)), keep);
    let long_ago = noticed(ago(days(3)), ago(hours(49)));
    assert_eq!(decided(container(), polite.clone(), long_ago), Ok((Action::Delete, over)));
    // Notice of an earlier condemnation, or from before it was last in use, is none.
    assert_eq!(decided(container(), polite.clone(), noticed(ago(days(1)), ago(days(3)))), notify.clone());
    assert_eq!(decided(container(), polite, noticed(ago(days(40)), ago(days(39)))), notify);
}

/// Cursor-like `--rm` containers: stopping them deletes them.
#[test]
fn a_role_that_is_missing_keeps_and_says_whose_fault_it_is() {
    let lacks = |role, why: Option<&str>| Err((Reason::Lacks { role, why: why.map(Into::into) }, None));
    let idle = || running("a").heartbeat(hours(5));
    let only_deletes = Capabilities { suspend: None, ..container() };
    assert_eq!(decided(only_deletes, idle_limit(), idle()), lacks(Role::Suspend, None));
    let cannot = |role, why: &str| Cannot { role, why: why.into() };
    let rm = idle().seen(|seen| seen.cannot = vec![cannot(Role::Suspend, "`--rm`")]);
    assert_eq!(decided(container(), idle_limit(), rm), lacks(Role::Suspend, Some("`--rm`")));
    let locked = suspended("a", days(20)).seen(|seen| seen.cannot = vec![cannot(Role::Delete, "locked")]);
    assert_eq!(decided(container(), usual(), locked), lacks(Role::Delete, Some("locked")));
    // A runtime that its backend can't archive is not deleted in its place.
    let fixed = suspended("a", days(20)).seen(|seen| seen.cannot = vec![cannot(Role::Archive, "too large")]);
    assert_eq!(decided(archiving(), usual(), fixed), lacks(Role::Archive, Some("too large")));
}

#[test]
fn a_worktree_rests_for_both_times_and_goes_with_notice() {
    let total = mins(30) + days(14);
    let over = Reason::Idle { after: total };
    let at = |before| running("a").active(before).seen(|seen| seen.running_since = None);
    assert_eq!(decided(worktree(), usual(), at(days(15))), Ok((Action::Delete, over.clone())));
    let young = Err((Reason::NotYet { action: Action::Delete }, Some(just_past(ago(days(13)), total))));
    assert_eq!(decided(worktree(), usual(), at(days(13))), young);
    let used = Err((Reason::Active, Some(just_past(ago(mins(5)), total))));
    assert_eq!(decided(worktree(), usual(), at(mins(5))), used);
    let polite = Rules { notice_before_delete: Some(hours(48)), ..usual() };
    assert_eq!(decided(worktree(), polite, at(days(15))), Ok((Action::Notify, over)));
    // Without an idle limit, or without a retention, never.
    let no_limit = Rules { idle_after: None, ..usual() };
    let no_retention = Rules { retention: Retention::default(), ..usual() };
    for rules in [no_limit, no_retention] {
        assert_eq!(decided(worktree(), rules, at(days(900))), Err((Reason::NoRule { state: State::Running }, None)));
    }
}

/// software-agent-sdk#5260: 221 directories, 154 GB, mostly caches.
#[test]
fn files_go_by_tier_the_cheapest_to_rebuild_first() {
    let files = FileRules { caches: Some(hours(1)), dependencies: Some(days(3)) };
    let tiers = Rules { files, ..rules() };
    let at = |before| running("a").active(before).recorded().record(|record| record.idle_from = ago(days(10)));
    let shed = |tier, after| Ok((Action::Shed(tier), Reason::TierAge { after }));
    assert_eq!(decided(worktree(), tiers.clone(), at(hours(2))), shed(Tier::Caches, hours(1)));
    assert_eq!(decided(worktree(), tiers.clone(), at(days(4))), shed(Tier::Caches, hours(1)));
    let cached = |before| at(before).record(|record| record.shed = Some(Tier::Caches));
    assert_eq!(decided(worktree(), tiers.clone(), cached(days(4))), shed(Tier::Dependencies, days(3)));
    let waits = |tier, due| Err((Reason::NotYet { action: Action::Shed(tier) }, Some(due)));
    let due = just_past(ago(days(2)), days(3));
    assert_eq!(decided(worktree(), tiers.clone(), cached(days(2))), waits(Tier::Dependencies, due));
    let due = just_past(ago(mins(5)), hours(1));
    assert_eq!(decided(worktree(), tiers.clone(), at(mins(5))), waits(Tier::Caches, due));
    // Nothing there, by measurement; or all of it shed already.
    let empty = at(days(4)).seen(|seen| seen.files.caches = Some(0));
    assert_eq!(decided(worktree(), tiers.clone(), empty), shed(Tier::Dependencies, days(3)));
    let bare = at(days(4)).record(|record| record.shed = Some(Tier::Dependencies));
    assert_eq!(decided(worktree(), tiers, bare), Err((Reason::NoRule { state: State::Running }, None)));
}

#[test]
fn a_runtimes_own_wish_counts_within_the_policys_bounds() {
    let wishes = Overrides { label: "furlough.idle".into(), min: mins(10), max: hours(8) };
    let asked = Rules { overrides: Some(wishes), ..idle_limit() };
    let limit = |text: &str| {
        let runtime = running("a").active(days(9)).label("furlough.idle", text);
        match decided(container(), asked.clone(), runtime) {
            Ok((Action::Suspend, Reason::Idle { after })) => after,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(limit("2h"), hours(2));
    assert_eq!(limit("45m"), mins(45));
    assert_eq!(limit("1m"), mins(10));
    assert_eq!(limit("30d"), hours(8));
    for unreadable in ["", "0", "0m", "soon", "-5m", "2 h", "1.5h"] {
        assert_eq!(limit(unreadable), hours(8), "{unreadable:?}");
    }
    // A wish moves a limit; it does not make one.
    let never = Rules { idle_after: None, ..asked };
    let runtime = running("a").active(days(9)).label("furlough.idle", "45m");
    assert_eq!(decided(container(), never, runtime), Err((Reason::NoRule { state: State::Running }, None)));
}

#[test]
fn what_the_provider_does_by_itself_is_left_to_it_until_it_is_overdue() {
    let at = NOW.plus(mins(2));
    let native = |at, idle_suspend| NativeObserved {
        idle_suspend,
        deadline: Some(NativeDeadline { at, effect: NativeEffect::Suspend }),
        ..NativeObserved::default()
    };
    let idle = |native| running("a").active(hours(1)).seen(|seen| seen.native = Some(Box::new(native)));
    let first = Err((Reason::NativeFirst { at }, Some(just_past(at, Duration::ZERO))));
    let suspend = Ok((Action::Suspend, IDLE));
    assert_eq!(decided(container(), idle_limit(), idle(native(at, Some(mins(30))))), first);
    let overdue = native(ago(mins(1)), Some(mins(30)));
    let too_long = native(at, Some(hours(2)));
    let zero = native(at, Some(Duration::ZERO));
    let other_effect =
        NativeObserved { deadline: Some(NativeDeadline { at, effect: NativeEffect::Destroy }), ..overdue };
    let no_deadline = NativeObserved { deadline: None, ..overdue };
    for ours in [overdue, too_long, zero, other_effect, no_deadline, native(at, None)] {
        assert_eq!(decided(container(), idle_limit(), idle(ours)), suspend, "{ours:?}");
    }
    for mode in [NativeMode::Backstop, NativeMode::Off] {
        let rules = Rules { native: mode, ..idle_limit() };
        assert_eq!(decided(container(), rules, idle(native(at, Some(mins(30))))), suspend);
    }
    let archives = NativeObserved {
        archive: Some(days(14)),
        deadline: Some(NativeDeadline { at, effect: NativeEffect::Archive }),
        ..NativeObserved::default()
    };
    let stopped = suspended("a", days(20)).seen(|seen| seen.native = Some(Box::new(archives)));
    assert_eq!(decided(archiving(), usual(), stopped), first);
}

#[test]
fn a_verdict_to_act_rests_on_what_was_seen() {
    let runtime = running("a").active(hours(3)).heartbeat(hours(5)).seen(|seen| {
        seen.loss = Loss::Work(vec!["2 unpushed commits".into()]);
        seen.about = "/worktrees/a".into();
    });
    let lifecycle::Verdict::Act(action, reason, evidence) = verdict(container(), idle_limit(), runtime) else {
        panic!("it is idle");
    };
    let expected = lifecycle::Evidence {
        idle_from: ago(hours(3)),
        idle: hours(3),
        last_active: Some(ago(hours(3))),
        source: Some(lifecycle::Signal::Provider),
        state_since: Some(ago(days(10))),
        running_since: Some(ago(days(10))),
        policy: "agents".into(),
        would_lose: vec!["2 unpushed commits".into()],
        workspace: lifecycle::policy::WorkspaceRule::Save,
        about: "/worktrees/a".into(),
    };
    assert_eq!((action, evidence), (Action::Suspend, expected.clone()));
    assert_eq!(reason.with(&expected, NOW), "idle for 3h, over the limit of 30m");
}
