//! What a host must change when QEMU does not start on it, by what QEMU prints then. A failure that
//! is not listed may be passing.

/// A part of QEMU's message and what mends its cause.
struct Fix {
    printed: &'static [&'static str],
    fix: &'static str,
}

/// The messages are those of QEMU 7.2: hw/i386/x86.c, hw/core/loader.c, softmmu/qdev-monitor.c,
/// tcg/region.c; the last ones are of the kernel and the dynamic linker (elf/dl-load.c of glibc). A
/// lack of memory is not among them: it may pass.
const FIXES: [Fix; 5] = [
    Fix {
        printed: &["could not load PC BIOS", "Could not open option rom"],
        fix: "its firmware is not on this host: `marvin setup` brings a QEMU with its own",
    },
    Fix {
        printed: &[
            "is not a valid device model name",
            "unsupported machine type",
        ],
        fix: "it was built without a part of the exact machine: `marvin setup` brings a QEMU that has all",
    },
    Fix {
        printed: &["jit buffer", "JIT buffer"],
        fix: "this host forbids memory that is written and executed: allow it for QEMU in SELinux (execmem, deny_execmem), \
              in the unit of systemd (MemoryDenyWriteExecute=no) or in the container",
    },
    Fix {
        printed: &["Too many open files"],
        fix: "raise the limit of open files (ulimit -n), or use --jobs 1",
    },
    Fix {
        printed: &["error while loading shared libraries"],
        fix: "it lacks libraries on this host: `marvin setup` brings a QEMU with its own",
    },
];

/// Returns what mends the cause of QEMU's message, if it is known.
pub(crate) fn find_fix(printed: &str) -> Option<&'static str> {
    FIXES
        .iter()
        .find(|fix| fix.printed.iter().any(|part| printed.contains(part)))
        .map(|fix| fix.fix)
}

#[cfg(test)]
mod tests {
    use super::find_fix;

    #[test]
    fn missing_firmware_is_mended_by_setup() {
        let printed = "qemu: could not load PC BIOS 'bios-microvm.bin'";
        assert!(find_fix(printed).unwrap().contains("marvin setup"));
    }

    #[test]
    fn refused_executable_memory_names_its_setting() {
        let printed = "qemu-system-x86_64: mprotect of jit buffer: Permission denied";
        assert!(find_fix(printed).unwrap().contains("execmem"));
    }

    #[test]
    fn unknown_message_has_no_fix() {
        assert_eq!(find_fix("qemu-system-x86_64: Broken pipe"), None);
    }
}
