//! Logins at mail servers and BMCs: `user` and `password` of a table. The password is where the
//! settings say, and not in them.

use model::{Login, Secret};

use super::check::Record;
use crate::toml_document::Mistake;

/// Parses the login of a table, if it has one.
pub(super) fn login(record: &Record) -> Result<Option<Login>, Mistake> {
    let (user, password) = match (record.text("user"), record.text("password")) {
        (None, None) => return Ok(None),
        (Some(user), Some(password)) => (user, password),
        (Some(_), None) => {
            return Err(Mistake::new(
                record.span_of("user"),
                "`user` without `password`",
            ));
        }
        (None, Some(_)) => {
            return Err(Mistake::new(
                record.span_of("password"),
                "`password` without `user`",
            ));
        }
    };
    let secret = match password.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Secret::File(path.into()),
        Some(("env", name)) if !name.is_empty() && !name.contains('=') => {
            Secret::Variable(name.to_owned())
        }
        // The message does not quote it: it may be the password.
        _ => {
            let what = "a password does not stand here: say where it is, file:PATH or env:VARIABLE";
            return Err(Mistake::new(record.span_of("password"), what));
        }
    };
    Ok(Some(Login {
        user: user.to_owned(),
        password: secret,
    }))
}
