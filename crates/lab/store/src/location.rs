//! The location of a store: a data directory, or a database on a PostgreSQL server.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::{AccessError, StoreError};

/// The connect timeout, unless the address has one.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The connect timeout of who is impatient.
const IMPATIENT_LIMIT: Duration = Duration::from_secs(2);

/// PostgreSQL's default port, which is not printed.
pub(crate) const PORT: u16 = 5432;

/// How long a server may leave a request unacknowledged.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Location {
    /// In a data directory: SQLite, and files beside it.
    Home(PathBuf),
    /// In a PostgreSQL database, completely.
    Server(Address),
}

/// The address of a database. Printed without its password.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Box<Config>,
    pub(crate) channel: Channel,
}

/// Who may read what is sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The server only: by TLS, or because the address allows others with `sslmode=disable`.
    AsAddressed,
    /// Programs of this host: no TLS, and no password in clear, as any user may listen at a port of
    /// a stopped server.
    ThisHost,
}

impl Location {
    /// Parses an address, `postgres://USER@HOST/DATABASE`.
    ///
    /// `password` is used if the address has none, which is better: `ps` and shell histories show
    /// addresses. Without `sslmode` the connection has TLS, except to this host.
    ///
    /// # Errors
    /// If it is no such address. The message does not repeat it.
    pub fn server(address: &str, password: Option<&str>) -> Result<Self, StoreError> {
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| address.starts_with(scheme))
        {
            return Err(StoreError::Access(AccessError::BadAddress {
                reason: "it does not begin with postgres://".to_owned(),
            }));
        }
        let mut config = Config::from_str(address).map_err(|error: tokio_postgres::Error| {
            StoreError::Access(AccessError::BadAddress {
                reason: plain(&error),
            })
        })?;
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(StoreError::Access(AccessError::BadAddress {
                reason: "it names no database".to_owned(),
            }));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(StoreError::Access(AccessError::BadAddress {
                reason: "it names no host".to_owned(),
            }));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE_LIMIT);
        }
        config.keepalives_idle(SILENCE_LIMIT);
        let mut channel = Channel::AsAddressed;
        // The default of PostgreSQL's programs: TLS unless the server, or a host on the way to it,
        // says that it has none.
        if config.get_ssl_mode() == SslMode::Prefer {
            // A server on this host often has a certificate of its own making, and no network is on
            // the way to it.
            let is_local = config.get_hosts().iter().all(is_here)
                && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
            config.ssl_mode(if is_local {
                SslMode::Disable
            } else {
                SslMode::Require
            });
            if is_local {
                channel = Channel::ThisHost;
            }
        }
        if channel == Channel::ThisHost
            && config.get_target_session_attrs() != TargetSessionAttrs::Any
        {
            return Err(StoreError::Access(AccessError::BadAddress {
                reason: "target_session_attrs is for servers on other hosts".to_owned(),
            }));
        }
        config.application_name("marvin");
        Ok(Self::Server(Address {
            config: Box::new(config),
            channel,
        }))
    }
}

impl Location {
    /// Waits less for a server that may not answer: for pages, whose readers do not wait either.
    #[must_use]
    pub fn impatient(mut self) -> Self {
        if let Self::Server(address) = &mut self {
            let limit = address
                .config
                .get_connect_timeout()
                .copied()
                .unwrap_or(CONNECT_LIMIT);
            address.config.connect_timeout(limit.min(IMPATIENT_LIMIT));
        }
        self
    }
}

/// Returns whether a server is on this host.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

/// Describes the fault of an address without quoting it.
fn plain(error: &tokio_postgres::Error) -> String {
    let cause =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    // The library quotes only names of unknown options, but a misplaced password may look like such
    // a name.
    match cause.split_once('`') {
        Some((before, _)) => before.trim_end().to_owned(),
        None => cause,
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (n, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                Host::Unix(folder) => write!(f, "{comma}{}", folder.display())?,
            }
            if let Some(port) = self.config.get_ports().get(n).filter(|port| **port != PORT) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home(folder) => write!(f, "{}", folder.display()),
            Self::Server(address) => write!(f, "{address}"),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(home: PathBuf) -> Self {
        Self::Home(home)
    }
}

impl From<&PathBuf> for Location {
    fn from(home: &PathBuf) -> Self {
        Self::Home(home.clone())
    }
}

impl From<&Path> for Location {
    fn from(home: &Path) -> Self {
        Self::Home(home.to_owned())
    }
}

impl From<&Self> for Location {
    fn from(location: &Self) -> Self {
        location.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Location;
    use model::Fault;

    #[test]
    fn an_address_is_shown_without_its_password() {
        insta::assert_snapshot!(shown("postgres://me:secret@db.example:5433/marvin"), @"postgres://me@db.example:5433/marvin");
        insta::assert_snapshot!(shown("postgresql://me@%2Frun%2Fpostgresql/marvin?connect_timeout=3"), @"postgres://me@/run/postgresql/marvin");
        insta::assert_snapshot!(shown("postgres://me@one,two/marvin?password=secret"), @"postgres://me@one,two/marvin");
    }

    fn shown(address: &str) -> String {
        let location = Location::server(address, Some("other-secret")).unwrap();
        let both = format!("{location} {location:?}");
        assert!(!both.contains("secret"), "{both}");
        location.to_string()
    }

    #[test]
    fn invalid_address_is_refused_and_not_printed() {
        insta::assert_snapshot!("other_scheme", error_of("mysql://me:secret@host/x"));
        insta::assert_snapshot!("no_database", error_of("postgres://me:secret@host"));
        insta::assert_snapshot!("invalid_port", error_of("postgres://me:secret@host:port/x"));
        insta::assert_snapshot!("unknown_option", error_of("postgres://me@host/x?secret=1"));
        insta::assert_snapshot!(
            "invalid_timeout",
            error_of("postgres://me@host/x?connect_timeout=secret")
        );
        insta::assert_snapshot!(
            "option_without_value",
            error_of("postgres://me:secret@host/x?sslmode")
        );
    }

    fn error_of(address: &str) -> String {
        let error = Location::server(address, None).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        assert!(!error.to_string().contains("secret"), "{error}");
        error.to_string()
    }
}
