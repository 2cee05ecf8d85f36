//! A real iPXE, the one in QEMU's network card, takes what it is offered.

use std::fs;
use std::time::{Duration, Instant};

use rack::{HOST_SEEN, MAC, Power, Rack};
use server::{Answers, Offer};

/// Firmware and iPXE on an emulated processor, on a busy host.
const PATIENCE: Duration = Duration::from_secs(240);
/// After how long without a request the server is switched off and on.
const QUIET: Duration = Duration::from_secs(50);

#[test]
fn ipxe_of_a_server_gets_kernel_and_root() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    // iPXE executes any image that it knows: here a script, which ends.
    let offer = Offer {
        mac: MAC.to_owned(),
        kernel: file("vmlinuz", b"#!ipxe\nimgstat\nexit\n".to_vec()),
        root: file("root", vec![7; 3 << 20]),
        seal: vec![8; 1000],
        command_line: "console=ttyS0,115200".to_owned(),
    };
    let answers = Answers::open("127.0.0.1:0".parse().unwrap(), offer).unwrap();
    let server = Rack::open().unwrap().network_server("pxebox", 512).unwrap();
    let port = answers.address().port();
    server
        .set_boot_script(&format!(
            "#!ipxe\nchain http://{HOST_SEEN}:{port}/${{net0/mac:hexhyp}} || exit\n"
        ))
        .unwrap();
    let power = |arguments: &[&str]| {
        let ended = subprocess::Program::new(server.power_command())
            .args(arguments)
            .run()
            .unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    power(&["boot", "pxe"]);
    server.power(Power::On).unwrap();
    let begun = Instant::now();
    let mut cycles = 0;
    let wanted = [MAC, "vmlinuz", "root", "seal"];
    while answers.requests() != wanted {
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?} {}",
            answers.requests(),
            server.console()
        );
        assert!(
            wanted.starts_with(
                &answers
                    .requests()
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
            )
        );
        // On a busy host iPXE may give up on DHCP, and the firmware boots the disk.
        if answers.requests().is_empty() && begun.elapsed() > QUIET * (cycles + 1) {
            server.power(Power::Cycle).unwrap();
            cycles += 1;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
