//! What the programs of the guest need: system calls, ports, the result stream, mounts, children,
//! power-off.
//!
//! The first program, `marvin-init`, is PID 1 until the workload's turn comes, and holds no
//! workload: nothing that happens until then can depend on which workloads there are. The second,
//! `marvin-agent`, takes its place then.
#![expect(
    unsafe_code,
    reason = "the guest's programs are made of system calls; each block says why it is sound"
)]

pub mod clock;
pub mod guest_config;
mod life;
pub mod perturb;
pub mod ports;
pub mod stream;
pub mod sys;

/// Where the first program leaves the job for the second.
pub const JOB: &str = "/tmp/job";

/// The variable by which the first process tells the agent that the guest is theirs alone.
pub const IN_GUEST: &str = "MARVIN_IN_GUEST";

pub use life::{
    VERSION, console, die_with_message, in_child, loopback_up, mount, power_off, write_settings,
};
