//! Loop devices: block devices whose content is a file (drivers/block/loop.c). One is added, gets a
//! file, loses it and is removed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use super::repeat::repeat;
use super::scratch::Folder;
use super::{Failure, Made, in_guest};
use crate::sys::check;

// include/uapi/linux/loop.h
const SET_FD: libc::Ioctl = 0x4c00;
const CLR_FD: libc::Ioctl = 0x4c01;
const CTL_ADD: libc::Ioctl = 0x4c80;
const CTL_REMOVE: libc::Ioctl = 0x4c81;

const CONTROL: &str = "/dev/loop-control";
/// Beyond those that a kernel makes by itself (`CONFIG_BLK_DEV_LOOP_MIN_COUNT`).
const NUMBER: libc::c_int = 100;
const FILE_BYTES: u64 = 1 << 20;

fn request(file: &File, request: libc::Ioctl, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the requests take a number, no memory of ours.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, value) }).map(drop)
}

/// loop-file: a loop device is added, gets a file and loses it, and is removed.
pub(super) fn attach() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it adds a block device".to_owned(),
        ));
    }
    let control = OpenOptions::new().read(true).open(CONTROL);
    let control = control.map_err(|error| {
        Failure::Unsupported(format!(
            "the kernel has no loop devices: {CONTROL}: {error}"
        ))
    })?;
    let folder = Folder::new()?;
    let file = folder.file("file")?;
    file.set_len(FILE_BYTES)?;
    let path = format!("/dev/loop{NUMBER}");
    repeat(move |_| {
        let _keep = &folder;
        request(&control, CTL_ADD, NUMBER)?;
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        request(&device, SET_FD, file.as_raw_fd())?;
        request(&device, CLR_FD, 0)?;
        drop(device);
        request(&control, CTL_REMOVE, NUMBER)
    })
}
