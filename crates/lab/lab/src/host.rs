//! Reads the host's load from /proc: processor seconds of the programs that Marvin started, and the
//! threads of others that compete for processors.

use std::fs;
use std::time::Duration;

use stats::fair_rate;

/// Clock ticks per second in /proc/PID/stat (USER_HZ): 100 on all architectures but alpha.
const TICKS_PER_S: f64 = 100.0;
/// How deep programs are nested that are counted.
const DEPTH: u32 = 8;
/// Samples of the run queue.
const SAMPLES: u32 = 5;
/// Time between two samples.
const SAMPLE_GAP: Duration = Duration::from_millis(20);

/// Returns the processor seconds of all programs that this process started, and that these started,
/// finished ones included; None without /proc.
pub(crate) fn used_s() -> Option<f64> {
    let ended = ticks(&fs::read_to_string("/proc/self/stat").ok()?)?.children;
    Some((ended + of_children("self", DEPTH)) as f64 / TICKS_PER_S)
}

/// Sums up the ticks of a process's running children. QEMU is a child's child: between it and
/// Marvin are its walls.
fn of_children(pid: &str, depth: u32) -> u64 {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        // Threads and programs may end meanwhile; the next call counts them as finished.
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            sum += ticks(&stat).map_or(0, |ticks| ticks.own + ticks.children);
            if depth > 0 {
                sum += of_children(child, depth - 1);
            }
        }
    }
    sum
}

/// Estimates the processor seconds per second that the machines get under the current load.
pub(crate) fn rate(machines: usize) -> f64 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let samples: Vec<f64> = (0..SAMPLES).map_while(|n| others(n > 0)).collect();
    let others = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    fair_rate(machines, others, processors)
}

/// Counts the other runnable threads.
fn others(later: bool) -> Option<f64> {
    if later {
        std::thread::sleep(SAMPLE_GAP);
    }
    // This thread is one of them.
    running(&fs::read_to_string("/proc/stat").ok()?).map(|running| (running - 1.0).max(0.0))
}

/// Parses the number of runnable threads from /proc/stat.
fn running(stat: &str) -> Option<f64> {
    stat.lines()
        .find_map(|line| line.strip_prefix("procs_running "))?
        .trim()
        .parse()
        .ok()
}

/// Processor time of a process and of its finished children (ticks).
#[derive(Debug, PartialEq)]
struct Ticks {
    own: u64,
    children: u64,
}

/// Parses /proc/PID/stat: proc_pid_stat(5), fields 14 to 17. The program's name may hold any
/// character and ends at the last `)`.
fn ticks(stat: &str) -> Option<Ticks> {
    let mut fields = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .skip(11)
        .map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let [user, system, of_children, by_children] = [next()?, next()?, next()?, next()?];
    Some(Ticks {
        own: user + system,
        children: of_children + by_children,
    })
}

#[cfg(test)]
mod tests {
    use super::{Ticks, rate, running, ticks, used_s};

    #[test]
    fn ticks_are_read_behind_any_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 120 0 0 0 31 4 250 9 20 0 1 0 5 6 7";
        assert_eq!(
            ticks(stat),
            Some(Ticks {
                own: 35,
                children: 259
            })
        );
        assert_eq!([ticks(""), ticks("7 (a) R 1 2")], [None, None]);
        assert_eq!(
            running("cpu 1 2\nprocs_running 3\nprocs_blocked 0\n"),
            Some(3.0)
        );
        assert_eq!(running("cpu 1 2\n"), None);
    }

    #[test]
    fn running_programs_of_programs_use_processor_time() {
        let before = used_s().unwrap();
        // The inner shell counts until it is ended, and the outer one waits for it.
        let nested = "sh -c 'n=0; while [ $n -lt 100000000 ]; do n=$((n+1)); done' & wait";
        let mut outer = std::process::Command::new("sh")
            .args(["-c", nested])
            .spawn()
            .unwrap();
        let mut after = before;
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            after = used_s().unwrap();
            if after > before + 0.1 {
                break;
            }
        }
        let inner =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", outer.id())).unwrap();
        std::process::Command::new("kill")
            .arg(inner.trim())
            .status()
            .unwrap();
        outer.wait().unwrap();
        assert!(after > before + 0.1, "{before} {after}");
    }

    #[test]
    fn a_program_uses_processor_time() {
        let before = used_s().unwrap();
        let busy = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
        assert!(
            std::process::Command::new("sh")
                .args(["-c", busy])
                .status()
                .unwrap()
                .success()
        );
        let after = used_s().unwrap();
        assert!(after > before, "{before} {after}");
        assert!(rate(2) > 0.0 && rate(2) <= 2.0);
    }
}
