//! The shelf, new orders and their lines, and the stock.

use payment::attempt::Holding;
use payment::id::{OrderId, Sku};
use payment::money::Won;
use payment::order::OrderStatus;
use server::store::rules::stock::added;
use server::store::{LineRow, NewOrderRow, OrderMade, ProductRow};

use super::{Order, Tables};

/// What is sold, as the databases' first files have it: sku, name in Korean and English, price, pieces.
const SHELF: [(&str, [&str; 2], i64, i64); 6] = [
    ("mug", ["아침 머그", "Morning mug"], 18_000, 10_000_000),
    ("teapot", ["작은 찻주전자", "Small teapot"], 42_000, 120),
    (
        "notebook",
        ["실 제본 노트", "Thread-bound notebook"],
        12_000,
        800,
    ),
    ("candle", ["솔숲 향초", "Pine-wood candle"], 26_000, 240),
    ("tote", ["캔버스 토트백", "Canvas tote"], 33_000, 300),
    ("poster", ["달 포스터", "Moon poster"], 15_000, 1),
];

/// A product.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    pub(crate) sku: Sku,
    name: [String; 2],
    price: Won,
    pub(crate) total: i64,
    pub(crate) reserved: i64,
    pub(crate) sold: i64,
}

impl Product {
    /// How many are neither reserved nor sold.
    pub(crate) const fn free(&self) -> i64 {
        self.total - self.reserved - self.sold
    }
}

impl Tables {
    /// A shop with so many pieces of its scarcest product, the last one on the shelf.
    pub(crate) fn new(scarce: u32) -> Self {
        let product = |(sku, name, price, total): (&str, [&str; 2], i64, i64)| Product {
            sku: Sku::parse(sku).expect("a plain word is a sku"),
            name: name.map(str::to_owned),
            price: Won::new(price).expect("a small price is one"),
            total,
            reserved: 0,
            sold: 0,
        };
        let mut products: Vec<Product> = SHELF.into_iter().map(product).collect();
        if let Some(last) = products.last_mut() {
            last.total = i64::from(scarce);
        }
        Self {
            products,
            ..Self::default()
        }
    }

    pub(crate) fn products(&self) -> Vec<ProductRow> {
        let row = |product: &Product| ProductRow {
            sku: product.sku.clone(),
            name: product.name.clone(),
            blurb: [String::new(), String::new()],
            price: product.price,
            available: u64::try_from(product.free()).unwrap_or(0),
        };
        self.products.iter().map(row).collect()
    }

    pub(crate) fn make_order(&mut self, new: NewOrderRow) -> OrderMade {
        let mut amount = Won::ZERO;
        let mut lines = Vec::new();
        for (sku, quantity) in &new.items {
            let found = self.products.iter().position(|product| product.sku == *sku);
            let Some(index) = found else {
                return OrderMade::UnknownSku(sku.clone());
            };
            let product = &self.products[index];
            let wanted = i64::from(*quantity);
            if product.free() < wanted {
                return OrderMade::OutOfStock(sku.clone());
            }
            let line = product.price.times(*quantity);
            let Some(sum) = line.and_then(|line| amount.plus(line)) else {
                return OrderMade::TooMuch;
            };
            amount = sum;
            lines.push((index, wanted));
        }
        lines.sort_unstable();
        let order = Order {
            owner: new.owner,
            amount,
            language: new.language,
            created_at: new.at,
            expires_at: new.expires_at,
            lapsed: false,
            lines,
            attempts: Vec::new(),
            status: OrderStatus::Pending,
        };
        self.orders.insert(new.id, order);
        OrderMade::Made(amount)
    }

    /// The lines of an order; prices never change.
    pub(crate) fn lines(&self, id: &OrderId) -> Vec<LineRow> {
        let line = |(index, quantity): &(usize, i64)| {
            let product = &self.products[*index];
            LineRow {
                sku: product.sku.clone(),
                name: product.name.clone(),
                quantity: u32::try_from(*quantity).unwrap_or(0),
                price: product.price,
            }
        };
        let lines = self.orders.get(id).map(|order| order.lines.iter());
        lines.into_iter().flatten().map(line).collect()
    }

    /// Moves the stock of an order's lines; false, and nothing moved, when there is not enough.
    pub(crate) fn move_stock(&mut self, order: &OrderId, from: Holding, to: Holding) -> bool {
        if from == to {
            return true;
        }
        let lines = self.orders.get(order).map(|order| order.lines.clone());
        let lines = lines.unwrap_or_default();
        let (reserved, sold) = added(from, to);
        let enough = lines.iter().all(|(index, quantity)| {
            let taken = quantity * (reserved + sold);
            taken <= 0 || self.products[*index].free() >= taken
        });
        if enough {
            for (index, quantity) in lines {
                let product = &mut self.products[index];
                product.reserved += quantity * reserved;
                product.sold += quantity * sold;
            }
        }
        enough
    }
}
