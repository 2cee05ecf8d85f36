//! The lab as a service: watches trees for kernels to measure, queues jobs, runs workers, and
//! notifies people.
//!
//! A worker starts a process for each job, which measures with `lab`. The time is an argument here:
//! the caller reads the clock.

mod batch;
mod error;
mod idle;
mod messages;
mod notify;
mod watch;
mod work;

pub use batch::{
    AheadJobs, BatchError, BatchJob, BatchState, BatchSystem, DirectJob, DirectJobs, DispatchEvent,
    Dispatcher, SentJob, Submission, batch_jobs_of, batch_system, batch_worker_name,
    has_slurm_node,
};
pub use error::ServiceError;
pub use idle::{IdleReport, ServerPower, switch_idle_off, watch_power};
pub use messages::{format_dispatch_event, format_work_event};
pub use notify::{Delivered, deliver, machine_name, remind, send_now};
pub use watch::{
    BranchCheck, HeadResult, Heads, KernelSource, Packages, Remotes, TreeCheck, WatchEvent,
    Watched, WhyNone, watch,
};
pub use work::{Attempt, Executor, JobProcess, JobResult, Until, WorkEvent, Worked, Worker};
