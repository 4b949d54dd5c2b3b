//! The way of a request to the production steps: any living node, the pool of workers, the processor, the lanes.

use std::sync::Arc;
use std::time::Duration;

use payment::checkout::{ConfirmAnswer, Event};
use payment::deadline::{Deadline, TimeLeft};
use payment::id::OrderId;
use payment::time::Millis;
use payment::wire::{ConfirmRequest, ProblemCode};
use server::app::App;
use server::confirm::{Answer, Confirm};
use server::lanes::Class;
use server::store::{NewWebhook, Owner, StoreError};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::spec::{Processor, Server};
use crate::world::{World, lock};

/// What a refusal for load asks for, as the server's `Retry-After` does.
const RETRY_AFTER: Millis = Millis::from_secs(1);
/// How often the processor's delay is measured, and how many measures make one judgement, as `server::pressure` does.
const TICK: Duration = Duration::from_millis(50);
const TICKS: u32 = 20;

/// What became of a request.
pub(super) enum Got<T> {
    Answer(T),
    /// Refused for load.
    Shed,
    /// Its node died, or none is there.
    Nobody,
}

/// All ways to the server.
pub(super) struct Front {
    pub(super) world: Arc<World>,
    workers: Option<Arc<Semaphore>>,
    processor: Option<(Processor, Arc<Semaphore>)>,
    deadline_check: bool,
    stamped: bool,
}

impl Front {
    pub(super) fn new(world: Arc<World>, server: &Server) -> Arc<Self> {
        let places = |count: u32| Arc::new(Semaphore::new(count as usize));
        Arc::new(Self {
            world,
            workers: server.workers.map(places),
            processor: server
                .processor
                .map(|processor| (processor, places(processor.cores))),
            deadline_check: server.deadline_check,
            stamped: server.stamped,
        })
    }

    /// A node as a balancer that knows the living picks it.
    fn node(&self) -> Option<(Arc<App>, CancellationToken)> {
        let nodes = self.world.plan.nodes;
        let first = self.world.any_node();
        let all = lock(&self.world.nodes);
        (0..nodes).find_map(|step| all.serving((first + step) % nodes))
    }

    /// One request. It is worked on to its end, whether or not its caller still waits: no thread per request notices.
    pub(super) async fn ask<T, F, H>(self: &Arc<Self>, class: Class, handle: H) -> Got<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send,
        H: FnOnce(Arc<App>, Millis) -> F + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let front = Arc::clone(self);
        tokio::spawn(async move {
            let got = front.work(class, handle).await;
            let _ = tell.send(got);
        });
        told.await.unwrap_or(Got::Nobody)
    }

    async fn work<T, F, H>(&self, class: Class, handle: H) -> Got<T>
    where
        F: Future<Output = T> + Send,
        H: FnOnce(Arc<App>, Millis) -> F + Send,
    {
        let came = Instant::now();
        let _worker = match &self.workers {
            Some(workers) => workers.acquire().await.ok(),
            None => None,
        };
        let queued = Millis::new(u64::try_from(came.elapsed().as_millis()).unwrap_or(u64::MAX));
        let Some((app, over)) = self.node() else {
            return Got::Nobody;
        };
        let wait = app.config.times.database_wait;
        let Some(_place) = app.lanes.enter(class, &app.pressure, wait).await else {
            return Got::Shed;
        };
        self.compute(class).await;
        tokio::select! {
            biased;
            answer = handle(app, queued) => Got::Answer(answer),
            () = over.cancelled() => Got::Nobody,
        }
    }

    /// Keeps a core busy for as long as the class takes.
    async fn compute(&self, class: Class) {
        let Some((processor, cores)) = &self.processor else {
            return;
        };
        let takes = match class {
            Class::Confirm | Class::Order => processor.confirm,
            Class::Webhook => processor.webhook,
            Class::Poll | Class::Asset => processor.poll,
            Class::Read => processor.read,
        };
        if let Ok(_core) = cores.acquire().await {
            tokio::time::sleep(Duration::from_micros(takes)).await;
        }
    }

    /// Measures how long a task waits for a core, and lets the production judgement hear of it.
    pub(super) async fn feel_pressure(self: Arc<Self>) {
        let Some((_, cores)) = &self.processor else {
            return;
        };
        loop {
            let mut least = Duration::MAX;
            for _ in 0..TICKS {
                tokio::time::sleep(TICK).await;
                let asked = Instant::now();
                if cores.acquire().await.is_err() {
                    return;
                }
                least = least.min(asked.elapsed());
            }
            let lag = Millis::new(u64::try_from(least.as_millis()).unwrap_or(u64::MAX));
            let nodes = lock(&self.world.nodes);
            for node in 0..self.world.plan.nodes {
                if let Some((app, _)) = nodes.serving(node) {
                    app.pressure.felt(lag, app.lanes.polls_are_crowded());
                }
            }
        }
    }

    /// A confirm, as the route does it; what it brings as the page machine's event.
    pub(super) async fn confirm(
        self: &Arc<Self>,
        owner: Owner,
        request: ConfirmRequest,
        time_left: Option<Millis>,
    ) -> Event {
        let (check, stamped) = (self.deadline_check, self.stamped);
        let handle = move |app: Arc<App>, queued: Millis| async move {
            let received = app.clock.now();
            let left = match time_left {
                Some(_) if !check => TimeLeft::Absent,
                None => TimeLeft::Absent,
                Some(Millis::ZERO) => TimeLeft::Passed,
                Some(left) => TimeLeft::Left(left),
            };
            let queued = if stamped { queued } else { Millis::ZERO };
            let confirm = Confirm {
                request,
                owner,
                deadline: Deadline::new(left, received, queued),
                received,
            };
            server::confirm::confirm(&app, confirm).await
        };
        let refused = |code| ConfirmAnswer::Refused {
            code: Some(code),
            retry_after: Some(RETRY_AFTER),
        };
        match self.ask(Class::Confirm, handle).await {
            Got::Answer(Answer::Known(state) | Answer::InDoubt(state)) => {
                Event::ConfirmAnswered(ConfirmAnswer::Order(state))
            }
            Got::Answer(Answer::Problem(code, ..)) => Event::ConfirmAnswered(refused(code)),
            Got::Shed => Event::ConfirmAnswered(refused(ProblemCode::Overloaded)),
            Got::Nobody => Event::ConfirmLost,
        }
    }

    /// A poll; what it brings as the page machine's event.
    pub(super) async fn poll(self: &Arc<Self>, owner: Owner, id: OrderId) -> Event {
        let handle = move |app: Arc<App>, _| async move {
            server::changes::state_of(&app, &owner, &id).await
        };
        let shed = Event::PollShed {
            retry_after: Some(RETRY_AFTER),
        };
        match self.ask(Class::Poll, handle).await {
            Got::Answer(Ok(Some(state))) => Event::PollAnswered(state),
            Got::Answer(Err(StoreError::Busy)) | Got::Shed => shed,
            Got::Answer(Ok(None) | Err(_)) | Got::Nobody => Event::PollLost,
        }
    }

    /// A light read; whether it was served, or refused for load.
    pub(super) async fn read(self: &Arc<Self>) -> Got<bool> {
        let handle = |app: Arc<App>, _| async move { app.reads.products().await.is_ok() };
        self.ask(Class::Read, handle).await
    }

    /// A webhook about a payment; whether it was stored.
    pub(super) async fn webhook(self: &Arc<Self>, key: String, order: String) -> Got<bool> {
        let body = format!(
            r#"{{"eventType":"PAYMENT_STATUS_CHANGED","data":{{"paymentKey":"{key}","orderId":"{order}"}}}}"#
        );
        let handle = |app: Arc<App>, _| async move {
            let webhook = NewWebhook {
                gateway: crate::gateway::name(),
                transmission: None,
                at: app.clock.epoch(),
                headers: "{}".to_owned(),
                body: body.into(),
            };
            let stored = app.store.keep_webhook(webhook).await.is_ok();
            app.inbox.notify_one();
            stored
        };
        self.ask(Class::Webhook, handle).await
    }
}
