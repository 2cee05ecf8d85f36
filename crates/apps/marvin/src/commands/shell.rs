//! `marvin shell`: a shell in the guest in which a program of the user's own would run.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use lab::{GuestShell, LINES_MAX, LabOptions, ProgramRequest, ShellEnd, ShellStep, ShellUser};
use model::{KernelName, sanitize_line, sanitize_lines};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{find_builds, prepare_tools};
use crate::options::{
    KERNELS, SourceOptions, Variable, quote, split_place, time, variable, whole, words_of,
};
use crate::select::{describe_program, explain_program_error, kernel_name_in, source_settings};
use crate::session::{RawTerminal, Session, send_keys};

const EXAMPLES: &str = "Examples:
  marvin shell deb:6.12                                a shell in a guest of this kernel
  marvin shell deb:6.12 -- ./my-bench -t 1             the same with ./my-bench and its libraries
  marvin shell git:HEAD --tree linux --with data -- ./my-bench data
  echo './my-bench -t 1' | marvin shell deb:6.12 -- ./my-bench

Keys: Ctrl-D or exit ends the shell, Ctrl-A x the guest at once; Ctrl-A Ctrl-A sends Ctrl-A.
Exit codes: 0 after a session; of lines, 4 if the last one failed; otherwise as for all commands.";

/// The machine whose guests have a line for a shell.
const EXACT: &str = "exact";
/// How long lines may take without `--timeout`.
const LINES_TIMEOUT: Duration = Duration::from_secs(600);
/// How the prompt of the guest ends.
const PROMPT: &[u8] = b"# ";

/// `marvin shell`.
#[derive(Debug, Args)]
#[command(after_help = format!("{KERNELS}{EXAMPLES}"))]
pub(crate) struct ShellArguments {
    /// Kernel to boot
    #[arg(add = completion::kernel())]
    kernel: String,

    /// Machine of the guest: only exact has a line for a shell
    #[arg(long, value_name = "MACHINE", default_value = EXACT)]
    on: String,

    /// Bring this program of yours, with its libraries and files, and type it at the prompt
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,

    /// Bring this file or directory, to the same place in the guest or to PLACE
    #[arg(long, value_name = "PATH[=PLACE]")]
    with: Vec<PathBuf>,

    /// Set an environment variable; of this host's the shell gets TERM only
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<Variable>,

    /// Memory of the guest in MiB [default: 512, or what its files need]
    #[arg(long, value_name = "MIB", value_parser = whole::<u32>(128, 65536))]
    guest_memory: Option<u32>,

    /// End the session after this time [default: 10m for lines of a pipe, none at a terminal]
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    #[command(flatten)]
    sources: SourceOptions,
}

/// Why a session is over.
enum Over {
    /// The shell or the guest ended.
    Ended(ShellEnd),
    /// The user left with Ctrl-A x, or the reader of the output did.
    Left,
    /// It took longer than this.
    TimedOut(Duration),
}

pub(crate) fn shell(session: &Session, command: &ShellArguments) -> anyhow::Result<Exit> {
    check_machine(command)?;
    let name = kernel_name_in(&command.kernel, command.sources.tree.as_deref())?;
    let request = command.request()?;
    let user = find_user()?;
    let tools = session.tools(&[])?;
    let prepared = lab::prepare_shell(&request, &user, &tools, session.home()?)
        .map_err(explain_program_error)?;
    if !session.is_quiet() {
        crate::say(
            "shell: nothing is measured or stored in this guest; no time or number there is exact",
        );
        for text in describe_program(&prepared) {
            crate::say(&text);
        }
    }
    let row = prepared.tool.name.clone();
    let tools = tools.with_program(prepared.tool);
    let workloads = tools.select(&row);
    let workload = workloads.first().context("a program has a row")?;
    let lab = session.open_lab(LabOptions {
        store: Some(session.store_location()?),
        sources: source_settings(session, &command.sources)?,
        tools: tools.clone(),
        ..LabOptions::default()
    })?;
    let progress = session.progress();
    let build = find_builds(&lab, std::slice::from_ref(&name), &progress)?.remove(0);
    prepare_tools(&lab, &workloads, &progress)?;
    progress.message(&format!("{name}: booting"));
    let opened = lab.open_shell(&build, workload, &user)?;
    progress.end();
    let over = match (opened, &user) {
        (Err(end), _) => Over::Ended(end),
        (Ok(shell), ShellUser::Person { .. }) => {
            let words: Vec<String> = request.command.iter().map(|word| quote(word)).collect();
            sit_at(shell, &words.join(" "), command.timeout)?
        }
        (Ok(shell), ShellUser::Lines(_)) => {
            let limit = command.timeout.unwrap_or(LINES_TIMEOUT);
            pass_output(shell, Some(limit), &AtomicBool::new(false), None)?
        }
    };
    Ok(report(&name, &user, &over))
}

/// Refuses machines whose guests have no line for a shell, and says what to do there.
fn check_machine(command: &ShellArguments) -> Result<(), WrongInput> {
    let machine = sanitize_line(&command.on);
    let why = match machine.as_str() {
        EXACT => return Ok(()),
        "exact-smp" => "Marvin executes its processors in turns, by what they do and never by keys",
        "vm" => "the two serial lines of its guest have console and jobs",
        "local" => "it is this host, with a shell of its own",
        _ => "Marvin opens shells in guests; use ssh while it does not measure there",
    };
    let script = if machine == "local" {
        String::new()
    } else {
        let kernel = quote(&command.kernel);
        format!(
            "; marvin run {kernel} --on {machine} -- sh ./SCRIPT runs a script there, and marvin show RUN has what it prints"
        )
    };
    Err(WrongInput(format!(
        "cannot open a shell on {machine}: {why}\nhint: without --on the shell is in a guest of exact{script}"
    )))
}

impl ShellArguments {
    fn request(&self) -> Result<ProgramRequest, WrongInput> {
        Ok(ProgramRequest {
            command: words_of(&self.program)?,
            with: self
                .with
                .iter()
                .map(|written| split_place(written))
                .collect(),
            environment: self.env.iter().map(Variable::pair).collect(),
            memory_mib: self.guest_memory,
            ..ProgramRequest::default()
        })
    }
}

/// Returns who is at standard input: a person, or lines of a pipe or a file.
fn find_user() -> Result<ShellUser, WrongInput> {
    if RawTerminal::is_there()? {
        let (rows, columns) = RawTerminal::size();
        let terminal = std::env::var("TERM").unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-+._".contains(c);
        return Ok(ShellUser::Person {
            rows,
            columns,
            terminal: if !terminal.is_empty() && terminal.chars().all(is_plain) {
                terminal
            } else {
                "dumb".to_owned()
            },
        });
    }
    let mut lines = Vec::new();
    io::stdin()
        .lock()
        .take(LINES_MAX as u64 + 1)
        .read_to_end(&mut lines)
        .map_err(|error| {
            WrongInput(format!(
                "cannot read the lines for the shell from standard input: {error}\nhint: run marvin shell at a terminal, or \
                 pipe lines in"
            ))
        })?;
    if lines.is_empty() {
        return Err(WrongInput(
            "no lines for the shell: standard input is empty\nhint: run marvin shell at a terminal, or pipe lines in: echo \
             'uname -r' | marvin shell KERNEL"
                .to_owned(),
        ));
    }
    if lines.len() > LINES_MAX {
        return Err(WrongInput(format!(
            "cannot take more than {} KiB of lines from standard input\nhint: bring a script with --with, and call it",
            LINES_MAX >> 10
        )));
    }
    Ok(ShellUser::Lines(lines))
}

/// Gives the terminal to the guest until the session is over, with this text after the first
/// prompt.
fn sit_at(shell: GuestShell, typed: &str, limit: Option<Duration>) -> anyhow::Result<Over> {
    let has_left = Arc::new(AtomicBool::new(false));
    let raw = RawTerminal::set()?;
    let mut first = shell.writer()?;
    send_keys(shell.writer()?, Arc::clone(&has_left))?;
    let over = pass_output(
        shell,
        limit,
        &has_left,
        Some((&mut first, typed)).filter(|(_, typed)| !typed.is_empty()),
    );
    drop(raw);
    // The guest's last line may have no end.
    writeln!(io::stdout())?;
    over
}

/// Passes what the shell prints to standard output until the session is over.
fn pass_output(
    mut shell: GuestShell,
    limit: Option<Duration>,
    has_left: &AtomicBool,
    mut typed: Option<(&mut UnixStream, &str)>,
) -> anyhow::Result<Over> {
    let begun = Instant::now();
    let mut end_of_line = Vec::new();
    loop {
        match shell.step()? {
            ShellStep::Printed(bytes) => {
                let mut output = io::stdout().lock();
                if output
                    .write_all(&bytes)
                    .and_then(|()| output.flush())
                    .is_err()
                {
                    // The reader has enough, as `head` has.
                    return Ok(Over::Left);
                }
                end_of_line.extend_from_slice(&bytes);
                end_of_line.drain(..end_of_line.len().saturating_sub(PROMPT.len()));
                if end_of_line == PROMPT
                    && let Some((guest, text)) = typed.take()
                {
                    guest.write_all(text.as_bytes())?;
                }
            }
            ShellStep::Nothing => {}
            ShellStep::Ended(end) => return Ok(Over::Ended(end)),
        }
        if has_left.load(Ordering::SeqCst) {
            return Ok(Over::Left);
        }
        if let Some(limit) = limit.filter(|limit| begun.elapsed() > *limit) {
            return Ok(Over::TimedOut(limit));
        }
    }
}

/// Says how a session ended, where that is not what the user did, and returns the exit code.
fn report(name: &KernelName, user: &ShellUser, over: &Over) -> Exit {
    let text = match (over, user) {
        (Over::Left | Over::Ended(ShellEnd::Status(0)), _)
        | (Over::Ended(ShellEnd::Status(_) | ShellEnd::SwitchedOff), ShellUser::Person { .. }) => {
            return Exit::Fine;
        }
        (Over::Ended(ShellEnd::SwitchedOff), ShellUser::Lines(_)) => {
            "error: the guest switched off before its shell ended".to_owned()
        }
        (Over::Ended(ShellEnd::Status(status)), ShellUser::Lines(_)) => {
            format!("error: the shell in the guest ended with exit status {status}")
        }
        (Over::Ended(ShellEnd::Killed(why)), _) => {
            format!("error: the shell in the guest was killed: {why}")
        }
        (Over::Ended(ShellEnd::NotStarted(why)), _) => {
            format!("error: cannot start a shell in the guest of {name}: {why}")
        }
        (Over::Ended(ShellEnd::Failed(failure)), _) => {
            let lines = sanitize_lines(&failure.console_tail);
            let tail: String = lines.iter().map(|line| format!("\n  {line}")).collect();
            format!(
                "error: {name} failed in stage {}: {}{tail}",
                failure.stage, failure.reason
            )
        }
        (Over::TimedOut(limit), _) => format!(
            "error: the session did not end within {} s\nhint: --timeout gives it more time",
            limit.as_secs()
        ),
    };
    crate::say(&text);
    Exit::Subject
}
