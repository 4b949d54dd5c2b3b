//! Between pages and servers: messages that are late, lost, doubled or overtake each other, and the server's answers to
//! them, made by the production steps behind the HTTP routes.

use std::sync::Arc;
use std::time::Duration;

use payment::checkout::{ConfirmAnswer, Event};
use payment::deadline::{Deadline, TimeLeft};
use payment::id::{AttemptReference, OrderId, PaymentKey, Sku};
use payment::money::Won;
use payment::time::Millis;
use payment::wire::{ConfirmRequest, OrderState, ProblemCode};
use server::app::App;
use server::confirm::{Answer, Confirm};
use server::store::{NewAttemptRow, NewOrderRow, Opened, OrderMade, Owner, StoreError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::nodes::Life;
use crate::world::{World, lock};

/// What a page is made from.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) state: OrderState,
    pub(crate) amount: Won,
    pub(crate) confirming_for: Option<Millis>,
    /// Whether the attempt that the address names is ready.
    pub(crate) ready: bool,
}

/// An opened payment window.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) gateway_order_id: payment::id::GatewayOrderId,
    pub(crate) reference: AttemptReference,
}

/// Tells a server that its caller hung up.
struct HangUp(CancellationToken);

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// One exchange with any node: `None` when the connection broke, never when the answer is lost without a trace. Dropping
/// it hangs up; the request may still arrive.
async fn ask<T, F, H>(world: &Arc<World>, copies: bool, handle: H) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = Option<T>> + Send + 'static,
    H: Fn(Arc<App>) -> F + Clone + Send + 'static,
{
    let gone = CancellationToken::new();
    let _hang_up = HangUp(gone.clone());
    let (tell, told) = oneshot::channel();
    tokio::spawn(exchange(Arc::clone(world), copies, handle, gone, tell));
    told.await.ok().flatten()
}

async fn exchange<T, F, H>(
    world: Arc<World>,
    copies: bool,
    handle: H,
    gone: CancellationToken,
    tell: oneshot::Sender<Option<T>>,
) where
    T: Send + 'static,
    F: Future<Output = Option<T>> + Send + 'static,
    H: Fn(Arc<App>) -> F + Clone + Send + 'static,
{
    travel(&world).await;
    if world.strikes(Fault::RequestLost) {
        return lose(&world, tell).await;
    }
    if copies {
        let (world, handle) = (Arc::clone(&world), handle.clone());
        tokio::spawn(async move {
            world.pause(0, 3_000).await;
            at_node(&world, handle, CancellationToken::new()).await;
        });
    }
    let answer = at_node(&world, handle, gone).await;
    if world.strikes(Fault::ReplyLost) {
        return lose(&world, tell).await;
    }
    travel(&world).await;
    let _ = tell.send(answer);
}

async fn travel(world: &World) {
    world.pause(1, 40).await;
    if world.strikes(Fault::MessageSlow) {
        world.pause(200, 4_000).await;
    }
}

/// A message is lost: its connection breaks, or nothing is ever heard.
async fn lose<T>(world: &World, tell: oneshot::Sender<Option<T>>) {
    if world.perhaps(0.5) {
        drop(tell);
    } else {
        // Longer than any page waits.
        tokio::time::sleep(Duration::from_secs(300)).await;
        drop(tell);
    }
}

/// A request at a node: `None` when nobody answers there, or the process dies meanwhile.
async fn at_node<T, F, H>(world: &Arc<World>, handle: H, gone: CancellationToken) -> Option<T>
where
    F: Future<Output = Option<T>>,
    H: Fn(Arc<App>) -> F,
{
    let node = world.any_node();
    let (app, over) = lock(&world.nodes).serving(node)?;
    tokio::select! {
        biased;
        answer = handle(app) => {
            if !over.is_cancelled() && world.strikes(Fault::CrashBeforeReply) {
                Life::current(world, node).die();
            }
            if over.is_cancelled() { None } else { answer }
        }
        () = over.cancelled() => None,
        () = hung_up(world, gone) => None,
    }
}

/// The server notices a little later that its caller is gone, and drops what it does for it.
async fn hung_up(world: &World, gone: CancellationToken) {
    gone.cancelled().await;
    world.pause(0, 100).await;
}

/// Makes an order.
pub(crate) async fn make_order(
    world: &Arc<World>,
    id: OrderId,
    owner: Owner,
    (sku, quantity): (Sku, u32),
) -> Option<OrderMade> {
    let handle = move |app: Arc<App>| {
        let at = app.clock.epoch();
        let row = NewOrderRow {
            id: id.clone(),
            owner: owner.clone(),
            items: vec![(sku.clone(), quantity)],
            language: None,
            at,
            expires_at: at.plus(app.config.order_ttl),
        };
        async move { app.store.make_order(row).await.ok() }
    };
    ask(world, false, handle).await
}

/// Loads the order's page, or the page that a payment window returns to.
pub(crate) async fn load(
    world: &Arc<World>,
    id: &OrderId,
    reference: Option<AttemptReference>,
) -> Option<Page> {
    let (id, of) = (id.clone(), Arc::clone(world));
    let handle = move |app: Arc<App>| {
        let (id, reference, world) = (id.clone(), reference.clone(), Arc::clone(&of));
        async move {
            let order = app.polls.order(&id).await.ok()??;
            let state = app.order_state(&order);
            if state.payable {
                world.check_payable(id.as_str());
            }
            let now = app.clock.epoch();
            let open = order
                .attempts
                .iter()
                .rev()
                .find(|one| one.attempt.status.is_open());
            let named = order
                .attempts
                .iter()
                .find(|one| Some(&one.reference) == reference.as_ref());
            Some(Page {
                state,
                amount: order.amount,
                confirming_for: open.map(|one| now.since(one.claimed_at.unwrap_or(now))),
                ready: named.is_some_and(|one| {
                    one.attempt.status == payment::attempt::AttemptStatus::Ready
                }),
            })
        }
    };
    ask(world, false, handle).await
}

/// Opens a payment window.
pub(crate) async fn open(world: &Arc<World>, id: &OrderId, owner: &Owner) -> Option<Window> {
    let (id, owner) = (id.clone(), owner.clone());
    let handle = move |app: Arc<App>| {
        let (id, owner) = (id.clone(), owner.clone());
        async move {
            let at = app.clock.epoch();
            let times = app.config.times;
            let row = NewAttemptRow {
                order_id: id,
                owner,
                gateway: crate::gateway::name(),
                by_call: false,
                left: None,
                reference: server::random::attempt_reference(),
                at,
                window_until: at
                    .plus(times.authentication_window)
                    .plus(times.confirm_window),
            };
            match app.store.open_attempt(row).await.ok()? {
                Opened::Ready(attempt) => {
                    app.cache.forget(&attempt.order_id);
                    Some(Window {
                        gateway_order_id: attempt.gateway_order_id.clone(),
                        reference: attempt.reference.clone(),
                    })
                }
                Opened::Closed(_) => None,
            }
        }
    };
    ask(world, false, handle).await
}

/// Asks for money back, with a key of this wish; true when it was heard what became of it.
pub(crate) async fn cancel(world: &Arc<World>, cancel: server::refund::Cancel) -> bool {
    let copies = world.strikes(Fault::RequestDoubled);
    let handle = move |app: Arc<App>| {
        let cancel = cancel.clone();
        async move {
            let answer = server::refund::cancel(&app, cancel).await;
            let heard = matches!(
                answer,
                server::refund::Answer::Done(_)
                    | server::refund::Answer::UnderWay(_)
                    | server::refund::Answer::Problem(
                        ProblemCode::OrderClosed
                            | ProblemCode::Declined
                            | ProblemCode::RefundExceedsBalance,
                        _
                    )
            );
            heard.then_some(())
        }
    };
    ask(world, copies, handle).await.is_some()
}

/// A poll; what it brings as the page machine's event.
pub(crate) async fn poll(world: &Arc<World>, id: &OrderId, owner: &Owner) -> Event {
    let (id, owner, of) = (id.clone(), owner.clone(), Arc::clone(world));
    let handle = move |app: Arc<App>| {
        let (id, owner, world) = (id.clone(), owner.clone(), Arc::clone(&of));
        async move {
            Some(match server::changes::state_of(&app, &owner, &id).await {
                Ok(Some(state)) => {
                    if state.payable {
                        world.check_payable(id.as_str());
                    }
                    Event::PollAnswered(state)
                }
                Err(StoreError::Busy) => Event::PollShed {
                    retry_after: Some(Millis::from_secs(2)),
                },
                Ok(None) | Err(_) => Event::PollLost,
            })
        }
    };
    ask(world, false, handle).await.unwrap_or(Event::PollLost)
}

/// A confirm; what it brings as the page machine's event.
pub(crate) async fn confirm(
    world: &Arc<World>,
    tab: u64,
    owner: &Owner,
    request: ConfirmRequest,
    time_left: Millis,
) -> Event {
    let key = request.payment_key.as_str().to_owned();
    world.watch_asked(tab, &key);
    let copies = world.strikes(Fault::RequestDoubled);
    if copies {
        world.watch_copied(&key);
    }
    let (owner, of) = (owner.clone(), Arc::clone(world));
    let handle = move |app: Arc<App>| {
        let (owner, request, world) = (owner.clone(), request.clone(), Arc::clone(&of));
        async move { Some(handle_confirm(&world, &app, owner, request, time_left).await) }
    };
    match ask(world, copies, handle).await {
        Some(answer) => Event::ConfirmAnswered(answer),
        None => Event::ConfirmLost,
    }
}

/// As the route does it: the deadline counts from receipt on the node's own clock.
async fn handle_confirm(
    world: &World,
    app: &Arc<App>,
    owner: Owner,
    request: ConfirmRequest,
    time_left: Millis,
) -> ConfirmAnswer {
    let refused = |code| ConfirmAnswer::Refused {
        code: Some(code),
        retry_after: Some(Millis::from_secs(1)),
    };
    if app.stopping.is_cancelled() {
        return refused(ProblemCode::ShuttingDown);
    }
    let key: PaymentKey = request.payment_key.clone();
    let begun = world.now();
    world.watch_request(key.as_str(), begun.plus(time_left).get());
    let received = app.clock.now();
    let left = if time_left == Millis::ZERO {
        TimeLeft::Passed
    } else {
        TimeLeft::Left(time_left)
    };
    let deadline = Deadline::new(left, received, Millis::ZERO);
    let deadline = if world.bug == Some(crate::bug::Bug::NoDeadline) {
        Deadline::None
    } else {
        deadline
    };
    let order = request.order_id.as_str().to_owned();
    let confirm = Confirm {
        request,
        owner,
        deadline,
        received,
    };
    let answer = server::confirm::confirm(app, confirm).await;
    let took = world.now().less(begun);
    let wait = app
        .config
        .times
        .database_wait
        .times(2)
        .plus(Millis::new(500));
    world.check_answered(&order, took, time_left.max(wait));
    match answer {
        Answer::Known(state) | Answer::InDoubt(state) => {
            if state.payable {
                world.check_payable(state.order_id.as_str());
            }
            ConfirmAnswer::Order(state)
        }
        Answer::Problem(code, _, _) => refused(code),
    }
}
