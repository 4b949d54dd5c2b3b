//! The production port to gateways over a scene's gateway, as one node holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use payment::attempt::Finding;
use payment::id::GatewayName;
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost, NotSent};
use payment::time::Millis;
use server::gateway::webhook::Notice;
use server::gateway::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    OpenOutcome, PaymentNames, Told, WebhookKind, WebhookProof, WindowRequest,
};
use tokio::time::timeout;

use super::bank::{Bank, Known, Reply, Wire};
use crate::gateway::{name, plain};
use crate::nodes::Life;

/// How long an inquiry is waited for, as the production adapter does.
const INQUIRY_LIMIT: Duration = Duration::from_secs(10);

const WEBHOOKS: [WebhookKind; 1] = [WebhookKind {
    name: "PAYMENT_STATUS_CHANGED",
    proof: WebhookProof::Hint,
}];

pub(super) struct ScenePort {
    bank: Arc<Bank>,
    life: Life,
    name: GatewayName,
    capabilities: Capabilities,
    pg_timeout: Millis,
    in_flight: Arc<InFlight>,
}

/// Confirms in flight of all nodes, counted apart from their slots, so that those cannot vouch for themselves.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    now: AtomicU32,
    most: AtomicU32,
}

impl InFlight {
    pub(super) fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }

    fn begin(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn end(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ScenePort {
    pub(super) fn new(
        bank: Arc<Bank>,
        life: Life,
        pg_timeout: Millis,
        in_flight: Arc<InFlight>,
    ) -> Self {
        let pg = bank.pg();
        let capabilities = Capabilities {
            // What the server believes: a gateway that breaks this promise is an experiment of its own.
            idempotency: Some(Millis::from_secs(14 * 86_400)),
            inquiry_by_order: true,
            opens_by_call: false,
            confirm_window: pg.confirm_window,
            partial_cancel: true,
            platform_timeout: None,
            webhooks: &WEBHOOKS,
            deposits: false,
        };
        Self {
            bank,
            life,
            name: name(),
            capabilities,
            pg_timeout,
            in_flight,
        }
    }
}

fn told(status: Option<u16>) -> Told {
    Told {
        status,
        code: "scene".to_owned(),
        ..Told::default()
    }
}

fn charge(charged: u64, back: u64) -> Finding {
    let won = |amount| {
        i64::try_from(amount)
            .ok()
            .and_then(|amount| Won::new(amount).ok())
            .unwrap_or(Won::ZERO)
    };
    Finding::Charged {
        charged: Money::won(won(charged)),
        canceled: won(back),
    }
}

fn outcome(reply: Reply) -> ConfirmOutcome {
    let found = |finding| ConfirmOutcome::Found(finding, told(Some(200)));
    match reply {
        Reply::Charged(charged) => found(charge(charged, 0)),
        Reply::Declined => found(Finding::Declined(Decline::CardRefused)),
        Reply::Lapsed => found(Finding::Declined(Decline::SessionExpired)),
        Reply::TooMany => ConfirmOutcome::Refused(told(Some(429))),
        Reply::InProgress => ConfirmOutcome::Lost(Lost::InProgress, told(Some(409))),
        Reply::Reset => ConfirmOutcome::Lost(Lost::Reset, told(None)),
        Reply::NotConnected => ConfirmOutcome::NotSent(NotSent::Connect),
    }
}

fn finding(known: Known) -> Finding {
    match known {
        Known::Nothing => Finding::NotFound { settled: false },
        Known::Pending => Finding::Pending { settled: false },
        Known::Declined => Finding::Declined(Decline::CardRefused),
        Known::Lapsed => Finding::Lapsed,
        Known::Charged(charged, back) => charge(charged, back),
    }
}

#[async_trait]
impl Gateway for ScenePort {
    fn name(&self) -> &GatewayName {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open(&self, _request: &WindowRequest) -> OpenOutcome {
        OpenOutcome::NoAnswer(told(None))
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        self.life.hold().await;
        let wire = Wire {
            key: call.payment_key.as_str().to_owned(),
            amount: plain(call.amount),
            idem: call.idempotency_key.as_str().to_owned(),
        };
        self.in_flight.begin();
        let replied = timeout(self.pg_timeout.to_duration(), self.bank.confirm(wire)).await;
        tokio::time::sleep(self.bank.wire().to_duration()).await;
        self.in_flight.end();
        self.life.hold().await;
        match replied {
            Ok(reply) => outcome(reply),
            Err(_) => ConfirmOutcome::Lost(Lost::TimedOut, told(None)),
        }
    }

    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome {
        self.life.hold().await;
        let Some(key) = &payment.payment_key else {
            return InquiryOutcome::NoWord(told(None));
        };
        let known = timeout(INQUIRY_LIMIT, self.bank.inquire(key.as_str())).await;
        self.life.hold().await;
        match known {
            Ok(Some(known)) => InquiryOutcome::Found(finding(known), told(Some(200))),
            Ok(None) | Err(_) => InquiryOutcome::NoAnswer(told(None)),
        }
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        self.life.hold().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let gave = self
            .bank
            .give_back(call.payment_key.as_str(), call.idempotency_key.as_str());
        match gave {
            Some(known) => CancelOutcome::Found(finding(known), told(Some(200))),
            None => CancelOutcome::Unknown(told(Some(400))),
        }
    }

    fn notice(&self, body: &[u8]) -> Option<Notice> {
        server::gateway::toss::webhook::notice(body)
    }

    fn window_origins(&self) -> Vec<String> {
        Vec::new()
    }
}
