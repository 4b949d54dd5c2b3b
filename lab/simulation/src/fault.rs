//! The kinds of faults, how often each may strike, and how often each did.

use std::fmt::Write as _;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $label:literal, $most:literal;)*) => {
        /// One kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// The highest rate that a seed may draw: strikes per opportunity.
            pub(crate) const fn most(self) -> f64 {
                match self { $(Self::$name => $most,)* }
            }
        }
    };
}

faults! {
    /// A node dies before a transaction takes effect.
    CrashBeforeCommit = "crash_before_commit", 0.02;
    /// A node dies after a commit, before it hears of it.
    CrashAfterCommit = "crash_after_commit", 0.02;
    /// A node dies as it is about to call the gateway.
    CrashBeforeCall = "crash_before_call", 0.08;
    /// A node dies with the gateway's answer on its way.
    CrashBeforeAnswer = "crash_before_answer", 0.08;
    /// A node dies with its answer to a page unsent.
    CrashBeforeReply = "crash_before_reply", 0.03;
    /// A node dies at any moment; per node and second.
    CrashAnytime = "crash_anytime", 0.02;
    /// A node is stopped in good order and started again; per node and second.
    Deploy = "deploy", 0.01;
    /// A node's wall clock steps by up to two seconds; per node and second.
    ClockStep = "clock_step", 0.05;
    /// A node's wall clock steps by up to a quarter of the confirm window; per node and second.
    ClockLeap = "clock_leap", 0.01;
    /// The wall clock of a node that shares its database goes wrong by up to an hour; per node and second.
    ClockAstray = "clock_astray", 0.005;
    /// A request of a page never arrives.
    RequestLost = "request_lost", 0.15;
    /// A server's answer never arrives.
    ReplyLost = "reply_lost", 0.15;
    /// A message is late.
    MessageSlow = "message_slow", 0.3;
    /// A request arrives twice.
    RequestDoubled = "request_doubled", 0.1;
    /// No connection to the gateway can be made.
    ConnectRefused = "connect_refused", 0.4;
    /// A confirm is lost before the gateway sees it.
    CallLost = "call_lost", 0.4;
    /// A confirm's answer is lost after the gateway has decided.
    AnswerLost = "answer_lost", 0.6;
    /// A confirm's answer cannot be read.
    AnswerGarbled = "answer_garbled", 0.1;
    /// The gateway takes calls and answers none for a while; per second.
    GatewayStops = "gateway_stops", 0.1;
    /// The gateway works for long on a confirm, maybe beyond our time-out.
    GatewaySlow = "gateway_slow", 0.8;
    /// 429 before anything is processed.
    GatewayBusy = "gateway_busy", 0.4;
    /// The gateway declines.
    Declined = "declined", 0.3;
    /// "Still in progress" although nothing is.
    FalseInProgress = "false_in_progress", 0.1;
    /// A server error before booking.
    ErrorBefore = "error_before", 0.1;
    /// A server error after booking.
    ErrorAfter = "error_after", 0.1;
    /// Another amount is booked than was asked for.
    WrongAmount = "wrong_amount", 0.4;
    /// A booking cannot be seen for a while.
    NotFoundYet = "not_found_yet", 0.6;
    /// A booking long after every promise of the gateway.
    VeryLateBooking = "very_late_booking", 0.1;
    /// An inquiry is not answered.
    InquiryLost = "inquiry_lost", 0.3;
    /// An inquiry is answered with an error.
    InquiryError = "inquiry_error", 0.2;
    /// An inquiry's answer is old when it comes.
    InquirySlow = "inquiry_slow", 0.3;
    /// A cancel is lost before the gateway sees it.
    CancelLost = "cancel_lost", 0.5;
    /// A cancel's answer is lost after it was booked.
    CancelAnswerLost = "cancel_answer_lost", 1.0;
    /// A cancel is not carried out; a new key is needed.
    CancelNotDone = "cancel_not_done", 0.5;
    /// A cancel is refused.
    CancelRefused = "cancel_refused", 0.5;
    /// A webhook is late.
    WebhookLate = "webhook_late", 0.4;
    /// A webhook comes twice at once.
    WebhookDoubled = "webhook_doubled", 0.3;
    /// A webhook comes after one that is newer.
    WebhookOvertaken = "webhook_overtaken", 0.3;
    /// A webhook never comes.
    WebhookDropped = "webhook_dropped", 0.5;
    /// Somebody else posts a webhook; per second.
    WebhookForged = "webhook_forged", 0.6;
    /// The database is busy: nothing was done.
    DatabaseBusy = "database_busy", 0.1;
    /// The database takes long.
    DatabaseSlow = "database_slow", 0.1;
    /// A transaction fails and nothing was done.
    FailedBeforeCommit = "failed_before_commit", 0.05;
    /// A transaction is committed and its result is lost.
    FailedAfterCommit = "failed_after_commit", 0.05;
    /// A shopper loads the page again while it waits; per decision.
    Reload = "reload", 0.2;
    /// A shopper opens the page in a second tab.
    SecondTab = "second_tab", 0.3;
    /// A shopper's confirm is sent by two tabs at once.
    DoubleClick = "double_click", 0.2;
    /// A confirm's shopper has hardly any time left.
    ShortDeadline = "short_deadline", 0.3;
    /// A shopper cancels a paid order.
    ShopperCancels = "shopper_cancels", 0.6;
    /// The shop gives part of a paid order's money back.
    OperatorRefunds = "operator_refunds", 0.4;
    /// The gateway's own desk gives money back; per second.
    DeskRefunds = "desk_refunds", 0.05;
    /// The shop's operator ends a doubt by the gateway's books; per second.
    OperatorEnds = "operator_ends", 0.3;
    /// The shop's operator has a webhook looked at again; per second.
    WebhooksReplayed = "webhooks_replayed", 0.2;
    /// A shopper leaves and comes back much later.
    Leave = "leave", 0.3;
    /// A page comes back from the back/forward cache or to the front.
    PageShown = "page_shown", 0.3;
}

/// How often each kind struck.
#[derive(Debug, Clone)]
pub struct Counts(Vec<u64>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![0; Fault::ALL.len()])
    }
}

impl Counts {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &Self) {
        for (sum, one) in self.0.iter_mut().zip(&other.0) {
            *sum += one;
        }
    }

    /// The kinds that never struck.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let none = |fault: &&Fault| self.0[**fault as usize] == 0;
        Fault::ALL
            .iter()
            .filter(none)
            .map(|fault| fault.label())
            .collect()
    }

    /// One line a kind.
    #[must_use]
    pub fn table(&self) -> String {
        Fault::ALL.iter().fold(String::new(), |mut text, fault| {
            let _ = writeln!(
                text,
                "  {:<22}{:>10}",
                fault.label(),
                self.0[*fault as usize]
            );
            text
        })
    }
}
