//! From text to a TOML tree, with every fault of its syntax.

use toml::de::{DeTable, DeValue};

use crate::log::{Log, Problem};

/// The tree, or `None` where the text is no TOML. Meaning is not looked for in a broken tree: a lost table
/// header would make a fault of each key below it.
pub(crate) fn tree<'a>(text: &'a str, log: &mut Log<'_>) -> Option<DeValue<'a>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(DeValue::Table(tree.into_inner()));
    }
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let mut problem = Problem::new(format!("not TOML: {}", error.message().replace('\n', ", ")));
        problem.expected =
            bare_value(text, span.start).then(|| "texts and durations in quotes, such as `\"30m\"`".to_owned());
        log.error("", &span, problem);
    }
    None
}

/// Whether the line of `offset` has a value that begins without quotes and is no number, list or table.
fn bare_value(text: &str, offset: usize) -> bool {
    let before = text.get(..offset).unwrap_or(text);
    let line = text[before.rfind('\n').map_or(0, |newline| newline + 1)..].lines().next().unwrap_or_default();
    let value = line.split_once('=').map(|(_, value)| value.trim_start()).unwrap_or_default();
    let word = value.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word.contains(char::is_alphabetic) && !matches!(word, "true" | "false" | "inf" | "nan")
}
