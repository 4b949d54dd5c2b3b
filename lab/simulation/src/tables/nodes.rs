//! The nodes that share the database: leases, the cap's division, and what a dead one left.

use payment::attempt::AttemptStatus;
use server::store::{AttemptId, AttemptRecord, Beat, NodeSlots};

use super::Tables;

impl Tables {
    /// By the database's own clock, as several nodes need it.
    pub(crate) fn beat(&mut self, beat: &Beat) -> Vec<NodeSlots> {
        let now = self.now;
        let ended: Vec<String> = self
            .leases
            .iter()
            .filter(|(_, until)| **until < now)
            .map(|(node, _)| node.clone())
            .collect();
        for node in ended {
            self.leave(&node);
        }
        self.leases.insert(beat.node.clone(), now.plus(beat.lease));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let nodes = count(self.leases.len());
        let rank = count(self.leases.keys().filter(|id| **id < beat.node).count());
        let mut granted = Vec::new();
        for held in &beat.slots {
            let of_others = self
                .slots
                .iter()
                .filter(|((node, gateway), _)| *node != beat.node && *gateway == held.gateway);
            let others = of_others.map(|(_, slots)| *slots).sum();
            let share = payment::share::share(held.cap, nodes, rank);
            let slots = payment::share::usable(held.cap, share, others);
            let key = (beat.node.clone(), held.gateway.clone());
            self.slots.insert(key, slots.max(held.in_use));
            granted.push(NodeSlots {
                gateway: held.gateway.clone(),
                slots,
                nodes,
            });
        }
        granted
    }

    pub(crate) fn leave(&mut self, node: &str) {
        self.leases.remove(node);
        self.slots.retain(|(of, _), _| of != node);
    }

    /// Approving attempts that another node claimed whose lease is over, by the database's own clock.
    pub(crate) fn approving_of_dead_nodes(&self, own: &str) -> Vec<AttemptId> {
        let lives = |node: &String| {
            self.leases
                .get(node)
                .is_some_and(|until| *until >= self.now)
        };
        let left = |record: &&AttemptRecord| {
            record.attempt.status == AttemptStatus::Approving
                && self
                    .beside
                    .get(&record.id)
                    .and_then(|beside| beside.node.as_ref())
                    .is_none_or(|node| node != own && !lives(node))
        };
        let left = self.attempts.iter().filter(left);
        left.map(|record| record.id).collect()
    }
}
