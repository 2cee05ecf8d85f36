//! Checks of the programs embedded in the lab: the guest's programs, and QEMU's plugins.

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lab::{AGENT, CRASH, PATH_RECORDER, TRACER};

/// Most bytes of the agent's file.
const BYTES_MAX: usize = 3_000_000;

#[test]
fn the_agent_is_small() {
    assert!(
        AGENT.len() <= BYTES_MAX,
        "the agent has {} bytes, {BYTES_MAX} are allowed: see what grew",
        AGENT.len()
    );
}

#[test]
fn the_guests_programs_are_static() {
    let remedy = "link it statically, in crates/lab/lab/build.rs: a guest has no libraries";
    for (name, program) in [("marvin-agent", AGENT), ("marvin-crash", CRASH)] {
        assert_eq!(
            tidy::interpreter(program),
            Ok(false),
            "{name} asks for a dynamic linker: {remedy}"
        );
    }
}

#[test]
fn embedded_programs_hold_no_host_path() {
    let text = |path: &Path| path.display().to_string();
    let cargo_home = std::env::var_os("CARGO_HOME").map(|home| text(Path::new(&home)));
    let usual = std::env::home_dir().map(|home| text(&home.join(".cargo")));
    let mut paths = vec![text(&tidy::root())];
    paths.extend(cargo_home.into_iter().chain(usual));
    tidy::none(&tidy::leaks(AGENT, &paths));
    tidy::none(&tidy::leaks(CRASH, &paths));
    tidy::none(&tidy::leaks(TRACER, &paths));
    tidy::none(&tidy::leaks(PATH_RECORDER, &paths));
}

#[test]
fn the_agent_has_the_workloads_that_are_declared() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("marvin-agent");
    std::fs::write(&program, AGENT)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let output = Command::new(&program).arg("list").output()?;
    assert!(
        output.status.success(),
        "`marvin-agent list` ended with {}",
        output.status
    );
    let listed = String::from_utf8(output.stdout)?;
    let declared: Vec<&str> = model::workloads()
        .into_iter()
        .filter(|workload| workload.row_of.is_none())
        .map(|workload| &*workload.name)
        .collect();
    tidy::none(&tidy::unlike(
        &declared,
        &listed.lines().collect::<Vec<_>>(),
    ));
    Ok(())
}
