//! `marvin console`: prints what was recorded of the consoles of servers, records them, and sends
//! breaks and sysrq keys.

use std::time::Duration;

use clap::Args;
use machine::person;
use model::{ServerSettings, UnixTime};
use server::{ConsoleLine, Signal, Tail, console_folder, is_recorded, send_signal};
use signal_hook::consts::SIGTERM;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::seconds;
use crate::say;
use crate::servers::{check_ours, find_server, record_consoles};
use crate::session::{LogOptions, Session, Stop, now_ms, start_log};

fn sysrq(text: &str) -> Result<Signal, String> {
    Signal::sysrq(text).ok_or_else(|| "expected letters and digits, at most 16 of them".to_owned())
}

/// `marvin console`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin console --record &
  marvin console testbox --since 2h
  marvin console testbox --follow
  marvin console testbox --sysrq 8w")]
pub(crate) struct ConsoleArguments {
    /// Server: the name of a [[machine]] with [machine.console] in marvin.toml
    #[arg(required_unless_present = "record", add = completion::server())]
    pub(crate) name: Option<String>,

    /// Print the output of the last TIME: 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10m")]
    pub(crate) since: u64,

    /// Keep printing new output until killed
    #[arg(long)]
    pub(crate) follow: bool,

    /// Record the consoles of all servers until killed, as `marvin work` does
    #[arg(long, conflicts_with_all = ["name", "follow", "sysrq", "sends_break"])]
    pub(crate) record: bool,

    /// Send sysrq keys to the kernel over the console: letters and digits, such as 8w for
    /// blocked tasks (kernel documentation, admin-guide/sysrq)
    #[arg(long, value_name = "KEYS", value_parser = sysrq, conflicts_with_all = ["follow", "since"])]
    pub(crate) sysrq: Option<Signal>,

    /// Send a break over the console
    #[arg(long = "break", conflicts_with_all = ["follow", "since", "sysrq"])]
    pub(crate) sends_break: bool,

    /// Send even if another user has reserved the server
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// How long it may take to print the last lines; a record is whole whenever its recorder ends.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// Time between two looks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn console(session: &Session, command: &ConsoleArguments) -> anyhow::Result<Exit> {
    let home = session.home()?;
    let stop = Stop::on(&[SIGTERM], STOP_LIMIT, Exit::Fine);
    let Some(name) = &command.name else {
        start_log(&command.log, true, session.is_quiet());
        return record(session, &stop);
    };
    let server = find_server(session, name)?;
    if server.console.is_none() {
        let text = format!(
            "{name} has no console: give its [[machine]] a [machine.console] (docs/machines.md)"
        );
        return Err(WrongInput(text).into());
    }
    let signal = command
        .sysrq
        .clone()
        .or_else(|| command.sends_break.then_some(Signal::Break));
    if let Some(signal) = signal {
        return send(session, command, &server, &signal);
    }
    let folder = console_folder(home, &server.name);
    let since = i64::try_from(command.since)
        .unwrap_or(i64::MAX)
        .saturating_mul(1000);
    let mut tail = Tail::since(&folder, now_ms().saturating_sub(since))?;
    let is_on = is_recorded(&folder);
    if !is_on {
        say(&format!(
            "no process records the console of {name} now: marvin console --record"
        ));
    }
    let mut is_empty = !print_lines(session, &mut tail)?;
    if command.follow {
        loop {
            stop.sleep(POLL_INTERVAL);
            print_lines(session, &mut tail)?;
            if stop.is_asked() {
                return Ok(Exit::Fine);
            }
        }
    }
    if let Some(line) = tail.unfinished() {
        is_empty = false;
        session.answer(None)?.write(format_line(&line))?;
    }
    Ok(if is_on || !is_empty {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

/// Prints further lines piece by piece, as a record may be larger than memory; returns whether
/// there were any.
fn print_lines(session: &Session, tail: &mut Tail) -> anyhow::Result<bool> {
    let mut is_any = false;
    loop {
        let lines: String = tail.new_lines().iter().map(format_line).collect();
        if lines.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        session.answer(None)?.write(lines)?;
    }
}

/// Sends a break or sysrq keys to the console of a server.
fn send(
    session: &Session,
    command: &ConsoleArguments,
    server: &ServerSettings,
    signal: &Signal,
) -> anyhow::Result<Exit> {
    if !command.force {
        check_ours(session, &server.name)?;
    }
    let answer = session.answer(None)?;
    let home = session.home()?;
    send_signal(server, home, signal, &person(), &now_ms)?;
    answer.write(format!(
        "{0}: {signal} is sent; what came of it: marvin console {0}\n",
        server.name
    ))?;
    Ok(Exit::Fine)
}

/// Records all consoles until the process is to stop; a record is whole after every line.
fn record(session: &Session, stop: &Stop) -> anyhow::Result<Exit> {
    let servers = session.config()?.settings.servers.clone();
    let names: Vec<String> = servers
        .iter()
        .filter(|server| server.console.is_some())
        .map(|server| server.name.clone())
        .collect();
    if names.is_empty() {
        let text =
            "no [[machine]] of marvin.toml has a [machine.console] (docs/machines.md)".to_owned();
        return Err(WrongInput(text).into());
    }
    say(&format!("recording {}", names.join(", ")));
    // They end with the process.
    drop(record_consoles(session.home()?, servers));
    while !stop.is_asked() {
        stop.sleep(Duration::from_secs(1));
    }
    Ok(stop.finish(session.is_quiet()))
}

fn format_line(line: &ConsoleLine) -> String {
    let printed = String::from_utf8_lossy(&line.bytes);
    let mark = if line.is_note { "-- " } else { "" };
    format!(
        "{} {mark}{}\n",
        UnixTime::new(line.at_ms / 1000).date(),
        model::sanitize_line(printed.trim_end())
    )
}
