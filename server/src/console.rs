//! The operators' console without its pages: who may enter, and what is kept of what they do. Knows no HTTP.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordVerifier as _, phc::PasswordHash};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use payment::time::Millis;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::gateway::secret::Secret;
use crate::metrics;
use crate::operate::Desk;
use crate::operate::output::plain;
use crate::random;
use crate::store::StoreError;
use crate::store::console::{Action, NewAction, OperatorSession};

/// How long a session lasts at most, and how long unused.
const LONGEST: Millis = Millis::from_secs(12 * 3_600);
const IDLE: Millis = Millis::from_secs(3_600);
/// A session's use is noted at most so often: a page that is looked at is no write each time.
const SEEN_STEP: Millis = Millis::from_secs(60);
/// Tries to sign in a minute from one address, and from all.
const TRIES_OF_ADDRESS: u32 = 5;
const TRIES_OF_ALL: u32 = 30;
/// Requests that are worked on at once: operators are few, and anybody can ask for the sign-in page.
const PLACES: usize = 8;
/// The longest name that is kept, in characters.
const NAME_LIMIT: usize = 60;
/// The longest password that is hashed, in bytes.
const PASSWORD_LIMIT: usize = 1_024;

/// The console of one process.
pub struct Console {
    /// The settings and the database, by connections of its own: whatever is looked at here holds up no payment.
    pub desk: Desk,
    /// Places for requests.
    pub places: Arc<Semaphore>,
    password: Secret,
    /// One password is hashed at a time: it takes memory and a core.
    hashing: Semaphore,
    tries_of_address: DefaultKeyedRateLimiter<IpAddr>,
    tries_of_all: DefaultDirectRateLimiter,
}

/// What came of a try to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// The token of the new session: told once, and kept nowhere.
    Token(String),
    /// Not this password, or no name.
    Wrong,
    /// Too many tries: nothing was looked at.
    TooOften,
}

impl Console {
    /// A console that opens with a password of this hash.
    #[must_use]
    pub fn new(desk: Desk, password: Secret) -> Self {
        let a_minute = |n| Quota::per_minute(NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN));
        Self {
            desk,
            places: Arc::new(Semaphore::new(PLACES)),
            password,
            hashing: Semaphore::new(1),
            tries_of_address: RateLimiter::keyed(a_minute(TRIES_OF_ADDRESS)),
            tries_of_all: RateLimiter::direct(a_minute(TRIES_OF_ALL)),
        }
    }

    /// Signs an operator in.
    ///
    /// # Errors
    /// [`StoreError`] when the session cannot be kept.
    pub async fn sign_in(
        &self,
        ip: IpAddr,
        name: &str,
        password: String,
    ) -> Result<SignIn, StoreError> {
        let allowed =
            self.tries_of_address.check_key(&ip).is_ok() && self.tries_of_all.check().is_ok();
        if !allowed {
            metrics::console_sign_in("limited");
            return Ok(SignIn::TooOften);
        }
        let name = plain(name, NAME_LIMIT);
        if name.is_empty() || !self.is_password(password).await {
            metrics::console_sign_in("wrong");
            tracing::warn!(%ip, "somebody tried to enter the console with a wrong password");
            return Ok(SignIn::Wrong);
        }
        let now = self.desk.clock.epoch();
        let token = format!("{}{}", random::secret(), random::secret());
        let session = OperatorSession {
            operator: name.clone(),
            opened_at: now,
            seen_at: now,
        };
        let store = &self.desk.store;
        let dead = now.minus(LONGEST);
        store.open_session(&hash(&token), &session, dead).await?;
        self.done(&name, (Action::SignIn, format!("from {ip}")), "signed_in")
            .await?;
        metrics::console_sign_in("signed_in");
        Ok(SignIn::Token(token))
    }

    async fn is_password(&self, password: String) -> bool {
        let Ok(_place) = self.hashing.acquire().await else {
            return false;
        };
        let kept = self.password.clone();
        let verify = move || {
            let hash = PasswordHash::new(kept.expose()).ok();
            let short = password.len() <= PASSWORD_LIMIT;
            hash.filter(|_| short)
                .is_some_and(|hash| verifies(&hash, &password))
        };
        tokio::task::spawn_blocking(verify).await.unwrap_or(false)
    }

    /// Who a token is; `None` for a token of nobody, and for a session that is over.
    ///
    /// # Errors
    /// [`StoreError`] when that cannot be looked up.
    pub async fn operator(&self, token: &str) -> Result<Option<String>, StoreError> {
        let hash = hash(token);
        let store = &self.desk.store;
        let Some(session) = store.session(&hash).await? else {
            return Ok(None);
        };
        let now = self.desk.clock.epoch();
        if now.since(session.opened_at) >= LONGEST || now.since(session.seen_at) >= IDLE {
            store.close_session(&hash).await?;
            return Ok(None);
        }
        if now.since(session.seen_at) >= SEEN_STEP {
            store.session_seen(&hash, now).await?;
        }
        Ok(Some(session.operator))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be ended.
    pub async fn sign_out(&self, operator: &str, token: &str) -> Result<(), StoreError> {
        self.desk.store.close_session(&hash(token)).await?;
        self.done(operator, (Action::SignOut, String::new()), "signed_out")
            .await
    }

    async fn done(
        &self,
        operator: &str,
        (action, detail): (Action, String),
        result: &str,
    ) -> Result<(), StoreError> {
        let store = &self.desk.store;
        let number = store
            .act(NewAction {
                at: self.desk.clock.epoch(),
                operator: operator.to_owned(),
                action,
                order_id: None,
                attempt: None,
                detail,
            })
            .await?;
        store.acted(number, result).await
    }

    /// Drops what the limits need not remember any more.
    pub fn tidy(&self) {
        self.tries_of_address.retain_recent();
    }
}

/// Whether a hash is one that [`Console`] can work with.
#[must_use]
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str() == "argon2id")
}

/// Hashes a new password for the settings (argon2id, its crate's parameters).
///
/// # Errors
/// When the system gives no randomness.
pub fn hash_password(password: &str) -> anyhow::Result<String> {
    use argon2::password_hash::PasswordHasher as _;
    let hash = Argon2::default().hash_password(password.as_bytes());
    let hash = hash.map_err(|error| anyhow::anyhow!("hashing the password: {error}"))?;
    Ok(hash.to_string())
}

fn verifies(hash: &PasswordHash, password: &str) -> bool {
    Argon2::default()
        .verify_password(password.as_bytes(), hash)
        .is_ok()
}

/// By which the database knows a token: who reads it there cannot use it.
fn hash(token: &str) -> String {
    let hash = Sha256::digest(token.as_bytes());
    hash.iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_hash_alone() {
        // Cheap parameters: what is tested is the format, not the price.
        let kept = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$";
        assert!(!is_password_hash("secret") && !is_password_hash(""));
        assert!(is_password_hash(&format!(
            "{kept}{}",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        )));
        assert!(!is_password_hash(
            "$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        ));
        let made = hash_password("right").unwrap();
        let made = PasswordHash::new(&made).unwrap();
        assert!(verifies(&made, "right") && !verifies(&made, "wrong"));
    }

    #[test]
    fn the_database_knows_a_token_by_its_hash() {
        assert_eq!(
            hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
