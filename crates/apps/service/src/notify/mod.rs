//! Notices to people: by mail, webhook or command. Marvin keeps a notice that it cannot deliver,
//! and retries at growing intervals.
//!
//! Mail goes through a sendmail program or to a server (`mail.rs`), webhooks through curl.

mod mail;
mod program;
mod reservations;

use model::{Channel, ChannelKind, MailTaker, MarvinConfig, UnixTime, escape_json, retry_after_s};
use store::{Delivery, Notice, Store};

use crate::ServiceError;
use mail::{mail, send};
use program::{InputResult, feed};

pub use mail::machine_name;
pub use reservations::remind;

/// Deadline of a channel (s).
const CHANNEL_S: u64 = 30;
/// How long a sender holds a notice, so that others do not send it too (s); more than a channel may
/// take.
const HELD_S: u64 = 3 * CHANNEL_S;

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivered {
    pub made: usize,
    /// Channels that failed, and why.
    pub failed: Vec<(String, String)>,
}

/// Queues a notice for each channel, unless an equal one is already known.
pub(crate) fn raise_notice(
    store: &Store,
    channels: &[Channel],
    notice: &Notice,
) -> Result<(), ServiceError> {
    let channels: Vec<&str> = channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    store.raise(notice, &channels)?;
    Ok(())
}

/// Returns a channel, with other addresses if its name has some.
fn channel_of(channels: &[Channel], name: &str) -> Option<Channel> {
    let (name, addresses) = model::addresses_of(name);
    let mut channel = channels.iter().find(|one| one.name == name)?.clone();
    if !addresses.is_empty() {
        let ChannelKind::Mail { to, .. } = &mut channel.kind else {
            return None;
        };
        *to = addresses.into_iter().map(str::to_owned).collect();
    }
    Some(channel)
}

/// Delivers pending notices. Tries a channel that failed only once per call, so that the call
/// returns soon.
///
/// # Errors
/// If the store fails.
pub fn deliver(
    store: &Store,
    settings: &MarvinConfig,
    clock: &dyn Fn() -> UnixTime,
) -> Result<Delivered, ServiceError> {
    deliver_by(store, clock, &|delivery| {
        let Some(channel) = channel_of(&settings.channels, &delivery.channel) else {
            return Err("marvin.toml has no [[notify]] with this name any more".into());
        };
        send_through(&channel, delivery)
    })
}

fn deliver_by(
    store: &Store,
    clock: &dyn Fn() -> UnixTime,
    by: &dyn Fn(&Delivery) -> InputResult,
) -> Result<Delivered, ServiceError> {
    let mut delivered = Delivered::default();
    let mut down = Vec::new();
    loop {
        let now = clock();
        let Some(delivery) = store.take_delivery(now, now.plus_seconds(HELD_S), &down)? else {
            return Ok(delivered);
        };
        match by(&delivery) {
            Ok(()) => {
                store.record_delivery(&delivery, clock())?;
                delivered.made += 1;
            }
            Err(reason) => {
                let next = clock().plus_seconds(retry_after_s(delivery.tries + 1));
                store.record_failure(&delivery, &reason, next)?;
                down.push(delivery.channel.clone());
                delivered.failed.push((delivery.channel, reason));
            }
        }
    }
}

/// Sends a notice through a channel at once; it is neither stored nor tried again.
///
/// # Errors
/// Says why the channel did not take it.
pub fn send_now(channel: &Channel, notice: &Notice) -> Result<(), String> {
    let delivery = Delivery {
        number: 0,
        notice: notice.clone(),
        channel: channel.name.clone(),
        tries: 0,
        failure: String::new(),
    };
    send_through(channel, &delivery)
}

fn send_through(channel: &Channel, delivery: &Delivery) -> InputResult {
    match &channel.kind {
        ChannelKind::Mail { to, from, by } => {
            let text = mail(to, from, delivery);
            match by {
                MailTaker::Sendmail(program) => feed(program, text.as_bytes(), CHANNEL_S),
                MailTaker::Server(server) => send(server, to, from, &text, CHANNEL_S),
            }
        }
        ChannelKind::Webhook { url } => {
            let curl = [
                "curl",
                "-q",
                "--silent",
                "--show-error",
                "--fail",
                "--max-time",
                "25",
                "--config",
                "-",
            ];
            // The address may be a secret, and other users can see a process's arguments.
            let input = subprocess::curl_config(&[
                ("url", url),
                ("header", "Content-Type: application/json"),
                ("data-raw", &document(delivery)),
                ("output", "/dev/null"),
            ]);
            feed(&curl.map(str::to_owned), input.as_bytes(), CHANNEL_S)
        }
        ChannelKind::Command { command } => feed(
            command,
            format!("{}\n", document(delivery)).as_bytes(),
            CHANNEL_S,
        ),
    }
}

/// Returns a notice as a JSON document in one line. Chat programs show its `text`.
fn document(delivery: &Delivery) -> String {
    let Notice {
        subject,
        headline,
        body,
        raised_unix,
    } = &delivery.notice;
    let document = serde_json::json!({
        "schema_version": 1,
        "number": delivery.number,
        "subject": subject,
        "headline": headline,
        "body": body,
        "raised_unix": raised_unix.seconds(),
        "text": format!("marvin: {headline}\n{body}"),
    });
    escape_json(&document.to_string())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use model::UnixTime;
    use store::{Delivery, Notice, Store};

    use super::mail::tests::server;

    use super::{Delivered, HELD_S, deliver, deliver_by, document};

    fn notice(subject: &str) -> Notice {
        let headline = format!("{subject} is down\nBcc: all@example.org");
        Notice {
            subject: subject.into(),
            headline,
            body: "said: \"no\"\n".into(),
            raised_unix: UnixTime::new(100),
        }
    }

    #[test]
    fn document_holds_the_notice() {
        let delivery = Delivery {
            number: 3,
            notice: notice("tree:a"),
            channel: "x".into(),
            tries: 0,
            failure: String::new(),
        };
        insta::assert_snapshot!(document(&delivery));
    }

    #[test]
    fn failed_channel_backs_off_without_blocking_others() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        store.raise(&notice("tree:a"), &["mail", "chat"]).unwrap();
        store.raise(&notice("tree:b"), &["mail", "chat"]).unwrap();
        let now = Cell::new(100);
        let tried = RefCell::new(Vec::new());
        let try_all = |up: bool| {
            deliver_by(&store, &|| UnixTime::new(now.get()), &|delivery| {
                tried
                    .borrow_mut()
                    .push(format!("{} {}", delivery.channel, delivery.notice.subject));
                if up || delivery.channel == "chat" {
                    Ok(())
                } else {
                    Err("connection refused".to_owned())
                }
            })
            .unwrap()
        };
        let failed = vec![("mail".to_owned(), "connection refused".to_owned())];
        assert_eq!(
            try_all(false),
            Delivered {
                made: 2,
                failed: failed.clone()
            }
        );
        assert_eq!(tried.take(), ["chat tree:a", "mail tree:a", "chat tree:b"]);
        // The other mail was not tried and is still due; the first one waits for its retry.
        assert_eq!(
            try_all(false),
            Delivered {
                made: 0,
                failed: failed.clone()
            }
        );
        assert_eq!(tried.take(), ["mail tree:b"]);
        assert_eq!(try_all(false), Delivered::default());
        now.set(160);
        assert_eq!(try_all(false).failed.len(), 1);
        now.set(161);
        assert_eq!(try_all(false).failed.len(), 1);
        now.set(399);
        assert_eq!(try_all(true), Delivered::default());
        now.set(401);
        assert_eq!(try_all(true).made, 2);
        assert!(
            store.list_undelivered().unwrap().is_empty(),
            "nothing is lost"
        );
    }

    #[test]
    fn killed_sender_sends_a_message_twice_at_most() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        store.raise(&notice("tree:a"), &["mail"]).unwrap();
        let sent = RefCell::new(Vec::new());
        let deliver_at = |seconds: i64, is_killed: bool| {
            let by = |delivery: &Delivery| {
                let text = super::mail(&["a@b.org".to_owned()], "c@d.org", delivery);
                let id = text.lines().find(|line| line.starts_with("Message-ID: "));
                sent.borrow_mut().push(id.unwrap().to_owned());
                assert!(!is_killed, "killed between sending and recording");
                Ok(())
            };
            let send = || deliver_by(&store, &|| UnixTime::new(seconds), &by).unwrap();
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(send)).ok()
        };
        assert_eq!(deliver_at(100, true), None);
        // Another process leaves it to the first while that may still send.
        let held = i64::try_from(HELD_S).unwrap();
        assert_eq!(deliver_at(99 + held, false).unwrap().made, 0);
        assert_eq!(deliver_at(101 + held, false).unwrap().made, 1);
        assert_eq!(deliver_at(100_000, false).unwrap().made, 0);
        let sent = sent.into_inner();
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0], sent[1], "by which a reader knows it again");
    }

    #[test]
    fn command_is_called_once_with_the_document() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let file = home.path().join("told");
        let toml = format!(
            "[[notify]]\nname = \"us\"\ncommand = [\"sh\", \"-c\", \"cat >>{}\"]\n",
            file.display()
        );
        let settings = config::settings(&toml, &model::ToolRows::default()).unwrap();
        store.raise(&notice("tree:a"), &["us", "gone"]).unwrap();
        for _ in 0..2 {
            deliver(&store, &settings, &|| UnixTime::new(100)).unwrap();
        }
        let document = std::fs::read_to_string(file).unwrap();
        assert_eq!(document.lines().count(), 1, "{document}");
        assert!(document.contains("\"subject\":\"tree:a\""), "{document}");
        assert_eq!(
            store.list_undelivered().unwrap()[0].failure,
            "marvin.toml has no [[notify]] with this name any more"
        );
    }

    fn with_mail_server(server: &str) -> model::MarvinConfig {
        let toml = format!(
            "[[notify]]\nname = \"us\"\nmail = [\"a@b.org\"]\nfrom = \"c@d.org\"\nsmtp = \"{server}\"\n"
        );
        config::settings(&toml, &model::ToolRows::default()).unwrap()
    }

    #[test]
    fn down_mail_server_gets_mail_later_once() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        store.raise(&notice("tree:a"), &["us"]).unwrap();
        let down = deliver(&store, &with_mail_server("smtp://127.0.0.1:1"), &|| {
            UnixTime::new(100)
        })
        .unwrap();
        let why = "smtp://127.0.0.1:1 cannot be reached: Connection refused (os error 111)";
        assert_eq!(
            down,
            Delivered {
                made: 0,
                failed: vec![("us".into(), why.into())]
            }
        );
        assert_eq!(store.list_undelivered().unwrap()[0].failure, why);
        let (up, heard) = server(&[
            "220 here",
            "250 here",
            "250 ok",
            "250 ok",
            "354 go",
            "250 taken",
        ]);
        for (now, made) in [(159, 0), (161, 1), (999, 0)] {
            assert_eq!(
                deliver(&store, &with_mail_server(&up.to_string()), &|| {
                    UnixTime::new(now)
                })
                .unwrap(),
                Delivered {
                    made,
                    failed: Vec::new()
                }
            );
        }
        let heard = heard.join().unwrap();
        assert!(
            heard.iter().any(|line| line == "X-Marvin-Notice: 1 tree:a"),
            "{heard:?}"
        );
    }
}
