//! The situations in which shoppers are watched: what is wrong with the gateway or the server, and who comes.

use payment::resend::Policy;
use payment::time::{Millis, Times};
use simulation::scene::{Death, Delay, Pg, Server, Shoppers, Sky, Weather, When};

/// How many of the shoppers are not the plain page.
pub(super) const ODD: [(&str, f64); 3] = [
    ("close the tab after 1 to 20 s", 0.1),
    ("click twice", 0.05),
    ("have a network that takes 0.2 to 2 s each way", 0.1),
];

fn mixed() -> Shoppers {
    let [leave, twice, network] = ODD.map(|(_, share)| share);
    Shoppers {
        impatient: Some((leave, Delay::Uniform(1_000, 20_000))),
        double_click: twice,
        slow_network: Some((network, Delay::Uniform(200, 2_000))),
        pays_again: 2,
        ..Shoppers::default()
    }
}

/// A situation: its name, and the letters of its criteria's ids.
pub(super) struct Situation {
    pub(super) name: &'static str,
    pub(super) id: &'static str,
    pub(super) pg: fn() -> Pg,
    pub(super) server: fn() -> Server,
    pub(super) shoppers: fn() -> Shoppers,
}

const fn slow(ms: u64) -> Delay {
    Delay::Fixed(ms)
}

fn usual() -> Pg {
    Pg {
        delay: Delay::LogNormal {
            median: 500.0,
            sigma: 0.6,
        },
        ..Pg::default()
    }
}

fn lossy(share: f64, when: When) -> Pg {
    Pg {
        loss: Some((share, when)),
        ..usual()
    }
}

fn weather(from: u64, until: u64, sky: Sky) -> Pg {
    Pg {
        weather: vec![Weather {
            from: Millis::from_secs(from),
            until: Millis::from_secs(until),
            sky,
            inquiries: true,
        }],
        ..usual()
    }
}

/// A timeout of 5 s, as the page's server had it once.
fn short() -> Server {
    Server {
        times: Times {
            pg_timeout: Millis::from_secs(5),
            ..Times::DEFAULT
        },
        ..Server::default()
    }
}

/// Every one.
pub(super) const SITUATIONS: [Situation; 18] = [
    Situation {
        name: "usual",
        id: "usual",
        pg: usual,
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "slow tail: 10 % take 8 s",
        id: "tail",
        pg: || Pg {
            slow_tail: Some((0.1, slow(8_000))),
            ..usual()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "slow tail, timeout 5 s",
        id: "tail5",
        pg: || Pg {
            slow_tail: Some((0.1, slow(8_000))),
            ..usual()
        },
        server: short,
        shoppers: mixed,
    },
    Situation {
        name: "heavy tail: Pareto around 2 s",
        id: "pareto",
        pg: || Pg {
            delay: Delay::pareto(2_000.0, 1.5),
            ..Pg::default()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "brownout: 20 s each",
        id: "brown",
        pg: || Pg {
            delay: slow(20_000),
            ..Pg::default()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "brownout, timeout 5 s",
        id: "brown5",
        pg: || Pg {
            delay: slow(20_000),
            ..Pg::default()
        },
        server: short,
        shoppers: mixed,
    },
    Situation {
        name: "15 % of calls lost",
        id: "before",
        pg: || lossy(0.15, When::Before),
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "15 % of answers lost",
        id: "after",
        pg: || lossy(0.15, When::After),
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "15 % of answers lost, no resend",
        id: "after-off",
        pg: || lossy(0.15, When::After),
        server: || Server {
            resend: Policy::Off,
            ..Server::default()
        },
        shoppers: mixed,
    },
    Situation {
        name: "10 % hang for 70 s after the booking",
        id: "hang",
        pg: || Pg {
            hang: Some((0.1, When::After, Millis::from_secs(70))),
            ..usual()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "stopped for 90 s",
        id: "stop",
        pg: || weather(10, 100, Sky::Stopped),
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "down for 20 s",
        id: "down",
        pg: || weather(20, 40, Sky::Down),
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "20 % declined",
        id: "decline",
        pg: || Pg {
            decline: 0.2,
            ..usual()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "every connection reset, twice",
        id: "reset",
        pg: || Pg {
            delay: slow(2_000),
            resets: vec![Millis::from_secs(20), Millis::from_secs(40)],
            ..Pg::default()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "contract limit of 20 a second",
        id: "limit",
        pg: || Pg {
            rate_limit: Some((20, Millis::from_secs(1))),
            ..usual()
        },
        server: Server::default,
        shoppers: mixed,
    },
    Situation {
        name: "one of two nodes dies",
        id: "death",
        pg: usual,
        server: || Server {
            nodes: 2,
            deaths: vec![Death {
                node: 1,
                at: Millis::from_secs(20),
                back: Some(Millis::from_secs(35)),
            }],
            ..Server::default()
        },
        shoppers: mixed,
    },
    Situation {
        name: "half open a second tab, 20 a second",
        id: "tabs",
        pg: || Pg {
            rate_limit: Some((20, Millis::from_secs(1))),
            ..usual()
        },
        server: Server::default,
        shoppers: || Shoppers {
            two_tabs: Some((0.5, Delay::Uniform(500, 10_000))),
            pays_again: 2,
            ..Shoppers::default()
        },
    },
    Situation {
        name: "brownout, networks of 3 s each way",
        id: "far",
        pg: || Pg {
            delay: slow(20_000),
            ..Pg::default()
        },
        server: Server::default,
        shoppers: || Shoppers {
            slow_network: Some((1.0, slow(3_000))),
            ..Shoppers::default()
        },
    },
];
