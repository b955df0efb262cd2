//! A value that is read from elsewhere: once, and again when it has grown old. A bad new one changes nothing.

use std::{fmt, sync::Arc, time::Duration};

use lifecycle::Time;
use tokio::sync::Mutex;

use crate::origin::{Origin, OriginError};

/// What makes a value of a text, or says for people why not, without the text.
type Parse<T> = Box<dyn Fn(&str) -> Result<T, String> + Send + Sync>;

/// A value that is kept, and read again when it is older than `every`.
pub struct Kept<T> {
    origin: Option<Arc<dyn Origin>>,
    parse: Parse<T>,
    every: Duration,
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Option<Arc<T>>,
    text: Option<String>,
    version: Option<String>,
    looked: Option<Time>,
    fault: Option<Arc<str>>,
}

impl<T> State<T> {
    const EMPTY: Self = Self { value: None, text: None, version: None, looked: None, fault: None };
}

/// A value, and what is wrong with a newer one.
#[derive(Debug)]
pub struct Reading<T> {
    /// The last good one.
    pub value: Arc<T>,
    /// Why the newest could not be used: somebody must mend it.
    pub fault: Option<Arc<str>>,
}

/// There is no good value at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeptError {
    /// It could not be read.
    #[error(transparent)]
    Unread(#[from] OriginError),
    /// It was read, and is no good.
    #[error("{0}")]
    Bad(Arc<str>),
}

impl<T> Kept<T> {
    /// Read from `origin` at its first use, and again at a use more than `every` later.
    pub fn new(
        origin: Arc<dyn Origin>,
        every: Duration,
        parse: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        Self { origin: Some(origin), parse: Box::new(parse), every, state: Mutex::new(State::EMPTY) }
    }

    /// One that never changes.
    pub fn fixed(value: T) -> Self {
        let state = State { value: Some(Arc::new(value)), ..State::EMPTY };
        let parse: Parse<T> = Box::new(|_| Err("it is not read from anywhere".to_owned()));
        Self { origin: None, parse, every: Duration::MAX, state: Mutex::new(state) }
    }

    /// The value as it is now.
    pub async fn get(&self, now: Time) -> Result<Reading<T>, KeptError> {
        self.within(self.every, now).await
    }

    /// The value, read again if that was last done `age` ago or earlier.
    pub async fn within(&self, age: Duration, now: Time) -> Result<Reading<T>, KeptError> {
        let mut state = self.state.lock().await;
        let fresh = state.value.is_some() && state.looked.is_some_and(|looked| now.since(looked) < age);
        if let Some(origin) = self.origin.as_ref().filter(|_| !fresh) {
            let read = origin.read(state.version.as_deref()).await;
            state.looked = Some(now);
            match read {
                Ok(None) => {}
                Ok(Some(found)) if state.text.as_ref() == Some(&found.text) => state.version = found.version,
                Ok(Some(found)) => {
                    match (self.parse)(&found.text) {
                        Ok(value) => (state.value, state.fault) = (Some(Arc::new(value)), None),
                        Err(why) => state.fault = Some(why.into()),
                    }
                    (state.text, state.version) = (Some(found.text), found.version);
                }
                Err(error) if state.value.is_none() => return Err(error.into()),
                // What could not be read is no newer value: the fault of one that was read stays.
                Err(error) => {
                    let fault = state.fault.clone().unwrap_or_else(|| error.to_string().into());
                    return Ok(Reading { value: state.good()?, fault: Some(fault) });
                }
            }
        }
        Ok(Reading { value: state.good()?, fault: state.fault.clone() })
    }
}

impl<T> State<T> {
    fn good(&self) -> Result<Arc<T>, KeptError> {
        let bad = || KeptError::Bad(self.fault.clone().unwrap_or_else(|| "nothing was read".into()));
        self.value.clone().ok_or_else(bad)
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept(every {:?})", self.every)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Lock;

    use async_trait::async_trait;

    use super::*;
    use crate::origin::Text;

    /// A place whose text a test changes; it counts how often it is read.
    struct Page(Lock<(Result<&'static str, &'static str>, usize)>);

    impl Page {
        fn with(text: &'static str) -> Arc<Self> {
            Arc::new(Self(Lock::new((Ok(text), 0))))
        }

        fn write(&self, text: Result<&'static str, &'static str>) {
            self.0.lock().unwrap().0 = text;
        }

        fn reads(&self) -> usize {
            self.0.lock().unwrap().1
        }
    }

    #[async_trait]
    impl Origin for Page {
        async fn read(&self, known: Option<&str>) -> Result<Option<Text>, OriginError> {
            let mut page = self.0.lock().unwrap();
            page.1 += 1;
            let text = page.0.map_err(|why| OriginError { place: "page".to_owned(), why: why.to_owned() })?;
            let same = known == Some(text);
            Ok((!same).then(|| Text { text: text.to_owned(), version: Some(text.to_owned()) }))
        }
    }

    fn numbers(page: &Arc<Page>) -> Kept<u32> {
        Kept::new(Arc::clone(page) as _, Duration::from_mins(1), |text| {
            text.parse().map_err(|_| format!("`{text}` is no number"))
        })
    }

    async fn told(kept: &Kept<u32>, second: i64) -> (u32, Option<String>) {
        let reading = kept.get(Time::from_millis(second * 1_000)).await.unwrap();
        (*reading.value, reading.fault.map(|fault| fault.to_string()))
    }

    #[tokio::test]
    async fn it_is_read_once_and_again_when_it_is_old() {
        let page = Page::with("1");
        let kept = numbers(&page);
        assert_eq!(page.reads(), 0, "nothing is read before it is needed");
        assert_eq!(told(&kept, 100).await, (1, None));
        page.write(Ok("2"));
        assert_eq!((told(&kept, 159).await, page.reads()), ((1, None), 1));
        assert_eq!((told(&kept, 160).await, page.reads()), ((2, None), 2));
    }

    #[tokio::test]
    async fn a_bad_new_one_keeps_the_last_good_one_and_says_so_until_it_is_mended() {
        let page = Page::with("1");
        let kept = numbers(&page);
        assert_eq!(told(&kept, 0).await, (1, None));
        page.write(Ok("x"));
        let fault = Some("`x` is no number".to_owned());
        assert_eq!(told(&kept, 60).await, (1, fault.clone()));
        assert_eq!(told(&kept, 61).await, (1, fault.clone()));
        assert_eq!(told(&kept, 120).await, (1, fault), "the same bad version stays a fault");
        page.write(Ok("3"));
        assert_eq!(told(&kept, 180).await, (3, None));
    }

    #[tokio::test]
    async fn a_place_that_does_not_answer_keeps_the_last_good_one() {
        let page = Page::with("1");
        let kept = numbers(&page);
        assert_eq!(told(&kept, 0).await, (1, None));
        page.write(Err("no answer"));
        assert_eq!(told(&kept, 60).await, (1, Some("can't read `page`: no answer".to_owned())));
        assert_eq!(told(&kept, 61).await, (1, None), "it is not asked again at once");
        page.write(Ok("1"));
        assert_eq!(told(&kept, 120).await, (1, None));
    }

    #[tokio::test]
    async fn without_a_good_one_there_is_none() {
        let page = Page::with("x");
        let kept = numbers(&page);
        let error = kept.get(Time::from_millis(0)).await.unwrap_err();
        assert_eq!(error.to_string(), "`x` is no number");
        page.write(Ok("1"));
        assert_eq!(told(&kept, 0).await, (1, None), "one that was never good is read at each use");
        page.write(Err("gone"));
        assert!(numbers(&page).get(Time::from_millis(0)).await.is_err());
    }

    #[tokio::test]
    async fn a_fixed_one_stays() {
        let kept = Kept::fixed(7);
        assert_eq!(*kept.get(Time::MAX).await.unwrap().value, 7);
    }
}
