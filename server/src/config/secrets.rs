//! Secrets from the environment or from files: one way for all of them.

use std::path::Path;

use super::{ConfigError, bad};
use crate::gateway::secret::Secret;

/// A secret that is given by its setting or by a file; `None` when by neither.
///
/// # Errors
/// [`ConfigError`] when it is given by both, or its file cannot be read or is empty.
pub(super) fn secret(
    (name, value): (&'static str, Option<&Secret>),
    (file_name, file): (&'static str, Option<&Path>),
) -> Result<Option<Secret>, ConfigError> {
    match (value, file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(bad(name, format!("is given beside {file_name}"))),
        (Some(value), None) => Ok(Some(value.clone())),
        (None, Some(file)) => read(file_name, file).map(Some),
    }
}

fn read(name: &'static str, file: &Path) -> Result<Secret, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| bad(name, format!("cannot be read: {error}")))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(bad(name, "names an empty file"));
    }
    if others_may_read(file) {
        tracing::warn!(
            setting = name,
            "the file of a secret can be read by others than its owner: chmod 600 it"
        );
    }
    Ok(Secret::new(text))
}

/// Whether anybody but the owner may read a file.
fn others_may_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let read_by_others = 0o044;
    std::fs::metadata(file).is_ok_and(|known| known.permissions().mode() & read_by_others != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn of(value: Option<&Secret>, file: Option<&Path>) -> Result<Option<Secret>, ConfigError> {
        secret(("JARI_A", value), ("JARI_A_FILE", file))
    }

    #[test]
    fn a_secret_comes_from_one_place_and_its_file_is_trimmed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, " s3cret\n").unwrap();
        let value = Secret::new("value");
        assert_eq!(of(None, None).unwrap(), None);
        assert_eq!(of(Some(&value), None).unwrap(), Some(value.clone()));
        let read = of(None, Some(&file)).unwrap();
        assert_eq!(read, Some(Secret::new("s3cret")));
        let twice = of(Some(&value), Some(&file)).unwrap_err().to_string();
        assert!(twice.contains("JARI_A") && twice.contains("JARI_A_FILE"));
        std::fs::write(&file, "\n").unwrap();
        assert!(of(None, Some(&file)).is_err());
        assert!(of(None, Some(&folder.path().join("none"))).is_err());
    }

    #[test]
    fn a_file_that_others_may_read_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "s").unwrap();
        for (mode, expected) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(others_may_read(&file), expected, "{mode:o}");
        }
    }
}
