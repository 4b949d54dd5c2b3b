//! `dev`: the shop and the fake gateway on this machine, until Ctrl-C.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::build;
use crate::install::install;
use crate::process;
use crate::repo::Repo;

/// Both programs are up within a second or two; ten times that means that they will not be.
const START_WAIT: Duration = Duration::from_secs(20);

/// A server may finish the answers it owes; then its time is over.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// How often the programs and the signals are looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct DevOptions {
    /// The shop's port
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The fake gateway's port
    #[arg(long, default_value_t = 3900)]
    fakepg_port: u16,
    /// Starts what was built before
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    build: build::BuildOptions,
}

/// Installs, builds, starts, prints the addresses, and stays until a signal or a death.
pub(crate) fn dev(repo: &Repo, options: &DevOptions) -> Result<()> {
    // Before the build too: nobody should wait minutes to hear it.
    check_free("the shop", "--port", options.port)?;
    check_free("the fake gateway", "--fakepg-port", options.fakepg_port)?;
    if !options.no_build {
        install(repo, build::NEEDS)?;
        build::build(repo, &options.build)?;
    }

    let asked_to_stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&asked_to_stop))?;
    }
    let shop = format!("http://127.0.0.1:{}", options.port);
    let gateway = format!("http://127.0.0.1:{}", options.fakepg_port);
    let gateway_addr = format!("127.0.0.1:{}", options.fakepg_port);
    let profile = options.build.profile();

    let mut fakepg = repo.command(&repo.program(profile, "fakepg").to_string_lossy());
    fakepg.args(["--addr", &gateway_addr, "--webhook-url", &shop]);
    let mut jari = repo.command(&repo.program(profile, "jari").to_string_lossy());
    jari.arg("serve")
        .env("JARI_ENV", "development")
        .env("DATABASE_URL", database_url())
        .env("JARI_FAKE_PG", "on")
        .env("JARI_ADDR", format!("127.0.0.1:{}", options.port))
        .env("JARI_FAKEPG_URL", &gateway);
    if std::env::var_os("JARI_MAIL_DIR").is_none() {
        jari.env("JARI_MAIL_DIR", "target/mail");
    }

    let mut programs = vec![Program::start("fakepg", &mut fakepg)?];
    programs.push(Program::start("jari", &mut jari)?);
    wait_for(
        &mut programs,
        &asked_to_stop,
        options.fakepg_port,
        "/_control/ledger",
    )?;
    wait_for(&mut programs, &asked_to_stop, options.port, "/readyz")?;
    if !asked_to_stop.load(Ordering::Relaxed) {
        println!("\nShop: {shop}\nFake gateway: {gateway}\nCtrl-C stops both.\n");
    }
    while !asked_to_stop.load(Ordering::Relaxed) {
        check_alive(&mut programs)?;
        thread::sleep(LOOK);
    }
    println!("\nstopping");
    Ok(())
}

/// A program that we started, stopped when this value goes.
struct Program {
    name: &'static str,
    child: Child,
}

impl Program {
    fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        // In a group of its own, so that Ctrl-C reaches it once, through us.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let child = command.stdin(Stdio::null()).spawn().with_context(|| {
            format!("cannot start {name}; without --no-build it would be built first")
        })?;
        Ok(Self { name, child })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let asked = matches!(self.child.try_wait(), Ok(None))
            && process::answer(Command::new("kill").args(["-TERM", &id])).is_some();
        let until = Instant::now() + if asked { STOP_WAIT } else { Duration::ZERO };
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(LOOK);
        }
        // Both fail only for a child that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check_alive(programs: &mut [Program]) -> Result<()> {
    for program in programs {
        if let Some(status) = program.ended()? {
            bail!(
                "{} ended by itself ({status}); its last words are above",
                program.name
            );
        }
    }
    Ok(())
}

fn check_free(what: &str, flag: &str, port: u16) -> Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(drop)
        .with_context(|| {
            format!(
                "port {port} for {what} is taken; stop what holds it or choose another by {flag}"
            )
        })
}

/// Returns when the address answers 200, or when a signal asks to stop.
fn wait_for(
    programs: &mut [Program],
    asked_to_stop: &AtomicBool,
    port: u16,
    path: &str,
) -> Result<()> {
    let until = Instant::now() + START_WAIT;
    while !asked_to_stop.load(Ordering::Relaxed) {
        check_alive(programs)?;
        if get(port, path).is_ok_and(|status| status == 200) {
            return Ok(());
        }
        if Instant::now() >= until {
            bail!(
                "no answer from http://127.0.0.1:{port}{path} in {} s",
                START_WAIT.as_secs()
            );
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// The status that a GET is answered with.
fn get(port: u16, path: &str) -> Result<u16> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    )?;
    // "HTTP/1.1 200" is all that is asked for.
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let head = std::str::from_utf8(&head)?;
    Ok(head.rsplit(' ').next().unwrap_or_default().parse()?)
}

/// The shop's database: the machine's own setting where it is one that the shop can use.
fn database_url() -> String {
    let set = std::env::var("DATABASE_URL").ok();
    set.filter(|url| url.starts_with("sqlite:"))
        .unwrap_or_else(|| "sqlite://jari.db".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{check_free, get};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_status_is_read_from_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("our own call");
            let mut asked = [0; 16];
            stream.read_exact(&mut asked).expect("a request line");
            stream
                .write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
                .expect("an open socket");
            asked
        });
        assert_eq!(get(port, "/readyz").expect("an answer"), 503);
        assert_eq!(&server.join().expect("the server"), b"GET /readyz HTTP");
    }

    #[test]
    fn a_taken_port_is_named_with_the_flag_that_changes_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let error = check_free("the shop", "--port", port).expect_err("the port is taken");
        assert!(
            error
                .to_string()
                .contains(&format!("port {port} for the shop"))
        );
        assert!(error.to_string().contains("--port"));
    }
}
