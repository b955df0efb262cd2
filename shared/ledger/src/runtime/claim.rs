//! The right to act: claim, wake, take-over.

use lifecycle::{Record, RuntimeId, State, Time, Token};

use crate::{
    ClaimRequest, ClaimRule, Claimed, Ledger, LedgerError, Lost,
    conditions::{self, Row},
    expression::Values,
    item,
    store::{DETAIL, Written},
};

impl Ledger {
    /// Claims a runtime, if everything that its evidence rests on still holds at the moment of the write.
    ///
    /// A claim that changes no state (a shed, a notice) refuses no heartbeat: look again before the act.
    /// Whether the unit is paused and whether a budget allows it is asked just before, by the caller.
    pub async fn claim(&self, request: &ClaimRequest, now: Time) -> Result<Claimed, LedgerError> {
        let id = &request.id;
        item::check_owner(id, &request.owner)?;
        let row = match request.rule {
            ClaimRule::Notify { .. } => conditions::CLAIM_NOTICE,
            _ => conditions::CLAIM,
        };
        match self.write(id, row, &demands(request), &self.claim_values(request, now)).await? {
            Written::Done(record) => {
                self.tell(request, record.token).await;
                Ok(Claimed::Won(Box::new(record)))
            }
            Written::Refused(None) => Ok(Claimed::Lost(Lost::NoRecord)),
            Written::Refused(Some(old)) => match self.why_not(request, &old, now) {
                Some(lost) => Ok(Claimed::Lost(lost)),
                None => Err(unexplained("claim", id)),
            },
        }
    }

    fn claim_values(&self, request: &ClaimRequest, now: Time) -> Values {
        let values = self
            .holding(&request.id, &request.owner, request.until, now)
            .text("from", request.from.as_str())
            .text("to", request.to.as_str())
            .number("epoch", request.epoch)
            .number("token", request.token.unwrap_or_default())
            .text("incarnation", request.incarnation.as_ref().map_or("", |run| run.as_str()));
        match request.rule {
            ClaimRule::Idle { cutoff }
            | ClaimRule::NeverActive { cutoff }
            | ClaimRule::Lifetime { cutoff }
            | ClaimRule::Retention { cutoff }
            | ClaimRule::Shed { cutoff }
            | ClaimRule::Notify { cutoff } => values.time("cutoff", cutoff),
            ClaimRule::Delete { cutoff, noticed, saved, resting } => values
                .time("cutoff", resting.unwrap_or(cutoff))
                .time("noticed", noticed.unwrap_or_default())
                .time("saved", saved.unwrap_or_default()),
        }
    }

    /// Who holds it, until when, and when somebody looks whether that went well.
    fn holding(&self, id: &RuntimeId, owner: &str, until: Time, now: Time) -> Values {
        self.values(id, now).text("owner", owner).time("until", until).time("due_at", until.plus(self.options.skew))
    }

    /// Takes over a claim that has expired: the right to look, and then to finish or abandon what was begun.
    pub async fn take_over(
        &self,
        id: &RuntimeId,
        expected: Token,
        owner: &str,
        until: Time,
        now: Time,
    ) -> Result<Claimed, LedgerError> {
        item::check_owner(id, owner)?;
        let values = self.holding(id, owner, until, now).number("token", expected);
        self.seize(id, conditions::TAKE_OVER, values, now, |old| match old.state {
            State::Gone => Lost::Gone,
            _ if old.token != expected => Lost::Superseded { token: old.token },
            state => Lost::State { state },
        })
        .await
    }

    /// Claims a resting runtime to resume it. Single flight: one of many wins.
    pub async fn wake(&self, id: &RuntimeId, owner: &str, until: Time, now: Time) -> Result<Claimed, LedgerError> {
        item::check_owner(id, owner)?;
        let values = self.holding(id, owner, until, now);
        self.seize(id, conditions::WAKE, values, now, |old| match old.state {
            State::Gone => Lost::Gone,
            state => Lost::State { state },
        })
        .await
    }

    async fn seize(
        &self,
        id: &RuntimeId,
        row: Row<'_>,
        values: Values,
        now: Time,
        otherwise: impl Fn(&Record) -> Lost,
    ) -> Result<Claimed, LedgerError> {
        let demands: &[&str] = if row.operation == conditions::WAKE.operation { &[conditions::UNCLAIMED] } else { &[] };
        Ok(match self.write(id, row, demands, &values).await? {
            Written::Done(record) => Claimed::Won(Box::new(record)),
            Written::Refused(None) => Claimed::Lost(Lost::NoRecord),
            Written::Refused(Some(old)) => Claimed::Lost(self.claimed(&old, now).unwrap_or_else(|| otherwise(&old))),
        })
    }

    /// Notes for people what the claim is for. It explains and decides nothing, so that a failure is logged
    /// and the claim stands; the audit's line says it too.
    async fn tell(&self, request: &ClaimRequest, token: Token) {
        let values = Values::default()
            .number("token", token)
            .text("action", request.action.to_string())
            .text("reason", request.reason.as_str())
            .text("evidence", crate::audit::shortened(&request.evidence));
        let newer = "attribute_not_exists(#claim_token) OR #claim_token < :token";
        let update = "SET #claim_token = :token, #action = :action, #reason = :reason, #evidence = :evidence";
        let key = item::key(&request.id);
        if let Err(error) = self.update("claim's detail", (&key, DETAIL), Some(newer), update, &values).await {
            tracing::warn!(runtime = %request.id, %error, "what a claim is for could not be noted");
        }
    }
}

/// Everything that the claim's condition demands beside its row.
fn demands(request: &ClaimRequest) -> Vec<&'static str> {
    let run = if request.incarnation.is_some() { conditions::SAME_RUN } else { conditions::NO_RUN };
    let mut demands = vec![run];
    demands.extend(request.token.map(|_| conditions::SAME_TOKEN));
    demands.extend(conditions::CLAIMABLE);
    demands.extend(conditions::rule(&request.rule));
    demands
}

/// The store refused, and by our own reading it should not have.
pub(crate) fn unexplained(operation: &'static str, id: &RuntimeId) -> LedgerError {
    let why = format!("it refused `{id}` for a reason that the record does not show");
    LedgerError::Request { operation, why }
}
