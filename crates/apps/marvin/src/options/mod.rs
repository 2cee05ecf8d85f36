//! Options that several commands have.

mod batch;
mod comparison;
mod exit;
mod machines;
mod mail;
mod measure;
mod program;
mod search;
mod seeds;
mod sources;
mod values;

pub(crate) use batch::BatchName;
pub(crate) use comparison::ComparisonOptions;
pub(crate) use exit::{ExitOptions, is_bisect_run};
pub(crate) use machines::{
    EXACT, EXACT_SMP, MachineOptions, NoisyOptions, OWN_MACHINES, ThreadOptions, Threads, VM,
    own_machine,
};
pub(crate) use mail::MailOptions;
pub(crate) use measure::{MeasureOptions, seeds_for};
pub(crate) use program::{ProgramOptions, Variable, quote, split_place, variable, words_of};
pub(crate) use search::SearchOptions;
pub(crate) use seeds::SeedOptions;
pub(crate) use sources::SourceOptions;
pub(crate) use values::{margin, seconds, time, whole};

pub(crate) const KERNELS: &str = "Kernel names:
  deb:6.12                     newest 6.12 package of Debian's bookworm, flavour cloud-amd64
  deb:trixie/6.12              the same from another suite; trixie@20260101: as of that day
  deb:6.12+amd64               the same, another flavour
  deb:6.12.117                 one upstream version
  deb:linux-image-VERSION…     one Debian package
  ubuntu:noble/6.8             package of Ubuntu; fedora:43/6.17 and arch:6.12+lts likewise
  installed:RELEASE            image of this host, or installed:running; `marvin kernels installed:`
  path:/boot/vmlinuz-VERSION   bzImage or vmlinux file
  git:REVISION                 commit of the tree given by --tree; Marvin builds it
  patch:FILE@REVISION          patch on top of a commit, or of HEAD without @REVISION; Marvin builds it
  tree:FOLDER                  source directory with uncommitted changes; Marvin builds it
  deb-src:6.12                 Debian source package; Marvin builds it
  kernel.org:6.12.3            tarball of kernel.org; Marvin builds it
  git:HEAD@config:MEMCG=y      the same with another config; @cc:clang-19 and @make:KCFLAGS=-O3 likewise
  path:linux/out               directory in which make built a kernel (O=)
  running:                     the kernel that this host runs; only with --on local
  HEAD~1                       inside a kernel tree or with --tree: git:HEAD~1 of that tree
  vmlinux.old                  existing file: path:vmlinux.old
  .                            existing directory: tree:. of a source, path:. of make's output (O=)

";

pub(crate) const LINE_HELP: &str = "Lines:
  all        all releases, ordered by version
  mainline   releases and release candidates, no stable updates
  6.12       one release and its stable updates

";
