//! The production port to gateways, as one node holds it: what the wire brings becomes the port's outcomes. A dead node's
//! calls never return, and the gateway goes on with them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use payment::attempt::Finding;
use payment::id::{GatewayName, IdempotencyKey};
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost, NotSent};
use server::gateway::webhook::Notice;
use server::gateway::{
    CancelCall, CancelOutcome, Capabilities, ConfirmCall, ConfirmOutcome, Gateway, InquiryOutcome,
    OpenOutcome, PaymentNames, Told, WebhookKind, WebhookProof, Window, WindowRequest,
};
use tokio::time::timeout;

use crate::bank::{Back, Gave, Known, Reply, Wire};
use crate::bug::Bug;
use crate::fault::Fault;
use crate::ledger::Said;
use crate::nodes::Life;
use crate::world::{World, lock};

/// What it sends: hints.
const WEBHOOKS: [WebhookKind; 1] = [WebhookKind {
    name: "PAYMENT_STATUS_CHANGED",
    proof: WebhookProof::Hint,
}];

/// How long an inquiry or its answer is waited for.
const INQUIRY_LIMIT: Duration = Duration::from_secs(10);

/// The gateway's name.
pub(crate) fn name() -> GatewayName {
    GatewayName::parse("toss").expect("a plain word is a gateway's name")
}

/// The gateway as one process of a node sees it.
pub(crate) struct Port {
    world: Arc<World>,
    life: Life,
    name: GatewayName,
    capabilities: Capabilities,
}

impl Port {
    pub(crate) fn new(world: Arc<World>, life: Life) -> Self {
        let keyless = world.plan.keyless;
        let says_keys = !keyless || world.bug == Some(Bug::ResendWithoutKey);
        let capabilities = Capabilities {
            idempotency: says_keys.then(|| payment::time::Millis::from_secs(14 * 86_400)),
            inquiry_by_order: !keyless,
            opens_by_call: false,
            confirm_window: world.plan.times.confirm_window,
            partial_cancel: true,
            platform_timeout: None,
            webhooks: if keyless { &[] } else { &WEBHOOKS },
            deposits: false,
        };
        Self {
            world,
            life,
            name: name(),
            capabilities,
        }
    }

    /// The key on the wire: a planted bug gives the second send another.
    fn key_on_wire(&self, key: &IdempotencyKey) -> String {
        let again = lock(&self.world.ledger).was_sent(key.as_str());
        if again && self.world.bug == Some(Bug::NewKeyOnResend) {
            return format!("{key}-again");
        }
        key.as_str().to_owned()
    }

    async fn exchange(&self, wire: Wire) -> ConfirmOutcome {
        let world = &self.world;
        if world.strikes(Fault::ConnectRefused) {
            world
                .pause(1, world.plan.times.pg_connect_timeout.get())
                .await;
            return ConfirmOutcome::NotSent(NotSent::Connect);
        }
        let send = world.send_off(&wire);
        let amount = wire.amount;
        let work = tokio::spawn(Arc::clone(world).serve_confirm(send, wire));
        let reply = timeout(world.plan.times.pg_timeout.to_duration(), work).await;
        let reply = match reply {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => return lost(Lost::TimedOut),
        };
        let outcome = outcome(reply, amount);
        if reply == Reply::Silence {
            // Hangs until our own time-out; what was waited for already is neglected.
            tokio::time::sleep(world.plan.times.pg_timeout.to_duration()).await;
        }
        outcome
    }
}

fn lost(how: Lost) -> ConfirmOutcome {
    ConfirmOutcome::Lost(how, told(None))
}

fn told(status: Option<u16>) -> Told {
    Told {
        status,
        code: "simulated".to_owned(),
        alarm: false,
        given_back: None,
        running: Vec::new(),
        aborted: Vec::new(),
        deposit: None,
    }
}

/// A word that lists what was given back.
fn told_with(listed: Vec<String>) -> Told {
    Told {
        given_back: Some(listed),
        ..told(Some(200))
    }
}

fn outcome(reply: Reply, amount: u64) -> ConfirmOutcome {
    let found = |finding| ConfirmOutcome::Found(finding, told(Some(200)));
    match reply {
        Reply::Said(Said::Charged(charged)) => ConfirmOutcome::Found(
            charge(charged, 0),
            Told {
                alarm: charged != amount,
                ..told(Some(200))
            },
        ),
        Reply::Said(Said::Declined) => found(Finding::Declined(Decline::CardRefused)),
        Reply::Said(Said::Lapsed) => found(Finding::Declined(Decline::SessionExpired)),
        Reply::Said(Said::Processed) | Reply::Error => lost(Lost::Inconclusive),
        Reply::TooMany => ConfirmOutcome::Refused(told(Some(429))),
        Reply::InProgress => lost(Lost::InProgress),
        Reply::Garbled => lost(Lost::Unreadable),
        Reply::Broken => lost(Lost::Reset),
        Reply::Silence => lost(Lost::TimedOut),
    }
}

fn won(amount: u64) -> Won {
    i64::try_from(amount)
        .ok()
        .and_then(|amount| Won::new(amount).ok())
        .unwrap_or(Won::ZERO)
}

/// A whole number of won for the books.
pub(crate) fn plain(amount: Won) -> u64 {
    u64::try_from(amount.get()).unwrap_or(0)
}

fn charge(amount: u64, canceled: u64) -> Finding {
    Finding::Charged {
        charged: Money::won(won(amount)),
        canceled: won(canceled),
    }
}

fn finding(known: Known) -> Finding {
    match known {
        Known::Nothing => Finding::NotFound { settled: false },
        Known::Pending => Finding::Pending { settled: false },
        Known::Declined => Finding::Declined(Decline::CardRefused),
        Known::Lapsed => Finding::Lapsed,
        Known::Charged { amount, canceled } => charge(amount, canceled),
    }
}

#[async_trait]
impl Gateway for Port {
    fn name(&self) -> &GatewayName {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn confirm(&self, call: &ConfirmCall) -> ConfirmOutcome {
        self.life.hold().await;
        self.life.may_die(Fault::CrashBeforeCall).await;
        let wire = Wire {
            key: call.payment_key.as_str().to_owned(),
            order_id: call.gateway_order_id.as_str().to_owned(),
            amount: plain(call.amount),
            idem: self.key_on_wire(&call.idempotency_key),
        };
        let number = self
            .world
            .watch_send(self.life.who(), &wire.key, &wire.idem);
        if self.world.bug != Some(Bug::NewKeyOnResend) && self.world.bug != Some(Bug::SkipClaim) {
            self.world.check_claimed(&wire.key, &wire.idem);
        }
        let outcome = self.exchange(wire).await;
        self.life.hold().await;
        self.world.watch_ended(number);
        self.life.may_die(Fault::CrashBeforeAnswer).await;
        self.world.note(
            "gateway",
            format_args!(
                "node {} hears {} of {}",
                self.life.who().0,
                outcome.label(),
                call.payment_key
            ),
        );
        outcome
    }

    async fn open(&self, request: &WindowRequest) -> OpenOutcome {
        OpenOutcome::Opened {
            window: Window {
                desktop: request.success_url.clone(),
                mobile: request.success_url.clone(),
            },
            handle: None,
        }
    }

    async fn inquire(&self, payment: &PaymentNames) -> InquiryOutcome {
        self.life.hold().await;
        let world = &self.world;
        let Some(key) = &payment.payment_key else {
            return InquiryOutcome::Found(finding(Known::Nothing), told(Some(404)));
        };
        world.pause(1, 60).await;
        let stopped = lock(&world.nodes).bank_stopped;
        if stopped || world.strikes(Fault::InquiryLost) {
            tokio::time::sleep(if stopped {
                INQUIRY_LIMIT
            } else {
                INQUIRY_LIMIT / 10
            })
            .await;
            self.life.hold().await;
            return InquiryOutcome::NoAnswer(told(None));
        }
        if world.strikes(Fault::InquiryError) {
            self.life.hold().await;
            return InquiryOutcome::NoWord(told(Some(500)));
        }
        let mut known = world.look_up(key.as_str());
        let listed = world.given_back(key.as_str());
        if world.bug == Some(Bug::NotFoundIsFinal) && known == Known::Nothing {
            known = Known::Lapsed;
        }
        if world.strikes(Fault::InquirySlow) {
            world.pause(500, 9_000).await;
        }
        world.pause(1, 60).await;
        self.life.hold().await;
        world.note(
            "gateway",
            format_args!("node {} learns {key} is {known:?}", self.life.who().0),
        );
        world.watch_heard(key.as_str());
        InquiryOutcome::Found(finding(known), told_with(listed))
    }

    async fn cancel(&self, call: &CancelCall) -> CancelOutcome {
        self.life.hold().await;
        self.life.may_die(Fault::CrashBeforeCall).await;
        let world = &self.world;
        world.watch_cancel(call.payment_key.as_str());
        world.pause(1, 60).await;
        let stopped = lock(&world.nodes).bank_stopped;
        if stopped || world.strikes(Fault::CancelLost) {
            tokio::time::sleep(world.plan.times.pg_timeout.to_duration()).await;
            self.life.hold().await;
            return CancelOutcome::Unknown(told(None));
        }
        if world.strikes(Fault::CancelNotDone) {
            self.life.hold().await;
            return CancelOutcome::RetryWithNewKey(told(Some(400)));
        }
        if world.strikes(Fault::CancelRefused) {
            self.life.hold().await;
            return CancelOutcome::Refused(told(Some(403)));
        }
        let key = call.payment_key.as_str();
        let back = Back {
            amount: call.amount.map(plain),
            balance: call.balance.map(plain),
            reason: call.reason.clone(),
            idem: call.idempotency_key.as_str().to_owned(),
        };
        let gave = world.give_back(key, &back);
        let listed = world.given_back(key);
        world.pause(1, 60).await;
        self.life.hold().await;
        self.life.may_die(Fault::CrashBeforeAnswer).await;
        if world.strikes(Fault::CancelAnswerLost) {
            return CancelOutcome::Unknown(told(None));
        }
        match gave {
            Gave::Now { amount, canceled } => {
                world.watch_heard(key);
                let told = if world.plan.keyless {
                    told(Some(200))
                } else {
                    told_with(listed)
                };
                CancelOutcome::Found(charge(amount, canceled), told)
            }
            // Without keys, the lock refuses a repeat of what was carried out, in no other words than a mistake.
            Gave::AnotherBalance | Gave::Nothing if world.plan.keyless => {
                CancelOutcome::Refused(told(Some(400)))
            }
            Gave::AnotherBalance => CancelOutcome::RetryWithNewKey(told(Some(400))),
            Gave::Nothing => CancelOutcome::Unknown(told(Some(400))),
        }
    }

    fn notice(&self, body: &[u8]) -> Option<Notice> {
        // What it sends is made as Toss's is.
        server::gateway::toss::webhook::notice(body)
    }

    fn window_origins(&self) -> Vec<String> {
        vec!["https://window.example".to_owned()]
    }
}
