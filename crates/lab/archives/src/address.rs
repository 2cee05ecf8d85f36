//! Addresses of files and of proxies, `http://HOST:PORT/PATH`, in parts.

use crate::http::HttpError;

/// An address, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, HttpError> {
        let bad = || {
            HttpError::network("it is no address http://HOST/PATH or https://HOST/PATH".to_owned())
        };
        let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(bad()),
        };
        if url
            .bytes()
            .any(|byte| byte.is_ascii_control() || byte == b' ')
        {
            return Err(bad());
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let default_port = if secure { 443 } else { 80 };
        // An IPv6 address stands in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| bad())?),
            _ => (authority, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('@') {
            return Err(bad());
        }
        Ok(Self {
            secure,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!("{host}:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Returns the address that a redirection names.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, HttpError> {
        if location.starts_with('/') && !location.starts_with("//") {
            let path = location.to_owned();
            return Ok(Self {
                path,
                ..self.clone()
            });
        }
        let next = Self::parse(location)?;
        if self.secure && !next.secure {
            return Err(HttpError::network(format!(
                "it leads from TLS to {location}"
            )));
        }
        Ok(next)
    }
}

/// Returns an address without the login that it may have, for messages.
pub(crate) fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, without_login};

    #[test]
    fn addresses_are_parsed() {
        let parsed = Address::parse("https://[::1]:8443/a?b").unwrap();
        assert_eq!(parsed.authority(), "[::1]:8443");
        assert_eq!(Address::parse("http://x").unwrap().url(), "http://x:80/");
        for bad in [
            "ftp://x",
            "http://",
            "http://a@b/",
            "http://x/\r\nHost: y",
            "http://x:y/",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        let down = parsed.redirected("http://x/");
        assert!(down.is_err(), "TLS is not given up");
    }

    #[test]
    fn messages_have_no_login() {
        for (url, shown) in [
            ("http://me:s3@cret@host:1/a@b", "http://host:1/a@b"),
            ("http://host/a@b", "http://host/a@b"),
            ("me@host", "me@host"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }
}
