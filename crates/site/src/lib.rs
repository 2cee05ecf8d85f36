//! A site: which kernels there are to measure, what of them is queued, who does the queued jobs, and who is notified.
//!
//! Measuring is the job process's work, which the program starts anew for each job; `lab` does it there. The time is an
//! argument here: the caller reads the clock.

mod error;
mod notify;
mod settings;
mod watch;
mod work;

pub use error::SiteError;
pub use ingest::settings_schema;
pub use notify::{Delivered, deliver, machine_name, password};
pub use settings::{Apt, Site};
pub use watch::{KernelSource, Packages, WatchEvent, Watched, watch};
pub use work::{Attempt, Executor, JobProcess, Until, WorkEvent, Worked, Worker};
