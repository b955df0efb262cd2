//! A plan as a file, and what an apply refuses.

use std::io;

use serde::Deserialize;

use super::{PLAN_VERSION, Plan};
use crate::{Policy, PolicyHash, Time};

/// A file that is no plan that Furlough wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It ends early.
    #[error("the plan file is cut short; make a new one with `furlough plan`")]
    CutShort,
    /// It can't be read as a plan.
    #[error("this is not a plan file that Furlough wrote ({why}); make a new one with `furlough plan`")]
    Malformed {
        /// Where and why.
        why: String,
    },
    /// Another format.
    #[error(
        "the plan file has format {found}, and this is for format {PLAN_VERSION}; make a new one with `furlough plan`"
    )]
    OtherVersion {
        /// The file's.
        found: u32,
    },
    /// Its content is not what was written.
    #[error(
        "the plan file was edited since it was made; to do less, change the policy and make a new one with `furlough plan`"
    )]
    Edited,
}

/// A plan that may not be applied now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefused {
    /// Another format.
    #[error("the plan has format {found}, and this is for format {PLAN_VERSION}; make a new one with `furlough plan`")]
    OtherVersion {
        /// The plan's.
        found: u32,
    },
    /// Another policy.
    #[error(
        "the plan was made under policy `{made}`, and the policy now is `{now}`; make a new one with `furlough plan`"
    )]
    OtherPolicy {
        /// The plan's.
        made: PolicyHash,
        /// The present one.
        now: PolicyHash,
    },
    /// Too old.
    #[error("the plan expired at {expired}, and it is {now}; make a new one with `furlough plan`")]
    Expired {
        /// When it expired.
        expired: Time,
        /// When it was to be applied.
        now: Time,
    },
    /// Made later than now.
    #[error(
        "the plan was made at {made}, and it is only {now}; set the clock right and make a new one with `furlough plan`"
    )]
    Future {
        /// When it was made.
        made: Time,
        /// When it was to be applied.
        now: Time,
    },
}

/// What can be read of any version's plan.
#[derive(Deserialize)]
#[serde(expecting = "an object with a `version`")]
struct AnyVersion {
    version: u32,
}

impl Plan {
    /// The plan as a file: JSON with a digest over all of it.
    pub fn to_json(&self) -> String {
        let sealed = Self { digest: Some(self.digest()), ..self.clone() };
        let mut text = serde_json::to_string_pretty(&sealed).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a plan file. Whoever edits it must not be obeyed: it would carry our evidence for another act.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let version = serde_json::from_str::<AnyVersion>(text).map_err(|error| malformed(text, &error))?.version;
        if version != PLAN_VERSION {
            return Err(PlanError::OtherVersion { found: version });
        }
        let mut plan: Self = serde_json::from_str(text).map_err(|error| malformed(text, &error))?;
        let written = plan.digest.take();
        if written != Some(plan.digest()) {
            return Err(PlanError::Edited);
        }
        Ok(plan)
    }

    /// Whether it may be applied under `policy` at `now`. Each item is still looked at again then.
    pub fn check(&self, policy: &Policy, now: Time) -> Result<(), PlanRefused> {
        if self.version != PLAN_VERSION {
            return Err(PlanRefused::OtherVersion { found: self.version });
        }
        let hash = policy.hash();
        if self.policy != hash {
            return Err(PlanRefused::OtherPolicy { made: self.policy.clone(), now: hash });
        }
        if self.made_at > now.plus(policy.skew) {
            return Err(PlanRefused::Future { made: self.made_at, now });
        }
        // Both limits: a plan may not carry a longer life than the policy gives one.
        let expires = self.expires_at.min(self.made_at.plus(policy.plan_valid));
        if now >= expires {
            return Err(PlanRefused::Expired { expired: expires, now });
        }
        Ok(())
    }

    /// BLAKE3 of the compact JSON without the digest.
    fn digest(&self) -> String {
        let mut hasher = Hasher(blake3::Hasher::new());
        let written = match &self.digest {
            None => serde_json::to_writer(&mut hasher, self),
            Some(_) => serde_json::to_writer(&mut hasher, &Self { digest: None, ..self.clone() }),
        };
        written.map_or_else(|_| String::new(), |()| hasher.0.finalize().to_hex().to_string())
    }
}

struct Hasher(blake3::Hasher);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A plan is an object: one that does not end as an object ended early, also within a number.
fn malformed(text: &str, error: &serde_json::Error) -> PlanError {
    let begun = text.trim_start().starts_with('{') && !text.trim_end().ends_with('}');
    if begun || error.is_eof() { PlanError::CutShort } else { PlanError::Malformed { why: error.to_string() } }
}
