//! Connections to servers: directly or through a proxy, with TLS or without, and what to do when a
//! certificate is not trusted.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use model::UnixTime;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::address::Address;
use crate::http::{HttpError, read_head};
use crate::proxy::Proxy;

/// How long connecting and each read may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long connecting to one of several addresses may take before the next is tried.
const QUICK: Duration = Duration::from_secs(3);

const ISSUER_HINT: &str = "if a proxy of your company or a server of your own answers, set SSL_CERT_FILE to a file (PEM) with the certificate of its CA; else the connection is being tapped: set another `mirror` in marvin.toml";
const CLOCK_HINT: &str = "if this host's clock is wrong, set it: `timedatectl`, or `date --set`; else set another `mirror` in marvin.toml";
const NAME_HINT: &str =
    "a portal of the network or a proxy may answer in its place: open the address in a browser";
const NO_CERTIFICATES_HINT: &str =
    "install your distribution's ca-certificates, or set SSL_CERT_FILE to a file (PEM) with CAs";

/// A connection, with TLS or without.
pub(crate) trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

pub(crate) fn connect(
    address: &Address,
    proxy: Option<&Proxy>,
) -> Result<Box<dyn Connection>, HttpError> {
    let mut stream = tcp(proxy.map_or(address, |proxy| &proxy.address))?;
    if !address.secure {
        return Ok(Box::new(stream));
    }
    if let Some(proxy) = proxy {
        tunnel(&mut stream, address, proxy)?;
    }
    secure(stream, address, trusted_by_the_host())
}

/// Asks a proxy for a way to a server.
fn tunnel(stream: &mut TcpStream, address: &Address, proxy: &Proxy) -> Result<(), HttpError> {
    let authority = address.authority();
    let login = proxy.header();
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n");
    stream.write_all(request.as_bytes())?;
    // The answer has no content, and no byte behind it may be lost: TLS begins there.
    let mut one_byte_each = BufReader::with_capacity(1, stream);
    let head = read_head(&mut one_byte_each)?;
    match head.status {
        200..300 => Ok(()),
        407 => Err(proxy.refusal(&head.login_schemes)),
        429 | 503 => Err(head.throttled()),
        status => {
            let detail = format!("the proxy refuses {authority} with status {status}");
            Err(match status {
                502 | 504 => HttpError::Passing(detail),
                _ => HttpError::network(detail),
            })
        }
    }
}

fn tcp(address: &Address) -> Result<TcpStream, HttpError> {
    let found = (address.host.as_str(), address.port).to_socket_addrs()?;
    let places: Vec<SocketAddr> = found.collect();
    if places.is_empty() {
        let text = format!("{} has no address", address.host);
        return Err(HttpError::network(text));
    }
    // One of several may be of a network that leads nowhere, such as IPv6 without a route.
    let quick = (places.len() > 1).then_some(QUICK);
    let mut failures = Vec::new();
    let mut is_passing = false;
    for patience in quick.into_iter().chain([PATIENCE]) {
        failures.clear();
        is_passing = false;
        for place in &places {
            match TcpStream::connect_timeout(place, patience) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => {
                    is_passing |= error.kind() == io::ErrorKind::TimedOut;
                    failures.push(format!("{place}: {error}"));
                }
            }
        }
    }
    let detail = failures.join("; ");
    Err(if is_passing {
        HttpError::Silent(detail)
    } else {
        HttpError::network(detail)
    })
}

/// Returns the certificates that the host trusts; `SSL_CERT_FILE` names another list.
fn trusted_by_the_host() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Speaks TLS over a connection, before anything else goes over it.
fn secure(
    mut stream: TcpStream,
    address: &Address,
    roots: RootCertStore,
) -> Result<Box<dyn Connection>, HttpError> {
    if roots.is_empty() {
        return Err(HttpError::Network {
            detail: "this host has no list of trusted certificates".to_owned(),
            hint: Some(NO_CERTIFICATES_HINT),
        });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::network(error.to_string()))?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(address.host.clone())
        .map_err(|error| HttpError::network(error.to_string()))?;
    let mut client = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| HttpError::network(error.to_string()))?;
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    Ok(Box::new(StreamOwned::new(client, stream)))
}

/// Returns why TLS failed, with what to do; `None` if it was not TLS.
pub(crate) fn tls_failure(error: &io::Error) -> Option<HttpError> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let (detail, hint) = describe_tls(error);
    Some(HttpError::Network { detail, hint })
}

fn describe_tls(error: &rustls::Error) -> (String, Option<&'static str>) {
    let rustls::Error::InvalidCertificate(fault) = error else {
        let is_plain = matches!(error, rustls::Error::InvalidMessage(_));
        let hint = is_plain.then_some("what answers speaks no TLS there: is the address right?");
        return (format!("TLS: {error}"), hint);
    };
    let date = |time: &rustls::pki_types::UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        UnixTime::new(seconds).date()
    };
    match fault {
        CertificateError::UnknownIssuer => (
            "the server's certificate is by an issuer that this host does not trust".to_owned(),
            Some(ISSUER_HINT),
        ),
        CertificateError::Expired => (
            "the server's certificate has expired".to_owned(),
            Some(CLOCK_HINT),
        ),
        CertificateError::ExpiredContext { time, not_after } => (
            format!(
                "the server's certificate expired on {}, and this host's clock shows {}",
                date(not_after),
                date(time)
            ),
            Some(CLOCK_HINT),
        ),
        CertificateError::NotValidYet => (
            "the server's certificate is not valid yet".to_owned(),
            Some(CLOCK_HINT),
        ),
        CertificateError::NotValidYetContext { time, not_before } => (
            format!(
                "the server's certificate is valid from {}, and this host's clock shows {}",
                date(not_before),
                date(time)
            ),
            Some(CLOCK_HINT),
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "the server's certificate is of another server".to_owned(),
            Some(NAME_HINT),
        ),
        // One that signed itself has often the mark of a CA.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => (
            "the server's certificate signed itself".to_owned(),
            Some(ISSUER_HINT),
        ),
        fault => (
            format!("the server's certificate: {fault}"),
            Some(ISSUER_HINT),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

    use super::{HttpError, describe_tls, secure};
    use crate::address::Address;

    /// Runs openssl with these words.
    fn openssl(folder: &std::path::Path, arguments: &str) {
        let ended = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }

    /// Serves with a certificate that a CA of this test signed, made by these options, and returns
    /// what a client sees of it that trusts the CA, or another one.
    fn attempt(signing: &str, name: &str, trusts: bool) -> Result<(), HttpError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        for ca in ["ca", "other"] {
            openssl(
                path,
                &format!("req -x509 {new} -subj /CN={ca} -keyout {ca}.key -out {ca}.pem"),
            );
        }
        openssl(
            path,
            &format!("req {new} -subj /CN=server -keyout server.key -out server.csr"),
        );
        fs::write(path.join("ext"), format!("subjectAltName=DNS:{name}\n")).unwrap();
        openssl(
            path,
            &format!(
                "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile ext {signing} -out server.pem"
            ),
        );
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_file(path.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(path.join("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let served = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let server = ServerConnection::new(Arc::new(config)).unwrap();
            // A client that does not trust it ends the connection.
            drop(StreamOwned::new(server, stream).write_all(b"hello"));
        });
        let mut roots = RootCertStore::empty();
        let ca = if trusts { "ca.pem" } else { "other.pem" };
        let ca = CertificateDer::from_pem_file(path.join(ca)).unwrap();
        roots.add(ca).unwrap();
        let address = Address::parse("https://localhost/").unwrap();
        let secured = secure(TcpStream::connect(place).unwrap(), &address, roots);
        let result = secured.map(|mut connection| {
            let mut hello = [0; 5];
            connection.read_exact(&mut hello).unwrap();
        });
        served.join().unwrap();
        result
    }

    #[test]
    fn certificates_that_are_not_trusted_have_a_hint() {
        attempt("-days 1", "localhost", true).unwrap();
        for (signing, name, trusts, expected) in [
            ("-days 1", "localhost", false, "SSL_CERT_FILE"),
            ("-days -1", "localhost", true, "this host's clock"),
            ("-days 1", "portal", true, "of another server"),
        ] {
            let error = format!("{:?}", attempt(signing, name, trusts).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn wrong_clock_is_named() {
        let early = rustls::CertificateError::NotValidYetContext {
            time: rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::ZERO),
            not_before: rustls::pki_types::UnixTime::since_unix_epoch(
                std::time::Duration::from_secs(86_400 * 365),
            ),
        };
        let (detail, hint) = describe_tls(&rustls::Error::InvalidCertificate(early));
        assert!(detail.contains("clock shows 1970-01-01"), "{detail}");
        assert!(hint.unwrap().contains("timedatectl"));
    }

    #[test]
    fn host_without_certificates_is_told_which_package() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let address = Address::parse("https://localhost/").unwrap();
        let error = secure(stream, &address, RootCertStore::empty());
        let error = error.err().unwrap();
        assert!(
            format!("{error:?}").contains("ca-certificates"),
            "{error:?}"
        );
    }
}
