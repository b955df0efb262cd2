//! What is kept of a backend as a whole: the lease of its pass, its last sweep, and the kill switch.

use lifecycle::{BackendName, PolicyHash, Sweep, Time, Token, record::Claim};

use crate::{
    Leased, Ledger, LedgerError, MAX_OWNER_BYTES,
    attribute::Item,
    expression::Values,
    item::{Reader, VERSION},
    store::{RECORD, Written},
};

/// The switch of all backends together. `*` is in no backend's name.
const ALL: &str = "unit/*";

const UNIT_FORMAT: &str = "(attribute_not_exists(#v) OR #v = :v)";

/// A backend as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unit {
    /// Who passes over it, until when.
    pub lease: Option<Claim>,
    /// The lease's fence.
    pub token: Token,
    /// The last complete sweep.
    pub last_sweep: Option<Sweep>,
    /// The trailing mean of the share of heartbeat-fed records found silent.
    pub silent_mean: Option<f64>,
    /// The policy that the last complete sweep armed its records under.
    pub policy: Option<PolicyHash>,
    /// It, or everything, is paused.
    pub paused: Option<Pause>,
}

/// Somebody stopped all acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When; `None`: that can't be read, and it is paused all the same.
    pub at: Option<Time>,
    /// Why, for people.
    pub why: String,
    /// Who, for people.
    pub by: String,
    /// Which backend; `None`: all.
    pub backend: Option<BackendName>,
}

fn key(backend: &BackendName) -> String {
    format!("unit/{backend}")
}

impl Ledger {
    /// A backend as a whole; one that was never written down is an empty one.
    pub async fn unit(&self, backend: &BackendName) -> Result<Unit, LedgerError> {
        let key = key(backend);
        let mut unit = match self.item(&key, RECORD, "unit").await? {
            Some(found) => read(&key, &found)?,
            None => Unit::default(),
        };
        unit.paused = self.paused(backend).await?;
        Ok(unit)
    }

    /// Leases a backend to one pass.
    pub async fn lease_unit(
        &self,
        backend: &BackendName,
        owner: &str,
        until: Time,
        now: Time,
    ) -> Result<Leased, LedgerError> {
        let key = key(backend);
        if owner.len() > MAX_OWNER_BYTES {
            let (what, bytes, limit) = ("owner", owner.len(), MAX_OWNER_BYTES);
            return Err(LedgerError::TooLong { item: key, what, bytes, limit });
        }
        let values =
            Self::unit_values(now).text("owner", owner).time("until", until).time("expired", self.expired(now));
        let free = "(attribute_not_exists(#claim_until) OR #claim_until <= :expired)";
        let condition = format!("{UNIT_FORMAT} AND {free}");
        let update = "SET #v = :v, #claim_owner = :owner, #claim_until = :until, \
                      #token = if_not_exists(#token, :now) + :one";
        match self.update("lease", (&key, RECORD), Some(&condition), update, &values).await? {
            Written::Done(new) => Ok(Leased::Won { token: read(&key, &new)?.token }),
            Written::Refused(old) => {
                let lease = old.map(|old| read(&key, &old)).transpose()?.and_then(|unit| unit.lease);
                let (owner, until) = lease.map_or((String::new(), now), |lease| (lease.owner.to_string(), lease.until));
                Ok(Leased::Busy { owner, until: until.plus(self.options.skew) })
            }
        }
    }

    /// Gives the lease back. `false`: it was no longer ours.
    pub async fn release_unit(&self, backend: &BackendName, token: Token, now: Time) -> Result<bool, LedgerError> {
        let values = Self::unit_values(now).number("token", token);
        let condition = format!("{UNIT_FORMAT} AND #token = :token AND attribute_exists(#claim_until)");
        let update = "REMOVE #claim_owner, #claim_until";
        let written = self.update("release", (&key(backend), RECORD), Some(&condition), update, &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Keeps the lease until then. `false`: it is no longer ours.
    pub async fn renew_unit(
        &self,
        backend: &BackendName,
        token: Token,
        until: Time,
        now: Time,
    ) -> Result<bool, LedgerError> {
        let values = Self::unit_values(now).number("token", token).time("until", until);
        let condition = format!("{UNIT_FORMAT} AND #token = :token AND attribute_exists(#claim_until)");
        let update = "SET #claim_until = :until";
        let written = self.update("renew", (&key(backend), RECORD), Some(&condition), update, &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Notes a complete sweep, under the lease. `false`: the lease is no longer ours.
    pub async fn swept(
        &self,
        backend: &BackendName,
        token: Token,
        sweep: Sweep,
        silent_mean: Option<f64>,
        policy: &PolicyHash,
    ) -> Result<bool, LedgerError> {
        let values = Self::unit_values(sweep.at)
            .number("token", token)
            .number("count", sweep.count)
            .text("policy", policy.as_str())
            .text("silent", silent_mean.map_or_else(String::new, |mean| mean.to_string()));
        let condition = format!("{UNIT_FORMAT} AND #token = :token AND attribute_exists(#claim_until)");
        let silent = if silent_mean.is_some() { ", #silent_mean = :silent" } else { " REMOVE #silent_mean" };
        let update = format!("SET #swept_at = :now, #swept_count = :count, #swept_under = :policy{silent}");
        let written = self.update("swept", (&key(backend), RECORD), Some(&condition), &update, &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Stops all acts on a backend, or on every one. One that arrives late, after an unpause, does so too: a kill switch
    /// that asks clocks first would be none.
    pub async fn pause(
        &self,
        backend: Option<&BackendName>,
        why: &str,
        by: &str,
        now: Time,
    ) -> Result<(), LedgerError> {
        let values = Self::unit_values(now).text("why", why).text("by", by);
        let update = "SET #v = :v, #paused_at = :now, #paused_why = :why, #paused_by = :by";
        let key = backend.map_or_else(|| ALL.to_owned(), key);
        match self.update("pause", (&key, RECORD), Some(UNIT_FORMAT), update, &values).await? {
            Written::Done(_) => Ok(()),
            Written::Refused(old) => Err(newer(&key, old.as_ref())),
        }
    }

    /// Lets acts go on. `false`: it was not paused, or this was sent before it was and arrives after.
    pub async fn unpause(&self, backend: Option<&BackendName>, now: Time) -> Result<bool, LedgerError> {
        let key = backend.map_or_else(|| ALL.to_owned(), key);
        let condition = format!("{UNIT_FORMAT} AND attribute_exists(#paused_at) AND (NOT #paused_at > :ahead)");
        let update = "REMOVE #paused_at, #paused_why, #paused_by";
        let values = Self::unit_values(now).time("ahead", now.plus(self.options.skew));
        let written = self.update("unpause", (&key, RECORD), Some(&condition), update, &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Whether acts on a backend are stopped, by its own switch or by that of all. Read before each claim.
    pub async fn paused(&self, backend: &BackendName) -> Result<Option<Pause>, LedgerError> {
        let (all, own) = (ALL.to_owned(), key(backend));
        let found = self.batch("paused", &[&all, &own]).await?;
        let of = |key: &str, whose: Option<&BackendName>| {
            let its_own = |item: &&Item| item.get("pk").and_then(|pk| pk.as_s().ok()).is_some_and(|pk| pk == key);
            found.iter().find(its_own).and_then(|item| pause(item, whose))
        };
        Ok(of(&all, None).or_else(|| of(&own, Some(backend))))
    }

    fn unit_values(now: Time) -> Values {
        Values::default().number("v", VERSION).number("one", 1).time("now", now)
    }
}

/// Paused is whoever has the attribute, whatever stands in it.
fn pause(found: &Item, backend: Option<&BackendName>) -> Option<Pause> {
    found.get("paused_at")?;
    let read = Reader::new("unit", found);
    let text = |word: &str| read.text(word).ok().flatten().unwrap_or_default().to_owned();
    let at = read.time("paused_at").ok().flatten();
    Some(Pause { at, why: text("paused_why"), by: text("paused_by"), backend: backend.cloned() })
}

fn read(key: &str, found: &Item) -> Result<Unit, LedgerError> {
    let read = Reader::new(key, found);
    read.version()?;
    let sweep = match (read.time("swept_at")?, read.number("swept_count")?) {
        (Some(at), Some(count)) => Some(Sweep { at, count }),
        _ => None,
    };
    let mean = read.text("silent_mean")?.and_then(|mean| mean.parse().ok()).filter(|mean: &f64| mean.is_finite());
    Ok(Unit {
        lease: read.claim()?,
        token: read.number("token")?.unwrap_or(0),
        last_sweep: sweep,
        silent_mean: mean,
        policy: read.text("swept_under")?.map(PolicyHash::from_text),
        paused: None,
    })
}

fn newer(key: &str, old: Option<&Item>) -> LedgerError {
    let found = old.map(|old| read(key, old));
    match found {
        Some(Err(error)) => error,
        _ => LedgerError::Contended { operation: "pause", item: key.to_owned(), rounds: 1 },
    }
}
