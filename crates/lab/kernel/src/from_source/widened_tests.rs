//! Configs that are widened for a range of commits, by a make that drops options like Kconfig does.

use super::Sources;
use super::tests::Tree;
use crate::Widened;

/// Drops what depends on an option that is not on.
const MAKEFILE: &str = "tinyconfig:\n\t@echo CONFIG_64BIT=y >$(O)/.config\n\
    olddefconfig:\n\t@grep -q CONFIG_PCI=y $(O)/.config || sed -i /CONFIG_CARD/d $(O)/.config\n\
    \t@sed -i /CONFIG_NEVER/d $(O)/.config\n\
    vmlinux:\n\t@cp image $(O)/vmlinux\n";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.write("Makefile", MAKEFILE);
    tree.write("Kbuild", "obj-y += drivers/ mm/\n");
    tree.write("mm/Makefile", "obj-y := memory.o\n");
    tree.write("mm/memory.c", "int a;\n");
    tree.write("drivers/Makefile", "obj-$(CONFIG_NET_CARDS) += net/\n");
    tree.write(
        "drivers/net/Makefile",
        "obj-$(CONFIG_CARD) += card.o\nobj-$(CONFIG_NEVER) += never.o\n",
    );
    tree.write(
        "Kconfig",
        "config PCI\n\tbool \"Bus\"\nsource \"drivers/net/Kconfig\"\n",
    );
    tree.write(
        "drivers/net/Kconfig",
        "config NET_CARDS\n\tbool \"Cards\"\nconfig CARD\n\ttristate \"Card\"\n\tdepends on PCI\nconfig NEVER\n\tbool \"Never\"\n",
    );
    tree.write("drivers/net/card.c", "int b;\n");
    tree.write("drivers/net/never.c", "int c;\n");
    tree.commit("v1");
    tree.write("mm/memory.c", "int aa;\n");
    tree.commit("v2");
    tree.write("drivers/net/card.c", "int bb;\n");
    tree.commit("v3");
    tree.write("drivers/net/never.c", "int cc;\n");
    tree.commit("v4");
    tree
}

fn widened(sources: &Sources, range: &str) -> (Sources, Widened) {
    let (older, newer) = sources.repository().range(range).unwrap();
    sources.widened(&older, &newer).unwrap()
}

#[test]
fn options_of_changed_files_are_switched_on() {
    let tree = tree();
    let sources = Sources::open(&tree.cache()).unwrap();
    let (same, nothing) = widened(&sources, "v1..v2");
    assert!(nothing.switched_on.is_empty() && nothing.left_off.is_empty());
    assert_eq!(
        same.settings().configuration.name(),
        sources.settings().configuration.name()
    );
    let (wider, found) = widened(&sources, "v1..v3");
    assert_eq!(found.switched_on, ["CARD", "NET_CARDS", "PCI"]);
    assert!(found.left_off.is_empty());
    assert_eq!(
        wider.settings().configuration.name(),
        "default+CARD=y+NET_CARDS=y+PCI=y"
    );
    let (_, found) = widened(&sources, "v3..v4");
    assert_eq!(found.switched_on, ["NET_CARDS"]);
    assert_eq!(found.left_off, ["NEVER"], "make has the last word");
}
