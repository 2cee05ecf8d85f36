//! A make-believe switch that lies, is slow or fails; and real ones: a program, QEMU's QMP,
//! ipmi_sim, sushy-emulator.

use std::sync::Mutex;
use std::time::Duration;

use model::BootDevice;

use super::{NextBoot, Patience, Power, PowerState, Refusal, Switch};

/// What a make-believe BMC does.
#[derive(Debug, Default)]
struct Lies {
    is_on: bool,
    /// Requests that it confirms and does not carry out.
    ignored: u32,
    /// Looks during which it still changes.
    changing: u32,
    /// Questions that it does not answer.
    silent: u32,
    /// Whether it cannot report a state.
    is_mute: bool,
    requests: Vec<bool>,
    /// The device of the next boot.
    boot: Option<BootDevice>,
}

#[derive(Debug, Default)]
struct Bmc(Mutex<Lies>);

impl Switch for &'static Bmc {
    fn state(&self) -> Result<PowerState, Refusal> {
        let mut bmc = self.0.lock().unwrap();
        if bmc.silent > 0 {
            bmc.silent -= 1;
            return Err(Refusal::Passing(
                "Error: Unable to establish IPMI v2 / RMCP+ session".to_owned(),
            ));
        }
        if bmc.changing > 0 && !bmc.requests.is_empty() {
            bmc.changing -= 1;
            return Ok(PowerState::Changing);
        }
        Ok(match (bmc.is_mute, bmc.is_on) {
            (true, _) => PowerState::Unknown,
            (false, true) => PowerState::On,
            (false, false) => PowerState::Off,
        })
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        let mut bmc = self.0.lock().unwrap();
        bmc.requests.push(is_on);
        match bmc.ignored {
            0 => bmc.is_on = is_on,
            _ => bmc.ignored -= 1,
        }
        Ok(())
    }

    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal> {
        let mut bmc = self.0.lock().unwrap();
        match bmc.ignored {
            0 => bmc.boot = Some(device),
            _ => bmc.ignored -= 1,
        }
        Ok(())
    }

    fn next_boot(&self) -> Result<NextBoot, Refusal> {
        let bmc = self.0.lock().unwrap();
        Ok(if bmc.is_mute {
            NextBoot::Unknown
        } else {
            bmc.boot.map_or(NextBoot::Other, NextBoot::From)
        })
    }
}

/// Returns the power of a make-believe BMC, and the BMC. Tests leak it: they end soon.
fn power(lies: Lies) -> (Power, &'static Bmc) {
    let bmc: &'static Bmc = Box::leak(Box::new(Bmc(Mutex::new(lies))));
    let patience = Patience {
        look: Duration::ZERO,
        change: Duration::from_millis(5),
        dark: Duration::ZERO,
    };
    (
        Power {
            name: "testbox".into(),
            place: "IPMI at testbox-bmc.lab".into(),
            switch: Box::new(bmc),
            patience,
        },
        bmc,
    )
}

fn requests(bmc: &Bmc) -> Vec<bool> {
    bmc.0.lock().unwrap().requests.clone()
}

#[test]
fn reached_state_is_not_requested() {
    let (power, bmc) = power(Lies {
        is_on: true,
        ..Lies::default()
    });
    assert_eq!(power.turn(true).unwrap(), PowerState::On);
    assert_eq!(requests(bmc), [false; 0]);
}

#[test]
fn cycle_is_off_then_on() {
    let (power, bmc) = power(Lies {
        is_on: true,
        changing: 3,
        ..Lies::default()
    });
    assert_eq!(power.cycle().unwrap(), PowerState::On);
    assert_eq!(requests(bmc), [false, true]);
}

#[test]
fn ignored_request_is_repeated() {
    let (power, bmc) = power(Lies {
        ignored: 1,
        ..Lies::default()
    });
    assert_eq!(power.turn(true).unwrap(), PowerState::On);
    assert_eq!(requests(bmc), [true, true]);
}

#[test]
fn bmc_that_only_confirms_is_reported() {
    let (power, bmc) = power(Lies {
        is_on: true,
        ignored: 100,
        ..Lies::default()
    });
    let error = power.cycle().unwrap_err().to_string();
    assert_eq!(
        requests(bmc),
        [false, false, false],
        "it is not switched on: it was never off"
    );
    insta::assert_snapshot!(error, @"cannot switch testbox off: IPMI at testbox-bmc.lab took 3 requests in 0 s and still reports on");
}

#[test]
fn silence_is_asked_again_then_reported() {
    let (short, _) = power(Lies {
        silent: 2,
        ..Lies::default()
    });
    assert_eq!(short.state().unwrap(), PowerState::Off);
    let (long, _) = power(Lies {
        silent: 3,
        ..Lies::default()
    });
    insta::assert_snapshot!(long.state().unwrap_err(), @"cannot ask IPMI at testbox-bmc.lab for the power of testbox: Error: Unable to establish IPMI v2 / RMCP+ session");
}

#[test]
fn state_that_cannot_be_known_is_said() {
    let (power, bmc) = power(Lies {
        is_mute: true,
        ..Lies::default()
    });
    assert_eq!(power.cycle().unwrap(), PowerState::Unknown);
    assert_eq!(requests(bmc), [false, true]);
}

#[test]
fn boot_device_is_read_back() {
    let (lazy, bmc) = power(Lies {
        ignored: 2,
        ..Lies::default()
    });
    assert!(lazy.boot_next(BootDevice::Pxe).unwrap());
    assert_eq!(bmc.0.lock().unwrap().boot, Some(BootDevice::Pxe));
    let (mute, _) = power(Lies {
        is_mute: true,
        ..Lies::default()
    });
    assert!(
        !mute.boot_next(BootDevice::Disk).unwrap(),
        "requested, and not verified"
    );
    let (liar, _) = power(Lies {
        ignored: 100,
        ..Lies::default()
    });
    insta::assert_snapshot!(liar.boot_next(BootDevice::Bios).unwrap_err(), @"cannot set the next boot of testbox to bios: IPMI at testbox-bmc.lab took 3 requests and reports no device");
}
