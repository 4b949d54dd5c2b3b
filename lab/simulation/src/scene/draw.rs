//! Chance in a scene: when shoppers arrive, who has left, and how each behaves.

use std::time::Duration;

use payment::time::Millis;
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::shopper::Ways;
use super::spec::{Arrivals, Load, Shoppers};

/// When shoppers arrive, from the first on.
pub(super) fn arrivals(load: &Load, dice: &mut ChaCha8Rng) -> Vec<Duration> {
    let mut all = Vec::new();
    let mut begin = 0.0;
    let phases = load.warm_up.into_iter().chain([(load.rate, load.seconds)]);
    for (rate, seconds) in phases {
        let (rate, seconds) = (f64::from(rate), f64::from(seconds));
        let count = (rate * seconds) as u32;
        let phase: f64 = dice.random();
        match load.arrivals {
            Arrivals::Even => {
                all.extend((0..count).map(|n| begin + (f64::from(n) + phase) / rate));
            }
            Arrivals::Bursts => {
                all.extend((0..count).map(|n| begin + (f64::from(n) / rate).floor()));
            }
            Arrivals::Poisson => {
                let mut at = 0.0;
                loop {
                    at -= (1.0 - dice.random::<f64>()).ln() / rate;
                    if at >= seconds {
                        break;
                    }
                    all.push(begin + at);
                }
            }
        }
        begin += seconds;
    }
    all.into_iter().map(Duration::from_secs_f64).collect()
}

/// Who of `count` has left: in every ten in a row the same number, in an order of their own.
pub(super) fn departed(share: f64, count: usize, dice: &mut ChaCha8Rng) -> Vec<bool> {
    let mut all = Vec::with_capacity(count + 10);
    let mut owed = 0.0;
    while all.len() < count {
        owed += share * 10.0;
        let now = (owed + 1e-9).floor();
        owed -= now;
        let mut ten: Vec<bool> = (0..10).map(|index| f64::from(index) < now).collect();
        ten.shuffle(dice);
        all.extend(ten);
    }
    all.truncate(count);
    all
}

/// What is drawn for one shopper.
pub(super) fn ways(shoppers: &Shoppers, departed: bool, dice: &mut ChaCha8Rng) -> Ways {
    let [leaves, twice, slow, second]: [f64; 4] = dice.random();
    let leaves = shoppers.impatient.filter(|(share, _)| leaves < *share);
    let slow = shoppers.slow_network.filter(|(share, _)| slow < *share);
    let second = shoppers.two_tabs.filter(|(share, _)| second < *share);
    Ways {
        client: shoppers.client,
        departed,
        leaves: leaves.map(|(_, when)| when.draw(dice)),
        twice: twice < shoppers.double_click,
        network: slow.map_or(Millis::ZERO, |(_, delay)| delay.draw(dice)),
        second_tab: second.map(|(_, when)| when.draw(dice)),
        pays_again: shoppers.pays_again,
    }
}
