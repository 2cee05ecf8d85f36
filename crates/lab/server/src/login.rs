//! Reads passwords where the settings say that they are: a file or a variable. They are in no
//! argument, message or log.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::{Login, Secret};

/// Reads at most this many bytes of a password file.
const PASSWORD_MAX: u64 = 4096;

/// Reads a password.
///
/// # Errors
/// If it is missing, empty, or readable by everybody; the text does not contain it.
pub fn password(login: &Login) -> Result<String, String> {
    match &login.password {
        Secret::Variable(name) => match std::env::var(name) {
            Ok(password) if !password.is_empty() => Ok(password),
            _ => Err(format!(
                "cannot read the password of {}: the variable {name} is not set, or not UTF-8",
                login.user
            )),
        },
        Secret::File(file) => first_line(file).map_err(|why| {
            format!(
                "cannot read the password of {} in {}: {why}",
                login.user,
                file.display()
            )
        }),
    }
}

fn first_line(file: &Path) -> Result<String, String> {
    let meta = fs::metadata(file).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    // A group may share the file; the other users of the host may not.
    if meta.permissions().mode() & 0o004 != 0 {
        return Err("everybody can read it; chmod o= it".into());
    }
    let mut text = String::new();
    let open = File::open(file).map_err(|error| error.to_string())?;
    open.take(PASSWORD_MAX)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err("its first line is empty".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use model::{Login, Secret};

    use super::password;

    #[test]
    fn unusable_password_is_reported_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let problem_of = |name: &str, text: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            Secret::File(file)
        };
        let secrets = [
            problem_of("open", "sesame", 0o644),
            problem_of("empty", "\nsesame", 0o600),
            Secret::File(folder.path().join("none")),
            Secret::File(folder.path().to_owned()),
            Secret::Variable("MARVIN_NO_SUCH_VARIABLE".into()),
        ];
        let message = secrets.map(|secret| {
            password(&Login {
                user: "marvin".into(),
                password: secret,
            })
            .unwrap_err()
        });
        insta::assert_snapshot!(
            message
                .join("\n")
                .replace(&folder.path().display().to_string(), "FOLDER")
        );
    }
}
