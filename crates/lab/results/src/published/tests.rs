//! Reports in the robot's layout, with the figures of a96ef5848cb0 (7.1) as it published them.

use super::{NotAReport, PublishedReport};

const REPORT: &str = "\
From: kernel test robot <oliver.sang@intel.com>
Subject: [linux-next:master] [randomize_kstack]  a96ef5848c:
 will-it-scale.per_thread_ops 7.7% improvement
Message-ID: <202603311659.6aa92f2c-lkp@intel.com>
Content-Type: text/plain; charset=\"utf-8\"
Content-Transfer-Encoding: 8bit

Hello,

kernel test robot noticed a 7.7% improvement of will-it-scale.per_thread_ops on:


commit: a96ef5848cb096226bf6aff31a90d8b136d99b71 (\"randomize_kstack: Unify
random source across arches\")
https://git.kernel.org/cgit/linux/kernel/git/next/linux-next.git master


testcase: will-it-scale
config: x86_64-rhel-9.4
test machine: 192 threads 2 sockets
parameters:

\tnr_task: 100%
\tmode: thread
\ttest: lseek1
\tcpufreq_governor: performance


Details are as below:

=========================================================================================
compiler/cpufreq_governor/kconfig/mode/nr_task/rootfs/tbox_group/test/testcase:
  gcc-14/performance/x86_64-rhel-9.4/thread/100%/debian-13/lkp-srf-2sp2/lseek1/will-it-scale

commit: 
  37beb42560 (\"randomize_kstack: Maintain kstack_offset per task\")
  a96ef5848c (\"randomize_kstack: Unify random source across arches\")

37beb42560165869 a96ef5848cb096226bf6aff31a9 
---------------- --------------------------- 
         %stddev     %change         %stddev
             \\          |                \\  
 1.234e+09            +7.7%  1.329e+09        will-it-scale.192.threads
      0.50 ± 12%     +20.0%       0.60 ± 3%   perf-stat.overall.cpi
      1000           -10.0%        900        perf-stat.overall.path-length
     10.00 ±  2%      -4.0        6.00        perf-profile.self.cycles-pp.do_syscall_64
      0.00            +9.5        9.50 ± 1%   perf-profile.self.cycles-pp.arch_exit_to_user

***************************************************************************************************
another test
         %stddev     %change         %stddev
             \\          |                \\  
      1000           +50.0%       1500        perf-stat.overall.path-length
";

#[test]
fn mail_of_the_robot_is_read() {
    let report = PublishedReport::read(REPORT).unwrap();
    assert_eq!(report.commit, "a96ef5848cb096226bf6aff31a90d8b136d99b71");
    assert_eq!(
        report.title,
        "randomize_kstack: Unify random source across arches"
    );
    assert_eq!(report.parent.as_deref(), Some("37beb42560"));
    assert_eq!(report.testcase, "will-it-scale");
    assert_eq!(report.parameter("test"), Some("lseek1"));
    assert_eq!(report.metric, "will-it-scale.per_thread_ops");
    assert_eq!((report.change_percent, report.is_regression), (7.7, false));
    assert_eq!(report.stats.len(), 5, "of the first table only");
    assert_eq!(report.instructions_percent(), Some(-10.0));
    let cycles = report.cycles_percent().unwrap();
    assert!((cycles - 8.0).abs() < 1e-9, "{cycles}");
    assert_eq!(
        report.functions(),
        [("arch_exit_to_user", 9.5), ("do_syscall_64", -4.0)]
    );
}

#[test]
fn all_instructions_stand_in_for_the_path_length() {
    let total = "perf-stat.total.instructions";
    let text = REPORT.replace("perf-stat.overall.path-length", total);
    let report = PublishedReport::read(&text).unwrap();
    // 10 % fewer for 7.7 % more operations.
    let percent = report.instructions_percent().unwrap();
    assert!(
        (percent - 100.0 * (0.9 / 1.077 - 1.0)).abs() < 1e-9,
        "{percent}"
    );
    let time = "     100.0            -7.0%       93.00        will-it-scale.time.elapsed_time\n";
    let line = text.lines().find(|line| line.contains(total)).unwrap();
    let fixed = text.replacen(line, &format!("{time}{line}"), 1);
    let report = PublishedReport::read(&fixed).unwrap();
    assert_eq!(report.instructions_percent(), Some(-10.0));
}

#[test]
fn functions_with_callees_stand_in_for_own_shares() {
    let text = REPORT.replace("perf-profile.self.", "perf-profile.children.");
    let report = PublishedReport::read(&text).unwrap();
    assert_eq!(report.functions()[0], ("arch_exit_to_user", 9.5));
    let both = REPORT.replace("self.cycles-pp.do_sys", "children.cycles-pp.do_sys");
    let report = PublishedReport::read(&both).unwrap();
    assert_eq!(report.functions(), [("arch_exit_to_user", 9.5)]);
}

#[test]
fn report_quoted_in_a_reply_is_the_same() {
    let (head, body) = REPORT.split_once("\n\n").unwrap();
    let quoted: String = body.lines().map(|line| format!("> {line}\n")).collect();
    let reply = format!("{head}\n\nOn Tuesday, the robot wrote:\n{quoted}\nThanks!\n");
    let report = PublishedReport::read(&reply).unwrap();
    assert_eq!(report, PublishedReport::read(REPORT).unwrap());
}

#[test]
fn older_wording_is_read() {
    let text = "FYI, we noticed a -62.2% regression of aim7.jobs-per-min due to commit:\n\n\
        commit: a7f4e88080f3d50511400259cc613a666d297227 (\"xfs: require a grace period\")\n\n\
        in testcase: aim7\nwith following parameters:\n\n\tdisk: 4BRD_12G\n\ttest: disk_wrt\n";
    let report = PublishedReport::read(text).unwrap();
    assert_eq!((report.change_percent, report.is_regression), (62.2, true));
    assert_eq!(report.testcase, "aim7");
    assert_eq!(report.parameter("test"), Some("disk_wrt"));
    assert_eq!((report.parent, report.stats.len()), (None, 0));
}

#[test]
fn numbers_beyond_measurement_are_no_lines() {
    let text = REPORT
        .replace("+20.0%", "+inf%")
        .replace("-10.0%", "+1e308%")
        .replace("10.00 ±", "nan ±");
    let report = PublishedReport::read(&text).unwrap();
    assert_eq!(report.stats.len(), 2);
    assert_eq!(report.cycles_percent(), None);
}

#[test]
fn other_mails_are_refused_with_what_lacks() {
    let refused = |text: &str| PublishedReport::read(text).unwrap_err();
    assert!(matches!(refused("From: me\n\nhello"), NotAReport::Lacks(_)));
    assert!(matches!(
        refused("noticed a 3% improvement of x.y on:\n"),
        NotAReport::Lacks("commit: ID (\"TITLE\")")
    ));
}

proptest::proptest! {
    #[test]
    fn garbage_never_panics(
        text: String,
        line in "(noticed a|commit: |testcase: |  1 |%stddev     %change         %stddev)[0-9a-f%± .+(\"\n-]{0,60}",
    ) {
        let _report = PublishedReport::read(&text);
        let _report = PublishedReport::read(&line);
    }
}
