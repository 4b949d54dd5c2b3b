//! A program of ours as a process: started, measured from `/proc`, and stopped so that nothing is left of it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};

/// How long a program may take to end by itself before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// Linux counts CPU time for `/proc` in hundredths of a second, on every architecture in use.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// CPU time of all its threads, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Resident memory, in KiB.
    pub(crate) rss_kib: u64,
}

/// A program of ours with these variables added to an environment free of settings of ours.
pub(crate) fn command(path: &Path, env: &[(String, String)]) -> Command {
    let mut command = Command::new(path);
    // Whatever the caller's shell sets must not become part of a condition.
    for (key, _) in std::env::vars_os() {
        let ours = key.to_string_lossy().starts_with("JARI_");
        if ours || key == "DATABASE_URL" {
            command.env_remove(&key);
        }
    }
    command.envs(env.iter().map(|(key, value)| (key, value)));
    command
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    pid: u32,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it with these variables added to an environment free of settings of ours, its output in a log file.
    pub(crate) fn start(
        name: &'static str,
        path: &Path,
        args: &[String],
        env: &[(String, String)],
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let mut command = command(path, env);
        let child = command
            .args(args)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", path.display()))?;
        let pid = child
            .id()
            .with_context(|| format!("{name} ended at once"))?;
        Ok(Self {
            name,
            pid,
            child,
            log,
        })
    }

    /// An error with the end of its log when it has ended already.
    pub(crate) fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                anyhow::bail!("{} ended with {status}: {}", self.name, self.last_words())
            }
        }
    }

    /// The last lines of its log.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Its process's id.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage_of(self.pid)
    }

    /// Ends it at once (SIGKILL) without waiting for that, and keeps it: whoever asks later finds it ended.
    pub(crate) fn kill_now(&mut self) -> anyhow::Result<()> {
        let killed = self.child.start_kill();
        killed.with_context(|| format!("killing {}", self.name))
    }

    /// Ends it at once (SIGKILL), as a power cut would.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        let killed = self.child.kill().await;
        killed.with_context(|| format!("killing {}", self.name))
    }

    /// Asks it to end (SIGTERM), kills it when it does not, and says whether it ended by itself and nothing is left.
    pub(crate) async fn stop(mut self) -> anyhow::Result<bool> {
        let asked = Command::new("kill")
            .arg(self.pid.to_string())
            .status()
            .await;
        let by_itself = asked.is_ok_and(|status| status.success())
            && tokio::time::timeout(STOP_LIMIT, self.child.wait())
                .await
                .is_ok();
        if !by_itself {
            self.child
                .kill()
                .await
                .with_context(|| format!("killing {}", self.name))?;
        }
        let left = Path::new("/proc").join(self.pid.to_string()).exists();
        Ok(by_itself && !left)
    }
}

/// What a process has used so far, by its id.
pub(crate) fn usage_of(pid: u32) -> anyhow::Result<Usage> {
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    };
    usage(&read("stat")?, &read("status")?)
}

fn usage(stat: &str, status: &str) -> anyhow::Result<Usage> {
    // The name in parentheses may hold anything, so counting starts behind it: user time is the 12th field from there.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("a stat line without a name")?;
    let ticks: Vec<u64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let rss = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|value| value.split_whitespace().next())
        .context("a status without VmRSS")?;
    Ok(Usage {
        cpu_seconds: ticks.iter().sum::<u64>() as f64 / TICKS_PER_SECOND,
        rss_kib: rss.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_and_memory_are_read_whatever_the_programs_name() {
        let stat = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        let status = "Name:\tx\nVmRSS:\t  2048 kB\n";
        let expected = Usage {
            cpu_seconds: 2.0,
            rss_kib: 2048,
        };
        assert_eq!(usage(stat, status).unwrap(), expected);
        assert!(usage("42 x", status).is_err() && usage(stat, "").is_err());
    }
}
