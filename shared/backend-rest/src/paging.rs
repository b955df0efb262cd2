//! Pages by a provider's cursor: never twice the same, never without end, and no sandbox twice in one.

use std::{collections::BTreeSet, sync::Arc};

use backend::{BackendError, ErrorKind, Page, PageToken};
use lifecycle::Observation;

use crate::row::Unread;

/// More pages than an account has: a million sandboxes at 100 a page.
const MAX_PAGES: u32 = 10_000;
/// The longest cursor, in bytes.
const MAX_CURSOR: usize = 4 << 10;
/// The most of one page, whatever was asked for.
const MAX_ROWS: usize = 1_000;

/// Where a listing is: which page, and the provider's cursor for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    number: u32,
    pub(crate) cursor: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// The place that a token of ours names.
    pub(crate) fn of(token: Option<&'a PageToken>) -> Result<Self, BackendError> {
        let Some(token) = token else { return Ok(Self { number: 0, cursor: None }) };
        let parts = token.0.split_once(' ').and_then(|(number, cursor)| Some((number.parse().ok()?, cursor)));
        let (number, cursor) = parts.ok_or_else(|| wrong("a page was asked for by a token that is none of ours"))?;
        Ok(Self { number, cursor: Some(cursor) })
    }

    /// The token of the next page, whose cursor is `next`.
    fn token(&self, next: &str) -> Result<PageToken, BackendError> {
        if next.is_empty() || next.len() > MAX_CURSOR {
            return Err(wrong(&format!(
                "the cursor of the next page has {} bytes; 1 to {MAX_CURSOR} are read",
                next.len()
            )));
        }
        if self.cursor == Some(next) {
            return Err(wrong("a page names itself as the next one, so the listing would never end"));
        }
        let number = self.number + 1;
        if number >= MAX_PAGES {
            return Err(wrong(&format!("the listing did not end within {MAX_PAGES} pages")));
        }
        Ok(PageToken(format!("{number} {next}").into()))
    }

    /// A page of what was read of each row.
    pub(crate) fn page(
        &self,
        rows: Vec<Result<Observation, Unread>>,
        next: Option<&str>,
    ) -> Result<Page, BackendError> {
        if rows.len() > MAX_ROWS {
            return Err(wrong(&format!("a page has {} rows; at most {MAX_ROWS} are read", rows.len())));
        }
        let (mut seen, mut unreadable, mut ids) = (Vec::new(), Vec::<Arc<str>>::new(), BTreeSet::new());
        for row in rows {
            match row {
                Ok(observation) if !ids.insert(observation.id.clone()) => {}
                Ok(observation) => seen.push(observation),
                Err(Unread(why)) => unreadable.push(format!("{why}: kept").into()),
            }
        }
        let next = next.map(|next| self.token(next)).transpose()?;
        Ok(Page { seen, unreadable, next })
    }
}

fn wrong(why: &str) -> BackendError {
    BackendError::new(ErrorKind::Malformed, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_page_and_its_cursor() {
        let first = Place::of(None).unwrap();
        let token = first.token("a b").unwrap();
        assert_eq!(Place::of(Some(&token)).unwrap(), Place { number: 1, cursor: Some("a b") });
        for foreign in ["", "x", "x y", "-1 y"] {
            assert!(Place::of(Some(&PageToken(foreign.into()))).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_listing_ends() {
        let place = Place { number: 3, cursor: Some("same") };
        assert!(place.token("same").is_err() && place.token("").is_err() && place.token("other").is_ok());
        assert!(place.token(&"x".repeat(MAX_CURSOR + 1)).is_err());
        assert!(Place { number: MAX_PAGES - 1, cursor: Some("a") }.token("b").is_err());
    }
}
