//! Watching: which kernels there are to measure, what of them is not queued yet, and who is told of what goes wrong.
//!
//! Measuring them is `work`'s business. The time is an argument here; whoever calls reads the clock.

mod deliver;
mod mail;
mod pass;
mod program;
mod select;
mod site;

pub(crate) use deliver::tell;
pub use deliver::{Delivered, deliver};
pub use mail::{machine_name, password};
pub use pass::{Outside, Packages, WatchEvent, Watched, watch};
pub(crate) use program::{Fed, feed};
pub use site::{Apt, Site};
