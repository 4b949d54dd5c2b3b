//! Group commit: changes that wait for the one writer are made in one transaction and reach the disk by one sync.
//!
//! Whoever is given the writer first takes along everybody who waits by then, and works for all in a task of its own.
//! Nobody is answered before the commit. Where one fails, or has to take back what it did, all is taken back and each is
//! made again by itself, so that none takes anything of the others along; the answers are those of the changes made one
//! after the other. Where a database has several writers, and groups what commits at once by itself, each change has its own
//! transaction.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sqlx::Connection as _;
use sqlx::pool::PoolConnection;
use tokio::sync::oneshot;

use super::engine::{Engine, fault};
use super::{SqlStore, commit, not_taken};
use crate::store::StoreError;

/// The error of a commit that several share.
#[derive(Debug, thiserror::Error)]
#[error("the commit of a whole group")]
struct Together(#[source] Arc<StoreError>);

/// Most changes of one transaction: a claim takes about half a millisecond, so a group holds the writer for a fraction of
/// the time that the next may wait for it.
const MOST: usize = 64;

const DOING: &str = "writing together";

/// What a change came to.
pub(super) enum Done<T> {
    /// It stands.
    Keep(T),
    /// It was refused before anything was changed.
    Nothing(T),
    /// It was refused, and what it had changed is to be taken back.
    Undo(T),
}

/// A change that is made within a transaction, which somebody else begins and ends.
#[async_trait]
pub(super) trait Change<D: Engine>: Send + Sync + 'static {
    /// What its caller is told, once it is on the disk.
    type Answer: Send + 'static;
    /// What is being done, for errors.
    const DOING: &'static str;
    /// Whether it is a single statement, which needs no transaction when it is made alone.
    const ONE_STATEMENT: bool = false;

    /// Makes it.
    async fn make(&self, db: &mut D::Connection) -> Result<Done<Self::Answer>, StoreError>;
}

/// A change that waits for the writer, whatever its answer.
#[async_trait]
trait Waiting<D: Engine>: Send {
    /// Makes it; whether the transaction may go on: nothing in it is to be taken back.
    async fn make(&mut self, db: &mut D::Connection) -> bool;
    /// Makes it in a transaction of its own, and answers.
    async fn make_alone(self: Box<Self>, store: &SqlStore<D>);
    /// Whether it was made, and what came was an error.
    fn has_failed(&self) -> bool;
    /// Answers: with what it came to if that is on the disk, else with this error.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

type Member<D> = Box<dyn Waiting<D>>;

/// One change of a group.
struct One<D: Engine, C: Change<D>> {
    change: C,
    came_to: Option<Result<C::Answer, StoreError>>,
    tell: oneshot::Sender<Result<C::Answer, StoreError>>,
}

#[async_trait]
impl<D: Engine, C: Change<D>> Waiting<D> for One<D, C> {
    async fn make(&mut self, db: &mut D::Connection) -> bool {
        let (came_to, goes_on) = match self.change.make(db).await {
            Ok(Done::Keep(answer) | Done::Nothing(answer)) => (Ok(answer), true),
            Ok(Done::Undo(answer)) => (Ok(answer), false),
            Err(error) => (Err(error), false),
        };
        self.came_to = Some(came_to);
        goes_on
    }

    async fn make_alone(self: Box<Self>, store: &SqlStore<D>) {
        let answer = alone(store, &self.change).await;
        // Nobody may be there any more to hear it.
        let _ = self.tell.send(answer);
    }

    fn has_failed(&self) -> bool {
        matches!(self.came_to, Some(Err(_)))
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.came_to, committed) {
            // Its own error says more.
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (None, Ok(())) => Err(fault(C::DOING, "it was never tried")),
        };
        let _ = self.tell.send(answer);
    }
}

/// Everybody who waits for the writer to change something.
pub(super) struct Queue<D: Engine>(Mutex<Line<D>>);

struct Line<D: Engine> {
    next: u64,
    members: VecDeque<(u64, Member<D>)>,
}

impl<D: Engine> Default for Queue<D> {
    fn default() -> Self {
        Self(Mutex::new(Line {
            next: 0,
            members: VecDeque::new(),
        }))
    }
}

impl<D: Engine> std::fmt::Debug for Queue<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue")
            .field(&self.lock().members.len())
            .finish()
    }
}

impl<D: Engine> Queue<D> {
    fn lock(&self) -> MutexGuard<'_, Line<D>> {
        // Nothing that is done under it leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, member: Member<D>) -> Place<'_, D> {
        let mut line = self.lock();
        let number = line.next;
        line.next += 1;
        line.members.push_back((number, member));
        Place {
            queue: self,
            number,
        }
    }

    fn take(&self) -> Vec<Member<D>> {
        let mut line = self.lock();
        let count = line.members.len().min(MOST);
        let group = line.members.drain(..count);
        group.map(|(_, member)| member).collect()
    }
}

/// A place in the queue. Leaving it takes back what nobody has begun.
struct Place<'a, D: Engine> {
    queue: &'a Queue<D>,
    number: u64,
}

impl<D: Engine> Place<'_, D> {
    /// Whether it was still waited in; then nothing of the change was or will be done.
    fn leave(&self) -> bool {
        let mut line = self.queue.lock();
        let found = line
            .members
            .binary_search_by_key(&self.number, |(number, _)| *number);
        let left = found.ok().and_then(|index| line.members.remove(index));
        left.is_some()
    }
}

impl<D: Engine> Drop for Place<'_, D> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<D: Engine> SqlStore<D> {
    /// Makes a change and answers when it is on the disk. A caller that is dropped before its change was begun takes it
    /// back; afterwards the change goes on without it.
    pub(super) async fn change<C: Change<D>>(&self, change: C) -> Result<C::Answer, StoreError> {
        if !D::GROUPS {
            return alone(self, &change).await;
        }
        let (tell, mut told) = oneshot::channel();
        let place = self.queue.push(Box::new(One {
            change,
            came_to: None,
            tell,
        }));
        tokio::select! {
            // In this order, so that a group's members do not ask for the writer again when they are answered.
            biased;
            answer = &mut told => return heard::<D, C>(answer),
            writer = self.writer.acquire() => match writer {
                Ok(writer) => lead(self, writer),
                Err(error) => {
                    if place.leave() {
                        return Err(not_taken::<D>("taking the writer", error));
                    }
                }
            },
        }
        heard::<D, C>(told.await)
    }
}

/// A group that died answers nobody: what became of it is not known.
fn heard<D: Engine, C: Change<D>>(
    answer: Result<Result<C::Answer, StoreError>, oneshot::error::RecvError>,
) -> Result<C::Answer, StoreError> {
    answer.unwrap_or_else(|died| Err(fault(C::DOING, died)))
}

/// Works for everybody who waits.
fn lead<D: Engine>(store: &SqlStore<D>, writer: PoolConnection<D>) {
    let group = store.queue.take();
    if group.is_empty() {
        return;
    }
    let store = store.clone();
    // Safe to drop the caller that leads at any await: the others' changes are not its own.
    tokio::spawn(async move { run(&store, writer, group).await });
}

async fn run<D: Engine>(store: &SqlStore<D>, mut writer: PoolConnection<D>, group: Vec<Member<D>>) {
    let Err(undone) = write_together::<D>(&mut writer, group).await else {
        return;
    };
    drop(writer);
    for member in undone {
        if member.has_failed() {
            member.answer(Ok(()));
        } else {
            member.make_alone(store).await;
        }
    }
}

/// Makes a group in one transaction, commits it and answers. Gives the group back when the transaction cannot stand: one of
/// them failed, or has to take back what it did, or the database itself took all back, as after a full disk. Then nothing
/// was committed, and nobody is answered yet.
async fn write_together<D: Engine>(
    db: &mut D::Connection,
    mut group: Vec<Member<D>>,
) -> Result<(), Vec<Member<D>>> {
    let mut tx = match db.begin_with(D::BEGIN).await {
        Ok(tx) => tx,
        Err(error) => {
            let error = not_taken::<D>("beginning a transaction", error);
            answer_all(group, Err(error));
            return Ok(());
        }
    };
    if let [only] = group.as_mut_slice() {
        let stands = only.make(&mut tx).await;
        let ended = if stands {
            commit::<D>(tx, DOING).await
        } else {
            drop(tx);
            Ok(())
        };
        answer_all(group, ended);
        return Ok(());
    }
    for member in &mut group {
        if !member.make(&mut tx).await {
            return Err(group);
        }
    }
    answer_all(group, commit::<D>(tx, DOING).await);
    Ok(())
}

/// Tells everybody the same of the commit.
fn answer_all<D: Engine>(group: Vec<Member<D>>, committed: Result<(), StoreError>) {
    let shared = committed.map_err(Arc::new);
    for member in group {
        member.answer(match &shared {
            Ok(()) => Ok(()),
            Err(error) => Err(same(error)),
        });
    }
}

/// The same error for one of many.
fn same(error: &Arc<StoreError>) -> StoreError {
    match **error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Corrupt { what } => StoreError::Corrupt { what },
        StoreError::Failed { doing, .. } => fault(doing, Together(Arc::clone(error))),
    }
}

/// A change in a transaction of its own.
async fn alone<D: Engine, C: Change<D>>(
    store: &SqlStore<D>,
    change: &C,
) -> Result<C::Answer, StoreError> {
    if C::ONE_STATEMENT {
        let done = change.make(&mut *store.writer().await?).await?;
        return Ok(match done {
            Done::Keep(answer) | Done::Nothing(answer) | Done::Undo(answer) => answer,
        });
    }
    let mut tx = store.write().await?;
    match change.make(&mut tx).await? {
        Done::Keep(answer) => {
            commit::<D>(tx, C::DOING).await?;
            Ok(answer)
        }
        // Dropped with its transaction, which rolls back.
        Done::Nothing(answer) | Done::Undo(answer) => Ok(answer),
    }
}
