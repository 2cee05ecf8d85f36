//! The guest on 64-bit Arm, with pages of 4 KiB: Debian's kernel in QEMU's virt machine. It has no
//! disks, and its memory cannot be taken offline: the kernel started with all of it.

use std::path::{Path, PathBuf};

use machine::qemu::{Budget, CONSOLE, CONTROL, Process, Qemu, Scratch};
use machine::{InitrdFile, initrd_of};

use crate::shape::Shape;
use crate::{apt, folder, init};

/// The kernel's name here: Debian 13's for this machine.
pub(crate) const NAME: &str = "arm64:linux-image-arm64";
/// MiB before its memory.
const BEFORE_MIB: u64 = 1024;

/// Boots it until its program makes QEMU exit; returns the kernel's release and the file of its
/// memory.
pub(crate) fn memory(shape: &Shape, folder_of_guest: &Path) -> (String, PathBuf) {
    let package = NAME.strip_prefix("arm64:").unwrap();
    let kernel = apt::fetch(&folder("arm64"), package);
    let qemu = Qemu::find(
        Some(Path::new("qemu-system-aarch64")),
        Path::new("/nonexistent"),
    );
    let scratch = Scratch::new(folder_of_guest).unwrap();
    let image = kernel.root.join(format!("boot/vmlinuz-{}", kernel.name));
    scratch.link("kernel", &image).unwrap();
    let first = InitrdFile {
        path: "init".into(),
        bytes: init("aarch64-linux-gnu-gcc"),
    };
    scratch.write("initrd", &initrd_of(&[first])).unwrap();
    let mib = shape.memory_mib;
    let frames = (BEFORE_MIB + mib) << 8;
    let words = format!(
        "-nodefaults -no-user-config -display none -no-reboot -nic none -M virt,memory-backend=ram \
        -accel tcg,thread=multi,tb-size=256 -cpu max,sve=off,lpa2=off -m {mib} \
        -object memory-backend-file,id=ram,size={mib}M,mem-path=ram,share=on \
        -semihosting-config enable=on,userspace=on -action shutdown=pause \
        -kernel kernel -initrd initrd {CONTROL} -serial file:{CONSOLE}"
    );
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    words.extend([
        "-append".into(),
        format!(
            "console=ttyAMA0 panic=-1 movablecore=448M cma=32M secretmem.enable=1 frames={frames} {}",
            shape.command_line
        ),
    ]);
    let mut process = Process::start(&qemu.unwrap(), &words, &scratch).unwrap();
    let budget = Budget {
        until: None,
        is_fast: false,
        wall_s: 300,
        console_bytes: 1 << 20,
    };
    // An error: QEMU has exited. What the guest reached is in its memory.
    let ended = process.wait_for_end(&budget);
    let console = String::from_utf8_lossy(&scratch.console()).into_owned();
    assert!(
        ended.is_err() && !console.contains("oracle: ") && !console.contains("Kernel panic"),
        "{ended:?}\n{console}"
    );
    drop(process);
    let memory = folder_of_guest.join("memory");
    std::fs::rename(scratch.path("ram"), &memory).unwrap();
    (kernel.name, memory)
}
