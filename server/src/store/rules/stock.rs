//! What a step of an attempt moves between free, reserved and sold.

use payment::attempt::Holding;

/// What a move adds to reserved and to sold, for each piece.
#[must_use]
pub fn added(from: Holding, to: Holding) -> (i64, i64) {
    let sign = |holding| i64::from(to == holding) - i64::from(from == holding);
    (sign(Holding::Reserved), sign(Holding::Sold))
}

/// Whether a move takes from what is free, and so may find that there is not enough.
#[must_use]
pub fn takes_more(from: Holding, to: Holding) -> bool {
    let (reserved, sold) = added(from, to);
    reserved + sold > 0
}
