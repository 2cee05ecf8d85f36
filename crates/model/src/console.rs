//! Where the serial console of a server is. `ingest` parses it from a `[machine.console]` of `marvin.toml`, `control` records it.

/// Where the console of a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleSettings {
    /// A program of the lab's host that prints it until it is killed.
    Command(Vec<String>),
    /// An address that sends it: `HOST:PORT`, as ser2net, a terminal server or QEMU does.
    Tcp(String),
    /// Serial-over-LAN of the BMC that switches the power (IPMI 2.0, chapter 15), by ipmitool(1).
    Ipmi,
}

impl ConsoleSettings {
    /// Returns its place in a few words.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Command(words) => words.join(" "),
            Self::Tcp(address) => address.clone(),
            Self::Ipmi => "the BMC, by IPMI".to_owned(),
        }
    }
}
