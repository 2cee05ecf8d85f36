//! A BMC with Redfish on loopback that behaves as real ones do: it wants a login, rejects fields
//! that it does not know, takes its time, and reports states between. And sushy-emulator, a Redfish
//! service of others.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use model::{BootDevice, Login, PowerSettings, Redfish, Secret};
use serde_json::{Value, json};
use server::{Power, PowerState};

use crate::{Ends, free_port, has, wait_until};

/// The state of the make-believe BMC.
#[derive(Debug, Default)]
struct Bmc {
    is_on: bool,
    /// How often the state is still reported as changing.
    changing: u32,
    systems: Vec<&'static str>,
    posts: Vec<String>,
    boot: Value,
}

/// `Authorization` of user lab with password `se"sa\me`.
const AUTHORIZATION: &str = "authorization: basic bGFiOnNlInNhXG1l";

fn answer(stream: TcpStream, bmc: &Mutex<Bmc>) -> Option<()> {
    let mut lines = BufReader::new(stream);
    let mut head = String::new();
    while lines.read_line(&mut head).ok()? > 2 {}
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    lines.read_exact(&mut body).ok()?;
    let mut parts = head.split(' ');
    let method = parts.next()?;
    let path = parts.next()?;
    let mut bmc = bmc.lock().ok()?;
    let (status, document) = respond(&mut bmc, method, path, &head, &body);
    let text = document.to_string();
    let answer = format!(
        "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    lines.get_mut().write_all(answer.as_bytes()).ok()
}

fn respond(bmc: &mut Bmc, method: &str, path: &str, head: &str, body: &[u8]) -> (u16, Value) {
    if !head.to_lowercase().contains(&AUTHORIZATION.to_lowercase()) {
        return (401, json!({}));
    }
    let state = match (bmc.changing, bmc.is_on) {
        (1.., true) => "PoweringOn",
        (1.., false) => "PoweringOff",
        (0, true) => "On",
        (0, false) => "Off",
    };
    match (method, path) {
        ("GET", "/redfish/v1/Systems") => {
            let members: Vec<_> = bmc
                .systems
                .iter()
                .map(|path| json!({ "@odata.id": path }))
                .collect();
            (200, json!({ "Members": members }))
        }
        ("GET", "/redfish/v1/Systems/1") => {
            bmc.changing = bmc.changing.saturating_sub(1);
            let types = ["On", "ForceOff", "GracefulShutdown"];
            let reset = json!({ "target": "/redfish/v1/Systems/1/Reset", "ResetType@Redfish.AllowableValues": types });
            let actions = json!({ "#ComputerSystem.Reset": reset });
            (
                200,
                json!({ "PowerState": state, "Actions": actions, "Boot": bmc.boot, "@odata.etag": "W/\"7\"" }),
            )
        }
        ("PATCH", "/redfish/v1/Systems/1") => {
            let body: Value = serde_json::from_slice(body).unwrap();
            let sent = &body["Boot"];
            let is_whole =
                sent.as_object().unwrap().len() == 3 && sent["BootSourceOverrideMode"] == "UEFI";
            if !head.contains("If-Match: W/\"7\"\r\n") || !is_whole {
                return (400, json!({}));
            }
            bmc.boot = sent.clone();
            (204, json!(""))
        }
        ("POST", "/redfish/v1/Systems/1/Reset") => {
            let body: Value = serde_json::from_slice(body).unwrap();
            if body.as_object().unwrap().len() != 1 {
                return (400, json!({}));
            }
            let kind = body["ResetType"].as_str().unwrap().to_owned();
            bmc.is_on = kind == "On";
            bmc.changing = 2;
            bmc.posts.push(kind);
            (204, json!(""))
        }
        _ => (404, json!({})),
    }
}

/// Serves until the test ends.
fn start(bmc: Bmc) -> (Arc<Mutex<Bmc>>, String) {
    let bmc = Arc::new(Mutex::new(bmc));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let served = Arc::clone(&bmc);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &served);
        }
    });
    (bmc, address)
}

fn power(address: &str, login: Option<Login>) -> Power {
    let redfish = Redfish {
        address: address.to_owned(),
        system: None,
        login,
        insecure: false,
    };
    Power::new("testbox", &PowerSettings::Redfish(redfish)).hasty()
}

#[test]
fn redfish_follows_what_the_system_offers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "se\"sa\\me\n").unwrap();
    Command::new("chmod")
        .arg("600")
        .arg(&file)
        .status()
        .unwrap();
    let login = Some(Login {
        user: "lab".into(),
        password: Secret::File(file),
    });
    let (bmc, address) = start(Bmc {
        systems: vec!["/redfish/v1/Systems/1"],
        ..Bmc::default()
    });
    let one = power(&address, login.clone());
    assert_eq!(one.state().unwrap(), PowerState::Off);
    assert_eq!(one.cycle().unwrap(), PowerState::On);
    assert_eq!(bmc.lock().unwrap().posts, ["On"], "it was off");
    assert_eq!(one.cycle().unwrap(), PowerState::On);
    assert_eq!(bmc.lock().unwrap().posts, ["On", "ForceOff", "On"]);
    bmc.lock().unwrap().boot = json!({ "BootSourceOverrideMode": "UEFI" });
    assert!(one.boot_next(BootDevice::Disk).unwrap());
    assert_eq!(bmc.lock().unwrap().boot["BootSourceOverrideTarget"], "Hdd");

    let refused = power(&address, None).state().unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");
    bmc.lock().unwrap().systems.push("/redfish/v1/Systems/Self");
    insta::assert_snapshot!(
        power(&address, login)
            .state()
            .unwrap_err()
            .to_string()
            .replace(&address, "ADDRESS")
    );
}

#[test]
fn redfish_switches_an_emulator_of_others() {
    if !has("sushy-emulator") {
        println!("skipped: sushy-emulator is not installed; pip install sushy-tools");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port().unwrap();
    let state = folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let settings = format!(
        "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
         SUSHY_EMULATOR_STATE_DIR = '{}'\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '11111111-2222-3333-4444-555555555555', \
         'name': 'testbox', 'power_state': 'Off', 'nics': []}}]\n",
        state.display()
    );
    let file = folder.path().join("settings");
    fs::write(&file, settings).unwrap();
    let mut emulator = Command::new("sushy-emulator");
    emulator
        .arg("--fake")
        .arg("--config")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _emulator = Ends(emulator.spawn().unwrap());
    let address = format!("http://127.0.0.1:{port}");
    wait_until("sushy-emulator listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let redfish = Redfish {
        address,
        system: None,
        login: None,
        insecure: false,
    };
    let power = Power::new("testbox", &PowerSettings::Redfish(redfish));
    assert_eq!(power.state().unwrap(), PowerState::Off);
    assert_eq!(power.turn(true).unwrap(), PowerState::On);
    assert_eq!(power.turn(false).unwrap(), PowerState::Off);
    assert!(power.boot_next(BootDevice::Pxe).unwrap());
    assert!(power.boot_next(BootDevice::Disk).unwrap());
}
