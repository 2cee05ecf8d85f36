//! A running guest with its memory in a file, which is filtered while QEMU has stopped it, and
//! copied while it runs again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use machine::qemu::Qemu;
use machine::{InitrdFile, initrd_of};

use crate::readers::{self, Program};
use crate::{build, folder};

/// More memory than a PC has below 4 GiB, so that the layout must be guessed. Its file is sparse.
const MEMORY_MIB: u32 = 3072;
/// Time limit for booting and filling memory, in seconds.
const PATIENCE_S: u32 = 300;
/// The guest's log line when memory is filled.
const FILLED: &[u8] = b"marvin-crash: memory is filled";
/// What the guest fills. Without the watchdog's device it continues after the request to stop.
const WORDS: &str =
    "marvin.anon=48 marvin.cache=24 marvin.files=5000 marvin.freed=40 marvin.end=stop";

/// A QEMU that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn boot(folder: &Path, image: &Path, machine: &str) -> Running {
    let initrd = initrd_of(&[InitrdFile {
        path: "init".into(),
        bytes: lab::CRASH.to_vec(),
    }]);
    std::fs::write(folder.join("initrd"), initrd).unwrap();
    // Without instruction counting a microvm sometimes hangs while it calibrates its clock.
    let clock = if machine == "q35" {
        "tcg,thread=multi"
    } else {
        "tcg,thread=single -icount shift=0,sleep=off"
    };
    let words = format!(
        "-nodefaults -no-user-config -display none -no-reboot -nic none -M {machine},memory-backend=ram -cpu max \
         -accel {clock} -m {MEMORY_MIB} -object memory-backend-file,id=ram,size={MEMORY_MIB}M,mem-path=ram,share=on \
         -serial file:console -qmp unix:qmp,server=on,wait=off -initrd initrd -kernel"
    );
    let program = Qemu::find(None, std::path::Path::new("/nonexistent"))
        .unwrap()
        .program;
    // It must not outlive this test.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .args(words.split_whitespace())
        .arg(image);
    command
        .args(["-append", &format!("console=ttyS0 panic=-1 {WORDS}")])
        .current_dir(folder);
    let running = Running(command.stdin(Stdio::null()).spawn().unwrap());
    for _ in 0..PATIENCE_S {
        let console = std::fs::read(folder.join("console")).unwrap_or_default();
        if console.windows(FILLED.len()).any(|window| window == FILLED) {
            return running;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!(
        "{}",
        machine::readable_tail(&std::fs::read(folder.join("console")).unwrap_or_default())
    );
}

/// Asks QEMU whether the guest runs.
fn runs(folder: &Path) -> bool {
    let mut stream = UnixStream::connect(folder.join("qmp")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
        .write_all(b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"query-status\"}\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines
        .find(|line| line.contains("\"running\": "))
        .unwrap()
        .contains("\"running\": true")
}

/// Sends QEMU one command.
fn tell(folder: &Path, command: &str) {
    let mut stream = UnixStream::connect(folder.join("qmp")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(
        stream,
        "{{\"execute\":\"qmp_capabilities\"}}\n{{\"execute\":\"{command}\",\"id\":7}}\n"
    )
    .unwrap();
    BufReader::new(stream)
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("\"id\": 7"))
        .unwrap();
}

fn dumped(filter: &Program, folder: &Path, output: &str) -> String {
    let words = "600 PROGRAM -f -d 31 --json --qmp qmp --ram ram"
        .split(' ')
        .map(|word| match word {
            "PROGRAM" => filter.path.clone(),
            word => word.into(),
        });
    let result = Command::new("timeout")
        .args(words)
        .arg(output)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&result.stdout).into_owned()
        + &String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{said}");
    said
}

/// Filters a running guest, and then the same one stopped.
pub(crate) fn story(name: &str, kernel: &str, machine: &str) {
    let Some(filter) = Program::marvin_dump() else {
        return;
    };
    let build = build(kernel);
    let folder = folder(name);
    let image = build.boot_file().path.clone();
    let image = if machine == "q35" {
        build.image.path.clone()
    } else {
        image
    };
    // The console of an earlier failed guest would say that this one is ready.
    drop(std::fs::remove_file(folder.join("console")));
    let running = boot(&folder, &image, machine);
    let said = dumped(&filter, &folder, "live");
    let time = said.lines().find(|line| line.contains("stood_still_ms"));
    println!(
        "{name}: {}",
        time.unwrap_or_else(|| panic!("{said}")).trim()
    );
    assert!(
        said.contains("warning: the guest ran during the copy"),
        "{said}"
    );
    assert!(runs(&folder), "the guest went on");
    tell(&folder, "stop");
    let said = dumped(&filter, &folder, "still");
    assert!(
        said.contains("the guest is already paused") && !said.contains("stood_still_ms"),
        "{said}"
    );
    assert!(!runs(&folder), "a guest that stood still is left so");
    drop(running);
    for dump in ["live", "still"] {
        let info = Command::new(&filter.path)
            .args(["info", "--json", dump])
            .current_dir(&folder)
            .output()
            .unwrap();
        let info = String::from_utf8_lossy(&info.stdout).into_owned();
        assert_eq!(info.contains("\"live\": true"), dump == "live", "{info}");
        let release = info.lines().find_map(|line| {
            line.trim()
                .strip_prefix("\"release\": \"")?
                .strip_suffix("\",")
        });
        readers::walk(&folder.join(dump), release.unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
