//! Where the serial console of a server is. `config` parses it from a `[machine.console]` of
//! `marvin.toml`, `control` records it.

/// Where the console of a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleSettings {
    /// A program of the lab's host.
    Command {
        /// The program that prints the console until it is killed, with its arguments.
        command: Vec<String>,
        /// The program that sends a break, with its arguments; the key that follows the break is
        /// added. Empty without one.
        sends_break: Vec<String>,
    },
    /// An address that sends it, as ser2net, a terminal server or QEMU does.
    Tcp {
        /// The serial-over-LAN or terminal server, `HOST:PORT`.
        address: String,
        /// Whether it speaks telnet (RFC 854), which has a break; raw TCP has none.
        is_telnet: bool,
    },
    /// Serial-over-LAN of the BMC that switches the power (IPMI 2.0, chapter 15), by ipmitool(1).
    Ipmi,
}

impl ConsoleSettings {
    /// Returns its place in a few words.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Command { command, .. } => command.join(" "),
            Self::Tcp { address, .. } => address.clone(),
            Self::Ipmi => "the BMC, by IPMI".to_owned(),
        }
    }

    /// Checks that a break can be sent to it.
    ///
    /// # Errors
    /// If it has no break: what to set, and why.
    pub fn check_break(&self) -> Result<(), (&'static str, &'static str)> {
        match self {
            Self::Command { sends_break, .. } if sends_break.is_empty() => Err((
                "set break = [\"PROGRAM\"] in its [machine.console]",
                "no program sends a break to it",
            )),
            Self::Tcp {
                is_telnet: false, ..
            } => Err((
                "set telnet = true in its [machine.console] if the address speaks telnet",
                "raw TCP has no break",
            )),
            Self::Command { .. } | Self::Tcp { .. } | Self::Ipmi => Ok(()),
        }
    }
}
