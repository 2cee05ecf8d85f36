//! Valid settings, and the answer to each mistake.

use model::{
    ChannelKind, ConsoleSettings, MailServer, MailTaker, MarvinConfig, Points, PowerSettings,
    Secrecy, Secret, Suite, ToolRows, TreeOrigin, Workload,
};
use proptest::prelude::{any, prop_assert, proptest};

use super::{seconds, settings_schema};
use crate::ManifestError;

/// Parses a file with one known tool, `bench`.
fn settings(text: &str) -> Result<MarvinConfig, ManifestError> {
    let row = Workload {
        name: "hackbench".into(),
        ..(*model::MICRO.workloads[0]).clone()
    };
    let suite = Suite::new("tools", "", [row]);
    let terms = ["bench", "hackbench"]
        .map(|word| (word.to_owned(), suite.workloads.clone()))
        .into();
    super::settings(text, &ToolRows { suite, terms })
}

const SAMPLES: [(&str, &str); 2] = [
    (
        "small.toml",
        include_str!("../../../../../docs/samples/small.toml"),
    ),
    (
        "full.toml",
        include_str!("../../../../../docs/samples/full.toml"),
    ),
];

#[test]
fn the_samples_are_read_and_have_every_key() {
    for (name, text) in SAMPLES {
        let read = settings(text).unwrap_or_else(|error| panic!("docs/samples/{name}: {error}"));
        assert!(!read.trees.is_empty() && !read.plans.is_empty(), "{name}");
    }
    let full = SAMPLES[1].1;
    for line in settings_schema().lines() {
        // Only keys of properties have a table with a description.
        let Some(key) = line
            .trim()
            .strip_prefix('"')
            .and_then(|line| line.strip_suffix("\": {"))
        else {
            continue;
        };
        if !["properties", "items"].contains(&key) {
            assert!(
                full.contains(&format!("{key} = "))
                    || full.contains(&format!("[{key}]"))
                    || full.contains(&format!(".{key}]")),
                "docs/samples/full.toml has no {key}"
            );
        }
    }
}

#[test]
fn schema_in_docs_equals_the_programs_schema() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/marvin.schema.json"
    );
    let stored = std::fs::read_to_string(file).unwrap();
    assert!(
        stored == settings_schema(),
        "make it again: marvin config schema > docs/marvin.schema.json"
    );
}

#[test]
fn wrong_power_is_refused_where_it_stands() {
    let wrong = [
        "ipmi = \"bmc\"\nqmp = \"socket\"",
        "user = \"lab\"\npassword = \"env:BMC\"",
        "ipmi = \"-oops\"",
        "ipmi = \"bmc:none\"",
        "ipmi = \"bmc\"\nsystem = \"/redfish/v1/Systems/1\"",
        "ipmi = \"bmc\"\nuser = \"lab\"\npassword = \"sesame\"",
        "ipmi = \"bmc\"\ncipher = 18",
        "redfish = \"bmc.lab\"",
        "redfish = \"https://lab:sesame@bmc.lab\"",
        "redfish = \"https://bmc.lab\"\nsystem = \"1\"",
    ];
    let messages = wrong.map(|keys| {
        let text = format!(
            "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\n[machine.power]\n{keys}\n"
        );
        settings(&text).unwrap_err().to_string()
    });
    assert!(
        messages.iter().all(|text| !text.contains("sesame")),
        "{messages:?}"
    );
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn wrong_batch_system_is_refused_where_it_stands() {
    let wrong = [
        "[slurm]\n[batch]\ncommand = [\"site-batch\"]",
        "[batch]\njobs = 3",
        "[slurm]\noptions = [\"--nice=1\", \"job.sh\"]",
        "[slurm]\nhome = \"marvin\"",
        "[slurm]\njobs = 0",
        "[[machine]]\nname = \"a\"\nhost = \"a\"\nslurm_node = \"bm[1-3]\"",
    ];
    let messages: Vec<String> = wrong
        .iter()
        .map(|text| settings(text).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
    let none = settings("").unwrap();
    assert_eq!(none.batch, None);
    let slurm = settings("[slurm]\n").unwrap().batch.unwrap();
    assert_eq!((slurm.jobs_max, slurm.home), (50, None));
}

#[test]
fn wrong_images_are_refused_where_they_stand() {
    let deploy =
        |keys: &str| format!("[[machine]]\nname = \"a\"\nhost = \"a\"\n[machine.deploy]\n{keys}");
    let wrong = [
        image_table(""),
        image_table("debian = \"trixie\"\ncommand = [\"x\"]"),
        image_table("debian = \"--simulate\""),
        image_table("debian = \"trixie\"\npackages = [\"perf,vim\"]"),
        image_table("debian = \"trixie\"\nmirror = \"--hook\""),
        image_table("command = [\"x\"]\npackages = [\"vim\"]"),
        image_table("debian = \"trixie\"\nkernels = \"3\""),
        "[[image]]\nname = \"own\"\ndebian = \"trixie\"".to_owned(),
        deploy("pxe = \"8069\"\nmac = \"52-54-00-12-34-56\""),
        deploy("pxe = \"0.0.0.0:8069\""),
        deploy("pxe = \"0.0.0.0:8069\"\nmac = \"52-54\""),
        deploy("pxe = \"0.0.0.0:8069\"\nmac = \"52-54-00-12-34-56\""),
        deploy("mac = \"52-54-00-12-34-56\""),
        deploy("pxe = \"0.0.0.0:8069\"\ncommand = [\"x\"]"),
        deploy("command_line = \"root=/dev/sda\""),
        deploy("disk = \"sda\""),
        deploy("disk = \"/dev/../etc/passwd\""),
    ];
    let messages: Vec<String> = wrong
        .iter()
        .map(|text| settings(text).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
    let by_kexec = settings("[[machine]]\nname = \"a\"\nhost = \"a\"\n")
        .unwrap()
        .servers
        .remove(0)
        .deploy;
    assert_eq!(by_kexec, model::DeploySettings::default());
}

fn image_table(keys: &str) -> String {
    format!("[[image]]\nname = \"a\"\n{keys}")
}

#[test]
fn idle_server_is_switched_off_only_with_power() {
    let text = "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\nidle_off = \"30m\"\n";
    let message = settings(text).unwrap_err().to_string();
    insta::assert_snapshot!(message, @"line 4, column 12: `idle_off` needs a [machine.power] that switches the server on again");
    let read = settings(&format!("{text}[machine.power]\nqmp = \"socket\"\n")).unwrap();
    assert_eq!(read.servers[0].idle_off_s, Some(1800));
}

#[test]
fn checks_of_servers_have_their_own_plan() {
    let read =
        settings("[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\ncheck_every = \"1d\"\n")
            .unwrap();
    assert_eq!(read.servers[0].check_every_s, Some(86_400));
    let message = settings("[[plan]]\nname = \"health\"\n")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("`health` is the plan of jobs that check servers"),
        "{message}"
    );
}

#[test]
fn wrong_console_is_refused_where_it_stands() {
    let wrong = [
        "ipmi = true",
        "tcp = \"terminals.lab\"",
        "tcp = \"t:1\"\ncommand = [\"console\"]",
        "tcp = 1",
        "serial = \"x\"",
        "command = [\"console\"]\ntelnet = true",
        "tcp = \"t:1\"\nbreak = [\"send\"]",
        "telnet = true",
    ];
    let messages = wrong.map(|keys| {
        let text = format!(
            "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\n[machine.console]\n{keys}\n"
        );
        settings(&text).unwrap_err().to_string()
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn settings_file_with_every_section_is_read() {
    let read = settings(SAMPLES[1].1).unwrap();
    let points: Vec<Points> = read.trees.iter().map(|tree| tree.points).collect();
    assert_eq!(
        points,
        [
            Points::Never,
            Points::Monthly,
            Points::Every,
            Points::Monthly,
            Points::Every
        ]
    );
    let next = &read.trees[3];
    assert_eq!((next.branches.len(), next.every_s), (2, 86_400));
    // Branches alone: its tags are no releases.
    assert!(matches!(&next.origin, TreeOrigin::Git { tags, .. } if tags.is_empty()));
    assert!(read.regressions.is_sent && read.regressions.tracks.len() == 1);
    assert!(matches!(&read.trees[0].origin, TreeOrigin::Git { tags, .. } if tags.contains("rc")));
    assert!(
        matches!(&read.trees[4].origin, TreeOrigin::Debian { flavour, .. } if flavour == "amd64")
    );
    assert_eq!(read.plans[0].trees, ["mainline", "stable"]);
    assert_eq!(read.plans[1].trees.len(), 5, "without a word, all");
    let names = &read.plans[0].workloads;
    let has = |name: &str| names.iter().any(|known| known == name);
    assert!(
        has("getppid") && has("fault-anon") && !has("pipe"),
        "{names:?}"
    );
    assert_eq!((read.work.deadline_s, read.work.attempts_max), (7_200, 2));
    let taker = |channel: usize| match &read.channels[channel].kind {
        ChannelKind::Mail { by, .. } => by.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        taker(0),
        MailTaker::Sendmail(vec!["msmtp".into(), "-t".into()])
    );
    let MailTaker::Server(server) = taker(1) else {
        panic!("{:?}", taker(1))
    };
    assert_eq!(
        (server.to_string().as_str(), server.secrecy),
        ("smtps://mail.example.org:465", Secrecy::Whole)
    );
    assert_eq!(
        server.login.unwrap().password,
        Secret::Variable("MARVIN_MAIL_PASSWORD".into())
    );
    assert_eq!(read.listen.unwrap().port(), 8080);
    assert_eq!(
        (read.servers[0].boot_s, read.servers[0].cpus.as_deref()),
        (900, Some("2-7"))
    );
    assert_eq!(
        read.servers[1].boot,
        model::BootOnce::Command(vec!["/usr/local/sbin/boot-once".into()])
    );
    let power: Vec<String> = read
        .servers
        .iter()
        .map(|server| {
            server
                .power
                .as_ref()
                .map_or_else(String::new, PowerSettings::summary)
        })
        .collect();
    assert_eq!(
        power,
        [
            "IPMI at testbox-bmc.lab",
            "Redfish at https://otherbox-bmc.lab",
            "QMP at rackbox.qmp"
        ]
    );
    let console = read.servers.iter().map(|server| {
        server
            .console
            .as_ref()
            .map(ConsoleSettings::place)
            .unwrap_or_default()
    });
    assert_eq!(
        console.collect::<Vec<_>>(),
        ["the BMC, by IPMI", "console otherbox", "terminals.lab:7003"]
    );
    let nothing = settings("").unwrap();
    assert_eq!(
        (
            nothing.work.deadline_s,
            nothing.work.attempts_max,
            nothing.listen
        ),
        (14_400, 3, None)
    );
}

#[test]
fn settings_mistakes_name_place_and_remedy() {
    let tree = "[[tree]]\nname = \"a\"\ngit = \"linux\"\n";
    let wrong = [
        "tre = 1",
        "[[tree]]\nname = \"a\"\ngti = \"linux\"",
        "[[tree]]\nname = \"a\"",
        "[[tree]]\ngit = \"linux\"",
        "[[tree]]\nname = \"A b\"\ngit = \"linux\"",
        "[[tree]]\nname = \"a\"\ngit = \"linux\"\ndebian = [\"6.1\"]",
        "[[tree]]\nname = \"a\"\ndebian = [\"6.1\", \"six\"]",
        "[[tree]]\nname = \"a\"\ngit = \"linux\"\npoints = \"month\"",
        "[[tree]]\nname = \"a\"\ngit = \"linux\"\ntags = \"v(\"",
        "[[tree]]\nname = \"a\"\ngit = \"linux\"\ntags = \"v.*\"",
        "[[tree]]\nname = \"a\"\ngit = \"linux\"\nsince = \"v6.1\"",
        "[[tree]]\nname = \"a\"\ngit = 3",
        "tree = 3",
        "[work]\ndeadline = \"2 hours\"",
        "[work]\ndeadline = 7200",
        "[work]\nattempts = 0",
        "[serve]\nlisten = \"8080\"",
        "[[notify]]\nname = \"x\"",
        "[[notify]]\nname = \"x\"\nwebhook = \"example.org\"",
        "[[notify]]\nname = \"x\"\nmail = [\"a@b, c\"]",
        "[[notify]]\nname = \"x\"\ncommand = []",
        "work = [",
    ];
    let mut messages: Vec<String> = wrong
        .iter()
        .map(|text| settings(text).unwrap_err().to_string())
        .collect();
    for more in [
        "[[plan]]\nname = \"p\"\ntrees = [\"b\"]",
        "[[plan]]\nname = \"p\"\nsuite = \"mirco\"",
        "[[plan]]\nname = \"p\"\nworkloads = [\"foult\"]",
        "[[plan]]\nname = \"p\"\n[[plan]]\nname = \"p\"",
        "[[plan]]\nname = \"p\"\nseeds = 0",
        "[[plan]]\nname = \"p\"\non = \"exakt\"",
        "[[plan]]\nname = \"p\"\nworkloads = [\"fault\", \"tool:bnch\"]",
        "[[plan]]\nname = \"p\"\nworkloads = [\"fault\", \"\"]",
    ] {
        messages.push(settings(&format!("{tree}{more}")).unwrap_err().to_string());
    }
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn plan_names_tools_beside_suite_or_alone() {
    let plan = |terms: &str| {
        let text = format!(
            "[[tree]]\nname = \"a\"\ngit = \"b\"\n[[plan]]\nname = \"p\"\nworkloads = [{terms}]\n"
        );
        settings(&text).unwrap().plans.remove(0)
    };
    let alone = plan("\"tool:bench\"");
    assert_eq!(
        (alone.suite.name, alone.workloads.as_slice()),
        ("tools", &["tool:hackbench".to_owned()][..])
    );
    let beside = plan("\"tool:hackbench\", \"getppid\"");
    assert_eq!(
        (beside.suite.name, beside.workloads.join(" ").as_str()),
        ("micro", "getppid tool:hackbench")
    );
}

fn mail(more: &str) -> String {
    format!("[[notify]]\nname = \"x\"\nmail = [\"a@b.org\"]\nfrom = \"c@d.org\"\n{more}\n")
}

#[test]
fn mail_server_has_host_port_and_encryption() {
    let server = |address: &str| match settings(&mail(&format!("smtp = \"{address}\"")))
        .unwrap()
        .channels[0]
        .kind
        .clone()
    {
        ChannelKind::Mail {
            by: MailTaker::Server(server),
            ..
        } => server,
        other => panic!("{other:?}"),
    };
    for (address, whole, secrecy) in [
        (
            "smtp://mail.example.org",
            "smtp://mail.example.org:25",
            Secrecy::Upgraded,
        ),
        ("smtp://mail:587", "smtp://mail:587", Secrecy::Upgraded),
        ("smtps://mail", "smtps://mail:465", Secrecy::Whole),
        ("smtp://localhost", "smtp://localhost:25", Secrecy::Plain),
        (
            "smtp://127.0.0.1:2525",
            "smtp://127.0.0.1:2525",
            Secrecy::Plain,
        ),
        ("smtp://[::1]:2525", "smtp://[::1]:2525", Secrecy::Plain),
        (
            "smtps://[2001:db8::1]",
            "smtps://[2001:db8::1]:465",
            Secrecy::Whole,
        ),
    ] {
        let MailServer {
            secrecy: found,
            login,
            ..
        } = &server(address);
        assert_eq!(
            (server(address).to_string().as_str(), *found, login),
            (whole, secrecy, &None),
            "{address}"
        );
    }
}

#[test]
fn mail_server_mistakes_are_reported_without_password() {
    let wrong = [
        "smtp = \"mail.example.org\"",
        "smtp = \"http://mail.example.org\"",
        "smtp = \"smtp://\"",
        "smtp = \"smtp://mail:0\"",
        "smtp = \"smtp://mail:70000\"",
        "smtp = \"smtp://mail:\"",
        "smtp = \"smtp://mail/x\"",
        "smtp = \"smtp://::1\"",
        "smtp = \"smtp://[mail]\"",
        "smtp = \"smtp://me:sesame@mail\"",
        "smtp = \"smtp://mail\"\nsendmail = [\"sendmail\"]",
        "smtp = \"smtp://mail\"\nuser = \"me\"",
        "smtp = \"smtp://mail\"\npassword = \"env:WORD\"",
        "smtp = \"smtp://mail\"\nuser = \"me\"\npassword = \"sesame\"",
        "smtp = \"smtp://mail\"\nuser = \"me\"\npassword = \"env:\"",
        "user = \"me\"\npassword = \"env:WORD\"",
        "smtp = 25",
    ];
    let mut messages: Vec<String> = wrong
        .iter()
        .map(|more| settings(&mail(more)).unwrap_err().to_string())
        .collect();
    for other in [
        "[[notify]]\nname = \"x\"\nmail = [\"root\"]\nfrom = \"c@d.org\"\nsmtp = \"smtp://mail\"",
        "[[notify]]\nname = \"x\"\nmail = [\"a@b.org\"]\nsmtp = \"smtp://mail\"",
        "[[notify]]\nname = \"x\"\nwebhook = \"https://a.org\"\nsmtp = \"smtp://mail\"",
        "[[notify]]\nname = \"x\"\ncommand = [\"a\"]\npassword = \"sesame\"",
    ] {
        messages.push(settings(other).unwrap_err().to_string());
    }
    let messages = messages.join("\n");
    assert!(!messages.contains("sesame"), "{messages}");
    insta::assert_snapshot!(messages);
}

#[test]
fn times_have_units() {
    assert_eq!(
        ["90s", "30m", "2h", "1d"].map(seconds),
        [Some(90), Some(1_800), Some(7_200), Some(86_400)]
    );
    assert_eq!(
        [
            "",
            "h",
            "1",
            "0h",
            "1w",
            "-1h",
            "1.5h",
            "400d",
            "99999999999999999999s"
        ]
        .map(seconds),
        [None; 9]
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), at in 0..400_usize) {
        drop(settings(&text));
        prop_assert!(seconds(&text).is_none_or(|seconds| seconds > 0));
        // A truncated or altered text is refused with a position within it.
        let sample = SAMPLES[1].1;
        let at = (0..=at)
            .rev()
            .find(|at| sample.is_char_boundary(*at))
            .unwrap_or(0);
        if let Err(error) = settings(&format!("{}{text}{}", &sample[..at], &sample[at..])) {
            prop_assert!(error.line >= 1 && error.column >= 1);
        }
    }
}
