//! `marvin serve` and `marvin publish`: the dashboard.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use results::HistoryReader;
use web::{Limits, Site};

use super::explain_kernels::stored_or_none;
use super::history::read;
use crate::answer::Answer;
use crate::cli::{Arguments, Publish, Serve};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, store};
use crate::say;

/// The default address.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

pub(crate) fn serve(arguments: &Arguments, command: &Serve) -> anyhow::Result<Exit> {
    let location = store(arguments)?.impatient();
    // Bind before reading the store: a taken address fails at once.
    let listen = match command.listen {
        Some(listen) => listen,
        None => super::config::site(arguments)?
            .settings
            .listen
            .unwrap_or(USUAL),
    };
    let listener = TcpListener::bind(listen)
        .map_err(|error| WrongInput(format!("cannot listen on {listen}: {error}")))?;
    let address = listener
        .local_addr()
        .context("cannot read the server's address")?;
    let mut source = HistoryReader::open(&location)?;
    source.add_bisections_of(home(arguments.home.as_deref())?);
    source.refresh()?;
    // Without a readable marvin.toml the pages show results, and the machines that have jobs.
    let servers = super::config::site(arguments)
        .map(|site| site.settings.servers)
        .unwrap_or_default();
    let names = servers.iter().map(|server| server.name.clone()).collect();
    let pages = Site::new(&location, source.snapshot(1))
        .with_servers(names)
        .with_explain(stored_or_none);
    let pages = Arc::new(pages);
    let noted = Arc::clone(&pages);
    std::thread::spawn(move || service::watch_power(&servers, &|off| noted.note_off(off)));
    if !arguments.quiet {
        say(&format!("serving http://{address}/ (Ctrl-C stops)"));
        if !address.ip().is_loopback() {
            say("note: all results are readable by everyone who can reach this address");
        }
    }
    let names = [command.name.as_slice(), &[service::machine_name()]].concat();
    let Err(error) = web::serve(listener, pages, source, Limits::default(), &names);
    Err(error.into())
}

pub(crate) fn publish(arguments: &Arguments, command: &Publish) -> anyhow::Result<Exit> {
    let location = store(arguments)?;
    let site = Site::of_files(&location, read(arguments)?).with_explain(stored_or_none);
    let published = web::publish(&site, &command.folder)?;
    Answer::open(None)?.write(format!(
        "{} files, {} bytes\n",
        published.files, published.bytes
    ))?;
    Ok(Exit::Fine)
}
