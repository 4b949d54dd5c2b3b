//! One kind of exchange with the server: at most one in flight, and none that was given up is ever heard.

use web_sys::{AbortController, AbortSignal};

/// Says which exchange an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u32);

/// The exchange in flight, if there is one.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    latest: u32,
    open: bool,
    controller: Option<AbortController>,
}

impl Exchange {
    /// Begins a new one; one that is still in flight is given up.
    pub(super) fn begin(&mut self) -> (Ticket, Option<AbortSignal>) {
        self.abort();
        self.latest = self.latest.wrapping_add(1);
        self.open = true;
        self.controller = AbortController::new().ok();
        let signal = self.controller.as_ref().map(AbortController::signal);
        (Ticket(self.latest), signal)
    }

    /// Ends the one that the ticket belongs to; false when that was given up meanwhile.
    pub(super) fn end(&mut self, ticket: Ticket) -> bool {
        let current = self.open && ticket.0 == self.latest;
        if current {
            self.open = false;
            self.controller = None;
        }
        current
    }

    /// Gives up the one in flight; false when there is none.
    pub(super) fn abort(&mut self) -> bool {
        if let Some(controller) = self.controller.take() {
            controller.abort();
        }
        std::mem::take(&mut self.open)
    }
}
