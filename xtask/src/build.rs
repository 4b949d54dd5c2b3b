//! `build`: the release programs and the browser's half, and what the latter weighs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::process;
use crate::repo::Repo;
use crate::tools::Tool;

/// What a build needs.
pub(crate) const NEEDS: &[Tool] = &[
    Tool::WasmTarget,
    Tool::CargoLeptos,
    Tool::WasmBindgen,
    Tool::NpmPackages,
];

/// The most that a shopper's first visit may have to fetch of our code, in bytes of brotli.
/// An empty page of the framework weighs 93,000; a phone on slow 3G gets 50,000 a second.
const WASM_LIMIT_BYTES: u64 = 200_000;

#[derive(Args)]
pub(crate) struct BuildOptions {
    /// Builds without optimising: sooner ready, slower to run, heavier to load
    #[arg(long)]
    pub(crate) debug: bool,
}

impl BuildOptions {
    /// The folder of the target folder that the programs are in.
    pub(crate) fn profile(&self) -> &'static str {
        if self.debug { "debug" } else { "release" }
    }
}

/// Builds everything and says where it is.
pub(crate) fn build(repo: &Repo, options: &BuildOptions) -> Result<()> {
    let release: &[&str] = if options.debug { &[] } else { &["--release"] };
    // Precompressed files are served as they are; no request pays for a compressor.
    let precompress: &[&str] = if options.debug {
        &[]
    } else {
        &["--precompress"]
    };
    process::run(
        repo.cargo(&["leptos", "build"])
            .args(release)
            .args(precompress),
    )?;
    process::run(
        repo.cargo(&["build", "-p", "fakepg", "-p", "lab"])
            .args(release),
    )?;

    for name in ["jari", "fakepg", "lab"] {
        let program = repo.program(options.profile(), name);
        if !program.is_file() {
            bail!("the build left no {}", program.display());
        }
        println!("   {}", repo.shown(&program));
    }
    print_weight(repo)
}

/// Fails if the browser's half outgrew its limit.
pub(crate) fn check_wasm_size(repo: &Repo) -> Result<()> {
    print_weight(repo)?;
    let bytes = size(&repo.site_package().join("jari.wasm.br"))?;
    if bytes > WASM_LIMIT_BYTES {
        bail!("jari.wasm.br has {bytes} bytes, more than the {WASM_LIMIT_BYTES} allowed");
    }
    println!("   jari.wasm.br: {bytes} of {WASM_LIMIT_BYTES} bytes");
    Ok(())
}

fn print_weight(repo: &Repo) -> Result<()> {
    for name in ["jari.wasm", "jari.js", "jari.css"] {
        let file = repo.site_package().join(name);
        let plain = size(&file)?;
        match size(&file.with_added_extension("br")) {
            Ok(brotli) => println!("   {name}: {plain} bytes, {brotli} as brotli"),
            Err(_) => println!("   {name}: {plain} bytes"),
        }
    }
    Ok(())
}

fn size(file: &Path) -> Result<u64> {
    let metadata = fs::metadata(file);
    Ok(metadata
        .with_context(|| format!("the build left no {}", file.display()))?
        .len())
}
