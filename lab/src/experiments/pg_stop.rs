//! A gateway that stops for minutes (measurements, open question 10): what the cap alone refuses, and what a circuit saves.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use payment::wire::ProblemCode;
use serde_json::json;

use super::{Experiment, answers, lines, pages, pictures, refusals};
use crate::harness::regret;
use crate::harness::sampler::Sampler;
use crate::harness::validity::{self, Ended, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, soon};
use crate::plan::{Condition, Criterion, Findings, Line, Plan};
use crate::shopper::Seen;
use crate::stats::{refused_share, rounded, share, whole_holds};
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "pg-stop",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// Confirms a second (open question 10).
const RATE: u32 = 50;
/// The shipped cap and PG timeout: how long a stopped gateway holds a slot.
const CAP: u32 = 40;
const HOLD_SECONDS: f64 = 60.0;
/// So many paid in a row are called flowing.
const FLOWING: usize = 5;
/// Of how many seconds each mean of held slots is.
const SPAN: Duration = Duration::from_secs(10);

/// When what happens, in seconds from the first arrival.
#[derive(Debug, Clone, Copy)]
struct Course {
    stop: u32,
    resume: u32,
    end: u32,
}

fn course(lab: &Lab) -> Course {
    let stop = lab.pick(20, 4);
    let resume = stop + lab.pick(180, 64);
    // Longer than the PG timeout even in a quick run: before it nothing becomes unknown.
    Course {
        stop,
        resume,
        end: resume + lab.pick(60, 16),
    }
}

fn plan(lab: &Lab) -> Plan {
    let course = course(lab);
    let formula = 100.0 * refused_share(CAP, RATE, HOLD_SECONDS);
    let share = Rule::Within {
        target: rounded(formula),
        tolerance: 1.0,
    };
    Plan {
        question: "When the gateway stops for minutes, what does the circuit save, and how soon do payments flow again?".to_owned(),
        setup: lines(&[
            &format!("{RATE} confirms/s evenly spaced for {} s, pages at their shipped times, all settings as shipped", course.end),
            &format!("from {} s to {} s the gateway accepts every call and answers none", course.stop, course.resume),
            "refusals while it stands are counted over whole multiples of the hold, which is the PG timeout of 60 s",
            "JARI_CIRCUIT on and off",
        ]),
        valid_only_if: guard(&["payments became unknown"]),
        criteria: vec![
            Criterion::new("circuit on", "opens", "from the stop to the first refusal by the circuit, s", Rule::AtMost { most: 40.0 }),
            Criterion::new("circuit on", "flows-on", "from the gateway's return until 5 in a row are paid, s", Rule::AtMost { most: 15.0 }),
            Criterion::new("circuit off", "flows-off", "the same without the circuit, s", Rule::AtMost { most: 15.0 }).finding(),
            Criterion::new("circuit off", "refused-off", "refused while it stood, %", share)
                .published("98.7 % by formula: 1 − 40 ÷ (50 × 60)"),
            Criterion::new("circuit on", "unknown-saved", "payments made unknown: with the circuit ÷ without", Rule::AtMost { most: 1.0 })
                .and("circuit off")
                .finding(),
            regret::criterion(["circuit on", "circuit off"]),
        ],
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let (mut unknown, mut slots, mut known) = ([0.0; 2], Vec::new(), Vec::new());
    for (place, circuit) in ["on", "off"].into_iter().enumerate() {
        let (count, of_slots, of_known) = measure(lab, circuit, &mut findings).await?;
        unknown[place] = count;
        slots.push(of_slots);
        known.push(of_known);
    }
    let [on, off] = unknown;
    findings.measure_if("unknown-saved", (off > 0.0).then(|| on / off));
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "The circuit opened {:.1} s after the stop and left {on} payments unknown instead of {off}; 5 in a row were paid {:.1} s after the gateway's return with it and {:.1} s without. The cap alone refused {:.1} % (98.7 % by formula).",
        of("opens"),
        of("flows-on"),
        of("flows-off"),
        of("refused-off")
    ));
    findings.plots.push(pictures::slots_plot(slots));
    findings.plots.push(pictures::known_plot(known));
    Ok(findings)
}

/// How many became unknown, the slots over time, and how soon shoppers knew.
async fn measure(
    lab: &Lab,
    circuit: &'static str,
    findings: &mut Findings,
) -> anyhow::Result<(f64, Line, Line)> {
    let stage = Stage::open(lab, &[("JARI_CIRCUIT", circuit)]).await?;
    let course = course(lab);
    let pace = Pace::steady(RATE, course.end);
    let orders = stage.prepare(pace.len()).await?;
    stage.gateway.set(&json!({})).await?;
    let start = soon();
    let sampler = Sampler::confirms_in_flight(&stage, Duration::from_millis(500));
    let (seen, moved) = tokio::join!(
        pages(&stage, &pace, start, orders),
        stop_and_resume(&stage, course, start)
    );
    let (seen, ()) = (seen?, moved?);
    let samples = sampler.end().await?;
    stage.gateway.expire_unconfirmed().await?;
    let mut condition = Condition::default();
    condition.figure("meanSlotsHeldPer10s", samples.means(start, SPAN));
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    let limit = Duration::from_secs(180);
    let ended = validity::end(stage, &mut condition, pace.len(), limit).await?;
    regret::note(seen.outcomes(), &ended.ledger, &mut condition, findings);
    judge(circuit, course, &seen, &ended, &mut condition, findings);
    let name = format!("circuit {circuit}");
    let slots = pictures::slots(&name, &samples, start);
    let known = pictures::known(&name, seen.outcomes());
    findings.add(name, condition);
    Ok((ended.books.ever_unknown as f64, slots, known))
}

async fn stop_and_resume(stage: &Stage, course: Course, start: Instant) -> anyhow::Result<()> {
    let at = |seconds: u32| start + Duration::from_secs(u64::from(seconds));
    tokio::time::sleep_until(at(course.stop).into()).await;
    let stop = json!({"stop": true, "operations": ["confirm", "get", "cancel"]});
    stage.gateway.set(&stop).await?;
    tokio::time::sleep_until(at(course.resume).into()).await;
    stage.gateway.set(&json!({})).await
}

fn judge(
    circuit: &str,
    course: Course,
    seen: &Driven<Seen>,
    ended: &Ended,
    condition: &mut Condition,
    findings: &mut Findings,
) {
    let unknown = ended.books.ever_unknown;
    condition.check("payments became unknown", unknown > 0, unknown);
    validity::latencies(condition, "confirmAnswers", &answers(seen.outcomes()));
    condition.figure("refusals", refusals(seen.outcomes()));
    let (stop, resume) = (f64::from(course.stop), f64::from(course.resume));
    let opens = opens_after(seen, stop);
    let flows = flows_after(seen, resume);
    let opened = ended.scrape.by("circuit_opened_total", "reason");
    condition.figure("circuitOpened", opened);
    condition.figure("secondsUntilCircuitRefused", opens.map(rounded));
    condition.figure("secondsUntilConfirmsFlow", flows.map(rounded));
    let counted = stop + whole_holds(resume - stop, HOLD_SECONDS);
    let during: Vec<_> = seen
        .arrived
        .iter()
        .filter(|(due, _)| (stop..counted).contains(&due.as_secs_f64()))
        .map(|(_, seen)| seen)
        .collect();
    let refused = during.iter().filter(|seen| seen.refused.is_some()).count() as u64;
    let percent = 100.0 * share(refused, during.len() as u64);
    condition.figure("refusedWhileItStoodPercent", rounded(percent));
    findings.measure(&format!("flows-{circuit}"), flows.unwrap_or(f64::INFINITY));
    if circuit == "on" {
        findings.measure("opens", opens.unwrap_or(f64::INFINITY));
    } else {
        findings.measure("refused-off", percent);
    }
}

/// Seconds from a moment of the run until the first refusal by the circuit.
fn opens_after(seen: &Driven<Seen>, moment: f64) -> Option<f64> {
    let refused = seen
        .arrived
        .iter()
        .filter(|(_, seen)| seen.refused == Some(ProblemCode::CircuitOpen));
    let answered = refused.filter_map(|(due, seen)| Some((*due + seen.answered?).as_secs_f64()));
    let first = answered
        .filter(|at| *at >= moment)
        .fold(f64::INFINITY, f64::min);
    first.is_finite().then_some(first - moment)
}

/// Seconds from a moment of the run until the first of some shoppers in a row whose confirms were all answered paid.
fn flows_after(seen: &Driven<Seen>, moment: f64) -> Option<f64> {
    let later = seen
        .arrived
        .iter()
        .filter(|(due, _)| due.as_secs_f64() >= moment);
    let later: Vec<_> = later.collect();
    let mut rows = later.windows(FLOWING);
    let flowing = rows.find(|row| row.iter().all(|(_, seen)| seen.paid))?;
    flowing.first().map(|(due, _)| due.as_secs_f64() - moment)
}

#[cfg(test)]
mod tests {
    use payment::view::Stage as Page;

    use super::*;
    use crate::stats::Latencies;

    /// One arrival a second.
    fn driven(seen: &[(bool, Option<ProblemCode>)]) -> Driven<Seen> {
        let one = |(index, &(paid, refused)): (usize, &(bool, Option<ProblemCode>))| {
            let seen = Seen {
                stage: Page::Paid,
                answered: Some(Duration::from_millis(500)),
                paid,
                refused,
                ..Seen::nothing("order")
            };
            (Duration::from_secs(index as u64), seen)
        };
        Driven {
            arrived: seen.iter().enumerate().map(one).collect(),
            late: Latencies::default(),
        }
    }

    #[test]
    fn flowing_is_the_first_of_five_in_a_row_after_the_moment() {
        let mut paid = vec![(true, None); 12];
        paid[4].0 = false;
        assert_eq!(flows_after(&driven(&paid), 2.0), Some(3.0));
        assert_eq!(flows_after(&driven(&paid), 8.0), None);
    }

    #[test]
    fn the_circuit_opens_with_its_first_refusal_after_the_stop() {
        let mut seen = vec![(false, Some(ProblemCode::PgCapReached)); 6];
        assert_eq!(opens_after(&driven(&seen), 1.0), None);
        seen[3].1 = Some(ProblemCode::CircuitOpen);
        assert_eq!(opens_after(&driven(&seen), 1.0), Some(2.5));
    }
}
