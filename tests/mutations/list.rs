//! The list of faults and the one place in the tree that each is about.

use std::{fs, path::Path};

use serde::Deserialize;

/// The list, relative to the root of the repository.
const LIST: &str = "tests/mutations/list.toml";

/// One fault.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    pub(crate) name: String,
    /// What it breaks.
    pub(crate) invariant: u8,
    /// Relative to the root of the repository.
    pub(crate) file: String,
    /// Stands exactly once in the file.
    pub(crate) before: String,
    /// Stands there instead.
    pub(crate) after: String,
    /// What would come of it.
    pub(crate) why: String,
    /// Whose tests must catch it.
    pub(crate) package: String,
    /// Which of them: a part of their names.
    pub(crate) caught_by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutation: Vec<Mutation>,
}

/// Reads the list.
pub(crate) fn read(root: &Path) -> Result<Vec<Mutation>, String> {
    let text = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let list: List = toml::from_str(&text).map_err(|error| format!("{LIST}: {error}"))?;
    Ok(list.mutation)
}

impl Mutation {
    /// The file with the fault in it.
    pub(crate) fn planted(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.before).count() {
            1 => Ok(text.replacen(&self.before, &self.after, 1)),
            found => Err(format!("`{}`: `before` stands {found} times in {}, not once", self.name, self.file)),
        }
    }
}
