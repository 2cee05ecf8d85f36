//! `ipmi_sim` is a BMC on loopback; a script that it calls keeps the state of its chassis.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{BootDevice, ConsoleSettings, Ipmi, Login, PowerSettings, Secret, ServerSettings};
use server::{Power, PowerState, Recorder, Signal, Tail, console_folder, send_signal};

use crate::{Ends, free_port, wait_until};

/// One BMC at the usual address of the bus, with a chassis.
const DEVICES: &str = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n";
/// The chassis: `get power` and `get boot` print what it is, `set power 0|1` and `set boot DEVICE`
/// change it. A file `stuck` has it ignore requests.
const CHASSIS: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase \"$2 $3\" in\n\"get power\") if [ -e on ]; then echo power:1; \
    else echo power:0; fi;;\n\"set power\") [ -e stuck ] || if [ \"$4\" = 1 ]; then : >on; else rm -f on; fi;;\n\
    \"get boot\") echo boot:$(cat boot 2>/dev/null || echo none);;\n\"set boot\") [ -e stuck ] || echo $4 >boot;;\nesac\n";

/// Starts the BMC; returns it and its UDP port. `serial` is the TCP port of the server's serial
/// line.
fn start(folder: &Path, serial: Option<u16>) -> (Ends, u16) {
    let port = free_port().unwrap();
    let chassis = folder.join("chassis");
    fs::write(&chassis, CHASSIS).unwrap();
    fs::set_permissions(&chassis, fs::Permissions::from_mode(0o755)).unwrap();
    let levels = ["callback", "user", "operator", "admin"];
    let allowed: String = levels
        .iter()
        .map(|level| format!("  allowed_auths_{level} none md2 md5 straight\n"))
        .collect();
    let configuration = format!(
        "name \"testbox\"\nset_working_mc 0x20\nstartlan 1\n  addr 127.0.0.1 {port}\n  priv_limit admin\n{allowed}\
           guid a123456789abcdefa123456789abcdef\nendlan\nuser 1 true \"\" \"test\" user 10 none md2 md5 straight\n\
         user 2 true \"lab\" \"sesame\" admin 10 none md2 md5 straight\nchassis_control \"{} 0x20\"\n",
        chassis.display()
    );
    let sol = serial.map_or_else(String::new, |port| {
        format!("sol \"tcp:127.0.0.1:{port}\" 115200\n")
    });
    let configuration = configuration.replace("user 1 ", &format!("{sol}user 1 "));
    fs::write(folder.join("lan.conf"), configuration).unwrap();
    fs::write(folder.join("devices"), DEVICES).unwrap();
    fs::create_dir(folder.join("state")).unwrap();
    let mut bmc = Command::new("ipmi_sim");
    bmc.args(["-c", "lan.conf", "-f", "devices", "-s", "state", "-n"])
        .current_dir(folder);
    let bmc = bmc
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (Ends(bmc), port)
}

fn power(folder: &Path, port: u16, password: &str) -> Power {
    Power::new("testbox", &settings(folder, port, password)).hasty()
}

fn settings(folder: &Path, port: u16, password: &str) -> PowerSettings {
    let file = folder.join("password");
    fs::write(&file, password).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let login = Some(Login {
        user: "lab".into(),
        password: Secret::File(file),
    });
    PowerSettings::Ipmi(Ipmi {
        host: "127.0.0.1".into(),
        port,
        login,
        cipher: Some(3),
    })
}

#[test]
fn ipmi_switches_a_bmc_and_believes_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let (_bmc, port) = start(folder.path(), None);
    let power = power(folder.path(), port, "sesame");
    wait_until("ipmi_sim answers", || power.state().is_ok());
    assert_eq!(power.state().unwrap(), PowerState::Off);
    assert_eq!(power.turn(true).unwrap(), PowerState::On);
    assert!(folder.path().join("on").exists(), "the chassis has power");
    assert_eq!(power.cycle().unwrap(), PowerState::On);
    assert_eq!(power.turn(false).unwrap(), PowerState::Off);
    assert!(!folder.path().join("on").exists());
    assert!(
        !power.boot_next(BootDevice::Pxe).unwrap(),
        "ipmi_sim reports it, and that it is not valid"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("boot")).unwrap(),
        "pxe\n"
    );
    // It confirms requests and stays off.
    fs::write(folder.path().join("stuck"), "").unwrap();
    let error = power.turn(true).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot switch testbox on: IPMI at 127.0.0.1 took 3 requests"),
        "{error}"
    );
    let wrong = self::power(folder.path(), port, "wrong")
        .state()
        .unwrap_err()
        .to_string();
    assert!(
        wrong.starts_with("cannot ask IPMI at 127.0.0.1 for the power of testbox: "),
        "{wrong}"
    );
    assert!(!wrong.contains("wrong"), "no password in {wrong}");
}

#[test]
fn console_of_a_bmc_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let serial = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_bmc, port) = start(folder.path(), Some(serial.local_addr().unwrap().port()));
    let arrived: Arc<Mutex<Vec<u8>>> = Arc::default();
    let stored = Arc::clone(&arrived);
    std::thread::spawn(move || {
        for mut line in serial.incoming().flatten() {
            let mut input = line.try_clone().unwrap();
            let arrived = Arc::clone(&stored);
            std::thread::spawn(move || {
                let mut byte = [0];
                while input.read_exact(&mut byte).is_ok() {
                    arrived.lock().unwrap().extend(byte);
                }
            });
            std::thread::spawn(move || {
                while line.write_all(b"testbox login:\r\n").is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    let power_control = Some(settings(folder.path(), port, "sesame"));
    let console = Some(ConsoleSettings::Ipmi);
    let server = ServerSettings {
        power: power_control,
        console,
        ..ServerSettings::of_host("testbox", "testbox")
    };
    wait_until("ipmi_sim answers", || {
        power(folder.path(), port, "sesame").state().is_ok()
    });
    let recorder = Recorder::open(&server, folder.path()).unwrap().unwrap();
    // It ends with the process.
    std::thread::spawn(move || recorder.record(&|| 1000));
    let record = console_folder(folder.path(), "testbox");
    let text = || -> String {
        let mut tail = Tail::since(&record, 0).unwrap();
        let mut lines: Vec<_> =
            std::iter::from_fn(|| Some(tail.new_lines()).filter(|lines| !lines.is_empty()))
                .flatten()
                .collect();
        lines.extend(tail.unfinished());
        lines
            .iter()
            .map(|line| String::from_utf8_lossy(&line.bytes).into_owned())
            .collect()
    };
    wait_until("the console is recorded", || {
        text().matches("testbox login:").count() > 3
    });
    assert!(
        text().starts_with("connected to the BMC, by IPMI\n"),
        "{}",
        text()
    );
    assert!(!text().contains("sesame"));
    // ipmitool has the connection, and the recorder has ipmitool.
    let signal = Signal::sysrq("8w").unwrap();
    send_signal(&server, folder.path(), &signal, "anna@lab", &|| 1000).unwrap();
    wait_until("the keys arrive", || {
        arrived.lock().unwrap().ends_with(b"w")
    });
    println!("the serial line got {:?}", arrived.lock().unwrap());
    assert!(
        text().contains("sends sysrq 8w for anna@lab\n"),
        "{}",
        text()
    );
}
