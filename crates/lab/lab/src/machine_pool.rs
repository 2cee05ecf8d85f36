//! The machine pool of a lab: one machine per guest config, opened when first needed, with the
//! modules and files of its guests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{is_built_in, modules, option};
use machine::{
    Backend, BootOutcome, Booted, DeadMemory, Driver, Guest, InitrdFile, MachineError, modules_hash,
};
use model::{Build, BuildId, ExtraFiles, GuestConfig, GuestModule, Need, Workload};
use subprocess::Shared;

use crate::LabError;
use crate::Tools;
use crate::job::BootedBuild;
use crate::tools::{Images, fits};

/// The modules of a build for a guest config, or why its workloads cannot run.
#[derive(Debug)]
struct Carried {
    modules: Result<Vec<InitrdFile>, String>,
    /// Their hash, if there are any.
    hash: Option<String>,
}

impl Carried {
    fn new(modules: Result<Vec<InitrdFile>, String>) -> Self {
        let files = modules.as_deref().unwrap_or_default();
        let hash = (!files.is_empty()).then(|| modules_hash(files));
        Self { modules, hash }
    }
}

/// The machines of a lab.
#[derive(Debug)]
pub(crate) struct MachinePool {
    plain: Arc<dyn Backend>,
    /// Guest images: archives with the files of workloads.
    images: Shared<Images>,
    others: Shared<BTreeMap<GuestConfig, Arc<dyn Backend>>>,
    carried: Shared<BTreeMap<(BuildId, GuestConfig), Arc<Carried>>>,
}

/// A machine, and the modules that guests of one build get on it.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) guest_config: GuestConfig,
    pub(crate) machine: Arc<dyn Backend>,
    carried: Arc<Carried>,
}

impl MachinePool {
    pub(crate) fn new(plain: Arc<dyn Backend>) -> Self {
        Self {
            plain,
            images: Shared::default(),
            others: Shared::default(),
            carried: Shared::default(),
        }
    }

    /// Adds images; must come before the first use of machines that carry them.
    pub(crate) fn add_images(&self, images: Images) {
        self.images.lock().extend(images);
    }

    /// Returns the archive of a guest config, if it has one; the error says why it is missing.
    fn image(&self, guest_config: &GuestConfig) -> Result<Option<PathBuf>, String> {
        let ExtraFiles::Image(name) = &guest_config.files else {
            return Ok(None);
        };
        let images = self.images.lock();
        if self.plain.capabilities().installed_tools {
            // Only a user's own program has one there.
            return images.get(&**name).cloned().transpose();
        }
        let path = images
            .get(&**name)
            .cloned()
            .unwrap_or_else(|| Err(format!("the lab has no guest image of {name}")))?;
        // The machine reports an archive that disappeared meanwhile.
        let bytes = fs::metadata(&path).map_or(0, |found| found.len());
        fits(bytes, guest_config.memory_mib).map(|()| Some(path))
    }

    pub(crate) fn plain(&self) -> &dyn Backend {
        &*self.plain
    }

    /// Returns the machine with this guest config.
    pub(crate) fn machine(&self, guest_config: &GuestConfig) -> Result<Arc<dyn Backend>, LabError> {
        if *guest_config == GuestConfig::PLAIN {
            return Ok(Arc::clone(&self.plain));
        }
        let mut others = self.others.lock();
        if let Some(machine) = others.get(guest_config) {
            return Ok(Arc::clone(machine));
        }
        // `carry` refuses to boot a guest without its image.
        let files = self.image(guest_config).unwrap_or_default();
        let machine = self
            .plain
            .with_guest_config(guest_config, files.as_deref())?;
        Ok(Arc::clone(
            others.entry(guest_config.clone()).or_insert(machine),
        ))
    }

    /// Returns where a build runs the workloads of a guest config.
    pub(crate) fn placement(
        &self,
        build: &Build,
        guest_config: &GuestConfig,
    ) -> Result<Placement, LabError> {
        let machine = self.machine(guest_config)?;
        // Modules are read and unpacked once: every replicate of a side gets the same.
        let mut known = self.carried.lock();
        let key = (build.id.clone(), guest_config.clone());
        let carried = known
            .entry(key)
            .or_insert_with(|| Arc::new(Carried::new(self.carry(build, guest_config, &*machine))));
        Ok(Placement {
            guest_config: guest_config.clone(),
            machine,
            carried: Arc::clone(carried),
        })
    }

    fn carry(
        &self,
        build: &Build,
        guest_config: &GuestConfig,
        machine: &dyn Backend,
    ) -> Result<Vec<InitrdFile>, String> {
        self.image(guest_config)?;
        if let Some(file_system) = guest_config.disk.filter(|_| !machine.capabilities().disks) {
            return Err(format!(
                "it needs a scratch disk with {file_system}: measure it on vm"
            ));
        }
        let drivers = machine.drivers();
        if let Some(module) = &guest_config.own_module {
            return collect_own_module(build, module);
        }
        if !drivers.is_empty() {
            return collect_drivers(build, drivers);
        }
        if guest_config.modules.is_empty() {
            Ok(Vec::new())
        } else {
            collect_modules(build, guest_config.modules)
        }
    }
}

impl Placement {
    /// Returns what a guest of this build boots and carries; the error says which part it lacks.
    pub(crate) fn guest<'a>(&'a self, build: &'a Build) -> Result<Guest<'a>, String> {
        let modules = self.carried.modules.as_ref().map_err(Clone::clone)?;
        Ok(Guest { build, modules })
    }

    /// Returns a hash of the modules to load, if any: it is part of a result's environment.
    pub(crate) fn modules_hash(&self) -> Option<&str> {
        self.carried.hash.as_deref()
    }

    /// Boots a build with its modules, unless it lacks a part.
    pub(crate) fn boot(&self, build: &Build, replicate: u64) -> Result<BootOutcome, MachineError> {
        match self.guest(build) {
            Ok(guest) => Arc::clone(&self.machine).boot(&guest, replicate),
            Err(why) => Ok(BootOutcome::Unsupported(why)),
        }
    }

    /// Boots a build again that failed to boot, to dump its kernel's memory.
    pub(crate) fn boot_to_death(
        &self,
        build: &Build,
        replicate: u64,
    ) -> Result<Option<DeadMemory>, MachineError> {
        self.guest(build).map_or(Ok(None), |guest| {
            self.machine.boot_to_death(&guest, replicate)
        })
    }

    /// Returns the booted build with what its jobs need.
    pub(crate) fn booted_build<'a>(
        &'a self,
        build: &'a Build,
        replicate: u64,
        booted: &'a dyn Booted,
        tools: &'a Tools,
    ) -> BootedBuild<'a> {
        BootedBuild {
            tools,
            build,
            replicate,
            machine: &*self.machine,
            modules: self.modules_hash(),
            booted,
        }
    }
}

/// Returns the distinct guest configs of workloads, in order of appearance.
pub(crate) fn guest_configs(workloads: &[Arc<Workload>]) -> Vec<GuestConfig> {
    let mut found = Vec::new();
    for workload in workloads {
        if !found.contains(&workload.guest_config) {
            found.push(workload.guest_config.clone());
        }
    }
    found
}

/// Returns a build's modules and the list from which `marvin-modload` loads them; the error names
/// the missing module.
fn collect_modules(build: &Build, wanted: &[GuestModule]) -> Result<Vec<InitrdFile>, String> {
    let names: Vec<&str> = wanted.iter().map(|module| module.name).collect();
    let found = modules(build, &names).map_err(|error| error.to_string())?;
    for module in wanted.iter().filter(|module| module.need == Need::Must) {
        // If the list of built-in modules is unknown, the workload will report what is missing.
        if !found.iter().any(|file| is_module_named(&file.name, module))
            && is_built_in(build, module.name).map_err(|error| error.to_string())? == Some(false)
        {
            return Err(format!("module {} not in the build", module.name));
        }
    }
    let mut files = Vec::new();
    let mut list = String::new();
    for (at, module) in found.into_iter().enumerate() {
        let requested = wanted
            .iter()
            .find(|wanted| is_module_named(&module.name, wanted));
        let need = if requested.is_some_and(|wanted| wanted.need == Need::Must) {
            "must"
        } else {
            "may"
        };
        let file = format!("{at:02}-{}.ko", module.name);
        list.extend([
            &*file,
            " ",
            need,
            " ",
            requested.map_or("", |wanted| wanted.parameters),
            "\n",
        ]);
        files.push(InitrdFile {
            path: format!("modules/{file}"),
            bytes: module.bytes,
        });
    }
    files.push(InitrdFile {
        path: "modules/load".to_owned(),
        bytes: list.into_bytes(),
    });
    Ok(files)
}

/// Returns the file of the module that a workload loads by itself, and the modules that it depends
/// on with the list from which `marvin-modload` loads them; the error says that the build has none.
fn collect_own_module(build: &Build, name: &str) -> Result<Vec<InitrdFile>, String> {
    let mut found = modules(build, &[name]).map_err(|error| error.to_string())?;
    // A module comes after what it depends on.
    let Some(own) = found.pop().filter(|module| module.name == name) else {
        return Err(match is_built_in(build, name) {
            Ok(Some(true)) => {
                format!("{name} is built in: it ran at boot, and cannot be loaded again")
            }
            _ => format!("this kernel has no module {name}"),
        });
    };
    let mut files = Vec::new();
    let mut list = String::new();
    for (at, module) in found.into_iter().enumerate() {
        let file = format!("{at:02}-{}.ko", module.name);
        list.extend([&*file, " must \n"]);
        files.push(InitrdFile {
            path: format!("modules/{file}"),
            bytes: module.bytes,
        });
    }
    files.push(InitrdFile {
        path: "modules/load".to_owned(),
        bytes: list.into_bytes(),
    });
    files.push(InitrdFile {
        path: format!("modules/{}.ko", own.name),
        bytes: own.bytes,
    });
    Ok(files)
}

fn is_module_named(name: &str, module: &GuestModule) -> bool {
    module.name.replace('-', "_") == name
}

/// Returns a build's modules for a machine's drivers, with those they need; the error names a
/// driver without which the machine would not come back, or of which that is not known.
fn collect_drivers(build: &Build, drivers: &[Driver]) -> Result<Vec<InitrdFile>, String> {
    let names: Vec<&str> = drivers.iter().map(|driver| driver.name.as_str()).collect();
    let found = modules(build, &names).map_err(|error| error.to_string())?;
    for driver in drivers.iter().filter(|driver| !driver.needed_by.is_empty()) {
        let Driver { name, needed_by } = driver;
        if found
            .iter()
            .any(|module| module.name == name.replace('-', "_"))
        {
            continue;
        }
        let option = option(name);
        match is_built_in(build, name).map_err(|error| error.to_string())? {
            Some(true) => {}
            Some(false) => {
                return Err(format!(
                    "the build has no driver {name}, which {needed_by} of the machine needs: build it with {option}"
                ));
            }
            None => {
                return Err(format!(
                    "the build may have no driver {name}, which {needed_by} of the machine needs: keep its module directory or its config, with {option}=y, beside the image"
                ));
            }
        }
    }
    Ok(found
        .into_iter()
        .map(|module: kernel::Module| InitrdFile {
            path: format!("{}.ko", module.name),
            bytes: module.bytes,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use model::{Build, BuildFile, BuildId, ExtraFiles, GuestConfig, GuestModule, KernelName};

    use machine::{Does, Driver, Fake};

    use super::{Images, MachinePool, collect_drivers, collect_modules};

    fn build(modules: Option<&Path>) -> Build {
        let hash = "0".repeat(64);
        Build {
            id: BuildId::from_hex(&hash).unwrap(),
            name: KernelName::Path("vmlinuz".into()),
            version: "6.9".into(),
            origin: model::Origin::Described("vmlinuz".into()),
            image: BuildFile {
                path: "vmlinuz".into(),
                sha256: hash,
            },
            vmlinux: None,
            config: None,
            symbols: None,
            modules: modules.map(Path::to_owned),
        }
    }

    #[test]
    fn build_without_the_root_disks_driver_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        fs::write(
            folder.path().join("modules.builtin"),
            "kernel/fs/ext4/ext4.ko\n",
        )
        .unwrap();
        fs::write(
            folder.path().join("kernel/virtio_ring.ko"),
            b"\x7fELF\0depends=\0",
        )
        .unwrap();
        let driver = |name: &str, by: &str| Driver {
            name: name.into(),
            needed_by: by.into(),
        };
        let drivers = [
            driver("ext4", "the root file system"),
            driver("loop", ""),
            driver("virtio_blk", "the root disk"),
            driver("virtio_ring", "the root disk"),
        ];
        let build = build(Some(folder.path()));
        let why = collect_drivers(&build, &drivers).unwrap_err();
        assert_eq!(
            why,
            "the build has no driver virtio_blk, which the root disk of the machine needs: build it with CONFIG_VIRTIO_BLK"
        );
        fs::write(
            folder.path().join("kernel/virtio_blk.ko"),
            b"\x7fELF\0depends=virtio_ring\0",
        )
        .unwrap();
        let files = collect_drivers(&build, &drivers).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["virtio_ring.ko", "virtio_blk.ko"]);
    }

    #[test]
    fn build_without_lists_proves_drivers_by_config() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        let drivers = [Driver {
            name: "ext4".into(),
            needed_by: "the root file system".into(),
        }];
        let why = |config: Option<&str>, modules: Option<&Path>| {
            let config = config.map(|text| {
                let path = folder.path().join("config");
                fs::write(&path, text).unwrap();
                BuildFile {
                    path,
                    sha256: String::new(),
                }
            });
            collect_drivers(
                &Build {
                    config,
                    ..build(modules)
                },
                &drivers,
            )
            .err()
            .unwrap_or_default()
        };
        let unknown = "the build may have no driver ext4, which the root file system of the machine needs: \
                       keep its module directory or its config, with CONFIG_EXT4_FS=y, beside the image";
        let lacks = "the build has no driver ext4, which the root file system of the machine needs: \
                     build it with CONFIG_EXT4_FS";
        let none = None;
        let modules = Some(folder.path());
        for (config, modules, expected) in [
            (None, none, unknown),
            (None, modules, unknown),
            (Some("CONFIG_SMP=y\n"), none, unknown),
            (Some("CONFIG_EXT4_FS=y\n"), none, ""),
            (Some("CONFIG_EXT4_FS=y\n"), modules, ""),
            (Some("# CONFIG_EXT4_FS is not set\n"), none, lacks),
            (Some("CONFIG_EXT4_FS=m\n"), none, lacks),
        ] {
            assert_eq!(why(config, modules), expected, "{config:?} {modules:?}");
        }
    }

    #[test]
    fn servers_get_files_of_own_programs_only() {
        let machine = Fake::new(|_| Does::Takes(1));
        let server = machine.that_can(|can| {
            can.installed_tools = true;
            can.carries_programs = true;
        });
        let pool = MachinePool::new(Arc::new(server));
        let archive = PathBuf::from("images/0123.cpio");
        let own = ("mine 1a".to_owned(), Ok(archive.clone()));
        pool.add_images(Images::from([own]));
        let image = |name: &'static str| {
            pool.image(&GuestConfig {
                files: ExtraFiles::Image(name.into()),
                ..GuestConfig::PLAIN
            })
        };
        assert_eq!(image("mine 1a"), Ok(Some(archive)));
        assert_eq!(image("fio 2b"), Ok(None), "the installed one runs");
    }

    const WANTED: &[GuestModule] = &[
        GuestModule::may("lzo"),
        GuestModule::must("zram", "num_devices=1"),
        GuestModule::must("ext4", ""),
    ];

    #[test]
    fn modules_come_with_dependencies_and_load_order() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kernel")).unwrap();
        fs::write(
            folder.path().join("modules.builtin"),
            "kernel/fs/ext4/ext4.ko\n",
        )
        .unwrap();
        let why = collect_modules(&build(Some(folder.path())), WANTED).unwrap_err();
        assert_eq!(why, "module zram not in the build");
        fs::write(
            folder.path().join("kernel/zsmalloc.ko"),
            b"\x7fELF\0depends=\0",
        )
        .unwrap();
        fs::write(
            folder.path().join("kernel/zram.ko"),
            b"\x7fELF\0depends=zsmalloc\0",
        )
        .unwrap();
        let files = collect_modules(&build(Some(folder.path())), WANTED).unwrap();
        let list = files.last().unwrap();
        assert_eq!(list.path, "modules/load");
        assert_eq!(
            String::from_utf8_lossy(&list.bytes),
            "00-zsmalloc.ko may \n01-zram.ko must num_devices=1\n"
        );
    }

    #[test]
    fn build_without_modules_is_checked_in_the_guest() {
        assert_eq!(collect_modules(&build(None), WANTED).unwrap().len(), 1);
    }
}
