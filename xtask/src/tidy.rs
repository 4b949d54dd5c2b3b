//! `tidy`: the house rules that no compiler checks. Also a test of this package.

mod arrows;
mod files;
mod named_tests;
mod strays;
mod texts;

use anyhow::{Result, bail};

use crate::repo::Repo;

/// A file longer than this is worth splitting; it is only said, since some are long with reason.
const LONG_FILE_LINES: usize = 500;

/// Prints what breaks a rule and fails if anything does.
pub(crate) fn tidy(repo: &Repo) -> Result<()> {
    let mut broken = arrows::check(repo)?;
    let sources = files::sources(&repo.root)?;
    for source in &sources {
        broken.extend(texts::check(source));
        broken.extend(strays::check(source));
        let lines = source.text.lines().count();
        if source.is_rust() && lines > LONG_FILE_LINES {
            println!("   {}: {lines} lines; can it be split?", source.path);
        }
    }
    broken.extend(named_tests::check(&sources));
    for line in &broken {
        eprintln!("   {line}");
    }
    if !broken.is_empty() {
        bail!("{} house rules broken", broken.len());
    }
    println!("   {} files are tidy", sources.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::tidy;
    use crate::repo::Repo;

    #[test]
    fn this_repository_is_tidy() {
        let repo = Repo::find().expect("the test runs in the repository");
        tidy(&repo).expect("every house rule holds");
    }
}
