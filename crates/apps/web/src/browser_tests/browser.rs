//! A real browser for tests: headless Chromium, controlled by its DevTools protocol over two pipes,
//! so that it needs neither a port nor a crate for web sockets.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Deadline of an answer or an event: a busy host starts a browser slowly.
const PATIENCE: Duration = Duration::from_mins(2);
/// Names of the program in distributions.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    _profile: TempDir,
}

fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Browser {
    /// Starts a browser; prints a note and returns `None` if none is installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = NAMES.into_iter().find(|name| is_installed(name)) else {
            // Not println!, which cargo shows for failed tests only.
            let note = "no Chromium here, so no page was looked at in a browser: scripts/needs.sh test installs it";
            writeln!(std::io::stderr(), "{note}").unwrap();
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // --remote-debugging-pipe reads from descriptor 3 and writes to 4; its own output is not
        // needed.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                program,
            ])
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-extensions",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in from.split(0).map_while(Result::ok) {
                if sender
                    .send(serde_json::from_slice(&message).unwrap())
                    .is_err()
                {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from: receiver,
            sent: 0,
            session: None,
            _profile: profile,
        };
        let target =
            browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = browser.ask(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.ask("Page.enable", json!({}));
        browser.show(1400, 900, "light");
        Some(browser)
    }

    /// Sends a command and returns its answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        let id = json!(self.sent);
        let answer = self.wait(|message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self
                .from
                .recv_timeout(PATIENCE)
                .expect("the browser says nothing any more");
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Sets the size of the window and the colour scheme, light or dark.
    pub(crate) fn show(&mut self, width: u32, height: u32, scheme: &str) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme =
            json!({"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", scheme);
    }

    /// Shows pages as printed.
    pub(crate) fn print(&mut self) {
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({"media": "print", "features": []}),
        );
    }

    pub(crate) fn without_scripts(&mut self) {
        self.ask(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        );
    }

    /// Opens an address and waits until the page is loaded.
    pub(crate) fn open(&mut self, address: &str) {
        let gone = self.ask("Page.navigate", json!({"url": address}));
        assert!(
            gone["errorText"].is_null(),
            "{address}: {}",
            gone["errorText"]
        );
        self.loaded();
    }

    /// Waits until the page is loaded.
    pub(crate) fn loaded(&mut self) {
        self.wait(|message| message["method"] == "Page.loadEventFired");
    }

    /// Returns the value of an expression of JavaScript.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let request = json!({"expression": expression, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", request);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// Returns the text of the first element that a selector finds.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.value(&format!("document.querySelector({selector:?})?.innerText"));
        found
            .as_str()
            .unwrap_or_else(|| panic!("nothing is {selector}"))
            .to_owned()
    }

    /// Clicks into the middle of the first element that a selector finds.
    pub(crate) fn click(&mut self, selector: &str) {
        let middle = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key that types no character.
    pub(crate) fn key(&mut self, name: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event =
                json!({"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code});
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    pub(crate) fn write(&mut self, text: &str) {
        for letter in text.chars() {
            for kind in ["keyDown", "keyUp"] {
                let written = if kind == "keyDown" {
                    letter.to_string()
                } else {
                    String::new()
                };
                let event = json!({"type": kind, "key": letter.to_string(), "text": written});
                self.ask("Input.dispatchKeyEvent", event);
            }
        }
    }

    /// Writes a screenshot of the whole page into the directory of `MARVIN_SCREENSHOTS`, if that is
    /// set.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("MARVIN_SCREENSHOTS") else {
            return;
        };
        let picture = self.ask(
            "Page.captureScreenshot",
            json!({"format": "png", "captureBeyondViewport": true}),
        );
        let bytes = decode(picture["data"].as_str().unwrap());
        std::fs::write(
            std::path::Path::new(&folder).join(format!("{name}.png")),
            bytes,
        )
        .unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser is no longer needed; ignore errors.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Decodes Base64, the protocol's encoding of screenshots.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|digit| u32::try_from(digit).unwrap())
        .collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let number = four
            .iter()
            .enumerate()
            .fold(0, |sum, (n, digit)| sum | digit << (18 - 6 * n));
        bytes.extend(number.to_be_bytes()[1..].iter().take(four.len() * 3 / 4));
    }
    bytes
}

#[test]
fn screenshots_are_decoded() {
    assert_eq!(decode("TWFy"), b"Mar");
    assert_eq!(decode("TWFydmlu"), b"Marvin");
    assert_eq!(decode("TWE="), b"Ma");
    assert_eq!(decode("TQ=="), b"M");
}
