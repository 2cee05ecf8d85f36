//! The proxy that the environment names for an address, with its login.
//!
//! The login is in no message: an address that cannot be used is not shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::address::Address;
use crate::http::HttpError;

/// What to do when a proxy asks for a login.
pub(crate) const LOGIN_HINT: &str = "give the login in the address of the proxy, as in http_proxy=http://USER:PASSWORD@HOST:PORT (https_proxy and all_proxy alike), with %40 for @, %3A for : and %25 for %";
const NOT_USABLE: &str = "the proxy in http_proxy, https_proxy or all_proxy cannot be used: Marvin knows proxies http://HOST:PORT and http://USER:PASSWORD@HOST:PORT, with %25 for a % in the login";

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) address: Address,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

/// The variables of the environment that name proxies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proxies {
    pub(crate) http: Option<String>,
    pub(crate) https: Option<String>,
    pub(crate) all: Option<String>,
    pub(crate) without: String,
}

impl Proxies {
    pub(crate) fn from_environment() -> Self {
        Self {
            // A web server puts the header `Proxy:` of any client into HTTP_PROXY for its CGI
            // programs: curl and apt ignore it for the same reason.
            http: read_variable("http_proxy"),
            https: read_variable("https_proxy").or_else(|| read_variable("HTTPS_PROXY")),
            all: read_variable("all_proxy").or_else(|| read_variable("ALL_PROXY")),
            without: read_variable("no_proxy")
                .or_else(|| read_variable("NO_PROXY"))
                .unwrap_or_default(),
        }
    }

    /// Returns the proxy for an address, as curl and apt read these variables.
    pub(crate) fn find(&self, address: &Address) -> Result<Option<Proxy>, HttpError> {
        let is_without = self.without.split(',').map(str::trim).any(|name| {
            let name = name.trim_start_matches('.');
            name == "*"
                || (!name.is_empty()
                    && (address.host == name || address.host.ends_with(&format!(".{name}"))))
        });
        if is_without {
            return Ok(None);
        }
        let special = if address.secure {
            &self.https
        } else {
            &self.http
        };
        let Some(value) = special.as_ref().or(self.all.as_ref()) else {
            return Ok(None);
        };
        // Without it, the servers would be asked although the user forbids it.
        Proxy::parse(value)
            .map(Some)
            .ok_or_else(|| HttpError::network(NOT_USABLE.to_owned()))
    }
}

impl Proxy {
    fn parse(value: &str) -> Option<Self> {
        let rest = match value.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => value,
        };
        let end = rest.find('/').unwrap_or(rest.len());
        // A password may have an @ that is not encoded: the last one is before the host.
        let (login, host) = match rest[..end].rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, &rest[..end]),
        };
        let authorization = match login {
            Some(login) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                let plain = [percent_decode(user)?, percent_decode(password)?].join(&b':');
                Some(format!("Basic {}", STANDARD.encode(plain)))
            }
            None => None,
        };
        Some(Self {
            address: Address::parse(&format!("http://{host}")).ok()?,
            authorization,
        })
    }

    /// Returns the header with the login; empty if there is none.
    pub(crate) fn header(&self) -> String {
        self.authorization
            .as_ref()
            .map_or_else(String::new, |value| {
                format!("Proxy-Authorization: {value}\r\n")
            })
    }

    /// Describes why a proxy that answers 407 does so; `schemes` is its `Proxy-Authenticate`.
    pub(crate) fn refusal(&self, schemes: &str) -> HttpError {
        let knows_basic = schemes.is_empty() || schemes.to_ascii_lowercase().contains("basic");
        let detail = match (&self.authorization, knows_basic) {
            (_, false) => format!(
                "the proxy asks for a login by {} (407), and Marvin knows Basic only",
                model::sanitize_line(schemes)
            ),
            (None, true) => "the proxy asks for a login (407)".to_owned(),
            (Some(_), true) => "the proxy refuses the login in its address (407)".to_owned(),
        };
        let hint = if knows_basic {
            LOGIN_HINT
        } else {
            "let a proxy of this host, such as cntlm, log in, and name that in http_proxy and https_proxy"
        };
        HttpError::Network {
            detail,
            hint: Some(hint),
        }
    }
}

/// The login is not shown.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Proxy").field(&self.address).finish()
    }
}

fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the bytes that a text means with `%XX`; `None` if a `%` is followed by anything else.
fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Proxies, Proxy, percent_decode};
    use crate::address::Address;

    fn proxies(value: &str) -> Proxies {
        Proxies {
            http: Some(value.to_owned()),
            without: "localhost, .intern".to_owned(),
            ..Proxies::default()
        }
    }

    #[test]
    fn login_is_decoded_and_never_shown() {
        let proxy = Proxy::parse("http://me:p%40ss%3a%25@proxy:3128/").unwrap();
        assert_eq!(proxy.address.authority(), "proxy:3128");
        // me:p@ss:%
        assert_eq!(
            proxy.header(),
            "Proxy-Authorization: Basic bWU6cEBzczol\r\n"
        );
        assert!(!format!("{proxy:?}").contains("bWU6"), "{proxy:?}");
        assert_eq!(Proxy::parse("me:p@ss:%25@proxy:3128"), Some(proxy));
        let plain = Proxy::parse("proxy:3128").unwrap();
        assert_eq!((plain.header(), plain.address.port), (String::new(), 3128));
    }

    #[test]
    fn proxy_that_cannot_be_used_is_no_detour() {
        let address = Address::parse("http://archive/").unwrap();
        for value in [
            "socks5://s3cret@proxy:1080",
            "https://me:s3cret@proxy",
            "http://me:s3cret%4@proxy",
            "http://me:s3cret@",
        ] {
            let error = proxies(value).find(&address).unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains("cannot be used"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        for host in ["localhost", "a.intern", "intern"] {
            let address = Address::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(proxies("proxy").find(&address).unwrap(), None, "{host}");
        }
        let secure = Address::parse("https://archive/").unwrap();
        assert_eq!(proxies("proxy").find(&secure).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_login_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let text: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(percent_decode(&text), Some(bytes));
        }
    }
}
