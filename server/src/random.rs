//! Ids, references and keys that cannot be guessed: 128 random bits and more.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payment::id::{AttemptReference, IdempotencyKey, OrderId};
use rand::RngCore as _;

use crate::gateway::secret::Secret;

#[cfg(feature = "simulation")]
thread_local! {
    static SEEDED: std::cell::RefCell<Option<rand::rngs::StdRng>> =
        const { std::cell::RefCell::new(None) };
}

/// From now on everything random on this thread follows from a seed.
#[cfg(feature = "simulation")]
pub fn seed_thread(seed: u64) {
    use rand::SeedableRng as _;
    SEEDED.set(Some(rand::rngs::StdRng::seed_from_u64(seed)));
}

fn fill(bytes: &mut [u8]) {
    #[cfg(feature = "simulation")]
    if SEEDED
        .with_borrow_mut(|seeded| seeded.as_mut().map(|rng| rng.fill_bytes(bytes)))
        .is_some()
    {
        return;
    }
    rand::rng().fill_bytes(bytes);
}

fn hex<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    fill(&mut bytes);
    bytes
        .iter()
        .fold(String::with_capacity(2 * N), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A new order's id.
#[must_use]
pub fn order_id() -> OrderId {
    OrderId::parse(&format!("ord_{}", hex::<16>())).expect("36 word characters are an order id")
}

/// The unguessable part of a new attempt's return URL.
#[must_use]
pub fn attempt_reference() -> AttemptReference {
    AttemptReference::parse(&hex::<16>()).expect("32 hexadecimal digits are a reference")
}

/// A new idempotency key; `purpose` tells the log what it was for.
#[must_use]
pub fn idempotency_key(purpose: &str) -> IdempotencyKey {
    IdempotencyKey::parse(&format!("{purpose}-{}", hex::<16>())).expect("short and printable")
}

/// A new guest shopper's id, or a secret: 256 bits.
#[must_use]
pub fn secret() -> String {
    hex::<32>()
}

/// A new secret by which a shop knows that a webhook is ours: 256 bits, as Standard Webhooks writes it.
#[must_use]
pub fn webhook_secret() -> Secret {
    let mut bytes = [0_u8; 32];
    fill(&mut bytes);
    Secret::new(&format!("whsec_{}", STANDARD.encode(bytes)))
}

/// An id for an exchange that came without one; only for logs.
#[must_use]
pub fn request_id() -> String {
    hex::<8>()
}

/// A uniform random number, for jitter.
#[must_use]
pub fn jitter() -> u32 {
    let mut bytes = [0_u8; 4];
    fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}
