//! Scenes: one condition of an experiment in virtual time. Production code (confirm, claim, deadline, slots, resend, circuit,
//! recovery, inbox, lanes, and the page's machine) over the simulation's tables and a gateway in memory with the fake's
//! switches; one thread, paused time, everything from one seed. A minute of 50 shoppers a second takes a fraction of a
//! second.
//!
//! ```
//! use payment::time::Millis;
//! use payment::wire::ProblemCode;
//! use simulation::scene::{Delay, Load, Pg, Scene, Server, play};
//!
//! let ran = play(&Scene {
//!     seed: 1,
//!     load: Load { rate: 50, seconds: 10, ..Load::default() },
//!     pg: Pg { delay: Delay::Fixed(2_000), goes_on: false, ..Pg::default() },
//!     server: Server::published(Millis::from_secs(5), Some(40)),
//!     ..Scene::default()
//! });
//! assert!(ran.drained && ran.refused(ProblemCode::PgCapReached) > 200);
//! assert_eq!((ran.regret.false_failures, ran.regret.double_charges), (0, 0));
//! ```
//!
//! What is not there: HTTP, SQL, sockets, and the time that work itself takes, unless [`Server::commit`] and
//! [`Server::processor`] say it. Clients that speak to the gateway without the server are made with [`straight`] and
//! [`Bank`].

mod bank;
mod beside;
mod counters;
mod draw;
mod finish;
mod front;
mod play;
mod port;
mod ran;
mod shopper;
mod spec;
mod stage;

pub use bank::{Bank, Books, Known, Reply, Wire};
pub use play::{play, straight};
pub use ran::{Ends, Ran, Regret, Said, Seen, Side};
pub use spec::{
    Arrivals, Beside, CircuitMode, Client, Death, Delay, Load, Pg, Processor, Scene, Server,
    Shoppers, Sky, WARM_UP, Weather, When,
};
pub(crate) use stage::Stage;
