//! Shoppers: they order, pay in the window, come back, reload, open second tabs, leave and return.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::id::{IdempotencyKey, OrderId};
use payment::money::Won;
use payment::time::Millis;
use payment::view::Stage;
use server::refund::Cancel;
use server::store::{Asker, OrderMade, Owner};

use crate::fault::Fault;
use crate::gateway::plain;
use crate::network::{self, Window};
use crate::tab::{End, Returned, Tab};
use crate::world::{World, lock};

/// One shopper with one order.
#[derive(Clone)]
pub(crate) struct Shopper {
    pub(crate) world: Arc<World>,
    pub(crate) order: OrderId,
    pub(crate) owner: Owner,
    /// The storage of the tab: which confirms were begun, and when.
    pub(crate) notes: Arc<Mutex<BTreeMap<String, Millis>>>,
}

/// How many windows a shopper opens at most, and how often it loads a page again.
const MOST_WINDOWS: u32 = 6;
const MOST_VISITS: u32 = 40;

/// A shopper's whole story; returns when it has seen an end.
pub(crate) async fn shop(world: Arc<World>, number: u32) {
    world.pause(0, world.plan.storm.get()).await;
    let owner = Owner(format!("shopper-{number}"));
    let mut order = None;
    for attempt in 0..5 {
        let id = OrderId::parse(&format!("ord_{number}_{attempt}")).expect("a plain id");
        // The first on the shelf is plentiful, the last one scarce.
        let sku = {
            let scarce = world.perhaps(0.3);
            let products = &lock(&world.tables).products;
            let product = if scarce {
                products.last()
            } else {
                products.first()
            };
            product
                .expect("there is something on the shelf")
                .sku
                .clone()
        };
        let quantity = if world.perhaps(0.8) { 1 } else { 2 };
        let made = network::make_order(&world, id.clone(), owner.clone(), (sku, quantity));
        match tokio::time::timeout(Duration::from_secs(20), made).await {
            Ok(Some(OrderMade::Made(_))) => {
                order = Some(id);
                break;
            }
            Ok(Some(_)) => return,
            Ok(None) | Err(_) => world.pause(500, 3_000).await,
        }
    }
    let Some(order) = order else { return };
    world.note("shopper", format_args!("{number} ordered {order}"));
    let shopper = Shopper {
        world,
        order,
        owner,
        notes: Arc::default(),
    };
    shopper.buy().await;
    shopper.want_back().await;
}

impl Shopper {
    /// Comes to the order's page until it has an end, paying where that is offered.
    async fn buy(&self) {
        let mut windows = 0;
        for _ in 0..MOST_VISITS {
            let Some(tab) = self.visit(None).await else {
                continue;
            };
            match tab.live().await {
                End::Pay if windows < MOST_WINDOWS => {
                    windows += 1;
                    if self.pay().await {
                        return;
                    }
                }
                End::Final(stage) if stage != Stage::StillUnknown => return,
                End::Pay => return,
                End::Final(_) | End::Left => self.world.pause(20_000, 90_000).await,
                End::Reload => {}
            }
            if self.world.is_calm() && self.world.perhaps(0.3) {
                return;
            }
        }
    }

    /// Now and then the shop gives a part back, and the shopper wants all that is left; maybe both at once.
    async fn want_back(&self) {
        let world = &self.world;
        if world.strikes(Fault::OperatorRefunds) {
            let amount = Won::new(100 * i64::try_from(world.draw(1, 100)).unwrap_or(1)).ok();
            let wish = self.wish("part", Asker::Operator, amount);
            let asks = insist(Arc::clone(world), wish);
            if world.perhaps(0.5) {
                tokio::spawn(asks);
            } else {
                asks.await;
            }
        }
        if world.strikes(Fault::ShopperCancels) {
            world.pause(0, 3_000).await;
            // The cut-off that is set by default.
            let cut_off = Millis::from_secs(86_400);
            let wish = self.wish("all", Asker::Shopper(self.owner.clone(), cut_off), None);
            insist(Arc::clone(world), wish).await;
        }
    }

    fn wish(&self, what: &str, asker: Asker, amount: Option<Won>) -> Cancel {
        let key = format!("wish-{what}-{}", self.order.as_str());
        Cancel {
            account: None,
            order_id: self.order.clone(),
            asker,
            client_key: IdempotencyKey::parse(&key).expect("a plain key"),
            amount,
            reason: what.to_owned(),
        }
    }

    /// Loads a page into a new tab.
    async fn visit(&self, returned: Option<&Returned>) -> Option<Tab> {
        let reference = returned.map(|returned| returned.window.reference.clone());
        let load = network::load(&self.world, &self.order, reference);
        let page = tokio::time::timeout(Duration::from_secs(20), load)
            .await
            .ok()
            .flatten();
        match page {
            Some(page) => Some(Tab::new(self.clone(), page, returned.cloned())),
            None => {
                self.world.pause(500, 4_000).await;
                None
            }
        }
    }

    /// Opens the window, authenticates, and comes back; true when that led to an end.
    async fn pay(&self) -> bool {
        let world = &self.world;
        let open = network::open(world, &self.order, &self.owner);
        let opened = tokio::time::timeout(Duration::from_secs(20), open).await;
        let Some(window) = opened.ok().flatten() else {
            world.pause(500, 3_000).await;
            return false;
        };
        world.pause(500, 9_000).await;
        if world.perhaps(0.1) {
            // Closes the window without paying.
            return false;
        }
        let amount = lock(&world.tables)
            .orders
            .get(&self.order)
            .map(|order| order.amount);
        let Some(amount) = amount else { return false };
        let key = self.authenticate(&window, plain(amount));
        world.pause(50, 1_500).await;
        let returned = Returned {
            window,
            key,
            amount,
        };
        if world.strikes(Fault::DoubleClick) {
            let (shopper, returned) = (self.clone(), returned.clone());
            tokio::spawn(async move { shopper.come_back(&returned).await });
        }
        self.come_back(&returned).await
    }

    fn authenticate(&self, window: &Window, amount: u64) -> String {
        let order_id = window.gateway_order_id.as_str();
        self.world
            .authenticate(self.order.as_str(), order_id, amount)
    }

    /// The page that the window returns to, and whatever the shopper does there.
    async fn come_back(&self, returned: &Returned) -> bool {
        for _ in 0..MOST_VISITS {
            let Some(tab) = self.visit(Some(returned)).await else {
                continue;
            };
            if self.world.strikes(Fault::SecondTab) {
                let (shopper, returned) = (self.clone(), returned.clone());
                tokio::spawn(async move {
                    shopper.world.pause(100, 20_000).await;
                    if let Some(tab) = shopper.visit(Some(&returned)).await {
                        tab.live().await;
                    }
                });
            }
            match tab.live().await {
                End::Final(Stage::StillUnknown) | End::Pay => return false,
                End::Final(_) => return true,
                End::Reload => {}
                End::Left => self.world.pause(5_000, 120_000).await,
            }
        }
        false
    }
}

/// Asks for money back until it is heard what became of it, always with the same key.
async fn insist(world: Arc<World>, wish: Cancel) {
    for _ in 0..6 {
        let asks = network::cancel(&world, wish.clone());
        let heard = tokio::time::timeout(Duration::from_secs(30), asks).await;
        if heard == Ok(true) {
            return;
        }
        world.pause(500, 10_000).await;
    }
}
