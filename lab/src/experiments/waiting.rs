//! Thousands of shoppers who wait and poll (measurements, open question 15): what each of them costs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{Experiment, lines};
use crate::harness::process::Usage;
use crate::harness::validity::{self, guard};
use crate::harness::{Lab, Stage};
use crate::plan::{Condition, Criterion, Findings, Plan};
use crate::pollers::{Input, Output, Waiting};
use crate::raw::confirm;
use crate::shopper::Prepared;
use crate::stats::rounded;
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "waiting",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "polls";
/// The page's shipped step, ms.
const STEP_MS: u64 = 2_000;
/// How many confirms are lost at once while the unknowns are made: half the cap.
const CONFIRMING: usize = 20;
/// How long recovery's back-off grows before anything is measured, full and quick, in seconds: 1, 2, 4, … s, then 60 s
/// apart.
const BACK_OFF: (u32, u32) = (130, 8);
/// For the last census of the unknowns, which is taken once a second.
const CENSUS_LIMIT: Duration = Duration::from_secs(30);

fn shoppers(lab: &Lab) -> u32 {
    lab.shoppers.unwrap_or_else(|| lab.pick(10_000, 500))
}

fn plan(lab: &Lab) -> Plan {
    let rule = |most| Rule::AtMost { most };
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    Plan {
        question: "What do thousands of waiting shoppers cost who poll every 2 s?".to_owned(),
        setup: lines(&[
            &format!(
                "{} shoppers with an unknown payment each poll every 2 s for {} s, phases spread uniformly",
                shoppers(lab),
                lab.pick(60, 8)
            ),
            "one kept connection each, with cookie and If-None-Match, from a process of its own",
            "made unknown by calls that the gateway resets; then the gateway resets inquiries too, so that recovery backs off",
            "JARI_RESEND=off, JARI_CIRCUIT=off (10,000 lost calls would open it), all else as shipped",
        ]),
        valid_only_if: guard(&[
            "every shopper's payment is unknown before and after the polls",
            "p99 of the polls' own lateness is at most 100 ms",
        ]),
        criteria: vec![
            one(
                "unanswered",
                "polls answered other than 200, 304 or 503",
                Rule::exactly(0.0),
            ),
            one(
                "rss-each",
                "memory of the server for each waiting shopper, KiB",
                rule(64.0),
            ),
            one(
                "p99",
                "p99 of polls from their intended start, ms",
                rule(250.0),
            )
            .finding(),
            one(
                "cpu-each",
                "CPU of the server for 1,000 polls, less what recovery took before and after them, ms",
                rule(400.0),
            )
            .finding(),
        ],
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut condition = Condition::default();
    let stage = Stage::open(lab, &[("JARI_RESEND", "off"), ("JARI_CIRCUIT", "off")]).await?;
    let shoppers = shoppers(lab) as usize;
    let orders = stage.prepare(shoppers).await?;
    make_unknown(&stage, &orders, &mut condition).await?;
    stage.gateway.set(&json!({"up": false})).await?;
    all_unknown(&stage, shoppers, "before", &mut condition).await?;
    let (full, short) = BACK_OFF;
    tokio::time::sleep(seconds(lab.pick(full, short))).await;
    let before = stage.scrape().await?;
    let ran = poll(lab, &stage, &orders).await?;
    all_unknown(&stage, shoppers, "after", &mut condition).await?;
    judge(shoppers, &ran, &mut condition, &mut findings);
    let scrape = stage.scrape().await?;
    condition.figure("shed", scrape.by("http_shed_total", "class"));
    let mut sources = scrape.by("poll_answers_total", "source");
    for (source, count) in before.by("poll_answers_total", "source") {
        *sources.entry(source).or_default() -= count;
    }
    condition.figure("pollAnswers", sources);
    stage.gateway.expire_unconfirmed().await?;
    validity::end(stage, &mut condition, shoppers, Duration::from_secs(400)).await?;
    let of = |id: &str| findings.value(id).unwrap_or(f64::NAN);
    findings.answer = Some(format!(
        "{shoppers} shoppers who poll every 2 s cost {:.0} ms of CPU for 1,000 polls and {:.1} KiB of memory each; p99 of their answers {:.1} ms, {} polls unanswered.",
        of("cpu-each"),
        of("rss-each"),
        of("p99"),
        of("unanswered")
    ));
    findings.add(CONDITION, condition);
    Ok(findings)
}

async fn make_unknown(
    stage: &Stage,
    orders: &[Prepared],
    condition: &mut Condition,
) -> anyhow::Result<()> {
    stage
        .gateway
        .set(&json!({"loss": {"ratio": 1, "when": "before"}}))
        .await?;
    let statuses: Vec<_> = stream::iter(orders)
        .map(|order| confirm(&stage.client, &stage.shop, order, None, Instant::now()))
        .buffer_unordered(CONFIRMING)
        .map(|answer| answer.status)
        .collect()
        .await;
    let other = statuses
        .iter()
        .filter(|status| **status != Some(202))
        .count();
    condition.check(
        "every confirm was answered 202",
        other == 0,
        format!("{other} others"),
    );
    Ok(())
}

/// Waits for the census to count every shopper's payment as unknown, and checks that it did.
async fn all_unknown(
    stage: &Stage,
    shoppers: usize,
    when: &str,
    condition: &mut Condition,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut unknown = 0.0;
    while started.elapsed() < CENSUS_LIMIT {
        unknown = stage.scrape().await?.sum("payments_unknown", &[]);
        if (unknown - shoppers as f64).abs() < 0.5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = (unknown - shoppers as f64).abs() < 0.5;
    condition.check(&format!("all are unknown {when} the polls"), all, unknown);
    Ok(())
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

/// CPU of the server without polls, in cores: recovery works all the while.
async fn still_cores(lab: &Lab, stage: &Stage) -> anyhow::Result<f64> {
    let span = seconds(lab.pick(10, 3));
    let before = stage.jari.usage()?;
    tokio::time::sleep(span).await;
    let spent = stage.jari.usage()?.cpu_seconds - before.cpu_seconds;
    Ok(spent / span.as_secs_f64())
}

/// The server before the connections, connected, and at the end; and what the shoppers saw.
struct Ran {
    alone: Usage,
    connected: Usage,
    end: Usage,
    took: Duration,
    saw: Output,
    /// CPU without polls before and after, in cores.
    still: [f64; 2],
}

async fn poll(lab: &Lab, stage: &Stage, orders: &[Prepared]) -> anyhow::Result<Ran> {
    let waiting = |order: &Prepared| Waiting {
        path: format!("/api/orders/{}", order.order.order_id),
        cookie: order.cookie.clone(),
    };
    let input = Input {
        addr: stage.shop.trim_start_matches("http://").parse()?,
        seconds: u64::from(lab.pick(60, 8)),
        interval_ms: STEP_MS,
        shoppers: orders.iter().map(waiting).collect(),
    };
    let file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(&file, &input)?;
    let still_before = still_cores(lab, stage).await?;
    let alone = stage.jari.usage()?;
    let mut pollers = Pollers::start(file.path())?;
    ensure!(
        pollers.line().await? == "ready",
        "the pollers are not ready"
    );
    let connected = stage.jari.usage()?;
    let began = Instant::now();
    pollers.begin().await?;
    let saw = serde_json::from_str(&pollers.line().await?)?;
    let (took, end) = (began.elapsed(), stage.jari.usage()?);
    let still_after = still_cores(lab, stage).await?;
    pollers.end().await?;
    Ok(Ran {
        alone,
        connected,
        end,
        took,
        saw,
        still: [still_before, still_after],
    })
}

fn judge(shoppers: usize, ran: &Ran, condition: &mut Condition, findings: &mut Findings) {
    let saw = &ran.saw;
    condition.check("polls were made", saw.polls > 0, saw.polls);
    condition.check("p95 and share agree", saw.agree, saw.agree);
    let seen = format!("p99 {} ms late", rounded(saw.late_p99_ms));
    condition.check("the polls began in time", saw.late_p99_ms <= 100.0, seen);
    let expected = |status: &&String| matches!(status.as_str(), "200" | "304" | "503");
    let answered: u64 = saw
        .answers
        .iter()
        .filter(|(status, _)| expected(status))
        .map(|(_, n)| n)
        .sum();
    findings.measure("unanswered", saw.polls.saturating_sub(answered) as f64);
    findings.measure("p99", saw.p99_ms);
    let cpu = ran.end.cpu_seconds - ran.connected.cpu_seconds;
    let still = f64::midpoint(ran.still[0], ran.still[1]) * ran.took.as_secs_f64();
    let thousands = saw.polls.max(1) as f64 / 1_000.0;
    findings.measure("cpu-each", (cpu - still) * 1_000.0 / thousands);
    let grown = ran.end.rss_kib.saturating_sub(ran.alone.rss_kib) as f64;
    findings.measure("rss-each", grown / shoppers as f64);
    condition.figure("polls", saw.polls);
    condition.figure("answers", &saw.answers);
    condition.figure("pollP50Ms", rounded(saw.p50_ms));
    condition.figure("pollP99Ms", rounded(saw.p99_ms));
    let percent = 100.0 * cpu / ran.took.as_secs_f64();
    condition.figure("serverCpuPercent", rounded(percent));
    let still = ran.still.map(|cores| rounded(100.0 * cores));
    condition.figure("serverCpuPercentBeforeAndAfterPolls", still);
    let gross = cpu * 1_000.0 / thousands;
    condition.figure("serverCpuMsPer1000PollsWithRecovery", rounded(gross));
    condition.figure("serverRssKibBefore", ran.alone.rss_kib);
    condition.figure("serverRssKibConnected", ran.connected.rss_kib);
    condition.figure("serverRssKibAfter", ran.end.rss_kib);
    condition.figure(
        "bytesPerWaitingShopper",
        rounded(grown * 1_024.0 / shoppers as f64),
    );
    condition.figure("clientCpuSeconds", rounded(saw.cpu_seconds));
}

/// The process of the shoppers.
struct Pollers {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Pollers {
    fn start(input: &std::path::Path) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["pollers", "--input"])
            .arg(input)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting the pollers")?;
        let said = child.stdout.take().context("the pollers have no output")?;
        Ok(Self {
            child,
            said: BufReader::new(said).lines(),
        })
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        self.said
            .next_line()
            .await?
            .context("the pollers ended early")
    }

    async fn begin(&mut self) -> anyhow::Result<()> {
        let input = self
            .child
            .stdin
            .as_mut()
            .context("the pollers take no input")?;
        input.write_all(b"go\n").await?;
        Ok(input.flush().await?)
    }

    /// Ends its input, on which it ends, and waits for that.
    async fn end(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().await?;
        ensure!(status.success(), "the pollers ended with {status}");
        Ok(())
    }
}
