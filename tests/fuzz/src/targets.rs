//! The list of targets.

use std::path::Path;

use crate::bodies;
use crate::seeds::{self, Outcome};
use crate::{Body, Target};

/// Returns all targets. `folder` is an empty directory, in which the dumps to start from are made.
///
/// # Errors
/// If a seed cannot be made or read.
pub fn targets(folder: &Path) -> Outcome<Vec<Target>> {
    let bytes = |name, body, seeds| Target {
        name,
        body: Body::Bytes(body),
        seeds,
    };
    let file = |name, body, seeds| Target {
        name,
        body: Body::File(body),
        seeds,
    };
    let dumps = seeds::dumps(folder)?;
    Ok(vec![
        bytes("stream", bodies::stream, seeds::streams()),
        bytes("files", bodies::files, seeds::files()?),
        bytes("job", bodies::job, seeds::jobs()?),
        bytes("symbols", bodies::symbols, seeds::symbols()),
        bytes("counts", bodies::counts, seeds::counts()),
        bytes("samples", bodies::samples, seeds::samples()),
        bytes("calls", bodies::calls, seeds::calls()),
        bytes("kept", bodies::kept, seeds::kept()?),
        bytes("monitor", bodies::monitor, seeds::monitors()?),
        bytes("settings", bodies::settings, seeds::settings()?),
        bytes("manifest", bodies::manifest, seeds::manifests()),
        bytes("output", bodies::output, seeds::outputs()?),
        bytes("lkp", bodies::lkp, seeds::lkp()),
        bytes("mmtests", bodies::mmtests, seeds::mmtests()?),
        bytes("formats", bodies::result_file, seeds::result_files()?),
        bytes("format", bodies::format, seeds::formats()),
        bytes("image", kernel::fuzzing::image, seeds::images()?),
        bytes("payload", kernel::fuzzing::payload, seeds::payloads()?),
        bytes("tar", kernel::fuzzing::tar, seeds::archives()),
        bytes("linked", kernel::fuzzing::linked, seeds::programs()?),
        bytes("catalogue", kernel::fuzzing::catalogue, seeds::records()),
        bytes("beside", kernel::fuzzing::beside, seeds::beside()),
        bytes("patch", kernel::fuzzing::patch, seeds::patches()),
        bytes("modules", kernel::fuzzing::modules, seeds::modules()),
        bytes(
            "package",
            kernel::fuzzing::source_package,
            seeds::packages()?,
        ),
        file("lines", kernel::fuzzing::lines, seeds::lines(folder)?),
        bytes("artifact", store::fuzzing::artifact, seeds::artifacts()?),
        bytes(
            "imported",
            results::import::fuzzing::file,
            seeds::imported()?,
        ),
        bytes("cpio", bodies::cpio, seeds::initrds()),
        file(
            "vmlinux",
            vmcore::fuzzing::vmlinux,
            seeds::vmlinuxes(folder)?,
        ),
        file("elf", vmcore::fuzzing::elf, dumps.elf),
        file("kdump", vmcore::fuzzing::kdump, dumps.kdump),
        file("flattened", vmcore::fuzzing::flattened, dumps.flattened),
        bytes("note", vmcore::fuzzing::note, dumps.note),
        bytes("btf", vmcore::fuzzing::btf, seeds::btf()),
        bytes("lzo", vmcore::fuzzing::lzo, seeds::lzo()),
    ])
}
