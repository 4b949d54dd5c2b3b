//! `test`: every check and test, in the order in which a mistake shows soonest.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::build;
use crate::install::install;
use crate::process::{self, lasted};
use crate::repo::Repo;
use crate::tidy;
use crate::tools::{self, Tool};

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Runs only these steps
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// Runs all but these steps
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    skip: Vec<String>,
    /// Lists the steps and runs none
    #[arg(long)]
    list: bool,
}

/// One check. Steps do not depend on each other, but that what `build` makes is used after it.
struct Step {
    name: &'static str,
    what: &'static str,
    needs: &'static [Tool],
    run: fn(&Repo) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the Rust code is formatted",
        needs: &[Tool::Rustfmt],
        run: fmt,
    },
    Step {
        name: "tidy",
        what: "the house rules hold",
        needs: &[],
        run: tidy::tidy,
    },
    Step {
        name: "clippy",
        what: "clippy finds nothing in what runs on servers",
        needs: &[Tool::Clippy],
        run: clippy,
    },
    Step {
        name: "clippy-wasm",
        what: "clippy finds nothing in what runs in the browser",
        needs: &[Tool::Clippy, Tool::WasmTarget],
        run: clippy_wasm,
    },
    Step {
        name: "machete",
        what: "no dependency is unused",
        needs: &[Tool::Machete],
        run: machete,
    },
    Step {
        name: "doc",
        what: "the machines' documentation builds",
        needs: &[],
        run: doc,
    },
    Step {
        name: "nextest",
        what: "the Rust tests pass",
        needs: &[Tool::Nextest, Tool::Postgres],
        run: nextest,
    },
    Step {
        name: "doctest",
        what: "the examples in documentation run",
        needs: &[],
        run: doctest,
    },
    Step {
        name: "build",
        what: "the release programs build",
        needs: build::NEEDS,
        run: release,
    },
    Step {
        name: "weight",
        what: "the browser's half is light enough",
        needs: &[],
        run: build::check_weight,
    },
    Step {
        name: "typecheck",
        what: "the browser tests type-check",
        needs: &[Tool::NpmPackages],
        run: typecheck,
    },
    Step {
        name: "browser",
        what: "shoppers see in a browser what they should",
        needs: &[Tool::NpmPackages, Tool::Chromium, Tool::KoreanFont],
        run: browser,
    },
];

/// Runs the chosen steps and stops at the first that fails.
pub(crate) fn test(repo: &Repo, options: &TestOptions) -> Result<()> {
    if options.list {
        for step in STEPS {
            println!("{:<12} {}", step.name, step.what);
        }
        return Ok(());
    }
    let steps: Vec<&Step> = STEPS
        .iter()
        .filter(|step| options.choose(step.name))
        .collect();
    let mut needs: Vec<Tool> = Vec::new();
    for &tool in tools::ALL {
        if steps.iter().any(|step| step.needs.contains(&tool)) {
            needs.push(tool);
        }
    }
    let started = Instant::now();
    install(repo, &needs)?;
    for step in &steps {
        take(repo, step)?;
    }
    println!(
        "== all {} steps passed in {}",
        steps.len(),
        lasted(started.elapsed())
    );
    Ok(())
}

impl TestOptions {
    fn choose(&self, name: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|chosen| chosen == name);
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.skip)
    }
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(STEPS.iter().map(|step| step.name))
}

fn take(repo: &Repo, step: &Step) -> Result<()> {
    let name = step.name;
    println!("== {name}: {}", step.what);
    let started = Instant::now();
    (step.run)(repo).with_context(|| {
        format!(
            "step `{name}` failed after {}; again alone: cargo xtask test --only {name}",
            lasted(started.elapsed())
        )
    })?;
    println!("== {name}: passed in {}", lasted(started.elapsed()));
    Ok(())
}

fn fmt(repo: &Repo) -> Result<()> {
    process::run(&mut repo.cargo(&["fmt", "--all", "--check"]))
}

/// The browser's entry point cannot be built here with the others: its features would become theirs.
/// `app` is linted as the server uses it.
fn clippy(repo: &Repo) -> Result<()> {
    let arguments = [
        "clippy",
        "--workspace",
        "--exclude",
        "frontend",
        "--all-targets",
    ];
    process::run(repo.cargo(&arguments).args(["--", "-D", "warnings"]))
}

/// Lints `app` too, as the browser uses it: clippy follows the workspace's own dependencies.
fn clippy_wasm(repo: &Repo) -> Result<()> {
    let arguments = ["clippy", "-p", "frontend", "-p", "payment"];
    let target = ["--target", "wasm32-unknown-unknown"];
    process::run(
        repo.cargo(&arguments)
            .args(target)
            .args(["--", "-D", "warnings"]),
    )
}

fn machete(repo: &Repo) -> Result<()> {
    process::run(&mut repo.cargo(&["machete"]))
}

fn doc(repo: &Repo) -> Result<()> {
    let mut command = repo.cargo(&["doc", "--no-deps", "-p", "payment"]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn nextest(repo: &Repo) -> Result<()> {
    let mut command = repo.cargo(&["nextest", "run", "--workspace", "--exclude", "frontend"]);
    // A snapshot that differs fails, and nothing is written beside it.
    process::run(command.env("INSTA_UPDATE", "no"))
}

fn doctest(repo: &Repo) -> Result<()> {
    process::run(&mut repo.cargo(&["test", "--doc", "-p", "payment"]))
}

fn release(repo: &Repo) -> Result<()> {
    build::build(repo, &build::BuildOptions { debug: false })
}

fn typecheck(repo: &Repo) -> Result<()> {
    process::run(
        repo.command("tsc")
            .arg("--noEmit")
            .current_dir(repo.end2end()),
    )
}

/// The tests start the real programs themselves, a fresh pair each.
fn browser(repo: &Repo) -> Result<()> {
    for name in ["jari", "fakepg"] {
        if !repo.program("release", name).is_file() {
            bail!("there is no built `{name}` yet; first: cargo xtask build");
        }
    }
    let chromium = tools::chromium(repo).context("there is no Chromium")?;
    let mut command = repo.command("playwright");
    command
        .arg("test")
        .current_dir(repo.end2end())
        .env("CHROME_PATH", chromium);
    process::run(&mut command)
}
