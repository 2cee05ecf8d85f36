//! `marvin serve`: the dashboard as a server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use results::HistoryReader;
use signal_hook::consts::SIGTERM;
use web::{Limits, Site};

use crate::exit::{Exit, WrongInput};
use crate::measure::explain_stored_or_none;
use crate::say;
use crate::session::{
    About, LastingState, LogLevel, LogOptions, Session, Stop, is_log_on, open_when_reached,
    start_log,
};

/// `marvin serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Address and port; port 0 picks a free one [default: that of marvin.toml, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,

    /// Also answer requests for this host name, such as a proxy's; localhost, addresses and this
    /// machine's name always work
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// Interval between looks whether the store can be read.
const LOOK: Duration = Duration::from_secs(1);

/// How long it may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

pub(crate) fn serve(session: &Session, command: &ServeArguments) -> anyhow::Result<Exit> {
    start_log(&command.log, true, session.is_quiet());
    let location = session.store_location()?.impatient();
    // Bind before reading the store: a taken address fails at once.
    let listen = match command.listen {
        Some(listen) => listen,
        None => session.config()?.settings.listen.unwrap_or(USUAL),
    };
    let listener = TcpListener::bind(listen)
        .map_err(|error| WrongInput(format!("cannot listen on {listen}: {error}")))?;
    let address = listener
        .local_addr()
        .context("cannot read the server's address")?;
    let home = session.home()?;
    // Nothing is lost if an answer is cut off.
    let stop = Stop::on(&[SIGTERM], STOP_LIMIT, Exit::Fine);
    let source = open_when_reached(&stop, || {
        let mut source = HistoryReader::open(&location)?;
        source.add_bisections_of(home);
        source.use_summary_of(home);
        source.refresh()?;
        Ok(source)
    })?;
    // Without a readable marvin.toml the pages show results, and the machines that have jobs.
    let servers = session
        .config()
        .map(|site| site.settings.servers.clone())
        .unwrap_or_default();
    let names = servers.iter().map(|server| server.name.clone()).collect();
    let pages = Site::new(&location, source.snapshot(1))
        .with_servers(names)
        .with_explain(explain_stored_or_none);
    // What the first reader would wait for; new results do the same in the thread that reads them.
    drop(pages.answer("/", ""));
    let pages = Arc::new(pages);
    let noted = Arc::clone(&pages);
    std::thread::spawn(move || service::watch_power(&servers, &|off| noted.note_off(off)));
    let read = Arc::clone(&pages);
    std::thread::spawn(move || report_trouble(&read));
    if is_log_on() || !session.is_quiet() {
        say(&format!("serving http://{address}/ (Ctrl-C stops)"));
        if !address.ip().is_loopback() {
            say("note: all results are readable by everyone who can reach this address");
        }
    }
    let names = [command.name.as_slice(), &[service::machine_name()]].concat();
    let limits = Limits::default();
    web::serve(listener, pages, source, limits, &names, || stop.is_asked())?;
    Ok(stop.finish(session.is_quiet()))
}

/// Says that the store cannot be read, and when it can be again, until the process ends.
fn report_trouble(site: &Site) {
    let mut unread = LastingState::default();
    loop {
        if site.has_trouble() {
            let text = "cannot read the store: pages show earlier results; /healthz says 503";
            unread.hold(LogLevel::Warn, About::default(), text);
        } else {
            unread.end(About::default(), "the store can be read again");
        }
        std::thread::sleep(LOOK);
    }
}
