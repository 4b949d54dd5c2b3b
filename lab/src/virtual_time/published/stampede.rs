//! A stampede of retries straight at the gateway (measurements D): what jitter lowers and what it does not. The client here
//! is what the server must never be.

use std::sync::Arc;
use std::time::Duration;

use payment::time::Millis;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulation::scene::{Bank, Delay, Pg, When, Wire, straight};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::{Size, Virtual, line, note, on_all_cores, percentile, spaced, spread};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "stampede",
    plan,
    run,
};

/// Clients that fire at once; how long each waits (measurements D).
const CLIENTS: u64 = 150;
const TIMEOUT: Duration = Duration::from_secs(3);
/// Before the second and the third try; a fourth would follow after 2 s (measurements D).
const BACK_OFF_MS: [u64; 2] = [500, 1_000];
/// A real client's connection and scheduling: each try begins so many ms later, uniform. In one machine's virtual time all
/// would arrive in one and the same ms.
const SCATTER_MS: u64 = 60;

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
            Self::Exponential | Self::Jitter => 3,
        }
    }

    fn pause(self, step: u64, dice: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Never | Self::Exponential => step,
            Self::Jitter => dice.random_range(0..=step),
        }
    }
}

/// One run: requests, the most retries in a bin of 100 ms, in any 100 ms, in any second, the clients' median and approvals.
const FIGURES: [&str; 6] = [
    "requests", "peak100", "sliding", "peak1000", "p50", "approved",
];

fn stampede(retry: Retry, seed: u64) -> [f64; 6] {
    let pg = Pg {
        delay: Delay::Fixed(0),
        hang: Some((1.0, When::Before, Millis::from_secs(8))),
        goes_on: false,
        ..Pg::default()
    };
    straight(|| async move {
        let bank = Bank::new(pg, seed);
        bank.begin();
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(client(Arc::clone(&bank), retry, seed * CLIENTS + number));
        }
        let took = clients.join_all().await;
        let books = bank.books();
        let late: Vec<_> = books
            .arrivals
            .iter()
            .copied()
            .filter(|at| *at >= 1_000)
            .collect();
        [
            books.received as f64,
            most_in_bins(&late, 100),
            most_within(&late, 100),
            most_within(&late, 1_000),
            percentile(took, 50.0).unwrap_or(f64::NAN),
            books.approved as f64,
        ]
    })
}

/// One client, to its end; how long it took, ms.
async fn client(bank: Arc<Bank>, retry: Retry, seed: u64) -> f64 {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let began = Instant::now();
    let order = format!("order_{seed}");
    let wire = Wire {
        key: bank.authenticate(&order),
        amount: 18_000,
        idem: format!("key-{seed}"),
    };
    for step in BACK_OFF_MS
        .into_iter()
        .map(Some)
        .chain([None])
        .take(retry.tries() as usize)
    {
        let scatter = dice.random_range(0..=SCATTER_MS);
        tokio::time::sleep(Duration::from_millis(scatter)).await;
        if timeout(TIMEOUT, bank.confirm(wire.clone())).await.is_ok() {
            break;
        }
        if let Some(step) = step.filter(|_| retry != Retry::Never) {
            let pause = retry.pause(step, &mut dice);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
    began.elapsed().as_secs_f64() * 1_000.0
}

fn most_in_bins(at: &[u64], width: u64) -> f64 {
    let mut bins = std::collections::BTreeMap::new();
    for at in at {
        *bins.entry(at / width).or_insert(0_u32) += 1;
    }
    f64::from(bins.into_values().max().unwrap_or(0))
}

/// The most in any window of this width.
fn most_within(at: &[u64], width: u64) -> f64 {
    let mut sorted = at.to_vec();
    sorted.sort_unstable();
    let within = |(index, from): (usize, &u64)| {
        let end = sorted.partition_point(|at| *at < from + width);
        end - index
    };
    sorted.iter().enumerate().map(within).max().unwrap_or(0) as f64
}

/// What is expected of one way to retry.
fn criteria(retry: Retry) -> [Criterion; 5] {
    let clients = CLIENTS as f64;
    let within = |target, tolerance| Rule::Within { target, tolerance };
    let between = |least, most| Rule::Between { least, most };
    let name = retry.name();
    let one = |id: &str, says: &str, rule| {
        Criterion::new(
            name,
            &format!("{id} {name}"),
            &format!("{name}: {says}"),
            rule,
        )
    };
    let requests = Rule::exactly(clients * retry.tries() as f64);
    let (bins, seconds, p50, published) = match retry {
        Retry::Never => (
            Rule::exactly(0.0),
            Rule::exactly(0.0),
            between(3_000.0, 3_250.0),
            ["150", "0", "0", "3,194 ms"],
        ),
        Retry::Exponential => (
            between(85.0, 150.0),
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
    [
        one("requests", "requests at the gateway", requests).published(published[0]),
        one(
            "peak100",
            "most requests in a bin of 100 ms, of the retries",
            bins,
        )
        .published(published[1]),
        one(
            "peak1000",
            "most requests in any second, of the retries",
            seconds,
        )
        .published(published[2]),
        one("p50", "until a client gives up, median, ms", p50).published(published[3]),
        one("approved", "approvals booked", Rule::exactly(0.0)).published("0"),
    ]
}

fn plan(size: Size) -> Plan {
    let within = |target, tolerance| Rule::Within { target, tolerance };
    let criteria = ALL.into_iter().flat_map(criteria);
    let lower = |id: &str, says: &str| {
        Criterion::new("exponential", id, says, within(3.7, 1.2)).and("full jitter")
    };
    Plan {
        question: "When all clients time out at one moment and try again, what does jitter lower?"
            .to_owned(),
        setup: vec![
            format!(
                "{CLIENTS} clients fire at once, straight at the gateway, which hangs 8 s before it processes and drops what its caller gave up; each waits 3 s and tries up to three times with the same key"
            ),
            format!(
                "after 0.5 and 1 s, or full jitter: a uniform part of that; each try begins up to {SCATTER_MS} ms late, as a machine's connections do"
            ),
            "the first second after firing is left out; in bins from the start, and in any window"
                .to_owned(),
            spaced(size),
        ],
        valid_only_if: vec!["every client's first request reached the gateway".to_owned()],
        criteria: criteria
            .chain([
                lower(
                    "lower",
                    "peak of a bin of 100 ms: exponential ÷ full jitter",
                )
                .published("3.7"),
                lower("lower-sliding", "the same of any 100 ms")
                    .published("not published")
                    .finding(),
            ])
            .collect(),
    }
}

fn run(size: Size) -> Findings {
    let mut findings = Findings::default();
    let seeds = size.seeds() as usize;
    let runs = on_all_cores(ALL.len() * seeds, |index| {
        stampede(ALL[index / seeds], (index % seeds) as u64 + 1)
    });
    let of = |retry: Retry, figure: &str| -> Vec<f64> {
        let place = ALL.into_iter().position(|one| one == retry).unwrap_or(0);
        let column = FIGURES
            .into_iter()
            .position(|name| name == figure)
            .unwrap_or(0);
        runs[place * seeds..(place + 1) * seeds]
            .iter()
            .map(|run| run[column])
            .collect()
    };
    for retry in ALL {
        let mut condition = Condition::default();
        let least = of(retry, "requests")
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        condition.check(
            "every client reached the gateway",
            least >= CLIENTS as f64,
            least,
        );
        condition.figure("runs", seeds);
        for figure in FIGURES {
            let values = of(retry, figure);
            note(
                &mut findings,
                &format!("{figure} {}", retry.name()),
                &values,
            );
            condition.figure(figure, spread(&values).map(|spread| rounded(spread.median)));
        }
        findings.add(retry.name(), condition);
    }
    for (id, figure) in [("lower", "peak100"), ("lower-sliding", "sliding")] {
        let both = of(Retry::Exponential, figure)
            .into_iter()
            .zip(of(Retry::Jitter, figure));
        let ratios: Vec<_> = both
            .map(|(exponential, jitter)| exponential / jitter)
            .collect();
        note(&mut findings, id, &ratios);
    }
    let (answer, plot) = told(&findings);
    findings.answer = Some(answer);
    findings.plots.push(plot);
    findings
}

/// The answer and the picture, made from the medians.
fn told(findings: &Findings) -> (String, Plot) {
    let value = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    let answer = format!(
        "Jitter lowers the peak of 100 ms from {:.0} to {:.0} ({:.1} times; 3.7 published) and not one request: {:.0} with it and {:.0} without; in any second nothing of it is seen ({:.0} and {:.0}).",
        value("peak100 exponential"),
        value("peak100 full jitter"),
        value("lower"),
        value("requests full jitter"),
        value("requests exponential"),
        value("peak1000 full jitter"),
        value("peak1000 exponential"),
    );
    let bars = |figure: &str| {
        let of =
            |(at, retry): (usize, Retry)| (at as f64, value(&format!("{figure} {}", retry.name())));
        ALL.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let plot = Plot {
        title: "Jitter lowers the peak of 100 ms and nothing else".to_owned(),
        across: "retry: 0 none, 1 exponential, 2 with full jitter".to_owned(),
        up: "most retries at the gateway".to_owned(),
        log_across: false,
        lines: vec![
            line(
                "published, 100 ms",
                Mark::Dots,
                vec![(0.0, 0.0), (1.0, 141.0), (2.0, 38.0)],
            ),
            line("in a bin of 100 ms", Mark::Dots, bars("peak100")),
            line("in any second", Mark::Dots, bars("peak1000")),
        ],
    };
    (answer, plot)
}
