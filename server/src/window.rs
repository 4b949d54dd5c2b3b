//! Opening payment windows: the attempt first, then where its gateway wants it a call, then what that brought.
//!
//! The call is made with nothing locked and nothing promised: dying at any point leaves a ready attempt that the next press
//! opens, and at most a payment at the gateway whose address nobody was told, which lapses there by itself. Knows no HTTP
//! and no SQL.

use app::text::Lang;
use payment::id::{AttemptReference, GatewayName, OrderId};
use payment::time::Millis;
use payment::wire::ProblemCode;

use crate::app::{App, Line};
use crate::clock::EpochMs;
use crate::gateway::{OpenOutcome, Told, Window, WindowRequest};
use crate::metrics;
use crate::random;
use crate::store::{
    AttemptRecord, Closed, LineRow, NewAttemptRow, Opened, OpenedWindow, Owner, StoreError,
};

/// How long a shopper who pressed the button waits for a gateway to open its window.
const OPEN_LIMIT: Millis = Millis::from_secs(5);

/// A wish to pay.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Which order.
    pub order_id: OrderId,
    /// Who asks.
    pub owner: Owner,
    /// Through which gateway; the first configured one when absent.
    pub gateway: Option<GatewayName>,
    /// The attempt from whose window the shopper came back without having paid: that window is not opened again where the
    /// gateway opens each by a call.
    pub left: Option<AttemptReference>,
    /// The address that shoppers see, without a slash at its end.
    pub public_url: String,
}

/// Why no window was opened. Nothing was charged, and nothing can be.
#[derive(Debug)]
pub enum NotOpened {
    /// There is no such gateway.
    NoGateway,
    /// The order takes no attempt.
    Closed(Closed),
    /// As many windows are being opened as may be; says nothing about the order.
    Full,
    /// The gateway did not answer in time.
    Unreachable,
    /// The gateway opened none.
    Refused,
    /// A fault of the database.
    Store(StoreError),
}

impl From<StoreError> for NotOpened {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The ready attempt of an order, and where it is paid: the same ones, however often that is asked for.
///
/// # Errors
/// [`NotOpened`].
pub async fn open(app: &App, opening: Opening) -> Result<(AttemptRecord, Window), NotOpened> {
    let line = match &opening.gateway {
        None => app.lines.first(),
        Some(name) => app.line(name),
    };
    let line = line.ok_or(NotOpened::NoGateway)?;
    let by_call = line.gateway.capabilities().opens_by_call;
    let at = app.clock.epoch();
    let row = NewAttemptRow {
        order_id: opening.order_id,
        owner: opening.owner,
        gateway: line.gateway.name().clone(),
        by_call,
        left: opening.left.filter(|_| by_call),
        reference: random::attempt_reference(),
        at,
        window_until: at.plus(window_life(line)),
    };
    let attempt = match app.store.open_attempt(row).await? {
        Opened::Ready(attempt) => *attempt,
        Opened::Closed(closed) => return Err(NotOpened::Closed(closed)),
    };
    app.cache.forget(&attempt.order_id);
    if let Some(window) = attempt.window.clone() {
        return Ok((attempt, window));
    }
    let request = request_of(app, line, &attempt, &opening.public_url).await?;
    if by_call {
        return open_by_call(app, line, attempt, &request).await;
    }
    match line.gateway.open(&request).await {
        OpenOutcome::Opened { window, .. } => Ok((attempt, window)),
        OpenOutcome::Refused(told) => Err(refused(&attempt, &told)),
        OpenOutcome::NoAnswer(_) => Err(NotOpened::Unreachable),
    }
}

/// How long a window may be used.
fn window_life(line: &Line) -> Millis {
    line.times
        .authentication_window
        .plus(line.times.confirm_window)
}

/// Calls the gateway, and keeps what it says. Of two that open the same attempt at once the first one's is kept, and both
/// are told that.
async fn open_by_call(
    app: &App,
    line: &Line,
    attempt: AttemptRecord,
    request: &WindowRequest,
) -> Result<(AttemptRecord, Window), NotOpened> {
    let Ok(_place) = line.opens.try_acquire() else {
        metrics::open_refused(line.gateway.name());
        return Err(NotOpened::Full);
    };
    // The gateway counts from a later moment than this: here it is over first.
    let at = app.clock.epoch();
    let outcome = tokio::time::timeout(OPEN_LIMIT.to_duration(), line.gateway.open(request)).await;
    let (window, handle) = match outcome {
        Ok(OpenOutcome::Opened { window, handle }) => (window, handle),
        Ok(OpenOutcome::Refused(told)) => return Err(refused(&attempt, &told)),
        Ok(OpenOutcome::NoAnswer(told)) => {
            tracing::warn!(
                attempt = attempt.id.0,
                code = told.code,
                "no payment window: the gateway gave no answer"
            );
            return Err(NotOpened::Unreachable);
        }
        Err(_) => {
            tracing::warn!(
                attempt = attempt.id.0,
                "no payment window: the gateway took too long"
            );
            return Err(NotOpened::Unreachable);
        }
    };
    let opened = OpenedWindow {
        handle,
        window,
        window_until: at.plus(window_life(line)),
        at,
    };
    let kept = app.store.keep_window(attempt.id, opened).await?;
    match (kept.attempt.status, kept.window.clone()) {
        (payment::attempt::AttemptStatus::Ready, Some(window)) => Ok((kept, window)),
        // Another tab has gone on meanwhile: with another gateway, or this one's window is over.
        _ => Err(NotOpened::Closed(Closed::AttemptExpired)),
    }
}

fn refused(attempt: &AttemptRecord, told: &Told) -> NotOpened {
    if told.alarm {
        tracing::error!(
            attempt = attempt.id.0,
            status = told.status,
            code = told.code,
            "the gateway opens no payment window: an operator must look"
        );
    } else {
        tracing::warn!(
            attempt = attempt.id.0,
            status = told.status,
            code = told.code,
            "the gateway opened no payment window"
        );
    }
    NotOpened::Refused
}

/// What the payment window of an attempt is told.
///
/// # Errors
/// [`StoreError`].
pub async fn request_of(
    app: &App,
    line: &Line,
    attempt: &AttemptRecord,
    public_url: &str,
) -> Result<WindowRequest, StoreError> {
    let lines = app.store.lines(&attempt.order_id).await?;
    let authentication = line.times.authentication_window;
    let authenticate_by = app.clock.epoch().plus(authentication);
    let by_call = line.gateway.capabilities().opens_by_call;
    let seen = (public_url, by_call);
    Ok(request(attempt, &lines, seen, authenticate_by))
}

fn request(
    attempt: &AttemptRecord,
    lines: &[LineRow],
    (public_url, by_call): (&str, bool),
    authenticate_by: EpochMs,
) -> WindowRequest {
    let name = lines
        .first()
        .map_or_else(|| attempt.order_id.to_string(), |line| line.name[0].clone());
    // The gateways' windows are in Korean.
    let order_name = Lang::Ko.and_more(name, lines.len().saturating_sub(1));
    let pieces: u32 = lines.iter().map(|line| line.quantity).sum();
    let checkout = format!("{public_url}/checkout/{}", attempt.order_id);
    let back = format!("{checkout}/return/{}", attempt.reference);
    // A gateway whose window is a page of parameters says itself in the address how it ended.
    let ended = |how: &str| {
        if by_call {
            format!("{back}?ended={how}")
        } else {
            back.clone()
        }
    };
    WindowRequest {
        gateway_order_id: attempt.gateway_order_id.clone(),
        order_name,
        quantity: pieces.max(1),
        amount: attempt.attempt.expected.amount,
        authenticate_by,
        fail_url: ended("refused"),
        close_url: ended("closed"),
        page_url: format!("{checkout}/pay/{}", attempt.reference),
        success_url: back,
    }
}

/// The code of what kept a window from being opened.
#[must_use]
pub const fn problem_of(why: &NotOpened) -> ProblemCode {
    match why {
        NotOpened::NoGateway => ProblemCode::InvalidRequest,
        NotOpened::Closed(closed) => crate::confirm::closed_code(*closed),
        NotOpened::Full => ProblemCode::Overloaded,
        NotOpened::Unreachable => ProblemCode::PgUnreachable,
        NotOpened::Refused => ProblemCode::PgRefused,
        NotOpened::Store(StoreError::Busy) => ProblemCode::DatabaseBusy,
        NotOpened::Store(_) => ProblemCode::Internal,
    }
}
