//! Follows the engine through one call: waits where it says so, detached from the connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::engine::{Answer, Call, CallId, Next};
use crate::serve::Shared;

/// Does what a call asks for. None: the connection is to be reset.
pub(super) async fn work(shared: &Arc<Shared>, call: Call) -> Option<Answer> {
    let (id, next) = shared.engine(|engine, now_ms| engine.receive(call, now_ms));
    match next {
        Next::Answer(answer) => return Some(answer),
        Next::Reset | Next::Gone => return None,
        Next::Wait { .. } | Next::Hold => {}
    }
    let (tell, told) = oneshot::channel();
    let shared_ = Arc::clone(shared);
    // Detached, since a gateway works on for a caller who hung up; the guard below ends the work
    // where the scenario says that it does not.
    let task = tokio::spawn(async move {
        let done = shared_
            .stopping
            .run_until_cancelled(follow(&shared_, id, next))
            .await;
        // Nobody listens when the caller hung up.
        let _ = tell.send(done.flatten());
    });
    let mut caller = Caller {
        shared,
        id,
        task: Some(task.abort_handle()),
    };
    let answer = told.await.ok().flatten();
    caller.task = None;
    answer
}

async fn follow(shared: &Shared, id: CallId, mut next: Next) -> Option<Answer> {
    loop {
        next = match next {
            Next::Answer(answer) => return Some(answer),
            Next::Reset | Next::Gone => return None,
            Next::Wait { until_ms } => {
                let wait_ms = until_ms.saturating_sub(shared.now_ms());
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                shared.engine(|engine, now_ms| engine.resume(id, now_ms))
            }
            Next::Hold => {
                // Subscribed before it is asked again, so that no change slips between.
                let mut changed = shared.changed.subscribe();
                let next = shared.engine(|engine, now_ms| engine.resume(id, now_ms));
                if next == Next::Hold {
                    // The sender lives in `shared`, so this cannot fail.
                    let _ = changed.changed().await;
                }
                next
            }
        }
    }
}

/// The caller on the line; dropped unanswered when the connection ends.
struct Caller<'a> {
    shared: &'a Shared,
    id: CallId,
    task: Option<AbortHandle>,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take()
            && self.shared.engine(|engine, _| engine.hang_up(self.id))
        {
            task.abort();
        }
    }
}
