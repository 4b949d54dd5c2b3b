//! Clients that never finish a request, beside shoppers who pay: whether the ones cost the others anything.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::FutureExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{Experiment, answers, lines, pages, pictures, refusals};
use crate::harness::regret;
use crate::harness::validity::{self, guard};
use crate::harness::{Lab, Stage};
use crate::pace::{Driven, Pace, drive, soon};
use crate::plan::{BUSY, Condition, Criterion, Findings, Plan};
use crate::stats::Latencies;
use crate::verdict::Rule;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "slow-heads",
    plan,
    run: |lab| run(lab).boxed_local(),
};

/// The only condition.
const CONDITION: &str = "slow clients";
/// Between two bytes of a slow client.
const BYTE_STEP: Duration = Duration::from_millis(500);
/// A client that could not connect tries again so much later.
const AGAIN: Duration = Duration::from_millis(100);
/// How long all of them may take to connect.
const GATHERING: Duration = Duration::from_secs(30);
/// Confirms a second.
const RATE: u32 = 10;

/// New orders a second: the slow bodies are orders too.
const ORDER_RATE: u32 = 5;

/// What a slow client never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slow {
    Head,
    Body,
}

impl Slow {
    /// What is sent at once.
    const fn begins(self) -> &'static str {
        match self {
            Self::Head => "G",
            Self::Body => {
                "POST /api/orders HTTP/1.1\r\nHost: slow\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{"
            }
        }
    }

    /// What is sent a byte at a time; the last byte again and again.
    const fn goes_on(self) -> &'static [u8] {
        match self {
            Self::Head => b"ET / HTTP/1.1\r\nHost: slow\r\nX-Slow: a",
            Self::Body => b" ",
        }
    }
}

fn plan(lab: &Lab) -> Plan {
    let one = |id: &str, says: &str, rule| Criterion::new(CONDITION, id, says, rule);
    let within = |target, tolerance| Rule::Within { target, tolerance };
    Plan {
        question: "Do clients that never finish a request cost paying shoppers anything?"
            .to_owned(),
        setup: lines(&[
            &format!(
                "{} connections send a request's head and {} a body, a byte every 0.5 s, and open again when closed",
                lab.pick(2_000, 200),
                lab.pick(200, 20)
            ),
            &format!(
                "beside them {RATE} confirms/s for {} s by pages at their shipped times and {ORDER_RATE} new orders/s, a healthy gateway",
                lab.pick(20, 13)
            ),
            "all settings as shipped: a head must be complete within 10 s (spec section 7)",
        ]),
        valid_only_if: guard(&["every slow client was connected before the first confirm"]),
        criteria: vec![
            one(
                "unpaid",
                "confirms not answered as paid",
                Rule::exactly(0.0),
            ),
            one("orders-refused", "new orders not made", Rule::exactly(0.0)).finding(),
            one(
                "head-life",
                "median life of a connection with a slow head, s",
                within(10.0, 1.0),
            ),
            one(
                "p99",
                "p99 of the confirms' answers, ms",
                Rule::AtMost { most: 250.0 },
            )
            .finding()
            .because(BUSY),
            regret::criterion([CONDITION]),
        ],
    }
}

async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut condition = Condition::default();
    let stage = Stage::open(lab, &[]).await?;
    let pace = Pace::steady(RATE, lab.pick(20, 13));
    let orders = stage.prepare(pace.len()).await?;
    stage.gateway.set(&json!({})).await?;
    let crowd = Crowd::gather(lab, &stage).await?;
    let start = soon();
    let buying = Pace::steady(ORDER_RATE, pace.seconds());
    let (seen, bought) = tokio::join!(
        pages(&stage, &pace, start, orders),
        buy(&stage, &buying, start)
    );
    let (seen, bought) = (seen?, bought?);
    let (heads, bodies) = crowd.leave().await?;
    validity::arrivals(&mut condition, "confirms", pace.len(), &seen);
    validity::arrivals(&mut condition, "orders", buying.len(), &bought);
    let made = bought
        .outcomes()
        .filter(|status| **status == Some(201))
        .count();
    findings.measure("orders-refused", (buying.len() - made) as f64);
    condition.figure("orderAnswers", by_status(bought.outcomes()));
    let took = answers(seen.outcomes());
    validity::latencies(&mut condition, "confirmAnswers", &took);
    condition.figure("refusals", refusals(seen.outcomes()));
    condition.figure("headConnectionsClosedByTheServer", heads.summary());
    condition.figure("bodyConnectionsClosedByTheServer", bodies.summary());
    condition.check("slow heads were closed", heads.len() > 0, heads.len());
    let unpaid = seen.outcomes().filter(|seen| !seen.paid).count();
    findings.measure("unpaid", unpaid as f64);
    findings.measure_if("p99", took.percentile_ms(99.0));
    findings.measure_if(
        "head-life",
        heads.percentile_ms(50.0).map(|ms| ms / 1_000.0),
    );
    let ended = validity::end(
        stage,
        &mut condition,
        pace.len() + made,
        Duration::from_secs(60),
    )
    .await?;
    regret::note(
        seen.outcomes(),
        &ended.ledger,
        &mut condition,
        &mut findings,
    );
    let known = pictures::known("beside slow clients", seen.outcomes());
    findings.plots.push(pictures::known_plot(vec![known]));
    findings.answer = Some(format!(
        "No: {unpaid} of {} confirms were not paid, p99 of their answers {:.1} ms; the server closed a slow head after {:.1} s (median).",
        pace.len(),
        took.percentile_ms(99.0).unwrap_or(f64::NAN),
        heads.percentile_ms(50.0).unwrap_or(f64::NAN) / 1_000.0
    ));
    findings.add(CONDITION, condition);
    Ok(findings)
}

/// Makes new orders at a pace, as shoppers do before they pay, and gives the status of each answer.
async fn buy(stage: &Stage, pace: &Pace, start: Instant) -> anyhow::Result<Driven<Option<u16>>> {
    let (client, shop) = (stage.client.clone(), stage.shop.clone());
    let body = json!({"items": [{"sku": "mug", "quantity": 1}]});
    let order = move |(), _| {
        let request = client.post(format!("{shop}/api/orders")).json(&body);
        async move { Some(request.send().await.ok()?.status().as_u16()) }
    };
    drive(pace, start, std::iter::repeat(()), order).await
}

/// How many answers had each status; `lost` had none.
fn by_status<'a>(answers: impl Iterator<Item = &'a Option<u16>>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for status in answers {
        let name = status.map_or_else(|| "lost".to_owned(), |status| status.to_string());
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// The slow clients.
struct Crowd {
    leave: watch::Sender<bool>,
    clients: Vec<(Slow, JoinHandle<Vec<Duration>>)>,
}

impl Crowd {
    /// Starts all of them and waits until each is connected.
    async fn gather(lab: &Lab, stage: &Stage) -> anyhow::Result<Self> {
        let addr = stage.shop.trim_start_matches("http://").parse()?;
        let (leave, left) = watch::channel(false);
        let (tell, mut connected) = mpsc::unbounded_channel();
        let heads = std::iter::repeat_n(Slow::Head, lab.pick(2_000, 200) as usize);
        let bodies = std::iter::repeat_n(Slow::Body, lab.pick(200, 20) as usize);
        let start = |slow| {
            (
                slow,
                tokio::spawn(client(slow, addr, left.clone(), tell.clone())),
            )
        };
        let clients: Vec<_> = heads.chain(bodies).map(start).collect();
        let all_connected = async {
            for _ in &clients {
                connected
                    .recv()
                    .await
                    .context("a slow client ended early")?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(GATHERING, all_connected)
            .await
            .context("the slow clients could not all connect")??;
        Ok(Self { leave, clients })
    }

    /// Ends all of them, and gives how long the server kept the connections that it closed: heads and bodies.
    async fn leave(self) -> anyhow::Result<(Latencies, Latencies)> {
        let _ = self.leave.send(true);
        let (mut heads, mut bodies) = (Vec::new(), Vec::new());
        for (slow, client) in self.clients {
            let lives = client.await.context("a slow client")?;
            match slow {
                Slow::Head => heads.extend(lives),
                Slow::Body => bodies.extend(lives),
            }
        }
        Ok((Latencies::of(heads), Latencies::of(bodies)))
    }
}

/// Connects again and again until it shall leave; tells when it is connected for the first time, and gives how long each
/// connection lived that the server closed.
async fn client(
    slow: Slow,
    addr: SocketAddr,
    mut left: watch::Receiver<bool>,
    tell: mpsc::UnboundedSender<()>,
) -> Vec<Duration> {
    let mut lives = Vec::new();
    let mut tell = Some(tell);
    let whole = async {
        loop {
            let Ok(stream) = TcpStream::connect(addr).await else {
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            if let Some(tell) = tell.take() {
                // Nobody listens any more when the run is over already.
                let _ = tell.send(());
            }
            let connected = Instant::now();
            drip(stream, slow).await;
            lives.push(connected.elapsed());
        }
    };
    tokio::select! {
        () = whole => {}
        _ = left.wait_for(|left| *left) => {}
    }
    lives
}

/// Sends a byte at a time until the server closes.
async fn drip(stream: TcpStream, slow: Slow) {
    let (mut answers, mut sends) = stream.into_split();
    let send = async {
        let mut sent = sends.write_all(slow.begins().as_bytes()).await;
        let mut rest = slow.goes_on();
        while sent.is_ok() {
            tokio::time::sleep(BYTE_STEP).await;
            let (byte, later) = rest.split_at(1);
            sent = sends.write_all(byte).await;
            if !later.is_empty() {
                rest = later;
            }
        }
    };
    let closed = async {
        let mut answer = [0; 512];
        while matches!(answers.read(&mut answer).await, Ok(read) if read > 0) {}
    };
    tokio::select! {
        () = send => {}
        () = closed => {}
    }
}
