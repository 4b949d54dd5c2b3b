//! How several nodes divide one gateway's cap and reserve. Pure.

/// The share of the node at `rank` (from 0, in the order of the nodes' ids) of `total` among `nodes`: equal, and the
/// remainder goes one each to the first.
///
/// With more nodes than slots the last ones have none: they refuse, and the sum never exceeds the total.
#[must_use]
pub const fn share(total: u32, nodes: u32, rank: u32) -> u32 {
    if nodes == 0 || rank >= nodes {
        return 0;
    }
    total / nodes + (rank < total % nodes) as u32
}

/// What a node may use now: its share, but never more than the others leave.
///
/// `others` is what the other live nodes still use; a node that has just come waits until they have shrunk.
#[must_use]
pub const fn usable(total: u32, share: u32, others: u32) -> u32 {
    let free = total.saturating_sub(others);
    if share < free { share } else { free }
}

/// The reserve that follows a share of the cap: in proportion, rounded up, and never more than the share.
#[must_use]
pub fn reserve_of(reserve: u32, cap: u32, share: u32) -> u32 {
    if cap == 0 {
        return 0;
    }
    let part = (u64::from(reserve) * u64::from(share)).div_ceil(u64::from(cap));
    u32::try_from(part).unwrap_or(share).min(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_differ_by_one_at_most_and_the_first_get_the_remainder() {
        for total in 0..=100 {
            for nodes in 1..=12 {
                let shares: Vec<_> = (0..nodes).map(|rank| share(total, nodes, rank)).collect();
                assert_eq!(shares.iter().sum::<u32>(), total);
                assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]));
                assert!(shares[0] - shares[shares.len() - 1] <= 1);
            }
        }
        assert_eq!((share(40, 3, 0), share(40, 3, 2)), (14, 13));
        assert_eq!((share(1, 2, 0), share(1, 2, 1)), (1, 0));
        assert_eq!((share(40, 0, 0), share(40, 2, 2)), (0, 0));
    }

    #[test]
    fn a_new_node_waits_for_the_others_to_shrink() {
        assert_eq!(usable(40, 20, 40), 0);
        assert_eq!(usable(40, 20, 25), 15);
        assert_eq!(usable(40, 20, 20), 20);
        assert_eq!(usable(40, 20, 0), 20);
    }

    #[test]
    fn the_reserve_follows_the_share() {
        assert_eq!(reserve_of(4, 40, 40), 4);
        assert_eq!(reserve_of(4, 40, 20), 2);
        assert_eq!(reserve_of(4, 40, 13), 2);
        assert_eq!(reserve_of(4, 40, 1), 1);
        assert_eq!(reserve_of(4, 40, 0), 0);
        assert_eq!(reserve_of(1, 0, 0), 0);
    }
}
