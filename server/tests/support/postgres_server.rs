//! A PostgreSQL server of ours as processes: made and started as an ordinary user, through a socket in its own folder.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The user as whom the server runs when we run as root, whom it refuses: nobody.
const ORDINARY: u32 = 65_534;

/// Makes an empty server in a folder that is not there yet, and starts it.
pub(crate) fn make(server: &Path) {
    fs::create_dir(server).expect("a folder");
    if user() == 0 {
        chown(server, Some(ORDINARY), Some(ORDINARY)).expect("root may");
    }
    let made = run_as(user(), "initdb")
        .args(["-U", "jari", "-A", "trust", "-E", "UTF8", "--locale=C"])
        .args(["--no-sync", "-D"])
        .arg(data(server))
        .status();
    assert!(made.expect("initdb runs").success(), "initdb failed");
    start(server);
}

/// Starts a server that was made and does not run.
pub(crate) fn start(server: &Path) {
    // Only through a socket in its own folder: no port can be taken.
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c max_connections=300 -c fsync=on",
        server.display()
    );
    let log = server.join("log");
    let log = log.to_str().expect("a path of text");
    let started = control(server, &["start", "-w", "-l", log, "-o", &options]);
    assert!(
        started.success(),
        "the server did not start: {:?}",
        fs::read_to_string(log)
    );
}

/// Runs `pg_ctl` for a server.
pub(crate) fn control(server: &Path, arguments: &[&str]) -> ExitStatus {
    let status = run_as(user(), "pg_ctl")
        .args(arguments)
        .arg("-D")
        .arg(data(server))
        .status();
    status.expect("pg_ctl runs")
}

/// The address of one of a server's databases.
pub(crate) fn url(server: &Path, database: &str) -> String {
    let socket = server.display();
    format!("postgres://jari@localhost/{database}?host={socket}")
}

fn data(server: &Path) -> PathBuf {
    server.join("data")
}

/// Who we are.
pub(crate) fn user() -> u32 {
    let file = tempfile::tempfile().and_then(|file| file.metadata());
    file.expect("a temporary file").uid()
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

fn run_as(user: u32, program: &str) -> Command {
    let mut command = Command::new(programs().join(program));
    if user == 0 {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    quiet(&mut command).current_dir("/");
    command
}

/// Nothing of our output is held open by what outlives us.
pub(crate) fn quiet(command: &mut Command) -> &mut Command {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null())
}
