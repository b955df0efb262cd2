//! Signs of activity, stamped on arrival. One conditional write; what it lost to is told, never swallowed.

use std::time::Duration;

use lifecycle::{Record, RuntimeId, State, Time, activity::MAX_BUSY, record::Epoch};

use crate::{
    Heartbeat, Ledger, LedgerError, ROUNDS,
    conditions::{self, Row},
    runtime::finish,
    store::{Written, contended},
};

/// How much of a mark's digest is kept: two deliveries of one runtime are not mistaken for one another by chance.
const MARK_DIGITS: usize = 16;

/// One heartbeat.
struct Beat<'a> {
    id: &'a RuntimeId,
    epoch: Option<Epoch>,
    busy_until: Option<Time>,
    /// What tells a delivery from its repetition.
    mark: Option<String>,
    now: Time,
}

impl Ledger {
    /// Records a sign of activity. 1 write unit, as long as it is not refused.
    ///
    /// `epoch`: the registration that the sender belongs to, where it says one. `busy_for`: work is under way
    /// for that long, cut to 12 h; it can lengthen a veto, not shorten one, and zero is the same as none. A
    /// runtime that does not run is told so, and marked as wanted at most once per `coalesce`.
    pub async fn heartbeat(
        &self,
        id: &RuntimeId,
        epoch: Option<Epoch>,
        busy_for: Option<Duration>,
        now: Time,
    ) -> Result<Heartbeat, LedgerError> {
        self.arrived(&Beat { id, epoch, busy_until: veto(busy_for, now), mark: None, now }).await
    }

    /// The same for a sign that comes in deliveries, of which some come twice or late: what has the mark of the last one
    /// says nothing new ([`Heartbeat::Coalesced`]).
    pub async fn heartbeat_once(
        &self,
        id: &RuntimeId,
        epoch: Option<Epoch>,
        busy_for: Option<Duration>,
        mark: &str,
        now: Time,
    ) -> Result<Heartbeat, LedgerError> {
        let mark = blake3::hash(mark.as_bytes()).to_hex()[..MARK_DIGITS].to_owned();
        self.arrived(&Beat { id, epoch, busy_until: veto(busy_for, now), mark: Some(mark), now }).await
    }

    async fn arrived(&self, beat: &Beat<'_>) -> Result<Heartbeat, LedgerError> {
        let &Beat { id, epoch, busy_until, now, .. } = beat;
        let mut row = if busy_until.is_some() { conditions::HEARTBEAT_BUSY } else { conditions::HEARTBEAT };
        for _ in 0..ROUNDS {
            let old = match self.beat(beat, row).await? {
                Written::Done(_) => return Ok(Heartbeat::Recorded),
                Written::Refused(None) => return Ok(Heartbeat::Unknown),
                Written::Refused(Some(old)) => old,
            };
            if old.state == State::Gone {
                return Ok(Heartbeat::Gone);
            }
            if epoch.is_some_and(|epoch| epoch != old.epoch) {
                return Ok(Heartbeat::Superseded { epoch: old.epoch });
            }
            let longer = busy_until.is_some_and(|until| old.busy_until.is_none_or(|known| known < until));
            let next = match (old.state == State::Running, old.idle_from < now, longer) {
                (false, ..) => match self.want(beat, &old).await? {
                    Some(refused) => return Ok(refused),
                    None => row,
                },
                (true, true, true) => conditions::HEARTBEAT_BUSY,
                (true, true, false) => conditions::HEARTBEAT,
                (true, false, true) => conditions::BUSY,
                (true, false, false) => return Ok(Heartbeat::Coalesced),
            };
            // All that this row demands of the record was so; what refused it was the mark.
            if beat.mark.is_some() && old.state == State::Running && next.condition == row.condition {
                return Ok(Heartbeat::Coalesced);
            }
            row = next;
        }
        Err(contended("heartbeat", id))
    }

    async fn beat(&self, beat: &Beat<'_>, row: Row<'_>) -> Result<Written<Record>, LedgerError> {
        let epoch = beat.epoch.map(|_| conditions::SAME_EPOCH);
        let once = beat.mark.as_ref().map(|_| conditions::ONCE);
        let demands: Vec<_> = epoch.into_iter().chain(once).collect();
        let marked = once.map_or("", |_| conditions::MARKED);
        let update = finish::spliced(row.update, marked, "");
        let row = Row { update: &update, ..row };
        let values = self
            .values(beat.id, beat.now)
            .text("mark", beat.mark.as_deref().unwrap_or_default())
            .number("epoch", beat.epoch.unwrap_or_default())
            .time("busy_until", beat.busy_until.unwrap_or_default());
        self.write(beat.id, row, &demands, &values).await
    }

    /// Marks the runtime as wanted, unless that was done a moment ago. `None`: its state changed meanwhile.
    async fn want(&self, beat: &Beat<'_>, old: &Record) -> Result<Option<Heartbeat>, LedgerError> {
        let refused = |wanted| Some(Heartbeat::NotRunning { state: old.state, wanted });
        let coalesced = beat.now.minus(self.options.coalesce);
        if let Some(wanted) = old.wanted_at.filter(|wanted| *wanted > coalesced) {
            return Ok(refused(wanted));
        }
        let values = self.values(beat.id, beat.now).text("state", old.state.as_str()).time("coalesced", coalesced);
        Ok(match self.write(beat.id, conditions::WANT, &[], &values).await? {
            Written::Done(_) => refused(beat.now),
            Written::Refused(Some(new)) if new.state == old.state => refused(new.wanted_at.unwrap_or(beat.now)),
            Written::Refused(_) => None,
        })
    }
}

/// The end of the veto. Zero is none.
fn veto(busy_for: Option<Duration>, now: Time) -> Option<Time> {
    busy_for.filter(|busy| !busy.is_zero()).map(|busy| now.plus(busy.min(MAX_BUSY)))
}
