//! What backends of providers share, whatever they speak: whose a sandbox is, at what pace it is asked, and the last
//! check before each act.

mod aim;
mod pace;
mod scope;

use std::fmt;

pub use aim::{aimed, moved, ours, same_run};
pub use pace::Pace;
pub use scope::Scope;

/// A key of a provider's API. `Debug` shows nothing of it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key as it was configured; line breaks and blanks around it are none of it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The key itself, for the request that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = Key::new(" dtn_hush\n");
        assert_eq!((format!("{key:?}"), key.reveal()), ("Key(…)".to_owned(), "dtn_hush"));
    }
}
