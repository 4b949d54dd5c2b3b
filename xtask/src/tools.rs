//! What the commands need beside Rust and Node.js, and whether it is there. `install` brings it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process;
use crate::repo::Repo;

/// 0.3.11 asks for a newer Rust than ours.
const CARGO_LEPTOS: &str = "0.3.10";
const CARGO_NEXTEST: &str = "0.9.143";
const CARGO_MACHETE: &str = "0.9.2";

/// One thing that some command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tool {
    WasmTarget,
    Rustfmt,
    Clippy,
    CargoLeptos,
    WasmBindgen,
    Nextest,
    Postgres,
    Machete,
    NpmPackages,
    Chromium,
    KoreanFont,
}

/// Everything that any command needs.
pub(crate) const ALL: &[Tool] = &[
    Tool::WasmTarget,
    Tool::Rustfmt,
    Tool::Clippy,
    Tool::CargoLeptos,
    Tool::WasmBindgen,
    Tool::Nextest,
    Tool::Postgres,
    Tool::Machete,
    Tool::NpmPackages,
    Tool::Chromium,
    Tool::KoreanFont,
];

/// How a tool is brought.
pub(crate) enum Source {
    /// `rustup` with these arguments.
    Rustup(&'static [&'static str]),
    /// `cargo install` of this crate.
    Cargo(Crate),
    /// `npm ci` in `end2end/`.
    Npm,
    /// This Debian package.
    Apt(&'static str),
}

/// A program that cargo builds.
pub(crate) struct Crate {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) arguments: &'static [&'static str],
    /// How long it takes to build on two cores, for people to know.
    pub(crate) takes: &'static str,
}

impl Tool {
    /// Whether the tool is there, in the version that we need.
    pub(crate) fn is_there(self, repo: &Repo) -> Result<bool> {
        Ok(match self {
            Self::WasmTarget => wasm_target_is_there(repo),
            Self::Rustfmt => process::answer(&mut repo.cargo(&["fmt", "--version"])).is_some(),
            Self::Clippy => process::answer(&mut repo.cargo(&["clippy", "--version"])).is_some(),
            Self::CargoLeptos => says(repo, "cargo", &["leptos", "--version"], CARGO_LEPTOS),
            Self::WasmBindgen => says(
                repo,
                "wasm-bindgen",
                &["--version"],
                &wasm_bindgen_version(repo)?,
            ),
            // Any nextest runs our tests alike; the version is only what we install.
            Self::Nextest => process::answer(&mut repo.cargo(&["nextest", "--version"])).is_some(),
            Self::Postgres => postgres_is_there(repo),
            Self::Machete => says(repo, "cargo", &["machete", "--version"], CARGO_MACHETE),
            Self::NpmPackages => npm_packages_are_there(repo)?,
            Self::Chromium => chromium(repo).is_some(),
            Self::KoreanFont => korean_font_is_there(repo),
        })
    }

    pub(crate) fn source(self, repo: &Repo) -> Result<Source> {
        Ok(match self {
            Self::WasmTarget => Source::Rustup(&["target", "add", "wasm32-unknown-unknown"]),
            Self::Rustfmt => Source::Rustup(&["component", "add", "rustfmt"]),
            Self::Clippy => Source::Rustup(&["component", "add", "clippy"]),
            Self::CargoLeptos => Source::Cargo(Crate {
                name: "cargo-leptos",
                version: CARGO_LEPTOS.to_owned(),
                arguments: &["--locked", "--features", "no_downloads"],
                takes: "10 to 14 minutes",
            }),
            // Its own lock names a dependency that was withdrawn since.
            Self::WasmBindgen => Source::Cargo(Crate {
                name: "wasm-bindgen-cli",
                version: wasm_bindgen_version(repo)?,
                arguments: &[],
                takes: "2 minutes",
            }),
            Self::Nextest => Source::Cargo(Crate {
                name: "cargo-nextest",
                version: CARGO_NEXTEST.to_owned(),
                arguments: &[
                    "--locked",
                    "--no-default-features",
                    "--features=default-no-update",
                ],
                takes: "5 minutes",
            }),
            Self::Machete => Source::Cargo(Crate {
                name: "cargo-machete",
                version: CARGO_MACHETE.to_owned(),
                arguments: &["--locked"],
                takes: "1 minute",
            }),
            Self::Postgres => Source::Apt("postgresql"),
            Self::NpmPackages => Source::Npm,
            Self::Chromium => Source::Apt("chromium"),
            Self::KoreanFont => Source::Apt("fonts-noto-cjk"),
        })
    }
}

/// The browser for the tests: `CHROME_PATH`, or the first known name in the search path.
pub(crate) fn chromium(repo: &Repo) -> Option<PathBuf> {
    if let Some(chosen) = env::var_os("CHROME_PATH").map(PathBuf::from) {
        return chosen.is_file().then_some(chosen);
    }
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find_map(|name| repo.which(name))
}

/// The lock that the packages of `end2end/` were installed from, kept beside them.
pub(crate) fn installed_lock(repo: &Repo) -> PathBuf {
    repo.end2end()
        .join("node_modules/.installed-package-lock.json")
}

/// The wasm-bindgen of the lock file: library and program must be of the very same version.
fn wasm_bindgen_version(repo: &Repo) -> Result<String> {
    let lock =
        fs::read_to_string(repo.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    locked_version(&lock, "wasm-bindgen").context("Cargo.lock names no wasm-bindgen")
}

fn locked_version(lock: &str, name: &str) -> Option<String> {
    let head = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != head);
    lines.next()?;
    let version = lines
        .next()?
        .strip_prefix("version = \"")?
        .strip_suffix('"')?;
    Some(version.to_owned())
}

/// Whether the program names this version, as a whole word.
fn says(repo: &Repo, program: &str, arguments: &[&str], version: &str) -> bool {
    process::answer(repo.command(program).args(arguments))
        .is_some_and(|text| text.split_whitespace().any(|word| word == version))
}

/// Asks the compiler, not rustup: a distribution's Rust brings the target without rustup.
fn wasm_target_is_there(repo: &Repo) -> bool {
    let mut command = repo.command("rustc");
    command.args([
        "--print",
        "target-libdir",
        "--target",
        "wasm32-unknown-unknown",
    ]);
    process::answer(&mut command).is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

fn npm_packages_are_there(repo: &Repo) -> Result<bool> {
    let wanted = fs::read(repo.end2end().join("package-lock.json"))
        .context("cannot read end2end/package-lock.json")?;
    Ok(fs::read(installed_lock(repo)).is_ok_and(|installed| installed == wanted))
}

/// The server's programs, in the search path or where Debian keeps them: the tests start one of their own.
fn postgres_is_there(repo: &Repo) -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut kept = versions.flatten().map(|version| version.path());
    repo.which("initdb").is_some() || kept.any(|version| version.join("bin/initdb").is_file())
}

/// Without one the Korean texts are rows of boxes. Only Linux may lack one.
fn korean_font_is_there(repo: &Repo) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let listed = process::answer(repo.command("fc-list").args([":lang=ko", "family"]));
    listed.is_some_and(|fonts| !fonts.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    #[test]
    fn the_version_is_read_from_the_very_package() {
        let lock = "[[package]]\nname = \"wasm-bindgen-futures\"\nversion = \"0.4.50\"\n\n\
                    [[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\n";
        assert_eq!(
            locked_version(lock, "wasm-bindgen").as_deref(),
            Some("0.2.130")
        );
        assert_eq!(locked_version(lock, "wasm"), None);
    }
}
