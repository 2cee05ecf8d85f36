//! One file per command.

mod again;
mod alerts;
mod bisect;
mod bisect_plan;
mod bisect_via;
mod build;
mod collector;
mod compare;
mod config;
mod console;
mod deploy;
mod doctor;
mod dump;
mod experiment;
mod explain;
mod explain_kernels;
mod export;
mod gc;
mod generate;
mod history;
mod import;
mod kernels;
mod listing;
mod machines;
mod measure;
mod monitors;
mod power;
mod profile;
mod queue;
mod report;
mod reserve;
mod run;
mod sampled;
mod sensitivity;
mod series;
mod serve;
mod shared;
mod show;
mod spread;
mod stabilise;
mod stabilise_check;
mod stabilise_plan;
mod stored;
mod threads;
mod tools;
mod tree;
mod until_clear;
mod upgrade;
mod via;
mod watch;
mod work;

use crate::cli::{Arguments, Command};
use crate::exit::Exit;
pub(crate) use history::read as read_history;
pub(crate) use tools::known_tools;

/// Executes a command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    // These write many files for others: web servers, shells, man. A program that is observed
    // writes its own.
    let for_others = match &arguments.command {
        Command::Publish(_)
        | Command::Dump { .. }
        | Command::Man { .. }
        | Command::Reference { .. } => true,
        Command::Explain(command) => command.kernels.is_empty(),
        _ => false,
    };
    if !for_others {
        crate::home::keep_private();
    }
    if arguments.no_sandbox {
        subprocess::remove_walls();
    }
    match &arguments.command {
        Command::Compare(command) => compare::compare(arguments, command),
        Command::Profile(command) => profile::profile(arguments, command),
        Command::Monitors(command) => monitors::monitors(arguments, command),
        Command::Explain(command) => explain::explain(arguments, command),
        Command::Experiment(command) => experiment::experiment(arguments, command),
        Command::Run(command) => run::run(arguments, command),
        Command::Build(command) => build::build(arguments, command),
        Command::Bisect(command) => bisect::bisect(arguments, command),
        Command::Stabilise(command) => stabilise::stabilise(arguments, command),
        Command::Series(command) => series::series(arguments, command),
        Command::Runs(command) => listing::runs(arguments, command),
        Command::Workloads(command) => match &command.sensitivity {
            Some(kernel) => sensitivity::sensitivity(arguments, command, kernel),
            None => listing::workloads(arguments, command),
        },
        Command::Machines(command) => machines::machines(arguments, command),
        Command::Power(command) => power::power(arguments, command),
        Command::Deploy(command) => deploy::deploy(arguments, command),
        Command::Console(command) => console::console(arguments, command),
        Command::Reserve(command) => reserve::reserve(arguments, command),
        Command::Extend(command) => reserve::extend(arguments, command),
        Command::Release(command) => reserve::release(arguments, command),
        Command::Tools(command) => tools::tools(arguments, command),
        Command::Show(command) => show::show(arguments, command),
        Command::Report(command) => report::report(arguments, command),
        Command::History(command) => history::history(arguments, command),
        Command::Alerts(command) => alerts::alerts(arguments, command),
        Command::Triage(command) => alerts::triage(arguments, command),
        Command::Serve(command) => serve::serve(arguments, command),
        Command::Publish(command) => serve::publish(arguments, command),
        Command::Watch(command) => watch::watch(arguments, command),
        Command::Work(command) => work::work(arguments, command),
        Command::Queue(command) => queue::queue(arguments, command),
        Command::Config(command) => config::config(arguments, command),
        Command::Import(command) => import::import(arguments, command),
        Command::Export(command) => export::export(arguments, command),
        Command::Gc(command) => gc::gc(arguments, command),
        Command::Store(command) => upgrade::store(arguments, command),
        Command::Dump { words } => Ok(dump::dump(words)),
        Command::Kernels(command) => kernels::kernels(arguments, command),
        Command::Doctor(command) => doctor::doctor(arguments, command),
        Command::Completions { shell } => generate::completions(*shell),
        Command::Man { folder } => generate::man(folder),
        Command::Reference { page, folder } => generate::reference(*page, folder.as_deref()),
    }
}
