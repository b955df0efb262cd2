//! Paths: what is asked of which runtime.

use lifecycle::{BackendName, RuntimeId};
use percent_encoding::percent_decode_str;

/// The longest path, in bytes: a name, an id of 384, a conversation, and the words between.
const MAX_PATH_BYTES: usize = 1_024;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `PUT /runtimes/{backend}/{id}`: a new life of a runtime.
    Register(RuntimeId),
    /// `POST /runtimes/{backend}/{id}/heartbeat`.
    Heartbeat(RuntimeId),
    /// `POST /runtimes/{backend}/{id}/saved`: its work is kept.
    Saved(RuntimeId),
    /// `POST /heartbeats`: up to 100.
    Batch,
    /// `POST /hooks/openhands/{backend}/{id}/events/{conversation}`: the agent server's events.
    Events(RuntimeId),
    /// `POST /hooks/openhands/{backend}/{id}/conversations`: what the agent server says of a conversation.
    Conversation(RuntimeId),
    /// `GET /health`.
    Health,
}

/// Why a path is none of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misrouted {
    /// There is nothing there.
    NotFound,
    /// Something is there, under this method.
    Method(&'static str),
    /// The runtime's name is none.
    Name(String),
}

/// Reads a method and a path.
///
/// An id is one segment, percent-encoded. Gateways that decode paths hand it over decoded: then what stands between
/// the backend and the end is the id, slashes and all.
pub fn read(method: &str, path: &str) -> Result<Route, Misrouted> {
    if path.len() > MAX_PATH_BYTES {
        return Err(Misrouted::NotFound);
    }
    let path = path.strip_prefix('/').ok_or(Misrouted::NotFound)?;
    if let Some(rest) = path.strip_prefix("runtimes/") {
        // A runtime may be called `heartbeat` too.
        let before = |word| rest.strip_suffix(word).filter(|runtime| runtime.contains('/'));
        return match (before("/heartbeat"), before("/saved")) {
            (Some(runtime), _) => only("POST", method).and_then(|()| named(runtime)).map(Route::Heartbeat),
            (_, Some(runtime)) => only("POST", method).and_then(|()| named(runtime)).map(Route::Saved),
            (None, None) => only("PUT", method).and_then(|()| named(rest)).map(Route::Register),
        };
    }
    if let Some(rest) = path.strip_prefix("hooks/openhands/") {
        if let Some(runtime) = rest.strip_suffix("/conversations") {
            return only("POST", method).and_then(|()| named(runtime)).map(Route::Conversation);
        }
        let events = rest.rsplit_once('/').and_then(|(before, _)| before.strip_suffix("/events"));
        let runtime = events.ok_or(Misrouted::NotFound)?;
        return only("POST", method).and_then(|()| named(runtime)).map(Route::Events);
    }
    match path {
        "heartbeats" => only("POST", method).map(|()| Route::Batch),
        "health" => only("GET", method).map(|()| Route::Health),
        _ => Err(Misrouted::NotFound),
    }
}

fn only(wanted: &'static str, method: &str) -> Result<(), Misrouted> {
    if method == wanted { Ok(()) } else { Err(Misrouted::Method(wanted)) }
}

fn named(text: &str) -> Result<RuntimeId, Misrouted> {
    runtime(text).map_err(|error| Misrouted::Name(error.to_string()))
}

/// A runtime's name as a request has it: `BACKEND/ID`, the id percent-encoded as we write it, in another way (`%2f`), or
/// decoded, slashes and all.
pub(crate) fn runtime(text: &str) -> Result<RuntimeId, lifecycle::IdError> {
    text.parse().or_else(|error| {
        let Some((backend, id)) = text.split_once('/') else { return Err(error) };
        RuntimeId::new(&BackendName::new(backend)?, &percent_decode_str(id).collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(backend: &str, id: &str) -> RuntimeId {
        RuntimeId::new(&BackendName::new(backend).unwrap(), id.as_bytes()).unwrap()
    }

    #[test]
    fn each_route_has_its_method() {
        assert_eq!(read("PUT", "/runtimes/docker/abc"), Ok(Route::Register(id("docker", "abc"))));
        assert_eq!(read("POST", "/runtimes/docker/abc/heartbeat"), Ok(Route::Heartbeat(id("docker", "abc"))));
        assert_eq!(read("POST", "/runtimes/docker/abc/saved"), Ok(Route::Saved(id("docker", "abc"))));
        assert_eq!(read("POST", "/heartbeats"), Ok(Route::Batch));
        assert_eq!(read("GET", "/health"), Ok(Route::Health));
        let events = "/hooks/openhands/docker/abc/events/0f3a";
        assert_eq!(read("POST", events), Ok(Route::Events(id("docker", "abc"))));
        let conversations = "/hooks/openhands/docker/abc/conversations";
        assert_eq!(read("POST", conversations), Ok(Route::Conversation(id("docker", "abc"))));
        assert_eq!(read("PUT", "/runtimes/docker/heartbeat"), Ok(Route::Register(id("docker", "heartbeat"))));
        assert_eq!(read("PUT", "/runtimes/docker/saved"), Ok(Route::Register(id("docker", "saved"))));
        assert_eq!(read("PUT", "/runtimes/docker/abc/saved"), Err(Misrouted::Method("POST")));
        assert_eq!(read("GET", "/runtimes/docker/abc"), Err(Misrouted::Method("PUT")));
        assert_eq!(read("GET", "/runtimes/docker/abc/heartbeat"), Err(Misrouted::Method("POST")));
        assert_eq!(read("PUT", "/runtimes/docker/abc/heartbeat"), Err(Misrouted::Method("POST")));
        assert_eq!(read("PUT", "/heartbeats"), Err(Misrouted::Method("POST")));
        assert_eq!(read("GET", events), Err(Misrouted::Method("POST")));
        for nothing in
            ["/", "", "runtimes/a/b", "/runtime/a/b", "/hooks/openhands/docker/abc", "/heartbeats/", "/healthy"]
        {
            assert_eq!(read("POST", nothing), Err(Misrouted::NotFound), "{nothing}");
        }
    }

    #[test]
    fn an_id_is_the_same_encoded_or_decoded_by_a_gateway() {
        let worktree = id("worktrees", "3c9e/shop");
        assert_eq!(read("POST", "/runtimes/worktrees/3c9e%2Fshop/heartbeat"), Ok(Route::Heartbeat(worktree.clone())));
        assert_eq!(read("POST", "/runtimes/worktrees/3c9e%2fshop/heartbeat"), Ok(Route::Heartbeat(worktree.clone())));
        assert_eq!(read("POST", "/runtimes/worktrees/3c9%65/shop/heartbeat"), Ok(Route::Heartbeat(worktree.clone())));
        assert_eq!(read("POST", "/runtimes/worktrees/3c9e/shop/heartbeat"), Ok(Route::Heartbeat(worktree)));
        assert_eq!(read("PUT", "/runtimes/worktrees/50%"), Ok(Route::Register(id("worktrees", "50%"))));
    }

    #[test]
    fn a_name_that_is_none_is_told() {
        assert!(matches!(read("PUT", "/runtimes/docker/"), Err(Misrouted::Name(_))));
        assert!(matches!(read("PUT", "/runtimes/do cker/a"), Err(Misrouted::Name(_))));
        assert!(matches!(read("PUT", &format!("/runtimes/docker/{}", "a".repeat(129))), Err(Misrouted::Name(_))));
        assert_eq!(read("PUT", &format!("/runtimes/docker/{}", "a".repeat(2_000))), Err(Misrouted::NotFound));
    }

    proptest! {
        #[test]
        fn every_runtime_has_its_paths(backend in "[A-Za-z0-9._~-]{1,128}", bytes in proptest::collection::vec(any::<u8>(), 1..128)) {
            let id = RuntimeId::new(&BackendName::new(&backend).unwrap(), &bytes).unwrap();
            let read_back = |method, path: String| read(method, &path);
            prop_assert_eq!(read_back("PUT", format!("/runtimes/{id}")), Ok(Route::Register(id.clone())));
            prop_assert_eq!(read_back("POST", format!("/runtimes/{id}/heartbeat")), Ok(Route::Heartbeat(id.clone())));
            let hooks = format!("/hooks/openhands/{id}");
            prop_assert_eq!(read_back("POST", format!("{hooks}/events/e1")), Ok(Route::Events(id.clone())));
            prop_assert_eq!(read_back("POST", format!("{hooks}/conversations")), Ok(Route::Conversation(id)));
        }

        #[test]
        fn any_path_is_read_or_refused(method in "(GET|PUT|POST)", path in "(/runtimes|/hooks/openhands)?(/\\PC{0,20}){0,5}") {
            let _ = read(&method, &path);
        }
    }
}
