//! Open question 13: what shoppers were shown against the gateway's truth, over all situations; and what a page that calls
//! a late answer a failure would have shown them.

mod situations;

use payment::time::{Millis, Times};
use simulation::scene::{Load, Ran, Said, Scene, Seen};

use crate::plan::{Criterion, Findings, Mark, Plan, Plot};
use crate::verdict::Rule;
use crate::virtual_time::asked::{Asked, ask, lines, percent, said, wrongs};
use crate::virtual_time::{Figures, Size, Virtual, line};
use situations::{ODD, SITUATIONS, Situation};

pub(super) const EXPERIMENT: Virtual = Virtual {
    name: "regret",
    plan,
    run: answer,
};

/// How long shoppers come; the short set shows that each situation works.
const fn seconds(size: Size) -> u32 {
    size.pick(60, 30)
}

/// How many seeds each situation is played from.
const fn runs(size: Size) -> u64 {
    size.pick(30, 2)
}

/// Told apart from the sum of the others: a first tab's word that was true as it was said, and pages that no poll reaches.
const APART: [&str; 2] = ["tabs", "far"];

fn plan(size: Size) -> Plan {
    let mut criteria = Vec::new();
    for one in &SITUATIONS {
        // A first tab that was told the truth cannot know what its shopper does in another.
        let (figure, what) = if one.id == "tabs" {
            ("twice", "charged twice, or told of a success that was none")
        } else {
            ("wrongs", "told wrongly, or charged twice")
        };
        let (id, says) = (
            format!("{}-{figure}", one.id),
            format!("{what}: {}", one.name),
        );
        criteria.push(Criterion::new(one.name, &id, &says, Rule::exactly(0.0)));
    }
    criteria.extend([
        Criterion::new("brownout, timeout 5 s", "brown5-naive", "charged whom a page that calls a late answer a failure would tell so, % of the charged", Rule::Above { bound: 90.0 }),
        Criterion::new("usual", "usual-naive", "the same on a usual day, %", Rule::AtMost { most: 1.0 }),
        Criterion::new("usual", "usual-left", "still in doubt after the page's whole wait on a usual day, of 1,000", Rule::exactly(0.0)),
        Criterion::new("brownout: 20 s each", "brown-left", "the same in a brownout: the answer comes before 65 s", Rule::exactly(0.0)),
        Criterion::new("15 % of answers lost", "after-left", "the same where answers are lost", Rule::exactly(0.0)),
        Criterion::new(
            "half open a second tab, 20 a second",
            "tabs-outdated",
            "first tabs whose last word, no charge, the second tab's own payment outdated, of 1,000",
            Rule::Above { bound: 0.0 },
        )
        .finding(),
        Criterion::new(
            "brownout, networks of 3 s each way",
            "far-left",
            "still in doubt at the end where no poll comes back within its limit of 5 s, of 1,000 shoppers",
            Rule::Above { bound: 0.0 },
        )
        .finding(),
    ]);
    let odd = ODD.map(|(says, share)| format!("{} % {says}", share * 100.0));
    Plan {
        question: "What were shoppers shown against the gateway's truth, over all situations?"
            .to_owned(),
        setup: lines(&[
            &format!(
                "{} situations, each 50 shoppers/s for {} s as a Poisson process, settings as shipped unless it says otherwise",
                SITUATIONS.len(),
                seconds(size)
            ),
            &format!(
                "shoppers are the page's machine; {}; who is offered to pay again does so up to twice",
                odd.join(", ")
            ),
            "in two situations of their own: second tabs, whose first is not told what the second does, and networks slower than a poll's limit",
            "wrong: shown last that nothing was charged, and charged; shown last that it was paid, and not charged; charged more than once; by the gateway's own books at the end",
            "the other page: whoever has no answer that says paid within the response wait of 15 s is told that the payment failed",
            &format!(
                "{} runs of each, medians; the regret adds up all of them",
                runs(size)
            ),
        ]),
        valid_only_if: lines(&[
            "the gateway saw confirms",
            "shoppers came",
            "everything became known",
        ]),
        criteria,
    }
}

fn scene(one: &Situation, size: Size, seed: u64) -> Scene {
    Scene {
        seed,
        load: Load {
            seconds: seconds(size),
            arrivals: simulation::scene::Arrivals::Poisson,
            drain: Millis::from_secs(3_600),
            ..Load::default()
        },
        pg: (one.pg)(),
        server: (one.server)(),
        shoppers: (one.shoppers)(),
        ..Scene::default()
    }
}

/// Who was charged for the first confirm and looked on to the end. Who paid again was charged for that, and was told so.
fn stayed(seen: &Seen) -> bool {
    seen.charged > 0 && seen.again == 0 && !seen.left
}

/// Whom of these the other page would have told of a failure.
fn deceived(seen: &Seen) -> bool {
    let wait = Times::DEFAULT.page.response_wait;
    let in_time = seen.answered.is_some_and(|took| took <= wait);
    stayed(seen) && !(seen.said == Some(Said::Paid) && in_time)
}

fn figures(ran: &Ran) -> Figures {
    let regret = ran.regret;
    let shoppers = ran.seen.len() as u64;
    let per_mille = |count: u64| 10.0 * percent(count, shoppers);
    vec![
        ("wrongs", wrongs(ran)),
        (
            "twice",
            (regret.double_charges + regret.false_successes) as f64,
        ),
        ("outdated", per_mille(regret.false_failures)),
        ("sold", ran.sold() as f64),
        ("in-doubt", per_mille(regret.in_doubt)),
        ("left", per_mille(regret.left_in_doubt)),
        (
            "doubt-mean",
            regret.doubt_ms as f64 / 1_000.0 / regret.in_doubt.max(1) as f64,
        ),
        ("doubt-longest", regret.longest_doubt_ms as f64 / 1_000.0),
        ("naive", percent(ran.count(deceived), ran.count(stayed))),
    ]
}

fn answer(size: Size) -> Findings {
    let mut findings = Findings::default();
    let mut drawn = [Vec::new(), Vec::new(), Vec::new()];
    for (place, one) in SITUATIONS.iter().enumerate() {
        let asked = Asked {
            runs: runs(size),
            ..Asked::new(one.name, one.id, size)
        };
        let before = findings.regret;
        ask(
            &mut findings,
            &asked,
            |seed| scene(one, size, seed),
            |ran, _| figures(ran),
        );
        if APART.contains(&one.id) {
            findings.regret = before;
        }
        for (points, figure) in drawn.iter_mut().zip(["wrongs", "naive", "doubt-mean"]) {
            let value = findings
                .value(&format!("{}-{figure}", one.id))
                .unwrap_or(f64::NAN);
            points.push(((place + 1) as f64, value));
        }
    }
    let [wrong, naive, doubt] = drawn;
    let names: Vec<_> = SITUATIONS
        .iter()
        .enumerate()
        .map(|(place, one)| format!("{} {}", place + 1, one.name))
        .collect();
    findings.plots.push(Plot {
        title: format!("What a page that calls a late answer a failure would tell wrongly, and how long ours is in doubt instead. Situations: {}", names.join("; ")),
        across: "situation".to_owned(),
        up: "% of the charged; seconds".to_owned(),
        log_across: false,
        lines: vec![
            line("told of a failure by the other page and charged, %", Mark::Bars, naive),
            line("told wrongly by ours", Mark::Dots, wrong),
            line("time in doubt by ours, mean, s", Mark::Dots, doubt),
        ],
    });
    let regret = findings.regret.unwrap_or_default();
    let of = |id: &str| said(&findings, id);
    let hours = regret.doubt_ms as f64 / 3_600_000.0;
    findings.answer = Some(format!(
        "Of {} shoppers in {} situations, {} were shown a failure and charged, {} were shown a success and not charged, and {} were charged twice. The price is doubt: {} were told for a while that nobody knows ({:.0} hours in all, the longest {} s), and {} still were when the page's 65 s were over. A page that calls a late answer a failure would have told {} % of the charged so in a brownout with a timeout of 5 s, {} % with the shipped 60 s, {} % where 15 % of answers are lost without a resend and {} % with it, and {} % on a usual day. Told apart: of 1,000 shoppers half of whom open a second tab, {} had a first tab whose word, true as it was said, their second outdated by paying; and where a round trip outlasts a poll's limit of 5 s, {} of 1,000 were left in doubt in a brownout.",
        regret.shoppers,
        SITUATIONS.len() - APART.len(),
        regret.false_failures,
        regret.false_successes,
        regret.double_charges,
        regret.in_doubt,
        hours,
        regret.longest_doubt_ms / 1_000,
        regret.left_in_doubt,
        of("brown5-naive"),
        of("brown-naive"),
        of("after-off-naive"),
        of("after-naive"),
        of("usual-naive"),
        of("tabs-outdated"),
        of("far-left"),
    ));
    findings
}
