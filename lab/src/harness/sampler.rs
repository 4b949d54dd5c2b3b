//! Samples a gauge of the shop while a load runs.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::{Stage, scrape};
use crate::prometheus::Scrape;

/// A gauge's values over time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<(Instant, f64)>);

impl Samples {
    /// The mean of the samples between two moments; `None` when there is none.
    pub(crate) fn mean(&self, from: Instant, until: Instant) -> Option<f64> {
        let within = |(at, value): &(Instant, f64)| (*at >= from && *at < until).then_some(*value);
        let values: Vec<f64> = self.0.iter().filter_map(within).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Each sample from a moment on: seconds since then, and the value.
    pub(crate) fn points(&self, from: Instant) -> Vec<(f64, f64)> {
        let after = self.0.iter().filter(|(at, _)| *at >= from);
        after
            .map(|(at, value)| ((*at - from).as_secs_f64(), *value))
            .collect()
    }

    /// The means of consecutive spans from a moment on, until the samples end.
    pub(crate) fn means(&self, from: Instant, span: Duration) -> Vec<Option<f64>> {
        let last = self.0.last().map_or(from, |(at, _)| *at);
        let starts = std::iter::successors(Some(from), |at| Some(*at + span));
        let means = starts.take_while(|at| *at < last);
        means.map(|at| self.mean(at, at + span)).collect()
    }
}

/// A running sampler.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Samples>,
}

impl Sampler {
    /// Samples the confirms in flight, as the server counts them.
    pub(crate) fn confirms_in_flight(stage: &Stage, every: Duration) -> Self {
        Self::of(stage, every, |scrape| {
            scrape.sum("pg_in_flight", &[("operation", "confirm")])
        })
    }

    /// Samples whatever is made of the metrics.
    pub(crate) fn of(stage: &Stage, every: Duration, value: fn(&Scrape) -> f64) -> Self {
        let (client, shop) = (stage.client.clone(), stage.shop.clone());
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut samples = Samples::default();
            let mut ticks = tokio::time::interval(every);
            // After one that took long the next comes a whole step later, not a burst of them.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = &mut stopped => return samples,
                    _ = ticks.tick() => {}
                }
                // A sample that fails is missing, and the mean is taken over the others.
                if let Ok(scrape) = scrape(&client, &shop).await {
                    samples.0.push((Instant::now(), value(&scrape)));
                }
            }
        });
        Self { stop, task }
    }

    /// Ends it.
    pub(crate) async fn end(self) -> anyhow::Result<Samples> {
        // It may have ended by a panic, which the join tells.
        let _ = self.stop.send(());
        self.task.await.context("sampling")
    }
}
