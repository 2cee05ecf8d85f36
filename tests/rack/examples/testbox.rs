//! Starts a Debian server and prints its `[[machine]]` for marvin.toml, for trying Marvin by hand
//! without metal: `cargo run -p rack --example testbox >> ~/.local/share/marvin/marvin.toml`. It
//! ends with this program.

use std::io::Write as _;
use std::time::Duration;

use rack::Rack;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Rack::open()?.server("testbox")?;
    server.wait_for_ssh(Duration::from_secs(600))?;
    let (host, port) = server.console_address();
    let config = server.ssh().config.display().to_string();
    let power = server.power_command();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\nssh_config = \"{config}\"\nboot_deadline = \"6m\""
    )?;
    writeln!(
        out,
        "power = {{ command = [\"{}\"] }}\nconsole = {{ tcp = \"{host}:{port}\" }}",
        power.display()
    )?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}
