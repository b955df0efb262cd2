//! Runtimes' names as people write and read them.

use std::collections::BTreeMap;

use lifecycle::RuntimeId;

use crate::{answer::Fault, render::words::safe};

/// The code of a fault about a name that nothing has.
pub(crate) const UNKNOWN: &str = "unknown_runtime";

/// At most this many candidates are named in a fault.
const CANDIDATES: usize = 10;

/// The shortest piece of a long hexadecimal name that is shown.
const SHORTEST: usize = 8;

/// `backend/id`, decoded: `worktrees/0f3a…/shop` rather than `…%2Fshop`. Safe for a terminal.
pub(crate) fn decoded(id: &RuntimeId) -> String {
    let provider_id = id.provider_id();
    let text = String::from_utf8_lossy(&provider_id);
    format!("{}/{}", id.backend(), safe(&text))
}

/// Short names for many runtimes: a UUID or a long hexadecimal id is cut to its first 8 characters, or
/// to as many as tell it from the others. Each can be typed back as a RUNTIME.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<RuntimeId, String>);

impl Names {
    /// For these runtimes.
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a RuntimeId>) -> Self {
        let ids: Vec<_> = ids.into_iter().collect();
        for keep in [SHORTEST, 12, 16, 20] {
            let names: BTreeMap<_, _> = ids.iter().map(|id| ((*id).clone(), shortened(&decoded(id), keep))).collect();
            let mut distinct: Vec<_> = names.values().collect();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() == names.len() {
                return Self(names);
            }
        }
        Self(ids.into_iter().map(|id| (id.clone(), decoded(id))).collect())
    }

    /// The short name of `id`.
    pub(crate) fn of(&self, id: &RuntimeId) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| decoded(id))
    }
}

/// A short name and, beside it, the one that people gave: a container's, with which `about` begins. A path is no name.
pub(crate) fn named(short: &str, about: &str) -> String {
    let given = about.split(" (").next().unwrap_or_default();
    if given.is_empty() || given.contains('/') || short.contains(given) {
        return short.to_owned();
    }
    format!("{short} {}", safe(given))
}

fn shortened(name: &str, keep: usize) -> String {
    let piece = |piece: &str| {
        let hex = piece.len() >= 32 && piece.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if hex { format!("{}…", &piece[..keep]) } else { piece.to_owned() }
    };
    name.split('/').map(piece).collect::<Vec<_>>().join("/")
}

/// One runtime that a name can mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Which.
    pub(crate) id: RuntimeId,
    /// Its path or image.
    pub(crate) about: String,
}

/// Which runtime `name` means: its full name, else the one of which it is a whole piece (a container's name, a folder
/// of the path), else the one whose id begins with it, else the one whose id or path has it in it. `…` and `*` stand
/// for anything.
pub(crate) fn resolve(name: &str, candidates: &[Candidate]) -> Result<RuntimeId, Fault> {
    if name.is_empty() {
        return Err(Fault::usage(UNKNOWN, "the RUNTIME is empty; `furlough list` shows them"));
    }
    let texts: Vec<_> = candidates.iter().map(|candidate| (candidate, Texts::of(candidate))).collect();
    let stages: [fn(&Texts, &str) -> bool; 4] = [Texts::is, Texts::has, Texts::begins, Texts::contains];
    for stage in stages {
        let matching: Vec<_> = texts.iter().filter(|(_, texts)| stage(texts, name)).map(|(found, _)| *found).collect();
        match matching[..] {
            [] => {}
            [one] => return Ok(one.id.clone()),
            [..] => return Err(ambiguous(name, &matching)),
        }
    }
    let known = match candidates.len() {
        0 => "there is none here".to_owned(),
        count => format!("{count} are known: `furlough list` shows them"),
    };
    Err(Fault::usage(UNKNOWN, format!("no runtime is called `{}`; {known}", safe(name))))
}

fn ambiguous(name: &str, matching: &[&Candidate]) -> Fault {
    let mut lines = vec![format!("`{}` names {} runtimes; write more of one of these", safe(name), matching.len())];
    lines.extend(matching.iter().take(CANDIDATES).map(|found| format!("  {}", decoded(&found.id))));
    if matching.len() > CANDIDATES {
        lines.push(format!("  and {} more", matching.len() - CANDIDATES));
    }
    Fault::usage("ambiguous_runtime", lines.join("\n"))
}

struct Texts {
    full: [String; 2],
    bare: [String; 2],
    about: String,
}

impl Texts {
    fn of(candidate: &Candidate) -> Self {
        let id = &candidate.id;
        let provider_id = String::from_utf8_lossy(&id.provider_id()).into_owned();
        let full = [id.to_string(), format!("{}/{provider_id}", id.backend())];
        Self { full, bare: [id.encoded().to_owned(), provider_id], about: candidate.about.clone() }
    }

    fn ids(&self) -> impl Iterator<Item = &String> {
        self.full.iter().chain(&self.bare)
    }

    fn is(&self, name: &str) -> bool {
        self.ids().any(|id| id == name)
    }

    /// Whether it is a whole piece of the id or of the path or image.
    fn has(&self, name: &str) -> bool {
        let between = |c: char| c.is_whitespace() || matches!(c, '/' | '(' | ')' | ',');
        self.bare.iter().chain([&self.about]).any(|text| text.split(between).any(|piece| piece == name))
    }

    fn begins(&self, name: &str) -> bool {
        let pieces = pieces(name);
        self.ids().any(|id| in_order(id, &pieces, true))
    }

    fn contains(&self, name: &str) -> bool {
        let pieces = pieces(name);
        self.ids().chain([&self.about]).any(|text| in_order(text, &pieces, false))
    }
}

fn pieces(name: &str) -> Vec<&str> {
    name.split(['…', '*']).collect()
}

fn in_order(text: &str, pieces: &[&str], from_start: bool) -> bool {
    let mut rest = text;
    for (index, piece) in pieces.iter().enumerate() {
        match rest.find(piece) {
            Some(at) if index > 0 || !from_start || at == 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use lifecycle::BackendName;

    use super::*;

    const A: &str = "1f0aa7f2-3c55-4d1e-9a3f-0b9d6f6c1a01/shop";
    const B: &str = "1f0aa7f2-3c55-4d1e-9a3f-0b9d6f6c1a02/shop";
    const C: &str = "77aa0000-3c55-4d1e-9a3f-0b9d6f6c1a03/blog";

    fn candidate(id: &str) -> Candidate {
        let backend = BackendName::new("worktrees").unwrap();
        Candidate { id: RuntimeId::new(&backend, id.as_bytes()).unwrap(), about: format!("/srv/trees/{id}") }
    }

    fn resolved(name: &str) -> Result<String, &'static str> {
        let all = [candidate(A), candidate(B), candidate(C)];
        resolve(name, &all).map(|id| String::from_utf8(id.provider_id()).unwrap()).map_err(|fault| fault.code)
    }

    #[test]
    fn a_runtime_is_named_by_its_full_name_or_by_any_part_that_is_its_own() {
        let cases = [
            (format!("worktrees/{}", A.replace('/', "%2F")), Ok(A)),
            (format!("worktrees/{A}"), Ok(A)),
            (B.to_owned(), Ok(B)),
            ("77aa".to_owned(), Ok(C)),
            ("blog".to_owned(), Ok(C)),
            ("/srv/trees/77".to_owned(), Ok(C)),
            ("worktrees/77aa0000…/blog".to_owned(), Ok(C)),
            ("1f0aa7f2".to_owned(), Err("ambiguous_runtime")),
            ("nothing".to_owned(), Err("unknown_runtime")),
            (String::new(), Err("unknown_runtime")),
        ];
        for (name, expected) in cases {
            assert_eq!(resolved(&name), expected.map(str::to_owned), "{name}");
        }
    }

    #[test]
    fn a_whole_piece_goes_before_a_part_of_another() {
        let backend = BackendName::new("engine").unwrap();
        let container = |id: &str, about: &str| Candidate {
            id: RuntimeId::new(&backend, id.as_bytes()).unwrap(),
            about: about.to_owned(),
        };
        let all = [
            container("w1aa", "w10 (agent:1)"),
            container("77bb", "w1 (agent:1, --rm)"),
            container("w1/shop", "/trees/w1/shop"),
            container("w10/shop", "/trees/w10/shop"),
        ];
        let named = |name: &str, all: &[Candidate]| resolve(name, all).map(|id| id.encoded().to_owned());
        assert_eq!(named("w1", &all[..2]), Ok("77bb".to_owned()));
        assert_eq!(named("w1", &all[2..]), Ok("w1%2Fshop".to_owned()));
        assert_eq!(named("w10", &all[2..]), Ok("w10%2Fshop".to_owned()));
        assert_eq!(named("w1", &all).unwrap_err().code, "ambiguous_runtime", "two are called so");
    }

    #[test]
    fn a_container_s_name_stands_beside_its_id_and_a_path_does_not() {
        assert_eq!(named("engine/1f0aa7f2…", "agent-1 (ghcr.io/agent:1, --rm)"), "engine/1f0aa7f2… agent-1");
        assert_eq!(named("worktrees/1f0aa7f2…/shop", "/srv/trees/1f0aa7f2/shop"), "worktrees/1f0aa7f2…/shop");
        assert_eq!(named("engine/agent-1", "agent-1 (agent:1)"), "engine/agent-1");
        assert_eq!(named("engine/x", ""), "engine/x");
        assert_eq!(named("engine/x", "a\u{1b}[2J (i)"), "engine/x a\\u{1b}[2J");
    }

    #[test]
    fn short_names_tell_runtimes_apart_and_can_be_typed_back() {
        let all = [candidate(A), candidate(C)];
        let names = Names::new(all.iter().map(|candidate| &candidate.id));
        assert_eq!(names.of(&all[0].id), "worktrees/1f0aa7f2…/shop");
        for candidate in &all {
            assert_eq!(resolve(&names.of(&candidate.id), &all), Ok(candidate.id.clone()));
        }
        let alike = [candidate(A), candidate(B)];
        let names = Names::new(alike.iter().map(|candidate| &candidate.id));
        assert_eq!(names.of(&alike[0].id), format!("worktrees/{A}"), "36 characters tell them apart, 20 don't");
    }
}
