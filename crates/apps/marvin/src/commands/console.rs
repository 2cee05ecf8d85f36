//! `marvin console`: records the consoles of servers, prints what was recorded, and sends breaks
//! and sysrq keys.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use document::number::date;
use machine::person;
use model::ServerSettings;
use server::{ConsoleLine, Recorder, Signal, Tail, console_folder, is_recorded, send_signal};

use super::config::site;
use super::power::named;
use super::reserve::check_ours;
use crate::answer::Answer;
use crate::cli::{Arguments, Console};
use crate::exit::{Exit, WrongInput};
use crate::home::home;
use crate::say;

/// Time between two looks for new lines.
const LOOK: Duration = Duration::from_millis(200);
/// Wait after a record could not be written, such as on a full disk.
const AGAIN: Duration = Duration::from_secs(60);

pub(crate) fn console(arguments: &Arguments, command: &Console) -> anyhow::Result<Exit> {
    let home = home(arguments.home.as_deref())?;
    let Some(name) = &command.name else {
        return record(&home, site(arguments)?.settings.servers);
    };
    let server = named(arguments, name)?;
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
        return send(arguments, command, &server, &signal);
    }
    let folder = console_folder(&home, &server.name);
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
    let mut is_empty = !print_lines(&mut tail)?;
    if command.follow {
        loop {
            std::thread::sleep(LOOK);
            print_lines(&mut tail)?;
        }
    }
    if let Some(line) = tail.unfinished() {
        is_empty = false;
        Answer::open(None)?.write(format_line(&line))?;
    }
    Ok(if is_on || !is_empty {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

/// Prints further lines piece by piece, as a record may be larger than memory; returns whether
/// there were any.
fn print_lines(tail: &mut Tail) -> anyhow::Result<bool> {
    let mut is_any = false;
    loop {
        let lines: String = tail.new_lines().iter().map(format_line).collect();
        if lines.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        Answer::open(None)?.write(lines)?;
    }
}

/// Sends a break or sysrq keys to the console of a server.
fn send(
    arguments: &Arguments,
    command: &Console,
    server: &ServerSettings,
    signal: &Signal,
) -> anyhow::Result<Exit> {
    if !command.force {
        check_ours(arguments, &server.name)?;
    }
    let answer = Answer::open(None)?;
    let home = home(arguments.home.as_deref())?;
    send_signal(server, &home, signal, &person(), &now_ms)?;
    answer.write(format!(
        "{0}: {signal} is sent; what came of it: marvin console {0}\n",
        server.name
    ))?;
    Ok(Exit::Fine)
}

/// Records all consoles until the process ends.
fn record(home: &Path, servers: Vec<ServerSettings>) -> anyhow::Result<Exit> {
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
    for recorder in record_consoles(home, servers) {
        drop(recorder.join());
    }
    Ok(Exit::Fine)
}

/// Records the consoles of these servers in threads that end with the process.
pub(crate) fn record_consoles(
    home: &Path,
    servers: Vec<ServerSettings>,
) -> Vec<std::thread::JoinHandle<()>> {
    let with_console = servers
        .into_iter()
        .filter(|server| server.console.is_some());
    let record = |server: ServerSettings| {
        let home = home.to_owned();
        std::thread::spawn(move || {
            loop {
                match Recorder::open(&server, &home) {
                    Ok(Some(recorder)) => {
                        let Err(error) = recorder.record(&now_ms) else {
                            continue;
                        };
                        say(&format!(
                            "cannot record the console of {}: {error}; Marvin will retry",
                            server.name
                        ));
                    }
                    // Another process records it, and may end.
                    Ok(None) => {}
                    Err(error) => say(&format!(
                        "cannot record the console of {}: {error}",
                        server.name
                    )),
                }
                std::thread::sleep(AGAIN);
            }
        })
    };
    with_console.map(record).collect()
}

fn format_line(line: &ConsoleLine) -> String {
    let words = String::from_utf8_lossy(&line.bytes);
    let mark = if line.is_note { "-- " } else { "" };
    format!(
        "{} {mark}{}\n",
        date(line.at_ms / 1000),
        model::plain(words.trim_end())
    )
}

fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
