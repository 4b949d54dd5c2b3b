//! A PostgreSQL server of one's own, to be stopped and killed at will.
//!
//! A small shell script stops it and removes its files when its owner ends, however that ends: the system closes the pipe
//! that the script reads.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

use crate::postgres_server::{self, quiet};

/// Waits for the end of the pipe.
const KEEPER: &str = r#"
read -r _
pid=$(head -n 1 "$1/server/data/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
rm -rf "$1"
"#;

/// A running server. Dropping it ends it and removes its files.
#[derive(Debug)]
pub(crate) struct OwnServer {
    /// Its folder, as [`postgres_server`] knows it.
    pub(crate) server: PathBuf,
    keeper: Child,
}

impl OwnServer {
    /// Makes and starts one; blocks for some seconds.
    pub(crate) fn start() -> Self {
        // Its folder must be one that an ordinary user may enter: the script removes it.
        let folder = TempDir::new().expect("a folder").keep();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&folder, open).expect("it is ours");
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&folder);
        // In a group of its own: Ctrl-C must leave it its work.
        let keeper = quiet(&mut keeper)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        let own = Self {
            server: folder.join("server"),
            keeper: keeper.expect("sh runs"),
        };
        postgres_server::make(&own.server);
        own
    }

    /// Makes a new, empty database and gives its address.
    pub(crate) async fn database(&self, name: &str) -> Result<String, sqlx::Error> {
        let mut db = PgConnection::connect(&postgres_server::url(&self.server, "postgres")).await?;
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut db)
            .await?;
        db.close().await?;
        Ok(postgres_server::url(&self.server, name))
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It ends by itself, and we have done what we could.
        let _ = self.keeper.wait();
    }
}
