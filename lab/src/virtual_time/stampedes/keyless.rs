//! Open question 14 (b): what resends do at a gateway that knows no idempotency keys.

use std::time::Duration;

use payment::resend::Policy;
use simulation::scene::{Delay, Pg, Server};

use super::runs;
use super::waves::guard;
use crate::plan::{Condition, Criterion, Findings, Mark, Plan, Plot};
use crate::stampede::{Begin, Crowd, Gateway, Hang, Kind, Ran, Retry, Scene, Schedule, When, run};
use crate::stats::rounded;
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, said, tell, wrongs};
use crate::virtual_time::{Size, Virtual, line};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "keyless",
    plan,
    run: answer,
};

/// Payments of one run, and over how long they come: 50 a second.
const PAYMENTS: usize = 3_000;
const OVER: Duration = Duration::from_secs(60);
/// The conditions with production code.
const SERVER: [&str; 2] = ["the server with its resend", "the server without resends"];
/// The share of answers that is lost, as in the published lossy gateway (measurements B).
const LOSS: f64 = 0.15;
/// A resend comes so soon after its loss (spec section 3).
const RESEND: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(60));

/// How the gateway loses what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Answers, right after the booking.
    After,
    /// Calls, before any work.
    Before,
    /// Every answer: it hangs after the booking for longer than anybody waits.
    Hangs,
    /// Every connection once, in the middle.
    Reset,
}

impl Trouble {
    const ALL: [Self; 4] = [Self::After, Self::Before, Self::Hangs, Self::Reset];

    const fn name(self) -> &'static str {
        match self {
            Self::After => "answers lost",
            Self::Before => "calls lost",
            Self::Hangs => "answers hang",
            Self::Reset => "mass reset",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Before => "before",
            Self::Hangs => "hangs",
            Self::Reset => "reset",
        }
    }

    /// Charges for each payment by formula, with so many tries at a gateway without keys, and how far off is right: three
    /// deviations of a mean of so many payments.
    fn expected(self, tries: u32) -> (f64, f64) {
        let lost = |power| LOSS.powi(power);
        let more = tries > 1;
        match self {
            Self::After => {
                let charges = (0..tries.cast_signed()).map(lost).sum();
                (charges, if more { 0.02 } else { 0.0 })
            }
            Self::Before => (1.0 - lost(tries.cast_signed()), 0.02),
            Self::Hangs => (f64::from(tries), 0.0),
            // Those that are open as the connections break, and only where they are sent again: 50/s × 2 s of 3,000.
            Self::Reset => (
                if more { 1.0 + 100.0 / 3_000.0 } else { 1.0 },
                if more { 0.001 } else { 0.0 },
            ),
        }
    }
}

fn condition_name(trouble: Trouble, keys: bool) -> String {
    let keys = if keys { "keys" } else { "no keys" };
    format!("{}, {keys}", trouble.name())
}

fn id(trouble: Trouble, keys: bool, tries: u32) -> String {
    let keys = if keys { "keys" } else { "none" };
    format!("{}-{keys}-{tries}", trouble.id())
}

/// What is expected.
fn criteria() -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for trouble in Trouble::ALL {
        for tries in 1..=3 {
            for keys in [true, false] {
                let (charges, off) = trouble.expected(tries);
                // With keys a payment is charged once at most, whatever is sent again.
                let (target, tolerance) = if keys && trouble != Trouble::Before {
                    (1.0, 0.0)
                } else {
                    (charges, off)
                };
                let says = format!(
                    "charges for each payment: {}, {tries} {}",
                    condition_name(trouble, keys),
                    if tries == 1 { "send" } else { "sends" }
                );
                let rule = Rule::Within {
                    target: rounded(target),
                    tolerance,
                };
                let id = id(trouble, keys, tries);
                let mut criterion =
                    Criterion::new(&condition_name(trouble, keys), &id, &says, rule);
                if trouble == Trouble::Hangs && !keys && tries == 3 {
                    criterion = criterion
                        .published("three charges for one payment (reasoned, not measured)");
                }
                criteria.push(criterion);
            }
        }
    }
    criteria.push(Criterion::new(
        &condition_name(Trouble::Before, false),
        "before-twice",
        "payments charged twice where calls are lost before any work, three sends without keys",
        Rule::exactly(0.0),
    ));
    let lossy = |target: f64, tolerance: f64| Rule::Within { target, tolerance };
    criteria.extend([
        Criterion::new(
            SERVER[0],
            "server-resends-charges",
            "charges for each paid order: the server, told that there are keys, with its resend",
            lossy(rounded(1.0 + LOSS), 0.02),
        ),
        Criterion::new(
            SERVER[1],
            "server-off-charges",
            "the same without resends, as for every gateway whose sheet has no keys",
            lossy(1.0, 0.0),
        ),
        Criterion::new(
            SERVER[1],
            "server-off-wrongs",
            "shoppers of it told wrongly, or charged twice",
            Rule::exactly(0.0),
        ),
    ]);
    criteria
}

fn plan(size: Size) -> Plan {
    Plan {
        question: "What do resends cost at a gateway that knows no idempotency keys?".to_owned(),
        setup: lines(&[
            &format!(
                "{PAYMENTS} payments at 50/s, each confirmed once, with one resend 20 to 60 ms after a loss, or with two"
            ),
            "15 % of answers lost after the booking; 15 % of calls lost before it; every answer hanging for 8 s against a patience of 3 s; every connection reset once",
            "the gateway takes 200 ms, 2 s where connections are reset, goes on with what it began, and knows keys or does not",
            "by formula at most Σ lossⁿ charges for each payment without keys, and one with them",
            &format!("{} runs of each, medians", runs(size) / 2),
        ]),
        valid_only_if: lines(&[
            "the gateway saw every client",
            "every client came to its end",
            "with more sends there were resends",
        ]),
        criteria: criteria(),
    }
}

fn scene(trouble: Trouble, keys: bool, tries: u32, seed: u64) -> Scene {
    let (first, longest) = RESEND;
    let patience = if trouble == Trouble::Hangs { 3 } else { 60 };
    let crowd = Crowd {
        clients: PAYMENTS,
        begin: Begin::Evenly { over: OVER },
        asks: vec![Kind::Confirm],
        retry: Retry {
            schedule: Schedule::Between,
            first,
            longest,
            tries,
            timeout: Duration::from_secs(patience),
        },
    };
    let work = if trouble == Trouble::Reset {
        2_000
    } else {
        200
    };
    let hang = Hang {
        when: When::After,
        lasts: Duration::from_secs(8),
        until: None,
    };
    Scene {
        crowds: vec![crowd],
        gateway: Gateway {
            hang: (trouble == Trouble::Hangs).then_some(hang),
            loss: match trouble {
                Trouble::After => Some((LOSS, When::After)),
                Trouble::Before => Some((LOSS, When::Before)),
                Trouble::Hangs | Trouble::Reset => None,
            },
            keys,
            ..Gateway::healthy(Duration::from_millis(work))
        },
        // Between two arrivals, so that exactly as many are open as arrive in the work's time.
        reset_at: (trouble == Trouble::Reset).then_some(Duration::from_millis(30_010)),
        seed,
    }
}

/// The server in front of a gateway that loses 15 % of its answers and knows no keys: with its resend, as it would be if the
/// sheet promised keys, and without.
fn server(size: Size, findings: &mut Findings) {
    let told = [
        ("server-resends", Policy::Budget),
        ("server-off", Policy::Off),
    ];
    for (name, (id, resend)) in SERVER.into_iter().zip(told) {
        let scene = |seed| simulation::scene::Scene {
            seed,
            pg: Pg {
                delay: Delay::Fixed(200),
                loss: Some((LOSS, simulation::scene::When::After)),
                idempotency: false,
                ..Pg::default()
            },
            server: Server {
                resend,
                ..Server::default()
            },
            ..simulation::scene::Scene::default()
        };
        ask(findings, &Asked::new(name, id, size), scene, |ran, _| {
            let charges: u32 = ran.seen.iter().map(|seen| seen.charged_ever).sum();
            let resent = ran.counter("pg_resend_total", "sent");
            vec![
                ("charges", f64::from(charges) / ran.sold().max(1) as f64),
                ("resent", resent as f64),
                ("wrongs", wrongs(ran)),
            ]
        });
    }
    // What a broken promise does to shoppers is the question here, not how ours fared.
    findings.regret = None;
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut drawn = Vec::new();
    for trouble in Trouble::ALL {
        for keys in [true, false] {
            let mut condition = Condition::default();
            let mut points = Vec::new();
            for tries in 1..=3 {
                let scene = |seed| scene(trouble, keys, tries, seed);
                let ran: Vec<_> = (0..runs(size) / 2).map(|seed| run(&scene(seed))).collect();
                guard(&mut condition, &scene(0), &ran);
                let moved = ran
                    .iter()
                    .all(|ran| (tries > 1) != ran.retries().is_empty());
                condition.check("with more sends there were resends", moved, moved);
                let charges = ran.iter().map(Ran::charges_each);
                let id = id(trouble, keys, tries);
                points.push((
                    f64::from(tries),
                    tell(&mut findings, &mut condition, &id, charges),
                ));
                if (trouble, keys, tries) == (Trouble::Before, false, 3) {
                    let twice = |ran: &Ran| ran.charges.iter().filter(|one| **one > 1).count();
                    let twice = ran.iter().map(|ran| twice(ran) as f64);
                    tell(&mut findings, &mut condition, "before-twice", twice);
                }
            }
            let name = condition_name(trouble, keys);
            if !keys {
                drawn.push(line(&name, Mark::Dots, points));
                let formula = (1..=3).map(|tries| (f64::from(tries), trouble.expected(tries).0));
                drawn.push(line(
                    &format!("{}, formula", trouble.name()),
                    Mark::Curve,
                    formula.collect(),
                ));
            }
            findings.add(name, condition);
        }
    }
    server(size, &mut findings);
    findings.plots.push(Plot {
        title: "Charges for each payment at a gateway without idempotency keys, against how often a confirm is sent".to_owned(),
        across: "sends of a confirm at most".to_owned(),
        up: "charges for each payment".to_owned(),
        log_across: false,
        lines: drawn,
    });
    let of = |id: &str| said(&findings, id);
    findings.answer = Some(format!(
        "Without keys every resend of a call that was booked is one more charge: with 15 % of answers lost {} charges for each payment with one resend and {} with two, {} where every answer hangs, {} after one mass reset; with keys {} in all of these. Where calls are lost before the booking a resend is harmless ({} payments charged twice), but nobody can tell the two apart. So a gateway whose sheet knows no keys is never sent a confirm again: without resends it is {} charge for each payment. The server itself would make {} charges for each order where a sheet wrongly promised keys, and makes {} without resends.",
        of("after-none-2"),
        of("after-none-3"),
        of("hangs-none-3"),
        of("reset-none-2"),
        of("after-keys-3"),
        of("before-twice"),
        of("after-none-1"),
        of("server-resends-charges"),
        of("server-off-charges"),
    ));
    findings
}
