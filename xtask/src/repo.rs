//! Where things are: the repository, its build outputs, and the programs that its commands call.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The repository and the search path that every command of it runs with.
pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    target: PathBuf,
    path: OsString,
}

impl Repo {
    pub(crate) fn find() -> Result<Self> {
        // cargo sets the variable for `cargo run` and for tests; the built-in value serves a bare call of the program.
        let xtask = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = xtask
            .parent()
            .context("xtask lies in no folder")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(target) => env::current_dir()?.join(target),
            None => root.join("target"),
        };
        let path = search_path(&root)?;
        Ok(Self { root, target, path })
    }

    /// A command that runs in the root and finds the project's own tools first.
    pub(crate) fn command(&self, program: &str) -> Command {
        let found = self
            .which(program)
            .unwrap_or_else(|| PathBuf::from(program));
        let mut command = Command::new(found);
        command.current_dir(&self.root).env("PATH", &self.path);
        // `cargo run` describes xtask in these; a nested cargo would take them for changed inputs
        // of some build scripts and build half the tree anew.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("cargo");
        command.args(arguments);
        command
    }

    /// Where in the search path the program is.
    pub(crate) fn which(&self, program: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    }

    /// One of our own programs, as `profile` ("release" or "debug") built it.
    pub(crate) fn program(&self, profile: &str, name: &str) -> PathBuf {
        self.target
            .join(profile)
            .join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// The folder for xtask's own logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.target.join("xtask")
    }

    /// The browser's files. cargo-leptos puts them below the root whatever the target folder is.
    pub(crate) fn site_package(&self) -> PathBuf {
        self.root.join("target/site/pkg")
    }

    pub(crate) fn end2end(&self) -> PathBuf {
        self.root.join("end2end")
    }

    /// The folder of tools that must not replace a differing version of the user's.
    pub(crate) fn own_tools(&self) -> PathBuf {
        self.root.join(".tools")
    }

    /// The path as people write it: from the root, if it lies there.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// Own tools, the npm tools (wasm-opt: distributions ship one that breaks the page), the user's, cargo's.
fn search_path(root: &Path) -> Result<OsString> {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"))?;
        Some(Path::new(&home).join(".cargo"))
    });
    let mut folders = vec![
        root.join(".tools/bin"),
        root.join("end2end/node_modules/.bin"),
    ];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    folders.extend(cargo_home.map(|home| home.join("bin")));
    Ok(env::join_paths(folders)?)
}
