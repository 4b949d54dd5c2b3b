//! Installing what is missing. What is there is left alone, and no tool of the user's is replaced.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::process::{self, lasted};
use crate::repo::Repo;
use crate::tools::{self, Crate, Source, Tool};

/// Our tools run for seconds and are built once: to build them fast is worth more than their speed.
const QUICK_BUILD: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// Installs those of `needs` that are missing; the long ones side by side.
pub(crate) fn install(repo: &Repo, needs: &[Tool]) -> Result<()> {
    let mut crates = Vec::new();
    let mut packages = Vec::new();
    let mut npm = false;
    for &tool in needs {
        if tool.is_there(repo)? {
            continue;
        }
        match tool.source(repo)? {
            Source::Rustup(arguments) => rustup(repo, arguments)?,
            Source::Cargo(wanted) => crates.push(wanted),
            Source::Npm => npm = true,
            Source::Apt(package) => packages.push(package),
        }
    }
    if npm {
        // Known at once, not after a quarter of an hour of compiling.
        node_is_there(repo)?;
    }
    // Needed before the crates can be built, while the other packages may come alongside.
    let libraries = libraries_for(repo, &crates);
    if !libraries.is_empty() {
        apt(repo, &libraries)?;
    }
    thread::scope(|scope| {
        let jobs = [
            scope.spawn(|| {
                crates
                    .iter()
                    .try_for_each(|wanted| cargo_install(repo, wanted))
            }),
            scope.spawn(|| {
                if packages.is_empty() {
                    Ok(())
                } else {
                    apt(repo, &packages)
                }
            }),
            scope.spawn(|| if npm { npm_ci(repo) } else { Ok(()) }),
        ];
        for job in jobs {
            job.join().expect("an installing thread does not panic")?;
        }
        Ok(())
    })
}

/// The oldest Node.js that the browser tests' packages run on.
const NODE_MAJOR: u32 = 20;

fn node_is_there(repo: &Repo) -> Result<()> {
    let version = std::process::Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let version = version.unwrap_or_default();
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|n| n.parse().ok());
    if major.is_none_or(|major: u32| major < NODE_MAJOR) || repo.which("npm").is_none() {
        bail!("Node.js {NODE_MAJOR} or newer with npm is needed beforehand (found: {version:?})");
    }
    Ok(())
}

fn rustup(repo: &Repo, arguments: &[&str]) -> Result<()> {
    let what = arguments.join(" ");
    if repo.which("rustup").is_none() {
        bail!("no rustup for `rustup {what}`: bring that part of Rust by what brought your Rust");
    }
    timed(&format!("rustup {what}"), "half a minute", || {
        process::run_logged(repo, "rustup", repo.command("rustup").args(arguments))
    })
}

fn cargo_install(repo: &Repo, wanted: &Crate) -> Result<()> {
    let Crate {
        name,
        version,
        arguments,
        takes,
    } = wanted;
    let mut command = repo.cargo(&["install", name, "--version", &format!("={version}")]);
    command.args(*arguments).envs(QUICK_BUILD);
    // Another version of the user's stays; ours goes where only this project looks.
    let program = if *name == "wasm-bindgen-cli" {
        "wasm-bindgen"
    } else {
        name
    };
    if repo.which(program).is_some() {
        command.arg("--force").arg("--root").arg(repo.own_tools());
    }
    timed(&format!("{name} {version}"), takes, || {
        process::run_logged(repo, name, &mut command)
    })
}

fn npm_ci(repo: &Repo) -> Result<()> {
    if repo.which("npm").is_none() {
        bail!("no npm: Node.js 20 or newer, with npm, is needed beforehand");
    }
    let mut command = repo.command("npm");
    // Playwright would fetch browsers of its own; the tests use the system's.
    command
        .arg("ci")
        .current_dir(repo.end2end())
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    timed("the npm packages of end2end", "half a minute", || {
        process::run_logged(repo, "npm", &mut command)
    })?;
    fs::copy(
        repo.end2end().join("package-lock.json"),
        tools::installed_lock(repo),
    )?;
    Ok(())
}

/// The Debian packages without which the crates do not build.
fn libraries_for(repo: &Repo, crates: &[Crate]) -> Vec<&'static str> {
    let mut libraries = Vec::new();
    if repo.which("cc").is_none() {
        libraries.push("build-essential");
    }
    let openssl = || process::answer(repo.command("pkg-config").args(["--exists", "openssl"]));
    let links_openssl = crates.iter().any(|wanted| wanted.name == "cargo-leptos");
    if links_openssl && openssl().is_none() {
        libraries.extend(["pkg-config", "libssl-dev"]);
    }
    libraries
}

fn apt(repo: &Repo, packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let by_hand = format!("apt-get install --no-install-recommends {names}");
    if repo.which("apt-get").is_none() {
        bail!("missing here: {names}. On Debian: `{by_hand}`; elsewhere what brings the same");
    }
    let user = process::answer(repo.command("id").arg("-u"));
    let is_root = user.is_some_and(|id| id.trim() == "0");
    if !is_root && repo.which("sudo").is_none() {
        bail!("neither root nor sudo here; as root run: {by_hand}");
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = repo.command(if is_root { "env" } else { "sudo" });
        command
            .args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
            .args(arguments);
        command
    };
    let install = || {
        let mut command: Command = apt_get(&["install", "-y", "--no-install-recommends"]);
        process::run_logged(repo, "apt", command.args(packages))
    };
    timed(&format!("{names} by apt-get"), "1 minute", || {
        // The lists of a fresh machine are empty, those of an old one name files that are gone.
        process::run_logged(repo, "apt-update", &mut apt_get(&["update"]))?;
        install()
    })
    .with_context(|| format!("try by hand: {by_hand}"))
}

/// Says what is being installed and about how long it takes, then how long it took.
fn timed(what: &str, takes: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("-- installing {what} (about {takes} on two cores)");
    let started = Instant::now();
    install().with_context(|| format!("could not install {what}"))?;
    println!("-- installed {what} in {}", lasted(started.elapsed()));
    Ok(())
}
