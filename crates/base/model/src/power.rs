//! How the power of a server is switched. `config` parses it from a `[machine.power]` of
//! `marvin.toml`, `control` does it.

use std::path::PathBuf;

use crate::settings::Login;

/// What switches the power of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerSettings {
    /// A program of the lab's host; its last argument is `status`, `on` or `off`.
    Command(Vec<String>),
    /// A BMC that speaks IPMI 2.0 over the network, by ipmitool(1).
    Ipmi(Ipmi),
    /// A BMC that speaks Redfish (DMTF DSP0266), by curl(1).
    Redfish(Redfish),
    /// A QEMU that emulates the server: its QMP socket.
    Qmp(PathBuf),
}

/// A BMC that speaks IPMI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipmi {
    /// Its host name or address.
    pub host: String,
    /// The UDP port of IPMI.
    pub port: u16,
    /// The login; `None` if it asks for none.
    pub login: Option<Login>,
    /// The cipher suite (IPMI 2.0, table 22-20); `None` to have ipmitool choose.
    pub cipher: Option<u64>,
}

/// A BMC that speaks Redfish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redfish {
    /// Where it is: `https://testbox-bmc.lab`.
    pub address: String,
    /// The path of the system, `/redfish/v1/Systems/1`; `None` for the only one.
    pub system: Option<String>,
    /// The login; `None` if it asks for none.
    pub login: Option<Login>,
    /// Whether any certificate will do: those of BMCs are often their own.
    pub insecure: bool,
}

impl PowerSettings {
    /// Returns the login, if it has one.
    pub fn login_mut(&mut self) -> Option<&mut Login> {
        match self {
            Self::Ipmi(ipmi) => ipmi.login.as_mut(),
            Self::Redfish(redfish) => redfish.login.as_mut(),
            Self::Command(_) | Self::Qmp(_) => None,
        }
    }

    /// Returns what switches the power, in words without secrets.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Command(command) => command.join(" "),
            Self::Ipmi(ipmi) => format!("IPMI at {}", ipmi.host),
            Self::Redfish(redfish) => format!("Redfish at {}", redfish.address),
            Self::Qmp(socket) => format!("QMP at {}", socket.display()),
        }
    }
}

/// What a server boots from at its next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    /// The network, by PXE.
    Pxe,
    /// The first disk in the firmware's order.
    Disk,
    /// No device: the firmware's setup.
    Bios,
}

impl BootDevice {
    /// All boot devices.
    pub const ALL: [Self; 3] = [Self::Pxe, Self::Disk, Self::Bios];

    /// Returns its name, which is that of ipmitool, too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pxe => "pxe",
            Self::Disk => "disk",
            Self::Bios => "bios",
        }
    }
}

impl std::fmt::Display for BootDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
