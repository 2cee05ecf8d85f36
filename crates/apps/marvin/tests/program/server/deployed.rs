//! A distribution is put on a server, measured on, and taken away again.

use std::fs;

use rack::{HOST_SEEN, MAC, Power, Rack};

use super::{Lab, PATIENCE};
use crate::{is_left_to_full, marvin};

/// Where Marvin listens for the server's iPXE.
const PORT: u16 = 38_069;
const IMAGE: &str = "[[image]]\nname = \"debian-12\"\ndebian = \"bookworm\"\nkernel = \"linux-image-cloud-amd64\"\n";

/// Returns the list of machines in one line: what a machine is may continue on the next.
fn listed(lab: &Lab) -> String {
    lab.marvin(&["machines"])
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// A server boots an image of Debian's packages from its network, a kernel is measured on that, and
/// it goes back to its disk.
#[test]
fn server_without_disk_measures_on_an_image() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let server = Rack::open()
        .unwrap()
        .network_server("testbox", 2048)
        .unwrap();
    server.power(Power::On).unwrap();
    server.wait_for_ssh(PATIENCE).unwrap();
    let script = format!("#!ipxe\nchain http://{HOST_SEEN}:{PORT}/${{net0/mac:hexhyp}} || exit\n");
    server.set_boot_script(&script).unwrap();
    let lab = Lab::on_server("deployed", server);
    let deploy = format!("deploy = {{ pxe = \"127.0.0.1:{PORT}\", mac = \"{MAC}\" }}\n");
    lab.settings(&format!("{deploy}{IMAGE}"));
    let output = lab.marvin(&["deploy", "testbox", "debian-12"]);
    assert!(output.contains("testbox runs debian-12 ("), "{output}");
    assert!(listed(&lab).contains("image debian-12"));
    let output = lab.marvin(&[
        "run",
        "deb:6.12",
        "--on",
        "testbox",
        "--boots",
        "1",
        "--workload",
        "getppid",
    ]);
    assert!(output.contains("getppid"), "{output}");
    // It was measured from memory, and runs its image again.
    let record = fs::read_to_string(lab.home.join("machines/testbox")).unwrap();
    assert!(record.contains("host.image="), "{record}");
    let listed = listed(&lab);
    assert!(
        listed.contains("image debian-12") && !listed.contains("next measurement"),
        "{listed}"
    );
    let output = lab.marvin(&["deploy", "testbox", "own"]);
    assert!(
        output.contains("testbox runs its own system, kernel 6.1"),
        "{output}"
    );
    assert!(
        lab.server
            .run("findmnt -no FSTYPE /")
            .unwrap()
            .contains("ext4")
    );
}

/// An image is installed on a server's disk, from which builds boot like from any other system.
#[test]
fn image_on_a_disk_is_measured_on() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("installed", None);
    lab.settings(&format!("deploy = {{ disk = \"/dev/vdz\" }}\n{IMAGE}"));
    let refused = marvin(&lab.home)
        .args(["deploy", "testbox", "debian-12", "--disk"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(5)
            && output.contains("testbox cannot install its image: there is no disk /dev/vdz"),
        "{output}"
    );
    lab.settings(&format!(
        "deploy = {{ disk = \"/dev/vda\" }}\nboot = \"grub-once\"\n{IMAGE}"
    ));
    let output = lab.marvin(&["deploy", "testbox", "debian-12", "--disk"]);
    assert!(output.contains("testbox runs debian-12-disk ("), "{output}");
    assert!(
        !listed(&lab).contains("image debian-12"),
        "no image is in memory"
    );
    lab.marvin(&[
        "run",
        "deb:6.12",
        "--on",
        "testbox",
        "--boots",
        "1",
        "--workload",
        "getppid",
    ]);
    assert!(
        fs::read_to_string(lab.home.join("machines/testbox"))
            .unwrap()
            .contains("host.image=")
    );
}
