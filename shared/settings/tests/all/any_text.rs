//! Any text at all gives settings or faults with lines of that text; nothing panics.

use proptest::prelude::*;
use settings::{BUILT_IN, Faults, parse};

use crate::EXAMPLE;

/// Each fault lies in the text, and can be shown.
fn in_range(text: &str, faults: &Faults) -> Result<(), TestCaseError> {
    let lines = text.lines().count().max(1);
    prop_assert!(!faults.faults.is_empty());
    for fault in &faults.faults {
        prop_assert!((1..=lines).contains(&fault.line), "line {} of {lines}: {fault:?}", fault.line);
        let line = text.lines().nth(fault.line - 1).unwrap_or_default();
        let columns = line.chars().count() + 1;
        prop_assert!((1..=columns).contains(&fault.column), "column {} of {columns}: {fault:?}", fault.column);
    }
    prop_assert!(!faults.to_string().is_empty());
    Ok(())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    parse(text, "t").map_or_else(|faults| in_range(text, &faults), |_| Ok(()))
}

/// Pieces of which configurations are made.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "[[policy]]",
        "[[backend]]",
        "[clock]",
        "[budget]",
        "[policy.idle]",
        "\n",
        "\r\n",
        " = ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ".",
        "\"",
        "name",
        "kind",
        "match",
        "idle",
        "after",
        "windows",
        "\"30m\"",
        "\"20%\"",
        "0",
        "-1",
        "1e999",
        "\"worktree\"",
        "\"docker\"",
        "\"UTC\"",
        "tz",
        "hours",
        "'''",
        "\"\"\"",
        "#",
        "\u{feff}",
        "\u{2028}",
        "é",
        "\0",
        "1979-05-27",
        "true",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_characters(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(piece(), 0..40)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn any_one_character_changed(at in any::<prop::sample::Index>(), new in any::<char>(), built_in in any::<bool>()) {
        let text = if built_in { BUILT_IN } else { EXAMPLE };
        let mut characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        characters[at] = new;
        check(&characters.into_iter().collect::<String>())?;
    }

    #[test]
    fn any_beginning(at in any::<prop::sample::Index>()) {
        let ends: Vec<_> = EXAMPLE.char_indices().map(|(offset, _)| offset).collect();
        check(&EXAMPLE[..ends[at.index(ends.len())]])?;
    }

    #[test]
    fn any_value_of_any_key(key in proptest::sample::select(settings::keys()), value in "[\\[{\"]?[ -~]{0,12}[\"}\\]]?") {
        check(&format!("{key} = {value}\n"))?;
    }
}

#[test]
fn faults_at_the_very_end_have_the_last_line() {
    for text in ["\"", "\"\n", "\"\r\n", "[", "[[policy]]", "[[policy]]\n", "mode =", "mode =\r\n", "\n\n["] {
        in_range(text, &parse(text, "t").unwrap_err()).unwrap();
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("mode = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(parse(&text, "t").is_err());
    }
    let dotted = format!("{}a = 1", "a.".repeat(100_000));
    assert!(parse(&dotted, "t").is_err());
}
