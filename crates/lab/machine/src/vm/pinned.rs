//! The host's processors of a guest: each of the guest's gets one of its own, if there are as many.
//! What came of it is read back from the kernel and becomes part of a run's environment.

use std::fs;

use crate::host::processors;

/// Where the processors of a guest run.
#[derive(Debug)]
pub(super) struct Pinned {
    /// The host's processors that they may use.
    used: Vec<usize>,
    /// The host's processor of each, or why they have none of their own.
    each: Result<Vec<usize>, String>,
}

impl Pinned {
    /// Gives each of a process's threads one of these processors. If that fails, the host's
    /// scheduler places them all.
    pub(super) fn pin(process: u32, threads: &[u32], allowed: Vec<usize>) -> Self {
        if threads.len() > allowed.len() {
            let why = format!(
                "{} for {} that Marvin may use",
                threads.len(),
                allowed.len()
            );
            return Self {
                used: allowed,
                each: Err(why),
            };
        }
        let pairs = threads.iter().zip(&allowed);
        match pairs
            .map(|(thread, processor)| pin_one(process, *thread, *processor))
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(each) => Self {
                used: each.clone(),
                each: Ok(each),
            },
            Err(why) => Self {
                used: allowed,
                each: Err(why),
            },
        }
    }

    pub(super) fn used(&self) -> &[usize] {
        &self.used
    }

    /// Returns lines `name=value` for the environment of a run.
    pub(super) fn describe(&self) -> String {
        let each = match &self.each {
            Ok(each) => each
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            Err(why) => format!("any ({why})"),
        };
        format!("host processors={each}\nothers kept off=no (no cpuset of ours)\n")
    }
}

/// Keeps a thread on a processor and returns where the kernel says that it is.
fn pin_one(process: u32, thread: u32, processor: usize) -> Result<usize, String> {
    subprocess::pin_thread(thread, processor).map_err(|error| error.to_string())?;
    match allowed(process, thread)[..] {
        [only] if only == processor => Ok(only),
        _ => Err(format!("they are not kept on processor {processor}")),
    }
}

/// Returns the processors on which a thread may run.
fn allowed(process: u32, thread: u32) -> Vec<usize> {
    let status =
        fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).unwrap_or_default();
    processors(
        status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::{Pinned, allowed};
    use crate::host::allowed_processors;

    /// A process that does nothing, until it is dropped.
    struct Idle(Child);

    impl Drop for Idle {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn idle() -> Idle {
        Idle(Command::new("sleep").arg("60").spawn().unwrap())
    }

    #[test]
    fn each_thread_has_its_processor() {
        let all = allowed_processors();
        let one = idle();
        let id = one.0.id();
        let last = *all.last().unwrap();
        let pinned = Pinned::pin(id, &[id], vec![last]);
        assert_eq!((allowed(id, id), pinned.used()), (vec![last], &[last][..]));
        assert_eq!(
            pinned.describe(),
            format!("host processors={last}\nothers kept off=no (no cpuset of ours)\n")
        );
    }

    #[test]
    fn unpinned_threads_are_said_to_be_so() {
        let all = allowed_processors();
        let one = idle();
        let id = one.0.id();
        let few = Pinned::pin(id, &[id, id], vec![all[0]]);
        insta::assert_snapshot!(few.describe(), @r"
        host processors=any (2 for 1 that Marvin may use)
        others kept off=no (no cpuset of ours)
        ");
        assert_eq!(allowed(id, id), all, "the scheduler still places it");
        // The kernel refuses a processor that the host does not have.
        let absent = Pinned::pin(id, &[id], vec![4000]);
        assert!(
            absent
                .describe()
                .starts_with("host processors=any (processor 4000 is beyond "),
            "{}",
            absent.describe()
        );
        assert_eq!(absent.used(), [4000]);
    }
}
