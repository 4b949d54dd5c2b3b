//! A scenario in a file, read again whenever the file changes.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context;

use crate::Handle;
use crate::scenario::Scenario;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Reads a scenario; the error names file, field, line and column.
pub fn read(path: &Path) -> anyhow::Result<Scenario> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    Scenario::from_json(&text)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("the scenario in {}", path.display()))
}

/// Follows a file's changes for as long as it is polled. A file that cannot be read leaves the
/// scenario as it is and is told about once.
pub async fn follow(handle: &Handle, path: &Path) {
    let mut seen = Stamp::of(path);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = Stamp::of(path);
        if now == seen {
            continue;
        }
        seen = now;
        let set = match read(path) {
            Ok(scenario) => handle.set_scenario(scenario).await,
            Err(error) => Err(error),
        };
        match set {
            Ok(()) => tracing::info!(path = %path.display(), "scenario read again"),
            Err(error) => tracing::error!("{error:#}; the scenario stays as it is"),
        }
    }
}

/// By what a change of a file is seen.
#[derive(Debug, PartialEq, Eq)]
struct Stamp(Option<(SystemTime, u64)>);

impl Stamp {
    fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len()))))
    }
}
