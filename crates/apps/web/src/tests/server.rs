//! The server as an attacker and a slow client see it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use model::ClientLimits;

use crate::Limits;
use crate::testing::Lab;

fn sent(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The other side may close before it has read everything: that counts as an answer.
    drop(stream.write_all(request));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or("closed")
}

#[test]
fn server_answers_only_get_and_head() {
    let lab = Lab::usual();
    let address = lab.serve(Limits::default());
    let with = |first: &str, rest: &str| {
        sent(
            address,
            format!("{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{rest}\r\n")
                .as_bytes(),
        )
    };
    let page = with("GET /?base=6.1.170", "");
    assert_eq!(first_line(&page), "HTTP/1.1 200 OK");
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "text/html; charset=utf-8",
    ] {
        assert!(page.contains(header), "{header}");
    }
    assert!(page.contains("6.12.117 against 6.1.170"));
    let head = with("HEAD /", "");
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    for (line, rest, expected) in [
        (
            "POST /",
            "Content-Length: 0\r\n",
            "HTTP/1.1 405 Method Not Allowed",
        ),
        ("DELETE /alerts.html", "", "HTTP/1.1 405 Method Not Allowed"),
        (
            "GET /",
            "Content-Length: 1000000000\r\n",
            "HTTP/1.1 413 Payload Too Large",
        ),
        (
            "GET /",
            "Transfer-Encoding: chunked\r\n",
            "HTTP/1.1 413 Payload Too Large",
        ),
        ("GET /?token=s3cr3t", "", "HTTP/1.1 400 Bad Request"),
        (
            "GET /alerts.html?x=1&Access%5Ftoken=s3cr3t",
            "",
            "HTTP/1.1 400 Bad Request",
        ),
        ("GET /marvin.db", "", "HTTP/1.1 404 Not Found"),
        ("GET /../../../../etc/passwd", "", "HTTP/1.1 404 Not Found"),
    ] {
        assert_eq!(first_line(&with(line, rest)), expected, "{line} {rest}");
    }
    let refusal = with("GET /?token=s3cr3t", "");
    assert!(
        refusal.contains("do not put a token there") && !refusal.contains("s3cr3t"),
        "{refusal}"
    );
    assert_eq!(
        first_line(&with(&format!("GET /?{}", "a".repeat(3000)), "")),
        "HTTP/1.1 414 URI Too Long"
    );
    let large = with("GET /", &format!("X: {}\r\n", "a".repeat(1 << 20)));
    assert!(!large.contains("200 OK"), "{}", first_line(&large));
    let many = with("GET /", &"X: a\r\n".repeat(1000));
    assert!(!many.contains("200 OK"), "{}", first_line(&many));
}

#[test]
fn server_answers_only_under_its_names() {
    let lab = Lab::usual();
    let address = lab.serve(Limits::default());
    let elsewhere = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(first_line(&elsewhere), "HTTP/1.1 421 Misdirected Request");
    for (hosts, expected) in [
        ("", "HTTP/1.1 400 Bad Request"),
        (
            "Host: localhost\r\nHost: localhost\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        (
            "Host: localhost\r\nHost: evil.example\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        ("Host:\r\n", "HTTP/1.1 421 Misdirected Request"),
        ("Host: 192.0.2.7\r\n", "HTTP/1.1 421 Misdirected Request"),
        (
            "Host: localhost.evil.example\r\n",
            "HTTP/1.1 421 Misdirected Request",
        ),
        ("Host: LOCALHOST:8080\r\n", "HTTP/1.1 200 OK"),
        ("Host: [::1]:8080\r\n", "HTTP/1.1 200 OK"),
        ("Host: lab.example\r\n", "HTTP/1.1 200 OK"),
    ] {
        let answer = sent(
            address,
            format!("GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n").as_bytes(),
        );
        assert_eq!(first_line(&answer), expected, "{hosts:?}");
    }
    let absolute =
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(
        first_line(&sent(address, absolute)),
        "HTTP/1.1 421 Misdirected Request"
    );
    let tls_hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    assert!(!sent(address, tls_hello).contains("200 OK"));
}

#[test]
fn slow_client_is_cut_off_without_blocking() {
    let lab = Lab::usual();
    let limits = Limits {
        clients: ClientLimits {
            all: 3,
            of_one: 3,
            of_others: 3,
        },
        head_time: Duration::from_millis(300),
        connection_time: Duration::from_millis(900),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut slow: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    slow.iter_mut()
        .for_each(|stream| stream.write_all(b"GET / HTT").unwrap());
    let answer = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(first_line(&answer), "HTTP/1.1 200 OK");
    for stream in &mut slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
}

#[test]
fn client_with_many_connections_leaves_room_for_others() {
    let lab = Lab::usual();
    let clients = ClientLimits {
        all: 6,
        of_one: 3,
        of_others: 6,
    };
    let limits = Limits {
        clients,
        head_time: Duration::from_secs(3),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    // All but three are refused at once.
    let mut refused = 0;
    for stream in &mut slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let mut head = [0; 100];
        refused += usize::from(
            stream
                .read(&mut head)
                .is_ok_and(|count| head[..count].starts_with(b"HTTP/1.1 503")),
        );
        if refused == 17 {
            break;
        }
    }
    assert_eq!(refused, 17);
    let curl = |from: &str, path: &str| {
        let url = format!("http://{address}{path}");
        let mut curl = std::process::Command::new("curl");
        curl.args(["-si", "-m", "5", "--interface", from, &url]);
        String::from_utf8_lossy(&curl.output().unwrap().stdout).into_owned()
    };
    for path in ["/", "/metrics"] {
        assert_eq!(first_line(&curl("127.0.0.2", path)), "HTTP/1.1 200 OK");
    }
    // Silent ones are cut off.
    std::thread::sleep(limits.head_time);
    assert_eq!(first_line(&curl("127.0.0.1", "/")), "HTTP/1.1 200 OK");
}

const LARGE: &str =
    "GET /r/00000000000000ff/large.vmcore HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Saves a run with an artifact of so many bytes, which do not shrink.
fn save_large(lab: &Lab, bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let random = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()
    });
    let bytes: Vec<u8> = random.flatten().take(bytes).collect();
    let mut run = lab
        .store
        .runs(1)
        .map(|runs| lab.store.run(&runs[0].id).unwrap())
        .unwrap();
    run.id = model::RunId::from_hex("00000000000000ff").unwrap();
    lab.store
        .save_run(
            &run,
            &[store::Artifact {
                name: "large.vmcore",
                bytes: &bytes,
            }],
        )
        .unwrap();
    bytes
}

fn sent_bytes(address: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    answer
}

#[test]
fn artifact_arrives_whole_in_pieces() {
    let lab = Lab::usual();
    let bytes = save_large(&lab, 3_000_001);
    let address = lab.serve(Limits::default());
    let answer = sent_bytes(address, LARGE);
    let head = String::from_utf8_lossy(&answer[..600]).into_owned();
    assert!(
        head.contains("content-length: 3000001") && head.contains("attachment"),
        "{head}"
    );
    assert!(answer.ends_with(&bytes));
    let head = String::from_utf8(sent_bytes(address, &LARGE.replace("GET", "HEAD"))).unwrap();
    assert!(
        head.contains("content-length: 3000001") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[test]
fn damaged_artifact_never_arrives_whole() {
    let lab = Lab::usual();
    let bytes = save_large(&lab, 1_000_000);
    let file = lab
        .home()
        .join("artefacts/00000000000000ff/large.vmcore.zst");
    let mut packed = fs::read(&file).unwrap();
    // The checksum: everything before it is right.
    *packed.last_mut().unwrap() ^= 1;
    fs::write(&file, packed).unwrap();
    let answer = sent_bytes(lab.serve(Limits::default()), LARGE);
    let body = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert!(
        answer[body..].len() < bytes.len(),
        "{} of {} bytes",
        answer[body..].len(),
        bytes.len()
    );
}

#[test]
fn answers_beyond_the_memory_are_refused() {
    let lab = Lab::usual();
    save_large(&lab, 30_000_000);
    let limits = Limits {
        answer_bytes: 4 << 20,
        write_time: Duration::from_secs(4),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut idle = TcpStream::connect(address).unwrap();
    idle.write_all(LARGE.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let refused = String::from_utf8_lossy(&sent_bytes(address, LARGE)).into_owned();
    assert!(
        first_line(&refused) == "HTTP/1.1 503 Service Unavailable"
            && refused.contains("retry-after: 10"),
        "{refused}"
    );
    let page = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(
        first_line(&page),
        "HTTP/1.1 200 OK",
        "pages have room beside an artifact"
    );
    // The reader that takes nothing is cut off, and its room is free.
    std::thread::sleep(Duration::from_secs(5));
    assert!(sent_bytes(address, LARGE).len() > 30_000_000);
}
