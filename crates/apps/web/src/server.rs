//! The server: HTTP/1.1, GET and HEAD; it stores nothing from requests. Everything has a limit.

use std::convert::Infallible;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use document::SITE_POLICY;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use model::{ClientCounts, ClientLimits};
use subprocess::Shared;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::address::{LENGTH_MAX, has_secret};
use crate::sending::{AnswerBody, Punctual, Sent};
use crate::site::{ContentKind, FoundArtifact, Reply, Site};
use results::HistoryReader;

/// Limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at the same time; others are refused.
    pub clients: ClientLimits,
    /// Size limit of a request's head (bytes).
    pub head_bytes: usize,
    /// Deadline of a head, from its first byte or from the last answer.
    pub head_time: Duration,
    /// Deadline of an answer.
    pub answer_time: Duration,
    /// Deadline of a write: cuts off a reader that takes no byte for so long.
    pub write_time: Duration,
    /// Limit on a connection's lifetime, which cuts off slow readers.
    pub connection_time: Duration,
    /// Memory for all answers that are made or sent at the same time (bytes).
    pub answer_bytes: usize,
    /// Interval between reads of the store.
    pub refresh_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: ClientLimits {
                all: 128,
                of_one: 32,
                of_others: 112,
            },
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(10),
            answer_time: Duration::from_secs(30),
            write_time: Duration::from_secs(20),
            connection_time: Duration::from_mins(5),
            answer_bytes: 24 << 20,
            refresh_time: Duration::from_secs(1),
        }
    }
}

/// The unit of the memory for answers (bytes).
const UNIT: usize = 4 << 10;
/// Threads that make pages.
const MAKERS: usize = 8;
/// How long the metrics wait for the store: less than any scraper.
const METRICS_TIME: Duration = Duration::from_millis(1500);
/// How many metrics may wait for the store at once.
const METRICS_MAX: usize = 16;
/// Interval between looks whether the server is to stop.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a server that stops waits for its connections.
const DRAIN: Duration = Duration::from_secs(2);
/// What a client gets that has too many connections.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// How long an answer waits for memory before the client is asked to come again.
const ROOM_TIME: Duration = Duration::from_secs(2);

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve: {0}")]
pub struct ServeError(#[from] std::io::Error);

/// Serves a site until it is to stop, and shows new results of its store meanwhile. Answers
/// requests for an IP address, for localhost, and for these names of the host. Then it takes no
/// further connection, and returns when all are closed or after a short while.
///
/// # Errors
/// If the socket or threads cannot be used.
pub fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    source: HistoryReader,
    limits: Limits,
    names: &[String],
    is_stopping: impl Fn() -> bool,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let followed = Arc::clone(&site);
    std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || follow(&followed, source, limits))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MAKERS)
        .enable_io()
        .enable_time()
        .build()?;
    let budget = Arc::new(Semaphore::new(limits.answer_bytes / UNIT));
    // A thread of its own: a store that does not answer keeps those that make pages.
    let (lab, questions) = sync_channel(METRICS_MAX);
    let read = Arc::clone(&site);
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || read_lab(&read, &questions))?;
    let clients = Shared::new(ClientCounts::new(limits.clients));
    let server = Arc::new(Server {
        site,
        limits,
        names: names.to_vec(),
        budget,
        clients,
        lab,
    });
    let accepted = runtime.block_on(accept(listener, &server, &is_stopping));
    // Answers that are still being made are not waited for.
    runtime.shutdown_background();
    accepted
}

/// Reads new results of the store, until the process ends.
fn follow(site: &Site, mut source: HistoryReader, limits: Limits) {
    let mut generation = 1;
    let mut pause = limits.refresh_time;
    loop {
        std::thread::sleep(pause);
        let start = Instant::now();
        let refreshed = source.refresh();
        // Earlier results stay valid and visible; the metrics report the failure.
        site.note_trouble(refreshed.is_err());
        if refreshed.is_ok_and(|changed| changed) {
            generation += 1;
            site.renew(source.snapshot(generation));
        }
        // A large lab with many new results updates later, and does not take half of a processor.
        pause = limits.refresh_time.max(start.elapsed() * 3);
    }
}

/// Reads what the metrics say of the lab, for each that waits for it.
fn read_lab(site: &Site, questions: &Receiver<oneshot::Sender<Option<String>>>) {
    for question in questions {
        if !question.is_closed() {
            drop(question.send(site.lab_metrics()));
        }
    }
}

/// What all connections share.
struct Server {
    site: Arc<Site>,
    limits: Limits,
    names: Vec<String>,
    /// Memory for answers, in units.
    budget: Arc<Semaphore>,
    clients: Shared<ClientCounts>,
    /// Takes questions for the metrics of the lab.
    lab: SyncSender<oneshot::Sender<Option<String>>>,
}

/// A connection of a client, counted until it is dropped.
struct Admitted {
    server: Arc<Server>,
    address: IpAddr,
}

impl Admitted {
    /// Counts a connection; `None` if it is one too many.
    fn new(server: &Arc<Server>, address: IpAddr) -> Option<Self> {
        let mut clients = server.clients.lock();
        clients.admit(address).then(|| Self {
            server: Arc::clone(server),
            address,
        })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.server.clients.lock().release(self.address);
    }
}

async fn accept(
    listener: TcpListener,
    server: &Arc<Server>,
    is_stopping: &impl Fn() -> bool,
) -> Result<(), ServeError> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let is_loopback = listener.local_addr()?.ip().is_loopback();
    let limits = server.limits;
    loop {
        if is_stopping() {
            drop(listener);
            drain(server).await;
            return Ok(());
        }
        let Ok(accepted) = tokio::time::timeout(GLANCE, listener.accept()).await else {
            continue;
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or a connection that ended at once: keep serving.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(place) = Admitted::new(server, peer.ip()) else {
            // Without waiting: who does not read it sees that the connection is closed.
            drop(stream.try_write(REFUSAL));
            continue;
        };
        let server = Arc::clone(server);
        tokio::spawn(async move {
            let service =
                service_fn(move |request| respond(Arc::clone(&server), request, is_loopback));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head_time)
                .max_buf_size(limits.head_bytes.max(8 << 10))
                .serve_connection(
                    TokioIo::new(Punctual::new(stream, limits.write_time)),
                    service,
                );
            // Ignore how a connection ends.
            drop(tokio::time::timeout(limits.connection_time, connection).await);
            drop(place);
        });
    }
}

/// Waits until all connections are closed; kept-alive ones that ask nothing end with the process.
async fn drain(server: &Server) {
    for _ in 0..DRAIN.as_millis() / GLANCE.as_millis() {
        if server.clients.lock().is_empty() {
            return;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

type Answer = Response<AnswerBody>;

async fn respond(
    server: Arc<Server>,
    request: Request<Incoming>,
    is_loopback: bool,
) -> Result<Answer, Infallible> {
    if let Some((status, text)) =
        refuse(&request).or_else(|| refuse_host(&request, &server.names, is_loopback))
    {
        return Ok(plain(status, text));
    }
    let start = Instant::now();
    let path = request.uri().path().to_owned();
    let question = request.uri().query().unwrap_or_default().to_owned();
    if path == "/metrics" || path == "/healthz" {
        let lab = ask_lab(&server).await;
        let reply = if path == "/metrics" {
            server.site.metrics(lab)
        } else {
            server.site.healthz(lab.is_some())
        };
        return Ok(add_timing(to_answer(Arc::new(reply), None), start));
    }
    let units = memory_of(&path).div_ceil(UNIT) as u32;
    let room = tokio::time::timeout(
        ROOM_TIME,
        Arc::clone(&server.budget).acquire_many_owned(units),
    )
    .await;
    let Ok(Ok(room)) = room else {
        return Ok(too_busy());
    };
    if let Some(reply) = server.site.cached(&path, &question) {
        return Ok(add_timing(to_answer(reply, Some(room)), start));
    }
    let site = Arc::clone(&server.site);
    let is_head = request.method() == Method::HEAD;
    // The room goes with the work: an answer that comes too late has it until it ends.
    let work = tokio::task::spawn_blocking(move || match site.artifact_at(&path) {
        Some(found) => send_artifact(site, found, room, is_head),
        None => Ok(to_answer(site.answer(&path, &question), Some(room))),
    });
    Ok(
        match tokio::time::timeout(server.limits.answer_time, work).await {
            Ok(Ok(Ok(answer))) => add_timing(answer, start),
            Ok(Ok(Err(_))) | Err(_) => too_busy(),
            Ok(Err(_)) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "a bug in marvin, please report it\n",
            ),
        },
    )
}

/// Returns the metrics of the lab; `None`, soon, if the store does not answer.
async fn ask_lab(server: &Server) -> Option<String> {
    let (question, lab) = oneshot::channel();
    server.lab.try_send(question).ok()?;
    tokio::time::timeout(METRICS_TIME, lab)
        .await
        .ok()?
        .ok()
        .flatten()
}

/// Returns how much memory an answer takes at most, while it is made and sent (bytes).
fn memory_of(path: &str) -> usize {
    match path {
        // Unpacking takes 2 MiB; pieces wait in a channel and in the connection.
        _ if path.starts_with("/r/") => 3 << 20,
        _ if path.starts_with("/api/") => 12 << 20,
        _ => 256 << 10,
    }
}

fn too_busy() -> Answer {
    let mut answer = plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "the lab is too busy; try again later\n",
    );
    answer
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
    answer
}

/// Sends an artifact in pieces, from a thread of its own: slow readers must not occupy those that
/// make pages. The store verifies the checksum behind the last piece; if it is wrong, the
/// connection breaks off before the end.
fn send_artifact(
    site: Arc<Site>,
    found: FoundArtifact,
    room: OwnedSemaphorePermit,
    is_head: bool,
) -> std::io::Result<Answer> {
    let (sender, pieces) = mpsc::channel(1);
    let kind = found.kind;
    let left = found.size as u64;
    if !is_head {
        std::thread::Builder::new()
            .name("artifact".to_owned())
            .spawn(move || {
                // One piece is held back: the last one goes out after the verification.
                let mut held: Option<Bytes> = None;
                let copied = site.copy_artifact(&found, &mut |piece| match held
                    .replace(Bytes::copy_from_slice(piece))
                {
                    Some(before) => sender.blocking_send(before).is_ok(),
                    None => true,
                });
                if let (Ok(()), Some(last)) = (copied, held) {
                    drop(sender.blocking_send(last));
                }
                drop(room);
            })?;
    }
    Ok(with_headers(
        Response::new(AnswerBody::Pieces { pieces, left }),
        200,
        kind,
    ))
}

/// Refuses requests other than GET and HEAD, and impossible ones.
fn refuse(request: &Request<Incoming>) -> Option<(StatusCode, &'static str)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some((
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD: the dashboard is read-only\n",
        ));
    }
    if !request.body().is_end_stream() {
        return Some((
            StatusCode::PAYLOAD_TOO_LARGE,
            "a request must not have a body\n",
        ));
    }
    if request
        .uri()
        .path_and_query()
        .is_some_and(|text| text.as_str().len() > LENGTH_MAX)
    {
        return Some((StatusCode::URI_TOO_LONG, "the address is too long\n"));
    }
    if request.uri().query().is_some_and(has_secret) {
        return Some((
            StatusCode::BAD_REQUEST,
            "the dashboard takes no token, and addresses are logged: do not put a token there\n",
        ));
    }
    None
}

/// Refuses requests that do not name this host exactly once. A foreign page may point its own host
/// name at this address (DNS rebinding) to read private pages; it cannot make an IP address its
/// name.
fn refuse_host(
    request: &Request<Incoming>,
    names: &[String],
    is_loopback: bool,
) -> Option<(StatusCode, &'static str)> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Some((
            StatusCode::BAD_REQUEST,
            "a request must have exactly one Host header\n",
        ));
    };
    let authority = request
        .uri()
        .authority()
        .map(hyper::http::uri::Authority::as_str);
    let mut hosts = std::iter::once(host.to_str().unwrap_or_default()).chain(authority);
    if hosts.all(|host| is_name_of_ours(host, names, is_loopback)) {
        return None;
    }
    let text = if is_loopback {
        "this server is for localhost only; marvin serve --name NAME adds a name\n"
    } else {
        "this server has another name; marvin serve --name NAME adds one\n"
    };
    Some((StatusCode::MISDIRECTED_REQUEST, text))
}

/// Returns whether a host, with or without a port, is an address, localhost, or one of these names.
fn is_name_of_ours(host: &str, names: &[String], is_loopback: bool) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(n, _)| n);
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    let is_address = address
        .parse::<IpAddr>()
        .is_ok_and(|ip| !is_loopback || ip.is_loopback());
    is_address
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Adds the duration of the answer in milliseconds, for browsers and for the bench.
fn add_timing(mut answer: Answer, start: Instant) -> Answer {
    let text = format!("answer;dur={:.3}", start.elapsed().as_secs_f64() * 1e3);
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert("server-timing", value);
    }
    answer
}

fn to_answer(reply: Arc<Reply>, room: Option<OwnedSemaphorePermit>) -> Answer {
    let status = reply.status;
    let kind = reply.kind;
    // The bytes own the room: it is free when the connection has sent or dropped them.
    let bytes = Bytes::from_owner(Sent { reply, _room: room });
    with_headers(Response::new(AnswerBody::Whole(Some(bytes))), status, kind)
}

fn with_headers(mut answer: Answer, status: u16, kind: ContentKind) -> Answer {
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind.mime()));
    if let Ok(policy) = HeaderValue::from_str(&format!("{SITE_POLICY}; frame-ancestors 'none'")) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    let keep = if matches!(kind, ContentKind::Css | ContentKind::Script) {
        "max-age=300"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    if kind == ContentKind::Bytes {
        headers.insert(
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment"),
        );
    }
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    to_answer(
        Arc::new(Reply {
            status: status.as_u16(),
            kind: ContentKind::Text,
            body: text.into(),
        }),
        None,
    )
}
