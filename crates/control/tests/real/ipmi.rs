//! `ipmi_sim` is a BMC on loopback; a script that it calls keeps the state of its chassis.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use control::{Power, PowerState};
use model::{Ipmi, Login, PowerSettings, Secret};

use crate::{Ends, free_port, wait_until};

/// One BMC at the usual address of the bus, with a chassis.
const DEVICES: &str =
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n";
/// The chassis: `get power` prints it, `set power 0|1` changes it. A file `stuck` has it ignore requests.
const CHASSIS: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase \"$2 $3\" in\n\"get power\") if [ -e on ]; then echo power:1; \
    else echo power:0; fi;;\n\"set power\") [ -e stuck ] || if [ \"$4\" = 1 ]; then : >on; else rm -f on; fi;;\nesac\n";

/// Starts the BMC; returns it and its UDP port.
fn start(folder: &Path) -> (Ends, u16) {
    let port = free_port().unwrap();
    let chassis = folder.join("chassis");
    fs::write(&chassis, CHASSIS).unwrap();
    fs::set_permissions(&chassis, fs::Permissions::from_mode(0o755)).unwrap();
    let levels = ["callback", "user", "operator", "admin"];
    let allowed: String =
        levels.iter().map(|level| format!("  allowed_auths_{level} none md2 md5 straight\n")).collect();
    let configuration = format!(
        "name \"testbox\"\nset_working_mc 0x20\nstartlan 1\n  addr 127.0.0.1 {port}\n  priv_limit admin\n{allowed}\
           guid a123456789abcdefa123456789abcdef\nendlan\nuser 1 true \"\" \"test\" user 10 none md2 md5 straight\n\
         user 2 true \"lab\" \"sesame\" admin 10 none md2 md5 straight\nchassis_control \"{} 0x20\"\n",
        chassis.display()
    );
    fs::write(folder.join("lan.conf"), configuration).unwrap();
    fs::write(folder.join("devices"), DEVICES).unwrap();
    fs::create_dir(folder.join("state")).unwrap();
    let mut bmc = Command::new("ipmi_sim");
    bmc.args(["-c", "lan.conf", "-f", "devices", "-s", "state", "-n"]).current_dir(folder);
    let bmc = bmc.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    (Ends(bmc), port)
}

fn power(folder: &Path, port: u16, password: &str) -> Power {
    let file = folder.join("password");
    fs::write(&file, password).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let login = Some(Login { user: "lab".into(), password: Secret::File(file) });
    Power::new("testbox", &PowerSettings::Ipmi(Ipmi { host: "127.0.0.1".into(), port, login, cipher: Some(3) })).hasty()
}

#[test]
fn ipmi_switches_a_bmc_and_believes_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let (_bmc, port) = start(folder.path());
    let power = power(folder.path(), port, "sesame");
    wait_until("ipmi_sim answers", || power.state().is_ok());
    assert_eq!(power.state().unwrap(), PowerState::Off);
    assert_eq!(power.turn(true).unwrap(), PowerState::On);
    assert!(folder.path().join("on").exists(), "the chassis has power");
    assert_eq!(power.cycle().unwrap(), PowerState::On);
    assert_eq!(power.turn(false).unwrap(), PowerState::Off);
    assert!(!folder.path().join("on").exists());
    // It confirms requests and stays off.
    fs::write(folder.path().join("stuck"), "").unwrap();
    let error = power.turn(true).unwrap_err().to_string();
    assert!(error.starts_with("cannot switch testbox on: IPMI at 127.0.0.1 took 3 requests"), "{error}");
    let wrong = self::power(folder.path(), port, "wrong").state().unwrap_err().to_string();
    assert!(wrong.starts_with("cannot ask IPMI at 127.0.0.1 for the power of testbox: "), "{wrong}");
    assert!(!wrong.contains("wrong"), "no password in {wrong}");
}
