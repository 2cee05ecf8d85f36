//! The server: HTTP/1.1, GET and HEAD; it stores nothing from requests. Everything has a limit.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use crate::address::{LENGTH_MAX, has_secret};
use crate::site::{Kind, Reply, Site};
use crate::source::Source;

/// Limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at the same time; others wait in the system's queue.
    pub connections: usize,
    /// Size limit of a request's head (bytes).
    pub head_bytes: usize,
    /// Deadline of a head, from its first byte or from the last answer.
    pub head_time: Duration,
    /// Deadline of an answer.
    pub answer_time: Duration,
    /// Limit on a connection's lifetime, which cuts off slow readers.
    pub connection_time: Duration,
    /// Interval between reads of the store.
    pub refresh_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(10),
            answer_time: Duration::from_secs(30),
            connection_time: Duration::from_mins(5),
            refresh_time: Duration::from_secs(1),
        }
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve: {0}")]
pub struct ServeError(#[from] std::io::Error);

/// Serves a site until the process ends, and shows new results of its store meanwhile.
///
/// # Errors
/// If the socket or threads cannot be used.
pub fn serve(listener: TcpListener, site: Arc<Site>, source: Source, limits: Limits) -> Result<Infallible, ServeError> {
    listener.set_nonblocking(true)?;
    let followed = Arc::clone(&site);
    std::thread::Builder::new().name("follow".to_owned()).spawn(move || follow(&followed, source, limits))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(limits.connections.clamp(1, 8))
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(accept(listener, &site, limits))
}

/// Reads new results of the store, until the process ends.
fn follow(site: &Site, mut source: Source, limits: Limits) {
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

async fn accept(listener: TcpListener, site: &Arc<Site>, limits: Limits) -> Result<Infallible, ServeError> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { continue };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or a connection that ended at once: keep serving.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let site = Arc::clone(site);
        tokio::spawn(async move {
            let service = service_fn(move |request| respond(Arc::clone(&site), request, address, limits));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head_time)
                .max_buf_size(limits.head_bytes.max(8 << 10))
                .serve_connection(TokioIo::new(stream), service);
            // Ignore how a connection ends.
            drop(tokio::time::timeout(limits.connection_time, connection).await);
            drop(place);
        });
    }
}

type Answer = Response<Full<Bytes>>;

async fn respond(
    site: Arc<Site>,
    request: Request<Incoming>,
    address: SocketAddr,
    limits: Limits,
) -> Result<Answer, Infallible> {
    if let Some((status, text)) = refuse(&request, address) {
        return Ok(plain(status, text));
    }
    let start = Instant::now();
    let (path, question) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    if let Some(reply) = site.cached(&path, &question) {
        return Ok(add_timing(to_answer(&reply), start));
    }
    let work = tokio::task::spawn_blocking(move || site.answer(&path, &question));
    Ok(match tokio::time::timeout(limits.answer_time, work).await {
        Ok(Ok(reply)) => add_timing(to_answer(&reply), start),
        Ok(Err(_)) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a bug in marvin, please report it\n"),
        Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "the lab is too busy; try again later\n"),
    })
}

/// Refuses requests other than GET and HEAD, and requests for another host.
fn refuse(request: &Request<Incoming>, address: SocketAddr) -> Option<(StatusCode, &'static str)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: the dashboard is read-only\n"));
    }
    if !request.body().is_end_stream() {
        return Some((StatusCode::PAYLOAD_TOO_LARGE, "a request must not have a body\n"));
    }
    if request.uri().path_and_query().is_some_and(|text| text.as_str().len() > LENGTH_MAX) {
        return Some((StatusCode::URI_TOO_LONG, "the address is too long\n"));
    }
    if request.uri().query().is_some_and(has_secret) {
        return Some((
            StatusCode::BAD_REQUEST,
            "the dashboard takes no token, and addresses are logged: do not put a token there\n",
        ));
    }
    if address.ip().is_loopback() && !is_local(request.headers().get(header::HOST)) {
        // A foreign page may point its own host name at this address (DNS rebinding) to read private pages.
        return Some((StatusCode::MISDIRECTED_REQUEST, "this server is for localhost only\n"));
    }
    None
}

fn is_local(host: Option<&HeaderValue>) -> bool {
    let Some(Ok(host)) = host.map(HeaderValue::to_str) else { return true };
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())).map_or(host, |(n, _)| n);
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

/// Pages may load only their own styles and script.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds the duration of the answer in milliseconds, for browsers and for the bench.
fn add_timing(mut answer: Answer, start: Instant) -> Answer {
    let text = format!("answer;dur={:.3}", start.elapsed().as_secs_f64() * 1e3);
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert("server-timing", value);
    }
    answer
}

fn to_answer(reply: &Reply) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(&reply.body)));
    *answer.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.kind.mime()));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let keep = if matches!(reply.kind, Kind::Css | Kind::Script) { "max-age=300" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    if reply.kind == Kind::Bytes {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    to_answer(&Reply { status: status.as_u16(), kind: Kind::Text, body: text.into() })
}
