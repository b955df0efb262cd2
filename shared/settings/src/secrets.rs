//! Secrets of a function: of its environment, or of a place that it asks.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lifecycle::Time;

use crate::{Address, Kept, KeptError, Origin, Reading, Secret, SecretSource, SettingsError, system};

/// A secret that is older than this is read again, so that one that was rotated takes effect without a deployment.
const FRESH: Duration = Duration::from_mins(15);

type Open = dyn Fn(Address) -> Arc<dyn Origin> + Send + Sync;

/// Reads secrets: each once, and again when it has grown old; the last good one stays.
pub struct Secrets {
    open: Box<Open>,
    kept: Mutex<BTreeMap<String, Arc<Kept<Secret>>>>,
}

/// A secret that there is none of.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Of this machine.
    #[error(transparent)]
    Here(#[from] SettingsError),
    /// Of a place that was asked.
    #[error(transparent)]
    There(#[from] KeptError),
}

impl Secrets {
    /// Those that `open` finds by their addresses, and those of the environment. Nothing is asked yet.
    pub fn new(open: impl Fn(Address) -> Arc<dyn Origin> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), kept: Mutex::default() }
    }

    /// A secret as it is now. Blank is an error that names where it should be, never an empty secret.
    pub async fn read(&self, source: &SecretSource, now: Time) -> Result<Reading<Secret>, SecretError> {
        match source {
            SecretSource::Env(_) => Ok(Reading { value: Arc::new(system::secret(source)?), fault: None }),
            SecretSource::Stored(address) => Ok(self.kept(address).get(now).await?),
        }
    }

    fn kept(&self, address: &Address) -> Arc<Kept<Secret>> {
        let place = address.to_string();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = || {
            let blank = format!("`{place}` is blank");
            let parse = move |text: &str| Secret::new(text).ok_or_else(|| blank.clone());
            Arc::new(Kept::new((self.open)(address.clone()), FRESH, parse))
        };
        Arc::clone(kept.entry(place.clone()).or_insert_with(opened))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{OriginError, Text};

    const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:furlough/notify-AbCdEf";

    /// What every place says, and how often it was asked.
    struct Vault(Mutex<(Result<&'static str, &'static str>, usize)>);

    struct Door(Arc<Vault>, Address);

    #[async_trait]
    impl Origin for Door {
        async fn read(&self, _known: Option<&str>) -> Result<Option<Text>, OriginError> {
            let mut vault = self.0.0.lock().unwrap();
            vault.1 += 1;
            let told = vault.0.map(|text| Some(Text { text: text.to_owned(), version: None }));
            told.map_err(|why| OriginError { place: self.1.to_string(), why: why.to_owned() })
        }
    }

    fn vault(told: Result<&'static str, &'static str>) -> (Arc<Vault>, Secrets) {
        let vault = Arc::new(Vault(Mutex::new((told, 0))));
        let door = Arc::clone(&vault);
        (vault, Secrets::new(move |address| Arc::new(Door(Arc::clone(&door), address))))
    }

    fn stored() -> SecretSource {
        SecretSource::Stored(ARN.parse().unwrap())
    }

    async fn told(secrets: &Secrets, minute: i64) -> Result<(String, Option<String>), String> {
        let read = secrets.read(&stored(), Time::from_millis(minute * 60_000)).await;
        let shown = |reading: Reading<Secret>| {
            (reading.value.reveal().to_owned(), reading.fault.map(|fault| fault.to_string()))
        };
        read.map(shown).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn one_is_asked_for_once_and_again_when_it_may_have_been_rotated() {
        let (vault, secrets) = vault(Ok("one"));
        assert_eq!(told(&secrets, 0).await, Ok(("one".to_owned(), None)));
        vault.0.lock().unwrap().0 = Ok("two");
        assert_eq!(told(&secrets, 14).await, Ok(("one".to_owned(), None)));
        assert_eq!(vault.0.lock().unwrap().1, 1);
        assert_eq!(told(&secrets, 15).await, Ok(("two".to_owned(), None)));
    }

    #[tokio::test]
    async fn one_that_can_t_be_read_is_told_by_its_arn_and_an_earlier_one_stays() {
        let (vault, secrets) = vault(Err("AccessDeniedException: no"));
        let denied = format!("can't read `{ARN}`: AccessDeniedException: no");
        assert_eq!(told(&secrets, 0).await, Err(denied.clone()));
        vault.0.lock().unwrap().0 = Ok("one");
        assert_eq!(told(&secrets, 0).await, Ok(("one".to_owned(), None)), "it is asked for again at the next use");
        vault.0.lock().unwrap().0 = Err("AccessDeniedException: no");
        assert_eq!(told(&secrets, 15).await, Ok(("one".to_owned(), Some(denied))));
        vault.0.lock().unwrap().0 = Ok(" \n");
        let blank = format!("`{ARN}` is blank");
        assert_eq!(told(&secrets, 30).await, Ok(("one".to_owned(), Some(blank))));
    }

    #[tokio::test]
    async fn a_blank_one_signs_nothing_and_none_is_in_an_error() {
        let (_, secrets) = vault(Ok(" "));
        assert_eq!(told(&secrets, 0).await, Err(format!("`{ARN}` is blank")));
        let (_, secrets) = vault(Ok("hush"));
        let reading = secrets.read(&stored(), Time::from_millis(0)).await.unwrap();
        assert_eq!(format!("{reading:?} {secrets:?}"), "Reading { value: Secret(…), fault: None } Secrets(…)");
    }

    #[tokio::test]
    async fn at_home_those_of_aws_are_told_to_be_elsewhere() {
        let error = system::secret(&stored()).unwrap_err().to_string();
        let expected =
            format!("`{ARN}` is read by the functions on AWS alone; here, name an environment variable with `env`");
        assert_eq!(error, expected);
    }
}
