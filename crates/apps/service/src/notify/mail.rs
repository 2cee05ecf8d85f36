//! Mails: formats them, and hands them to a mail server.
//!
//! lettre does SMTP and TLS. After a deadline, its thread continues alone until its sockets time
//! out.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use lettre::address::{Address, Envelope};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::{Error, SmtpTransport};
use lettre::{Transport as _, address::AddressError};
use model::{MailServer, Secrecy, sanitize_text};
use store::{Delivery, Notice};

use super::program::InputResult;
use crate::work::short;

/// Deadline of one answer of a mail server (s).
const ANSWER_S: u64 = 10;
/// Describes a server that closed the connection too early.
const BROKE_OFF: &str = "closed the connection before it accepted the mail";
/// Length limit of a text in a header: a line of a mail has at most 998 bytes (RFC 5322, 2.1.1).
const HEADER_MAX: usize = 400;
/// Length limit of a quoted-printable line (RFC 2045, 6.7).
const LINE_MAX: usize = 76;

/// Returns a text for a header: names from outside must not start another header.
fn header_text(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_graphic() || c == ' ' {
                c
            } else {
                '?'
            }
        })
        .take(HEADER_MAX)
        .collect()
}

/// Returns the mail of a notice, with this host's line ends.
pub(crate) fn mail(to: &[String], from: &str, delivery: &Delivery) -> String {
    let Notice {
        subject,
        headline,
        body,
        raised_unix,
    } = &delivery.notice;
    let since = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(raised_unix.seconds()).unwrap_or(0));
    let host = from.split_once('@').map_or("localhost", |(_, host)| host);
    // The id depends only on the notice's number, so that mail programs show a repeated notice
    // once.
    format!(
        "From: {}\nTo: {}\nSubject: [{}] {}\nDate: {}\nMessage-ID: <{}.{}.marvin@{}>\n\
         Auto-Submitted: auto-generated\nPrecedence: bulk\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\nX-Marvin-Notice: {} {}\n\n{}",
        header_text(from),
        to.join(",\n "),
        tag(subject),
        header_text(headline),
        httpdate::fmt_http_date(since).replace("GMT", "+0000"),
        delivery.number,
        raised_unix.seconds(),
        header_text(host),
        delivery.number,
        header_text(subject),
        quoted_printable(&sanitize_text(&format!("{headline}\n\n{body}"))),
    )
}

/// Returns what the subject of a mail begins with, in brackets.
fn tag(subject: &str) -> &'static str {
    if model::is_report(subject) {
        "REGRESSION"
    } else {
        "marvin"
    }
}

/// Encodes a text as quoted-printable (RFC 2045, 6.7): any server accepts it, with lines of any
/// length and letters of any kind.
fn quoted_printable(text: &str) -> String {
    let mut all = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |line| (line, "\n"));
        let mut width = 0;
        for (place, byte) in line.bytes().enumerate() {
            let is_last = place + 1 == line.len();
            let is_plain = (byte.is_ascii_graphic() && byte != b'=') || (byte == b' ' && !is_last);
            let token = if is_plain {
                char::from(byte).to_string()
            } else {
                format!("={byte:02X}")
            };
            if width + token.len() >= LINE_MAX {
                all.push_str("=\n");
                width = 0;
            }
            width += token.len();
            all.push_str(&token);
        }
        all.push_str(end);
    }
    all
}

/// Hands a mail to a server. Reads the password at each call.
pub(crate) fn send(
    server: &MailServer,
    to: &[String],
    from: &str,
    text: &str,
    deadline_s: u64,
) -> InputResult {
    let to = to
        .iter()
        .map(|to| parse_address(to))
        .collect::<Result<Vec<Address>, String>>()?;
    let envelope =
        Envelope::new(Some(parse_address(from)?), to).map_err(|error| error.to_string())?;
    let transport = transport(server)?;
    // lettre adds the end of the last line.
    let bytes = text
        .strip_suffix('\n')
        .unwrap_or(text)
        .replace('\n', "\r\n")
        .into_bytes();
    let sent = within(deadline_s, move || transport.send_raw(&envelope, &bytes));
    match sent {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(format!("{server} {}", describe(&error))),
        None => Err(format!(
            "{server} did not accept the mail within {deadline_s} s"
        )),
    }
}

fn parse_address(text: &str) -> Result<Address, String> {
    text.parse()
        .map_err(|error: AddressError| format!("{text}: {error}"))
}

fn tls(server: &MailServer) -> Result<TlsParameters, String> {
    TlsParameters::new(server.host.clone())
        .map_err(|error| format!("cannot set up TLS to {server}: {error}"))
}

fn transport(server: &MailServer) -> Result<SmtpTransport, String> {
    let builder = SmtpTransport::builder_dangerous(&server.host)
        .port(server.port)
        .timeout(Some(Duration::from_secs(ANSWER_S)))
        .hello_name(ClientId::Domain(machine_name()))
        .tls(match server.secrecy {
            Secrecy::Plain => Tls::None,
            Secrecy::Upgraded => Tls::Required(tls(server)?),
            Secrecy::Whole => Tls::Wrapper(tls(server)?),
        });
    Ok(match &server.login {
        Some(login) => builder
            .credentials(Credentials::new(
                login.user.clone(),
                server::password(login)?,
            ))
            .build(),
        None => builder.build(),
    })
}

/// Returns the result of work, or an error after `seconds`.
fn within<T: Send + 'static>(seconds: u64, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // The receiver is gone after the deadline.
    std::thread::spawn(move || sender.send(work()).ok());
    receiver.recv_timeout(Duration::from_secs(seconds)).ok()
}

/// Describes the server's answer, to follow its name.
fn describe(error: &Error) -> String {
    let source = std::error::Error::source(error);
    let reason = short(&source.map_or_else(|| error.to_string(), ToString::to_string));
    let kind = source
        .and_then(|source| source.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    match (error.status(), kind) {
        (Some(code), _) => format!("refuses the mail: {code} {reason}"),
        (_, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)) => {
            format!("gave no answer within {ANSWER_S} s")
        }
        (
            _,
            Some(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof),
        ) => BROKE_OFF.into(),
        // rustls refused the certificate.
        (_, Some(ErrorKind::InvalidData)) => {
            format!(
                "failed the TLS handshake: {reason}; SSL_CERT_FILE may name another list of authorities than this host's"
            )
        }
        (_, Some(_)) => format!("cannot be reached: {reason}"),
        (..) if reason == "incomplete response" => BROKE_OFF.into(),
        (..) if reason.contains("STARTTLS") => {
            "does not offer STARTTLS, which other hosts need: use smtps://, or a sendmail program"
                .into()
        }
        (..) => format!("cannot accept the mail: {reason}"),
    }
}

/// Returns this machine's host name.
#[must_use]
pub fn machine_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() {
        "here".to_owned()
    } else {
        name.trim().to_owned()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread::JoinHandle;

    use model::{Login, MailServer, Secrecy, Secret, UnixTime};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use store::{Delivery, Notice};

    use super::{InputResult, mail, quoted_printable, send};

    fn delivery(headline: &str, body: &str) -> Delivery {
        let notice = Notice {
            subject: "tree:a".into(),
            headline: headline.into(),
            body: body.into(),
            raised_unix: UnixTime::new(1_763_790_000),
        };
        Delivery {
            number: 3,
            notice,
            channel: "x".into(),
            tries: 0,
            failure: String::new(),
        }
    }

    #[test]
    fn mail_holds_its_text_without_injected_headers() {
        let delivery = delivery(
            "tree:a is down\nBcc: all@example.org",
            "said: ‘no’ = x \n.\nlast",
        );
        insta::assert_snapshot!(mail(
            &["a@example.org".into(), "b@example.org".into()],
            "marvin",
            &delivery
        ));
    }

    /// A mail server for one connection: sends its answers one by one, and returns the lines
    /// received. It reads a line for each answer but the first, and after `354` all lines up to
    /// the single dot.
    pub(crate) fn server(
        answers: &'static [&'static str],
    ) -> (MailServer, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut heard = Vec::new();
            let mut is_data = false;
            for (place, answer) in answers.iter().enumerate() {
                if place > 0 {
                    loop {
                        let Some(Ok(line)) = lines.next() else {
                            return heard;
                        };
                        heard.push(line);
                        if !is_data || heard.last().is_some_and(|line| line == ".") {
                            break;
                        }
                    }
                }
                is_data = answer.starts_with("354");
                say(&mut stream, answer);
            }
            heard
        });
        (
            MailServer {
                host: "127.0.0.1".into(),
                port,
                secrecy: Secrecy::Plain,
                login: None,
            },
            heard,
        )
    }

    fn say(stream: &mut TcpStream, answer: &str) {
        stream
            .write_all(format!("{answer}\r\n").as_bytes())
            .unwrap();
    }

    fn sent(server: &MailServer) -> InputResult {
        let to = ["a@example.org".to_owned(), "b@example.org".to_owned()];
        let from = "marvin@example.org";
        let reason = send(
            server,
            &to,
            from,
            &mail(&to, from, &delivery("it is down", ".\nwhy\n")),
            20,
        );
        reason.map_err(|reason| reason.replace(&format!(":{}", server.port), ":PORT"))
    }

    const HELLO: &str = "250-here\r\n250 AUTH PLAIN LOGIN";

    #[test]
    fn server_gets_the_mail_and_our_login() {
        let (mut to, heard) = server(&[
            "220 here",
            HELLO,
            "235 yes",
            "250 ok",
            "250 ok",
            "250 ok",
            "354 go",
            "250 taken",
        ]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "sesame\nnot this\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        to.login = Some(Login {
            user: "marvin".into(),
            password: Secret::File(file),
        });
        assert_eq!(sent(&to), Ok(()));
        let heard = heard.join().unwrap();
        assert!(heard[0].starts_with("EHLO "), "{heard:?}");
        // "\0marvin\0sesame" in base64.
        assert_eq!(heard[1], "AUTH PLAIN AG1hcnZpbgBzZXNhbWU=");
        assert_eq!(
            heard[2..6],
            [
                "MAIL FROM:<marvin@example.org>",
                "RCPT TO:<a@example.org>",
                "RCPT TO:<b@example.org>",
                "DATA"
            ]
        );
        assert_eq!(
            heard[heard.len() - 4..],
            ["", "..", "why", "."],
            "a line with a dot does not end it: {heard:?}"
        );
        assert!(
            heard
                .iter()
                .any(|line| line == "Subject: [marvin] it is down"),
            "{heard:?}"
        );
    }

    #[test]
    fn each_failure_is_one_line() {
        let mut errors = Vec::new();
        for answers in [
            &["220 here", "250 here", "550 no such sender"][..],
            &[
                "220 here",
                "250 here",
                "250 ok",
                "450 a@example.org: try later",
            ],
            &[
                "220 here", "250 here", "250 ok", "250 ok", "250 ok", "354 go",
            ],
            &["554 go away"],
            &["220 this is\r\nHTTP"],
        ] {
            let (to, heard) = server(answers);
            errors.push(sent(&to).unwrap_err());
            drop(heard.join());
        }
        let (to, heard) = server(&["220 here", "250 here"]);
        errors.push(
            sent(&MailServer {
                secrecy: Secrecy::Upgraded,
                ..to
            })
            .unwrap_err(),
        );
        drop(heard.join());
        let (to, heard) = server(&["220 here", "250 here"]);
        errors.push(
            sent(&MailServer {
                secrecy: Secrecy::Whole,
                ..to
            })
            .unwrap_err(),
        );
        drop(heard.join());
        let (mut to, heard) = server(&["220 here", "250 here"]);
        to.login = Some(Login {
            user: "marvin".into(),
            password: Secret::Variable("PATH".into()),
        });
        errors.push(sent(&to).unwrap_err());
        drop(heard.join());
        // The server has gone.
        errors.push(sent(&to).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn silent_server_is_abandoned() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let silent = MailServer {
            host: "127.0.0.1".into(),
            port,
            secrecy: Secrecy::Plain,
            login: None,
        };
        let reason = send(&silent, &["a@example.org".into()], "m@example.org", "", 1).unwrap_err();
        assert_eq!(
            reason,
            format!("smtp://127.0.0.1:{port} did not accept the mail within 1 s")
        );
    }

    /// Decodes quoted-printable as defined in RFC 2045.
    fn read(text: &str) -> Vec<u8> {
        let joined = text.replace("=\n", "");
        let mut bytes = joined.bytes();
        let mut all = Vec::new();
        while let Some(byte) = bytes.next() {
            all.push(if byte == b'=' {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            } else {
                byte
            });
        }
        all
    }

    proptest! {
        #[test]
        fn any_text_survives_quoted_printable(text in any::<String>(), times in 1..40_usize) {
            let text = text.repeat(times);
            let quoted = quoted_printable(&text);
            prop_assert!(
                quoted
                    .lines()
                    .all(|line| line.len() <= 76 && !line.ends_with(' ')),
                "{quoted}"
            );
            prop_assert!(
                quoted
                    .bytes()
                    .all(|b| b == b'\n' || (b' '..=b'~').contains(&b))
            );
            prop_assert_eq!(read(&quoted), text.as_bytes());
        }
    }
}
