//! One PostgreSQL server for all tests that run at a time, and a database of its own for each of them.
//!
//! The first test that needs it makes and starts it; a small shell script, which outlives the tests however they end, stops
//! it and removes its files once nobody has used it for some seconds. Who uses it holds a shared lock on a file, which
//! the system lets go with the process: a killed run leaves nothing behind.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::postgres_server::{self, quiet};

/// Stops the server when no test holds the lock twice in a row. Only one of these works, whoever starts how many.
const KEEPER: &str = r#"
(exec 9>"$1/keeper" && flock -n 9 || exit 0
idle=0
while sleep 4; do
    if flock -n "$1/users" true; then idle=$((idle + 1)); else idle=0; fi
    [ "$idle" -ge 2 ] || continue
    flock "$1/turn" sh -c '
        flock -n "$1/users" true || exit 1
        pid=$(head -n 1 "$1/server/data/postmaster.pid") && kill -QUIT "$pid"
        while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
        rm -rf "$1/server"' sh "$1" && exit 0
done) &
"#;

/// A database of its own.
pub(crate) struct Database {
    pub(crate) url: String,
    _in_use: File,
}

impl Database {
    /// A new, empty one.
    pub(crate) async fn make() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let started = tokio::task::spawn_blocking(take_part).await;
        let (server, in_use) = started.expect("the server starts");
        let name = format!("t{}", tempfile_name());
        let mut db = PgConnection::connect(&postgres_server::url(&server, "postgres"))
            .await
            .expect("the server answers");
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut db)
            .await
            .expect("a database");
        Self {
            url: postgres_server::url(&server, &name),
            _in_use: in_use,
        }
    }
}

fn tempfile_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_nanos();
    format!("{}_{now}", std::process::id())
}

/// Makes sure that the server runs, and that it goes on while the returned lock is held.
fn take_part() -> (PathBuf, File) {
    let user = postgres_server::user();
    let folder = std::env::temp_dir().join(format!("jari-tests-postgres-{user}"));
    fs::create_dir_all(&folder).expect("a folder");
    let open = |name: &str| File::create(folder.join(name)).expect("a lock file");
    let turn = open("turn");
    turn.lock().expect("a turn");
    let in_use = open("users");
    in_use.lock_shared().expect("a place among the users");
    let server = folder.join("server");
    if !postgres_server::control(&server, &["status"]).success() {
        if server.exists() {
            fs::remove_dir_all(&server).expect("the old one is gone");
        }
        postgres_server::make(&server);
    }
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "sh"]).arg(&folder);
    quiet(&mut keeper).process_group(0);
    keeper.status().expect("sh runs");
    drop(turn);
    (server, in_use)
}
