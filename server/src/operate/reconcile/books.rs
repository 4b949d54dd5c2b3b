//! What must add up in our own books, without asking anybody.

use super::judge::Break;
use crate::store::StoreError;
use crate::store::desk::{DeskStore, StockCount};

/// The stock that does not add up.
///
/// # Errors
/// [`StoreError`] when it cannot be read.
pub(super) async fn stock(store: &dyn DeskStore) -> Result<Vec<Break>, StoreError> {
    let counts = store.stock().await?;
    Ok(counts.iter().filter_map(off).collect())
}

fn off(count: &StockCount) -> Option<Break> {
    let (reserved, sold) = count.counted;
    let free = count.total - reserved - sold;
    if count.counted == count.held && free >= 0 && reserved >= 0 && sold >= 0 {
        return None;
    }
    let detail = format!(
        "{reserved} reserved and {sold} sold of {} are counted, the payments hold {} and {}",
        count.total, count.held.0, count.held.1
    );
    Some(Break::stock(count.sku.as_str(), detail))
}

#[cfg(test)]
mod tests {
    use payment::id::Sku;

    use super::*;

    #[test]
    fn stock_is_off_when_the_counts_differ_or_more_is_gone_than_there_was() {
        let count = |total, counted, held| StockCount {
            sku: Sku::parse("mug").unwrap(),
            total,
            counted,
            held,
        };
        assert!(off(&count(9, (1, 2), (1, 2))).is_none());
        assert!(off(&count(9, (0, 2), (1, 2))).is_some());
        assert!(off(&count(9, (1, 3), (1, 2))).is_some());
        assert!(off(&count(2, (1, 2), (1, 2))).is_some());
    }
}
