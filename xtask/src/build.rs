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
/// An empty page of the framework weighs 93,000 of wasm; a phone on slow 3G gets 50,000 a second.
const LIMITS_BYTES: [(&str, u64); 3] = [
    ("jari.wasm", 150_000),
    ("jari.js", 10_000),
    ("jari.css", 10_000),
];

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

/// Fails if a file of the browser's half outgrew its limit.
pub(crate) fn check_weight(repo: &Repo) -> Result<()> {
    weigh(&repo.site_package())
}

fn weigh(folder: &Path) -> Result<()> {
    let mut heavy = Vec::new();
    for (name, limit) in LIMITS_BYTES {
        let bytes = size(&folder.join(name).with_added_extension("br"))?;
        println!("   {name}: {bytes} bytes as brotli, of {limit} allowed");
        if bytes > limit {
            heavy.push(format!("{name} has {bytes} bytes, {limit} are allowed"));
        }
    }
    if !heavy.is_empty() {
        bail!("too heavy: {}", heavy.join("; "));
    }
    Ok(())
}

fn print_weight(repo: &Repo) -> Result<()> {
    for (name, _) in LIMITS_BYTES {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{LIMITS_BYTES, weigh};

    #[test]
    fn each_file_may_weigh_its_limit_and_not_a_byte_more() {
        let folder = std::env::temp_dir().join(format!("jari-weight-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder of our own");
        let write = |name: &str, bytes: u64| {
            let bytes = usize::try_from(bytes).expect("a small number");
            fs::write(folder.join(format!("{name}.br")), vec![0; bytes]).expect("written");
        };
        for (name, limit) in LIMITS_BYTES {
            write(name, limit);
        }
        weigh(&folder).expect("at its limit");
        for (name, limit) in LIMITS_BYTES {
            write(name, limit + 1);
            let error = weigh(&folder).expect_err("above its limit").to_string();
            assert!(error.contains(name), "{error}");
            write(name, limit);
        }
        fs::remove_file(folder.join("jari.css.br")).expect("removed");
        assert!(
            weigh(&folder).is_err(),
            "a file that is not there weighs nothing good"
        );
        fs::remove_dir_all(&folder).expect("removed");
    }
}
