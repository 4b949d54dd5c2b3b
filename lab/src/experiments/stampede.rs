//! A stampede of retries straight at the gateway (measurements D): what jitter lowers and what it does not. The client here
//! is what the server must never be.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::FutureExt as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tokio::sync::watch;

use super::{Experiment, lines, pictures};
use crate::harness::alone::Alone;
use crate::harness::gateway::Ledger;
use crate::harness::{Lab, now_ms};
use crate::plan::{Condition, Criterion, Findings, Line, Plan};
use crate::stats::{Latencies, ms, rounded};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "stampede",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Clients that fire at once (measurements D).
const CLIENTS: usize = 150;
/// How long the gateway hangs before it would process, and how long a client waits (measurements D).
const HANG_MS: u64 = 8_000;
const TIMEOUT: Duration = Duration::from_secs(3);
/// Tries of one client (measurements D).
const TRIES: u64 = 3;
/// Before the second and the third try; a fourth would follow after 2 s.
const BACK_OFF_MS: [u64; 2] = [500, 1_000];
/// What comes so soon after firing is the clients' own wave (measurements D).
const FIRST_WAVE_MS: u64 = 1_000;
/// How long the clients' own wave may take to arrive, ms.
const WAVE_MS: u64 = 200;
/// The ledger's bins, ms.
const BIN_MS: u64 = 10;
const AMOUNT: u64 = 18_000;

/// When a client tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Never,
    Exponential,
    Jitter,
}

const ALL: [Retry; 3] = [Retry::Never, Retry::Exponential, Retry::Jitter];

impl Retry {
    const fn name(self) -> &'static str {
        match self {
            Self::Never => "none",
            Self::Exponential => "exponential",
            Self::Jitter => "full jitter",
        }
    }

    const fn tries(self) -> u64 {
        match self {
            Self::Never => 1,
            Self::Exponential | Self::Jitter => TRIES,
        }
    }
}

fn plan(lab: &Lab) -> Plan {
    let ratio = Rule::Within {
        target: 3.7,
        tolerance: 1.2,
    };
    let says = "peak of 100 ms: exponential ÷ full jitter";
    let lower = Criterion::new("exponential", "lower", says, ratio)
        .and("full jitter")
        .published("3.7");
    let says = "the same of any 100 ms, not of bins";
    let sliding = Criterion::new("exponential", "lower-sliding", says, ratio)
        .and("full jitter")
        .published("not published")
        .finding();
    let of_each = ALL.into_iter().flat_map(criteria);
    Plan {
        question: "When all clients time out at one moment and try again, what does jitter lower?"
            .to_owned(),
        setup: lines(&[
            &format!(
                "{CLIENTS} clients fire at once, straight at the gateway, which hangs {HANG_MS} ms before it processes; each waits 3 s and tries up to {TRIES} times with the same key"
            ),
            "after 0.5 and 1 s, or full jitter: a uniform part of that; without retries as the control",
            &format!(
                "{} runs of each, medians; a gateway of its own for each run, which drops what its caller gave up",
                runs(lab)
            ),
            "arrivals by the ledger's bins of 10 ms: bins of 100 ms from the first arrival on, and the most of any 100 ms and of any second; the first second after firing is left out",
        ]),
        valid_only_if: lines(&[
            "the gateway saw every client's first request and is alive at the end",
            "all fired within 200 ms",
            "every client ended without an answer: nobody knows",
            "the gateway tells times within the run, in UTC",
            "nothing is left of the gateway's process and port",
        ]),
        criteria: of_each.chain([lower, sliding]).collect(),
    }
}

fn criteria(retry: Retry) -> [Criterion; 5] {
    let clients = CLIENTS as f64;
    let within = |target, tolerance| Rule::Within { target, tolerance };
    let between = |least, most| Rule::Between { least, most };
    let (bins, seconds, p50, published) = match retry {
        Retry::Never => (
            Rule::exactly(0.0),
            Rule::exactly(0.0),
            between(3_000.0, 3_250.0),
            ["150", "0", "0", "3,194 ms"],
        ),
        Retry::Exponential => (
            between(115.0, 150.0),
            Rule::exactly(clients),
            between(10_500.0, 10_900.0),
            ["450", "141 (141, 150, 121)", "150", "10,752 ms"],
        ),
        Retry::Jitter => (
            within(38.0, 10.0),
            within(clients, 3.0),
            between(9_500.0, 10_150.0),
            ["450", "38 (39, 36, 38)", "150", "9,932 ms"],
        ),
    };
    let one = |id: &str, says: &str, rule, published: &str| {
        let name = retry.name();
        Criterion::new(
            name,
            &format!("{id} {name}"),
            &format!("{name}: {says}"),
            rule,
        )
        .published(published)
    };
    let requests = Rule::exactly(clients * retry.tries() as f64);
    let hundred = "most requests in a bin of 100 ms, of the retries";
    let second = "most requests in any second, of the retries";
    let given_up = "until a client gives up, median, ms";
    let none = Rule::exactly(0.0);
    [
        one(
            "requests",
            "requests at the gateway",
            requests,
            published[0],
        ),
        one("peak100", hundred, bins, published[1]),
        one("peak1000", second, seconds, published[2]),
        one("p50", given_up, p50, published[3]),
        one("approved", "approvals booked", none, "0"),
    ]
}

fn runs(lab: &Lab) -> u64 {
    u64::from(lab.pick(3, 1))
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut drawn = Vec::new();
    for retry in ALL {
        drawn.push(repeat(lab, retry, &mut findings).await?);
    }
    let of = |id: &str, retry: Retry| findings.value(&format!("{id} {}", retry.name()));
    let ratio = |id: &str| {
        let both = of(id, Retry::Exponential).zip(of(id, Retry::Jitter));
        both.filter(|(_, jitter)| *jitter > 0.0)
            .map(|(exponential, jitter)| rounded(exponential / jitter))
    };
    let (lower, sliding) = (ratio("peak100"), ratio("sliding"));
    let value = |id: &str, retry| of(id, retry).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "Jitter lowers the peak of 100 ms from {} to {} ({:.1} times) and not one request: {} with it and {} without; in bins of a second nothing of it is seen ({} and {}).",
        value("peak100", Retry::Exponential),
        value("peak100", Retry::Jitter),
        lower.unwrap_or(f64::NAN),
        value("requests", Retry::Jitter),
        value("requests", Retry::Exponential),
        value("peak1000", Retry::Exponential),
        value("peak1000", Retry::Jitter)
    ));
    findings.measure_if("lower", lower);
    findings.measure_if("lower-sliding", sliding);
    findings.plots.push(pictures::plot(
        "Retries at one moment are a wall, and with jitter a hill of the same area",
        "time since the first request, s",
        "requests at the gateway in 100 ms",
        drawn,
    ));
    Ok(findings)
}

/// What one run came to.
struct Ran {
    requests: f64,
    peak100: f64,
    sliding: f64,
    peak1000: f64,
    p50: f64,
    approved: f64,
}

/// A figure of a run, by its name.
type Figure = (&'static str, fn(&Ran) -> f64);

/// Runs one schedule several times; gives the arrivals of the last run.
async fn repeat(lab: &Lab, retry: Retry, findings: &mut Findings) -> anyhow::Result<Line> {
    let mut condition = Condition::default();
    let (mut all, mut drawn) = (Vec::new(), None);
    for run in 1..=runs(lab) {
        let (ran, ledger) = measure(lab, retry, run, &mut condition).await?;
        all.push(ran);
        drawn = Some(pictures::arrivals(retry.name(), &ledger, 100));
    }
    let figures: [Figure; 6] = [
        ("requests", |ran| ran.requests),
        ("peak100", |ran| ran.peak100),
        ("sliding", |ran| ran.sliding),
        ("peak1000", |ran| ran.peak1000),
        ("p50", |ran| ran.p50),
        ("approved", |ran| ran.approved),
    ];
    for (id, of) in figures {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        condition.figure(&format!("{id}OfEachRun"), &values);
        values.sort_by(f64::total_cmp);
        let name = format!("{id} {}", retry.name());
        findings.measure_if(&name, values.get(values.len() / 2).copied());
    }
    findings.add(retry.name(), condition);
    drawn.context("no run")
}

async fn measure(
    lab: &Lab,
    retry: Retry,
    run: u64,
    condition: &mut Condition,
) -> anyhow::Result<(Ran, Ledger)> {
    let alone = Alone::open(lab).await?;
    let (took, heard) = fire(&alone, retry, run).await?;
    let name = |what: &str| format!("run {run}: {what}");
    let alive = alone.gateway.is_alive().await;
    condition.check(&name("the gateway is alive at the end"), alive, alive);
    condition.check(
        &name("every client ended without an answer"),
        heard == 0,
        heard,
    );
    let ledger = alone.gateway.ledger().await?;
    let run_was = alone.opened_ms..=now_ms();
    let tidy = alone.close().await?;
    condition.check(&name("nothing is left of the gateway"), tidy, tidy);
    let bins = ledger.arrivals();
    let within = bins.iter().all(|(at, _)| run_was.contains(at));
    condition.check(
        &name("times are of the run, in UTC"),
        within,
        format!("{run_was:?}"),
    );
    let first = bins.first().map_or(0, |(at, _)| *at);
    let wave = |(at, _): &&(u64, u64)| at - first < WAVE_MS;
    let fired: u64 = bins.iter().filter(wave).map(|(_, count)| count).sum();
    let all = fired == CLIENTS as u64;
    condition.check(&name("all fired within 200 ms"), all, fired);
    let retries: Vec<_> = bins
        .iter()
        .filter(|(at, _)| at - first >= FIRST_WAVE_MS)
        .map(|(at, count)| (at - first, *count))
        .collect();
    let ran = Ran {
        requests: ledger.confirms("received") as f64,
        peak100: in_bins(&retries, 100) as f64,
        sliding: in_any(&retries, 100) as f64,
        peak1000: in_any(&retries, 1_000) as f64,
        p50: Latencies::of(took).percentile_ms(50.0).map_or(0.0, rounded),
        approved: ledger.confirms("approved") as f64,
    };
    Ok((ran, ledger))
}

/// Fires all clients at one moment; how long each took until it gave up, and how many were answered.
async fn fire(alone: &Alone, retry: Retry, run: u64) -> anyhow::Result<(Vec<Duration>, usize)> {
    let mut keys = Vec::with_capacity(CLIENTS);
    for index in 0..CLIENTS {
        let order = format!("stampede_{index}");
        keys.push(alone.authenticate(&order, AMOUNT).await?);
    }
    alone.gateway.reset_ledger().await?;
    let hang = json!({"when": "before", "ms": HANG_MS});
    let scenario = json!({"hang": hang, "continueAfterDisconnect": false});
    alone.gateway.set(&scenario).await?;
    let (fire, fired) = watch::channel(None);
    let mut running = Vec::with_capacity(CLIENTS);
    for (index, key) in keys.into_iter().enumerate() {
        let order = format!("stampede_{index}");
        let body = json!({"paymentKey": key, "orderId": order, "amount": AMOUNT});
        let call = alone.confirm(&body, &order, TIMEOUT);
        let mut fired = fired.clone();
        // Each client has a place of its own in the randomness, whatever order they run in.
        let mut random = ChaCha8Rng::seed_from_u64(run * 1_000 + index as u64);
        running.push(tokio::spawn(async move {
            let fired = fired.wait_for(Option::is_some).await;
            let begun: Instant = (*fired.ok()?)?;
            let answered = one_client(retry, call, &mut random).await;
            Some((begun.elapsed(), answered))
        }));
    }
    fire.send_replace(Some(Instant::now()));
    let (mut took, mut heard) = (Vec::with_capacity(CLIENTS), 0);
    for client in running {
        let ended = client.await.context("a client")?;
        let (span, answered) = ended.context("a client never fired")?;
        took.push(span);
        heard += usize::from(answered);
    }
    Ok((took, heard))
}

/// Tries until it is answered or has no try left; whether it was answered.
async fn one_client(retry: Retry, call: reqwest::RequestBuilder, random: &mut ChaCha8Rng) -> bool {
    for attempt in 0..retry.tries() {
        if attempt > 0 {
            let pause = BACK_OFF_MS[usize::try_from(attempt - 1).unwrap_or(0).min(1)];
            let pause = match retry {
                Retry::Jitter => random.random_range(0.0..=ms(Duration::from_millis(pause))),
                Retry::Never | Retry::Exponential => ms(Duration::from_millis(pause)),
            };
            tokio::time::sleep(Duration::from_secs_f64(pause / 1_000.0)).await;
        }
        let Some(again) = call.try_clone() else {
            return true;
        };
        if again.send().await.is_ok() {
            return true;
        }
    }
    false
}

/// The most in one of the bins of a width, which begin with the first arrival of all.
fn in_bins(arrivals: &[(u64, u64)], width: u64) -> u64 {
    let mut bins = std::collections::BTreeMap::<u64, u64>::new();
    for (at, count) in arrivals {
        *bins.entry(at / width).or_default() += count;
    }
    bins.into_values().max().unwrap_or(0)
}

/// The most within any window of a width, which begins with any of the ledger's bins.
fn in_any(arrivals: &[(u64, u64)], width: u64) -> u64 {
    let from = |start: u64| {
        let within = arrivals
            .iter()
            .filter(|(at, _)| (start..=start + width - BIN_MS).contains(at));
        within.map(|(_, count)| count).sum()
    };
    arrivals
        .iter()
        .map(|(start, _)| from(*start))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_may_cut_a_peak_and_a_sliding_window_does_not() {
        let arrivals = [(1_080, 40), (1_110, 50), (1_190, 7), (2_000, 3)];
        assert_eq!(in_bins(&arrivals, 100), 57);
        assert_eq!(in_any(&arrivals, 100), 90);
        assert_eq!(in_any(&arrivals, 1_000), 100);
        assert_eq!(in_any(&[], 100), 0);
    }
}
