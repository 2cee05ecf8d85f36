//! Roll-up by entry point: the system call, fault or interrupt that caused the instructions.

use std::collections::BTreeMap;

use super::{CallDifference, CallNode};

/// All instructions below one entry to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// Its name: `getppid()`, `page fault`, `[user]`.
    pub name: String,
    /// Instructions of the base and of the new kernel.
    pub all: [u64; 2],
}

/// Bodies of system calls (arch/x86/include/asm/syscall_wrapper.h).
const SYSTEM_CALLS: [&str; 3] = ["__x64_sys_", "__do_sys_", "__se_sys_"];
/// The entry and exit code of system calls (arch/x86/entry/entry_64.S and common.c).
const SYSTEM_CALL_PATH: [&str; 4] = [
    "entry_SYS",
    "syscall_return_via_",
    "do_syscall_64",
    "syscall_exit_to_user",
];
/// Longest chain from the entry to the body of a system call, in functions.
const WAY_MAX: usize = 6;

impl CallDifference {
    /// Returns the instructions of each entry point, largest difference first. They add up to the
    /// total.
    #[must_use]
    pub fn entries(&self) -> Vec<EntryPoint> {
        let mut sums = BTreeMap::new();
        add(&mut sums, String::new(), self.root.own);
        for top in &self.root.children {
            match name_of(&top.function) {
                Some(name) => add(&mut sums, name, top.all),
                None if is_system_call_path(&top.function) => below_system_call(top, 0, &mut sums),
                None => add(&mut sums, top.function.clone(), top.all),
            }
        }
        let mut entries: Vec<EntryPoint> = sums
            .into_iter()
            .map(|(name, all)| EntryPoint { name, all })
            .collect();
        entries.retain(|entry| entry.all != [0, 0]);
        entries.sort_by(|a, b| self.added(b.all).abs().total_cmp(&self.added(a.all).abs()));
        entries
    }
}

fn is_system_call_path(function: &str) -> bool {
    SYSTEM_CALL_PATH
        .iter()
        .any(|known| function.starts_with(known))
}

/// Returns the name of an entry that is an entry point itself.
fn name_of(function: &str) -> Option<String> {
    if let Some(exception) = function.strip_prefix("asm_exc_") {
        return Some(exception.replace('_', " "));
    }
    function
        .starts_with("ret_from_fork")
        .then(|| "start of a new task".to_owned())
}

/// Assigns instructions below a system call's entry to the system call, and those of the entry code
/// to all of them.
fn below_system_call(node: &CallNode, depth: usize, sums: &mut BTreeMap<String, [u64; 2]>) {
    let body = SYSTEM_CALLS
        .iter()
        .find_map(|prefix| node.function.strip_prefix(prefix));
    let helper = node.function.strip_prefix("ksys_");
    if let Some(call) = body.or(helper) {
        add(sums, format!("{call}()"), node.all);
        return;
    }
    if depth == WAY_MAX || !(is_system_call_path(&node.function) || depth == 0) {
        add(sums, "system call entry and exit".to_owned(), node.all);
        return;
    }
    add(sums, "system call entry and exit".to_owned(), node.own);
    for child in &node.children {
        below_system_call(child, depth + 1, sums);
    }
}

fn add(sums: &mut BTreeMap<String, [u64; 2]>, name: String, all: [u64; 2]) {
    let sum: &mut [u64; 2] = sums.entry(name).or_default();
    *sum = [sum[0] + all[0], sum[1] + all[1]];
}

#[cfg(test)]
mod tests {
    use crate::calls::CallDifference;
    use crate::calls::tests::tree;
    use model::Share;

    #[test]
    fn entries_are_named_for_people() {
        let base = tree(&[
            (
                Share::Kernel,
                "entry_SYSCALL_64;do_syscall_64;__x64_sys_getppid;f",
                10,
                1,
            ),
            (
                Share::Kernel,
                "entry_SYSCALL_64;do_syscall_64;ksys_read;vfs_read",
                20,
                1,
            ),
            (
                Share::Kernel,
                "entry_SYSCALL_64;do_syscall_64;syscall_exit_to_user_mode",
                3,
                1,
            ),
            (Share::Kernel, "syscall_return_via_sysret", 2, 1),
            (Share::Kernel, "asm_exc_page_fault;exc_page_fault", 30, 1),
            (Share::User, "[user]", 4, 1),
            (Share::Interrupt, "asm_sysvec_apic_timer_interrupt", 5, 1),
        ]);
        let difference = CallDifference::new(
            "w",
            std::slice::from_ref(&base),
            std::slice::from_ref(&base),
        )
        .unwrap();
        let mut names: Vec<String> = difference
            .entries()
            .iter()
            .map(|entry| format!("{} {}", entry.name, entry.all[0]))
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "[user] 4",
                "getppid() 10",
                "interrupts 5",
                "page fault 30",
                "read() 20",
                "system call entry and exit 5"
            ]
        );
    }
}
