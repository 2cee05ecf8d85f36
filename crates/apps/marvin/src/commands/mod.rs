//! The commands: one file or folder each, with its options, their help, and its code. No command
//! uses another one; what they share is in `options`, `select`, `measure`, `servers`, `queue` and
//! `views`.

pub(crate) mod alerts;
pub(crate) mod bisect;
pub(crate) mod build;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod console;
pub(crate) mod deploy;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod extend;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod kernels;
pub(crate) mod machines;
pub(crate) mod man;
pub(crate) mod monitors;
pub(crate) mod power;
pub(crate) mod price;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod queue;
pub(crate) mod reference;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod series;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod stabilise;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod triage;
pub(crate) mod watch;
pub(crate) mod work;
pub(crate) mod workloads;
