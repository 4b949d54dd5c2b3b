//! Running other programs: aloud for steps, into a log for the long and talkative ones.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::repo::Repo;

/// Lines of a failed program's log that are worth showing at once.
const LOG_TAIL_LINES: usize = 40;

/// How often a silent program says that it is still at work: many services kill a job that is silent for long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Runs the command with our own input and output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", spoken(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", spoken(command));
    }
    Ok(())
}

/// What the command prints, or nothing if it cannot be run or fails.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs the command with its output in a log, which is shown only if it fails.
pub(crate) fn run_logged(repo: &Repo, name: &str, command: &mut Command) -> Result<()> {
    fs::create_dir_all(repo.logs())?;
    let log = repo.logs().join(format!("{name}.log"));
    let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let started = Instant::now();
    let mut next_sign = SIGN_OF_LIFE;
    let mut child = command
        .stdin(Stdio::null())
        .stderr(out.try_clone()?)
        .stdout(out)
        .spawn()
        .with_context(|| format!("cannot start {}", spoken(command)))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() >= next_sign {
            println!("   {name}: still at it after {}", lasted(started.elapsed()));
            next_sign += SIGN_OF_LIFE;
        }
        thread::sleep(Duration::from_millis(100));
    };
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.len().saturating_sub(LOG_TAIL_LINES);
    eprintln!("{}", lines[tail..].join("\n"));
    bail!(
        "`{}` failed ({status}); all it said: {}",
        spoken(command),
        repo.shown(&log)
    );
}

/// A duration as people say it.
pub(crate) fn lasted(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// The command as one would type it.
fn spoken(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
