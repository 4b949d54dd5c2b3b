//! Serves the shop at 127.0.0.1:8080: `JARI_URL`, `JARI_KEY`, `JARI_WEBHOOK_SECRET`.

use std::{env::var, sync::Arc};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let shop = shop::Shop {
        urls: [var("JARI_URL")?, "http://127.0.0.1:8080".to_owned()],
        secrets: [var("JARI_KEY")?, var("JARI_WEBHOOK_SECRET")?],
        ..shop::Shop::default()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    Ok(axum::serve(listener, shop::router(Arc::new(shop))).await?)
}
