//! The idempotency store: which call came first under a key, and what it was answered.

use std::collections::HashMap;

use crate::engine::Answer;

/// Toss keeps a key for 15 days from its first use.
const KEPT_MS: u64 = 15 * 24 * 3_600_000;

/// Longest key that is accepted.
pub const LONGEST_KEY: usize = 300;

/// What makes two calls the same one. The body is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The `Idempotency-Key` header.
    pub key: String,
    /// The caller's API key.
    pub api_key: String,
    /// HTTP method.
    pub method: &'static str,
    /// Path of the URL.
    pub url: String,
}

#[derive(Debug)]
struct Entry {
    first_used_ms: u64,
    print: Option<Vec<u8>>,
    answer: Option<Answer>,
}

/// What the store knows about a call.
#[derive(Debug)]
pub enum Known {
    /// Nothing: it is the first, and its place is taken now.
    First,
    /// The first one is still running.
    Running,
    /// The first one was another request.
    Other,
    /// The first one was answered so.
    Answered(Answer),
}

/// All keys in use.
#[derive(Debug, Default)]
pub struct Idempotency {
    entries: HashMap<Identity, Entry>,
}

impl Idempotency {
    /// Looks a call up, and takes its place when it is the first. `print` is what else a repeat must have in common with it,
    /// where the gateway looks at that.
    pub fn claim(&mut self, identity: &Identity, print: Option<Vec<u8>>, now_ms: u64) -> Known {
        if let Some(entry) = self.entries.get(identity) {
            match &entry.answer {
                _ if entry.print != print => return Known::Other,
                None => return Known::Running,
                Some(answer) if now_ms < entry.first_used_ms + KEPT_MS => {
                    return Known::Answered(Answer {
                        replayed: true,
                        ..answer.clone()
                    });
                }
                Some(_) => {}
            }
        }
        self.entries.insert(
            identity.clone(),
            Entry {
                first_used_ms: now_ms,
                print,
                answer: None,
            },
        );
        Known::First
    }

    /// Binds the answer of the first call to its key.
    pub fn bind(&mut self, identity: &Identity, answer: &Answer) {
        if let Some(entry) = self.entries.get_mut(identity) {
            entry.answer = Some(answer.clone());
        }
    }

    /// Forgets a call that ended without an answer to bind.
    pub fn release(&mut self, identity: &Identity) {
        self.entries.remove(identity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(key: &str, url: &str) -> Identity {
        Identity {
            key: key.into(),
            api_key: "sk".into(),
            method: "POST",
            url: url.into(),
        }
    }

    #[test]
    fn a_key_runs_then_replays_then_is_forgotten_after_fifteen_days() {
        let mut store = Idempotency::default();
        let first = identity("k", "/confirm");
        assert!(matches!(store.claim(&first, None, 0), Known::First));
        assert!(matches!(store.claim(&first, None, 1), Known::Running));
        store.bind(&first, &Answer::json(200, "{}"));
        assert!(matches!(
            store.claim(&first, None, KEPT_MS - 1),
            Known::Answered(_)
        ));
        assert!(matches!(store.claim(&first, None, KEPT_MS), Known::First));
    }

    #[test]
    fn another_url_or_a_released_key_is_a_first_call() {
        let mut store = Idempotency::default();
        let first = identity("k", "/confirm");
        assert!(matches!(store.claim(&first, None, 0), Known::First));
        assert!(matches!(
            store.claim(&identity("k", "/cancel"), None, 0),
            Known::First
        ));
        store.release(&first);
        assert!(matches!(store.claim(&first, None, 0), Known::First));
    }
}
