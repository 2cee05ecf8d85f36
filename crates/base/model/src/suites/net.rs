//! The net suite: TCP and UDP over loopback, after netperf and tbench.

use std::sync::{Arc, LazyLock};

use super::{Texts, workload};
use crate::{Suite, Workload};

const NETPERF: &str = "netperf TCP_STREAM over loopback. Kept: the sizes. Differs: one process holds both ends and \
    receives after each four sends, TCP_NODELAY, fixed buffers: with two, it depends on the scheduler how much is under \
    way; cost per message instead of Mbit/s";
const NETPERF_UDP: &str = "netperf UDP_STREAM over loopback. Kept: the sizes; send and receive are reported apart. \
    Differs: one process holds both ends: what is sent is received in a time of its own, and none is lost, as the \
    receiver's queue holds all of an iteration; cost per message instead of Mbit/s";

macro_rules! tcp {
    ($size:literal, $operations:literal) => {
        workload(
            concat!("tcp-stream-", $size),
            Texts {
                stresses: concat!("TCP throughput in messages of ", $size, " bytes"),
                operation: concat!("send(2) of ", $size, " bytes and their receipt"),
                source: NETPERF,
            },
            $operations,
            &[&["tcp_sendmsg"], &["tcp_recvmsg"]],
        )
    };
}

macro_rules! udp_send {
    ($size:literal, $operations:literal) => {
        workload(
            concat!("udp-send-", $size),
            Texts {
                stresses: concat!("sending UDP datagrams of ", $size, " bytes"),
                operation: concat!("send(2) of ", $size, " bytes into the receiver's queue"),
                source: NETPERF_UDP,
            },
            $operations,
            &[
                &["udp_sendmsg"],
                &[
                    "udp_queue_rcv_one_skb",
                    "udp_queue_rcv_skb",
                    "__udp_enqueue_schedule_skb",
                ],
            ],
        )
    };
}

macro_rules! udp_receive {
    ($size:literal, $operations:literal) => {
        workload(
            concat!("udp-recv-", $size),
            Texts {
                stresses: concat!("receiving UDP datagrams of ", $size, " bytes"),
                operation: concat!("recv(2) of ", $size, " bytes that are in the queue"),
                source: NETPERF_UDP,
            },
            $operations,
            &[&["udp_recvmsg"]],
        )
    };
}

const TBENCH: &str = "tbench of dbench 4 (client.txt). Kept: a server process for each client, requests and answers of \
    SMB sizes over TCP in about the proportions of client.txt, no files behind them. Differs: 24 requests in a fixed \
    order instead of the load file; cost instead of MB/s";

fn tbench(name: &'static str, stresses: &'static str) -> Workload {
    let texts = Texts {
        stresses,
        operation: "24 requests and their answers, 8 of them with data",
        source: TBENCH,
    };
    workload(
        name,
        texts,
        16,
        &[&["tcp_sendmsg"], &["tcp_recvmsg"], &["tcp_v4_rcv"]],
    )
    .on_all_processors()
}

/// The network over the loopback device.
pub static NET: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "net",
        "TCP and UDP over loopback, after netperf and tbench",
        [
            tcp!(64, 600),
            tcp!(128, 600),
            tcp!(256, 600),
            tcp!(1024, 600),
            tcp!(2048, 600),
            tcp!(3312, 600),
            tcp!(4096, 600),
            tcp!(8192, 400),
            tcp!(16384, 400),
            udp_send!(64, 1000),
            udp_send!(128, 1000),
            udp_send!(256, 1000),
            udp_send!(1024, 1000),
            udp_send!(2048, 800),
            udp_send!(3312, 800),
            udp_send!(4096, 800),
            udp_send!(8192, 400),
            udp_send!(16384, 400),
            udp_receive!(64, 1000),
            udp_receive!(128, 1000),
            udp_receive!(256, 1000),
            udp_receive!(1024, 1000),
            udp_receive!(2048, 800),
            udp_receive!(3312, 800),
            udp_receive!(4096, 800),
            udp_receive!(8192, 400),
            udp_receive!(16384, 400),
            tbench("tbench-like-1", "requests and answers over TCP, one client"),
            tbench(
                "tbench-like-4",
                "requests and answers over TCP, four clients",
            ),
        ],
    )
});
