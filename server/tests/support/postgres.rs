//! One PostgreSQL server for all tests that run at a time, and a database of its own for each of them.
//!
//! The first test that needs it makes and starts it; a small shell script, which outlives the tests however they end, stops
//! it and removes its files once nobody has used it for some seconds. Who uses it holds a shared lock on a file, which
//! the system lets go with the process: a killed run leaves nothing behind.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The user as whom the server runs when the tests run as root, whom it refuses: nobody.
const ORDINARY: u32 = 65_534;

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
        let (folder, in_use) = started.expect("the server starts");
        let name = format!("t{}", tempfile_name());
        let mut db = PgConnection::connect(&url(&folder, "postgres"))
            .await
            .expect("the server answers");
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut db)
            .await
            .expect("a database");
        Self {
            url: url(&folder, &name),
            _in_use: in_use,
        }
    }
}

fn tempfile_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_nanos();
    format!("{}_{now}", std::process::id())
}

fn url(folder: &Path, name: &str) -> String {
    let socket = folder.join("server");
    format!("postgres://jari@localhost/{name}?host={}", socket.display())
}

/// Makes sure that the server runs, and that it goes on while the returned lock is held.
fn take_part() -> (PathBuf, File) {
    let user = tempfile::tempfile().and_then(|file| file.metadata());
    let user = user.expect("a temporary file").uid();
    let folder = std::env::temp_dir().join(format!("jari-tests-postgres-{user}"));
    fs::create_dir_all(&folder).expect("a folder");
    let open = |name: &str| File::create(folder.join(name)).expect("a lock file");
    let turn = open("turn");
    turn.lock().expect("a turn");
    let in_use = open("users");
    in_use.lock_shared().expect("a place among the users");
    let programs = programs();
    let data = folder.join("server/data");
    let status = run_as(user, &programs.join("pg_ctl"))
        .args(["status", "-D"])
        .arg(&data)
        .status();
    if !status.expect("pg_ctl runs").success() {
        start(user, &programs, &folder);
    }
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "sh"]).arg(&folder);
    quiet(&mut keeper).process_group(0);
    keeper.status().expect("sh runs");
    drop(turn);
    (folder, in_use)
}

fn start(user: u32, programs: &Path, folder: &Path) {
    let server = folder.join("server");
    if server.exists() {
        fs::remove_dir_all(&server).expect("the old one is gone");
    }
    fs::create_dir(&server).expect("a folder");
    if user == 0 {
        chown(&server, Some(ORDINARY), Some(ORDINARY)).expect("root may");
    }
    let data = server.join("data");
    let made = run_as(user, &programs.join("initdb"))
        .args(["-U", "jari", "-A", "trust", "-E", "UTF8", "--locale=C"])
        .args(["--no-sync", "-D"])
        .arg(&data)
        .status();
    assert!(made.expect("initdb runs").success(), "initdb failed");
    // Only through a socket in its own folder: no port can be taken.
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c max_connections=300 -c fsync=on",
        server.display()
    );
    let started = run_as(user, &programs.join("pg_ctl"))
        .args(["start", "-w", "-D"])
        .arg(&data)
        .arg("-l")
        .arg(server.join("log"))
        .args(["-o", &options])
        .status();
    assert!(
        started.expect("pg_ctl runs").success(),
        "the server did not start: {:?}",
        fs::read_to_string(server.join("log"))
    );
}

/// Where the server's programs are: in the search path, or where Debian keeps them.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        places.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let complete = |place: &PathBuf| {
        ["initdb", "pg_ctl", "postgres"]
            .iter()
            .all(|program| place.join(program).is_file())
    };
    let found = places.into_iter().find(complete);
    found
        .expect("PostgreSQL is installed, as `cargo xtask test` does (Debian's package postgresql)")
}

fn run_as(user: u32, program: &Path) -> Command {
    let mut command = Command::new(program);
    if user == 0 {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    quiet(&mut command).current_dir("/");
    command
}

/// Nothing of the test's output is held open by what outlives the test.
fn quiet(command: &mut Command) -> &mut Command {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null())
}
