//! What every keeper of records promises, whichever it is.

use std::time::Duration;

use workspace::{
    commit::{Acquired, After, Committed, Head, Lease, Renewed},
    key::{Key, Name, Sort},
};

use super::lab::{Lab, SKEW, TTL, name, with_both_keepers};

with_both_keepers! {
    nothing_is_known_of_what_was_never_leased;
    a_token_only_grows;
    a_lease_taken_again_by_its_owner_ends_the_one_before;
    a_lease_is_renewed_from_now_on_also_when_it_is_over_and_nobody_took_it;
    a_commit_needs_the_lease_and_the_generation_that_the_writer_knew;
    a_commit_of_a_lease_that_is_over_and_untaken_is_done;
    a_commit_that_was_done_is_done_however_often_it_is_asked_for;
    a_head_that_was_not_written_under_the_lease_is_refused;
    a_commit_can_end_the_lease;
    a_stale_writer_changes_nothing;
    workspaces_are_apart;
    an_owner_has_a_longest_name;
}

const MOMENT: Duration = Duration::from_millis(1);

/// A head as a push under this lease would write it.
pub(super) fn head(lease: &Lease, generation: u64) -> Head {
    head_of(lease, generation, generation)
}

fn head_of(lease: &Lease, generation: u64, nonce: u64) -> Head {
    let workspace = lease.workspace.clone();
    let manifest = Key { workspace, sort: Sort::Manifest, generation, token: lease.token, nonce };
    let blake3 = "ab".repeat(32);
    Head { manifest, blake3, generation, as_of_ms: 4_102_444_800_000, bytes: 1 << 40 }
}

async fn lease(lab: &Lab, owner: &str) -> Lease {
    lab.lease(owner).await.0
}

/// The lease and the head, as anybody can see them.
async fn seen(lab: &Lab) -> (Option<Lease>, Option<Head>) {
    (lab.commit.lease(&name()).await.unwrap(), lab.commit.head(&name()).await.unwrap())
}

async fn nothing_is_known_of_what_was_never_leased(lab: Lab) {
    assert_eq!(seen(&lab).await, (None, None));
    let never = Lease { workspace: name(), owner: "one".to_owned(), token: 7, until_ms: lab.now() };
    assert_eq!(lab.commit.renew(&never, TTL).await.unwrap(), Renewed::Lost);
    lab.commit.release(&never).await.unwrap();
    assert_eq!(lab.commit.commit(&never, 0, &head(&never, 1), After::Keep).await.unwrap(), Committed::Fenced);
    assert_eq!(seen(&lab).await, (None, None), "and asking makes nothing");
}

async fn a_token_only_grows(lab: Lab) {
    let mut tokens = Vec::new();
    for round in 1..=4 {
        let lease = lease(&lab, &format!("writer-{}", round % 2)).await;
        tokens.push(lease.token);
        match round {
            1 => lab.commit.release(&lease).await.unwrap(),
            2 => {
                let done = lab.commit.commit(&lease, 0, &head(&lease, 1), After::Release).await.unwrap();
                assert_eq!(done, Committed::Done);
            }
            _ => lab.pass(TTL + SKEW + MOMENT),
        }
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

async fn a_lease_taken_again_by_its_owner_ends_the_one_before(lab: Lab) {
    let before = lease(&lab, "one").await;
    let after = lease(&lab, "one").await;
    assert!(after.token > before.token);
    assert_eq!(lab.commit.renew(&before, TTL).await.unwrap(), Renewed::Lost);
    assert_eq!(lab.commit.commit(&before, 0, &head(&before, 1), After::Keep).await.unwrap(), Committed::Fenced);
    lab.commit.release(&before).await.unwrap();
    assert_eq!(seen(&lab).await, (Some(after), None));
}

async fn a_lease_is_renewed_from_now_on_also_when_it_is_over_and_nobody_took_it(lab: Lab) {
    let lease = lease(&lab, "one").await;
    lab.pass(TTL / 2);
    let until = lab.now() + 60_000;
    assert_eq!(lab.commit.renew(&lease, TTL).await.unwrap(), Renewed::Until(until));
    assert_eq!(seen(&lab).await.0, Some(Lease { until_ms: until, ..lease.clone() }));
    lab.pass(10 * TTL);
    assert_eq!(lab.commit.renew(&lease, TTL).await.unwrap(), Renewed::Until(lab.now() + 60_000));
    let held = lab.commit.acquire(&name(), "two", TTL).await.unwrap();
    assert_eq!(held, Acquired::Held { owner: "one".to_owned(), until_ms: lab.now() + 60_000 });
}

async fn a_commit_needs_the_lease_and_the_generation_that_the_writer_knew(lab: Lab) {
    let one = lease(&lab, "one").await;
    let first = head(&one, 1);
    let commit = |replaces: u64, head: Head| {
        let (keeper, lease) = (lab.commit.clone(), one.clone());
        async move { keeper.commit(&lease, replaces, &head, After::Keep).await.unwrap() }
    };
    assert_eq!(commit(3, head(&one, 4)).await, Committed::Moved(None));
    assert_eq!(commit(0, first.clone()).await, Committed::Done);
    assert_eq!(commit(0, head_of(&one, 1, 9)).await, Committed::Moved(Some(first.clone())));
    assert_eq!(commit(2, head(&one, 3)).await, Committed::Moved(Some(first.clone())));
    assert_eq!(seen(&lab).await, (Some(one.clone()), Some(first)));
    let second = head(&one, 2);
    assert_eq!(commit(1, second.clone()).await, Committed::Done);
    assert_eq!(seen(&lab).await, (Some(one.clone()), Some(second)));
}

async fn a_commit_of_a_lease_that_is_over_and_untaken_is_done(lab: Lab) {
    let one = lease(&lab, "one").await;
    lab.pass(10 * TTL);
    assert_eq!(lab.commit.commit(&one, 0, &head(&one, 1), After::Keep).await.unwrap(), Committed::Done);
}

async fn a_commit_that_was_done_is_done_however_often_it_is_asked_for(lab: Lab) {
    for (generation, after) in [(1, After::Keep), (2, After::Release)] {
        let one = lease(&lab, "one").await;
        let head = head(&one, generation);
        for _ in 0..3 {
            let done = lab.commit.commit(&one, generation - 1, &head, after).await.unwrap();
            assert_eq!(done, Committed::Done, "{after:?}");
        }
        assert_eq!(seen(&lab).await.1, Some(head));
    }
    // Somebody has the lease again, and no head of his own yet.
    let head = seen(&lab).await.1.unwrap();
    let before = Lease { token: head.manifest.token, ..lease(&lab, "one").await };
    let now = seen(&lab).await.0;
    assert_eq!(lab.commit.commit(&before, 1, &head, After::Release).await.unwrap(), Committed::Done);
    assert_eq!((now.is_some(), seen(&lab).await.0), (true, now), "what is asked for late ends no lease");
}

/// What a sandbox sends as a head is looked at: another workspace's manifest is none of its own.
async fn a_head_that_was_not_written_under_the_lease_is_refused(lab: Lab) {
    let one = lease(&lab, "one").await;
    let right = head(&one, 1);
    let manifest = |key: Key| Head { manifest: key, ..right.clone() };
    let key = right.manifest.clone();
    for (replaces, wrong) in [
        (0, manifest(Key { workspace: Name::new("w2").unwrap(), ..key.clone() })),
        (0, manifest(Key { token: one.token + 1, ..key.clone() })),
        (0, manifest(Key { sort: Sort::Layer, ..key.clone() })),
        (0, manifest(Key { generation: 2, ..key.clone() })),
        (0, Head { generation: 2, ..right.clone() }),
        (7, right.clone()),
        (u64::MAX, right.clone()),
    ] {
        lab.commit.commit(&one, replaces, &wrong, After::Release).await.unwrap_err();
    }
    assert_eq!(seen(&lab).await, (Some(one), None));
}

async fn a_commit_can_end_the_lease(lab: Lab) {
    let one = lease(&lab, "one").await;
    let first = head(&one, 1);
    assert_eq!(lab.commit.commit(&one, 0, &first, After::Release).await.unwrap(), Committed::Done);
    assert_eq!(seen(&lab).await, (None, Some(first.clone())));
    assert_eq!(lab.commit.commit(&one, 1, &head(&one, 2), After::Keep).await.unwrap(), Committed::Fenced);
    let (two, known) = lab.lease("two").await;
    assert_eq!((known, two.token > one.token), (Some(first), true), "the next one is told at once");
}

async fn a_stale_writer_changes_nothing(lab: Lab) {
    let stale = lease(&lab, "one").await;
    lab.pass(TTL + SKEW + MOMENT);
    let current = lease(&lab, "two").await;
    let first = head(&current, 1);
    assert_eq!(lab.commit.commit(&current, 0, &first, After::Keep).await.unwrap(), Committed::Done);
    for (replaces, generation) in [(0, 1), (1, 2)] {
        let fenced = lab.commit.commit(&stale, replaces, &head(&stale, generation), After::Release).await.unwrap();
        assert_eq!(fenced, Committed::Fenced);
    }
    let forged = Lease { token: current.token, ..stale.clone() };
    assert_eq!(lab.commit.renew(&forged, TTL).await.unwrap(), Renewed::Lost, "a token alone is not enough");
    let forged_head = head_of(&forged, 2, 9);
    assert_eq!(lab.commit.commit(&forged, 1, &forged_head, After::Keep).await.unwrap(), Committed::Fenced);
    lab.commit.release(&forged).await.unwrap();
    assert_eq!(seen(&lab).await, (Some(current), Some(first)));
}

async fn workspaces_are_apart(lab: Lab) {
    let one = lease(&lab, "one").await;
    let other = Name::new("w2").unwrap();
    let Acquired::Granted { lease, head: None } = lab.commit.acquire(&other, "two", TTL).await.unwrap() else {
        panic!()
    };
    assert_eq!(lab.commit.commit(&lease, 0, &head(&lease, 1), After::Keep).await.unwrap(), Committed::Done);
    assert_eq!(seen(&lab).await, (Some(one), None));
}

async fn an_owner_has_a_longest_name(lab: Lab) {
    let longest = "o".repeat(workspace::limits::MAX_OWNER_BYTES);
    lab.commit.acquire(&name(), &format!("{longest}o"), TTL).await.unwrap_err();
    assert_eq!(seen(&lab).await, (None, None));
    assert_eq!(lease(&lab, &longest).await.owner, longest);
}
