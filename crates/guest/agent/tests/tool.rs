//! External tools on a host: the agent is an ordinary process there, runs what is installed, and
//! ends nothing but that.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::print_stdout, reason = "skipped tests say so")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use wire::{
    Clock, Frame, Job, NOT_INSTALLED, PROGRAMS, Perturbation, Stream, SystemTask, Task, ToolTask,
};

const AGENT: &str = env!("CARGO_BIN_EXE_marvin-agent");

/// Runs an agent in process and mount namespaces of its own, beside a process that is none of its
/// business, and prints which of the processes live on. An agent that ends too much ends the script
/// as well: then there is no last line.
const SCRIPT: &str = r#"
mount -t tmpfs none /mnt
sleep 1000 &
bystander=$!
"$1" job <&3 >/mnt/frames
kill -0 $bystander && echo "bystander lives" >&2
cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -c '^1234$' >&2
ls -A /run | grep -q marvin-left && echo "a file is left" >&2
cat /mnt/frames
"#;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn job(tool: ToolTask) -> Vec<u8> {
    let task = Task::Tool(ToolTask {
        runs: 2,
        limit_s: 20,
        ..tool
    });
    Job {
        id: 7,
        clock: Clock::Monotonic,
        perturbation: Perturbation::default(),
        task,
    }
    .encode()
    .unwrap()
}

/// Runs a tool; none where this host allows no namespaces.
fn run(tool: ToolTask, user: &[&str]) -> Option<(Output, Stream)> {
    let spaces = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount",
        "--mount-proc",
    ];
    let can = Command::new("unshare")
        .args(spaces)
        .arg("true")
        .status()
        .unwrap()
        .success();
    if !can {
        println!("skipped: this host allows no namespaces");
        return None;
    }
    let script = format!("exec 3<&0\n{SCRIPT}");
    let mut command = Command::new("unshare");
    command.args(spaces).args([
        "sh",
        "-c",
        &script.replace("\"$1\" job", &format!("{} \"$1\" job", user.join(" "))),
    ]);
    let mut child = command
        .args(["sh", AGENT])
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&job(tool)).unwrap();
    let output = child.wait_with_output().unwrap();
    let stream = wire::decode(&output.stdout, 7);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((
        output,
        stream.unwrap_or_else(|error| panic!("{error}: {said}")),
    ))
}

#[test]
fn tool_on_a_host_ends_alone() {
    // What it leaves behind has a session and a parent of its own.
    let leave =
        "echo x >/run/marvin-left; (setsid sleep 1234 &) ; (setsid sleep 1234 &) ; echo Time: 1";
    let tool = ToolTask {
        command: words(&["/nonesuch/bin/sh", "-c", leave]),
        ..ToolTask::default()
    };
    let Some((output, stream)) = run(tool, &[]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said, "bystander lives\n0\n",
        "what the tool left behind is gone, and nothing else"
    );
    let file = |wanted: &str| {
        stream.frames.iter().find_map(|frame| match frame {
            Frame::File { name, bytes } if name == wanted => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
            _ => None,
        })
    };
    assert_eq!(file("1/stdout").unwrap(), "Time: 1\n");
    let programs = file(PROGRAMS).unwrap();
    assert!(
        programs.starts_with("sh=/usr/bin/sh, ") && programs.contains("crc32 "),
        "{programs}"
    );
    assert!(
        stream
            .frames
            .iter()
            .any(|frame| matches!(frame, Frame::Samples(ticks) if ticks.len() == 2))
    );
}

#[test]
fn missing_program_is_said_to_be_missing() {
    let tool = ToolTask {
        command: words(&["/usr/bin/nonesuch"]),
        ..ToolTask::default()
    };
    let Some((_, stream)) = run(tool, &[]) else {
        return;
    };
    let expected = Frame::Unsupported(format!("{NOT_INSTALLED}/usr/bin/nonesuch"));
    assert!(stream.frames.contains(&expected), "{:?}", stream.frames);
}

#[test]
fn own_program_runs_where_it_lies() {
    let before = printed_directories();
    let folder = std::env::temp_dir();
    let text = "pwd; cat; head -c 400000 /dev/zero | tr '\\0' x; exit 3";
    let input = folder.join(format!("marvin-input-{}", std::process::id()));
    std::fs::write(&input, "input\n").unwrap();
    let tool = ToolTask {
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        command: words(&["/bin/sh", "-c", text]),
        system: Some(SystemTask {
            directory: folder.display().to_string(),
            stdin: Some(input.display().to_string()),
            accepted: vec![3],
            marks: false,
        }),
        ..ToolTask::default()
    };
    let Some((_, stream)) = run(tool, &[]) else {
        return;
    };
    std::fs::remove_file(input).unwrap();
    let stdout: Vec<u8> = stream
        .frames
        .iter()
        .filter_map(|frame| match frame {
            Frame::File { name, bytes } if name == "1/stdout" => Some(bytes.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let printed = String::from_utf8_lossy(&stdout);
    let begin = format!("{}\ninput\nxxx", folder.display());
    assert!(printed.starts_with(&begin), "{}", &printed[..80]);
    assert!(printed.contains(" bytes are left out]"));
    assert!(stdout.len() < 300_000);
    assert!(
        stream
            .frames
            .iter()
            .any(|frame| matches!(frame, Frame::Samples(ticks) if ticks.len() == 2))
    );
    assert_eq!(printed_directories(), before);
}

/// How many directories of output are there: tests that were killed may have left some.
fn printed_directories() -> usize {
    let entries = std::fs::read_dir("/tmp").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with(".marvin-printed"))
        .count()
}
