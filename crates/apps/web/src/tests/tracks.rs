//! The first page of a lab that measures several tracks.

use model::{Build, KernelName};

use super::{body, pages};
use crate::Site;
use crate::testing::{Lab, build, result};

/// Saves commits of a git tree with their cost on one machine, in their order.
fn measure_commits(lab: &mut Lab, costs: [f64; 2]) {
    for (version, cost) in ["6.18.0-gfffffff11111", "6.18.0-g000000011111"]
        .into_iter()
        .zip(costs)
    {
        for seed in [1, 2] {
            lab.run(version, "aa", seed, vec![result("getppid", cost)]);
        }
        let commit = Build {
            name: KernelName::Git("HEAD".to_owned()),
            ..build(version)
        };
        lab.store.save_build(&commit).unwrap();
    }
}

#[test]
fn first_page_has_tracks_side_by_side() {
    let mut lab = Lab::usual();
    assert!(!body(&lab.site().answer("/", "")).contains("id=\"tracks\""));
    measure_commits(&mut lab, [100.0, 100.0]);
    let page = body(&lab.site().answer("/", ""));
    for text in [
        "<h1>6.18.0-g000000011111 <span class=\"faint\">against</span> 6.18.0-gfffffff11111</h1>",
        "<th scope=\"row\">git</th>",
        "<th scope=\"row\">cloud-amd64</th>",
        "<span class=\"worse\">2 worse</span>, <span class=\"failed\">2 failed</span>",
        "Nothing is worse between these kernels. In the table above: 4 results of other kernels",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(!page.contains("No regression"), "{page}");
}

#[test]
fn equal_kernels_have_no_regression() {
    let mut lab = Lab::new();
    measure_commits(&mut lab, [100.0, 100.0]);
    let page = body(&lab.site().answer("/", ""));
    assert!(page.contains("No regression between these"), "{page}");
}

#[test]
fn published_pages_reach_workloads_of_every_track() {
    let mut lab = Lab::usual();
    measure_commits(&mut lab, [100.0, 130.0]);
    let site = Site::of_files(lab.home(), lab.source().snapshot(1));
    let found = pages(&site);
    for path in [
        "k/6.1.192/6.12.117/all-1.html",
        "s/aa0000000000/cloud-amd64/getppid.html",
        "s/aa0000000000/cloud-amd64/switch-yield.html",
        "s/aa0000000000/git/getppid.html",
    ] {
        let names: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert!(names.contains(&path), "{path}\n{names:?}");
    }
}

#[test]
fn published_first_page_reaches_all_its_rows() {
    let mut lab = Lab::new();
    let names: Vec<String> = (0..200).map(|n| format!("getppid-{n:03}")).collect();
    for version in ["6.1.170", "6.1.192"] {
        let results = names.iter().map(|name| result(name, 100.0)).collect();
        lab.run(version, "aa", 1, results);
    }
    let site = Site::of_files(lab.home(), lab.source().snapshot(1));
    let second = body(&site.answer("/k/6.1.170/6.1.192/all-2.html", ""));
    assert!(second.contains(">getppid-199</th>"), "{second}");
    let paths: Vec<String> = pages(&site).into_iter().map(|(path, _)| path).collect();
    for name in names {
        let path = format!("s/aa0000000000/cloud-amd64/{name}.html");
        assert!(paths.contains(&path), "{path}");
    }
    assert_eq!(site.answer("/k/6.1.170/6.1.192/all-x.html", "").status, 404);
}
