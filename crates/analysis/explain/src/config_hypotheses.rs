//! Settings of kernels whose work has functions of its own: where both differ, one is a hypothesis
//! for the other.

use crate::differing_settings::Setting;
use crate::kernels::Sides;

/// A setting and the functions that do its work.
struct Known {
    /// The option of the kernel config.
    option: &'static str,
    /// Functions that run only with it, or far more with it.
    functions: &'static [&'static str],
    /// What it is, with the file of the kernel that has the functions.
    about: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        option: "CONFIG_PER_VMA_LOCK",
        functions: &["lock_vma_under_rcu", "vma_start_read", "mas_walk"],
        about: "per-VMA locks: a page fault finds its mapping under RCU and locks it alone (mm/memory.c)",
    },
    Known {
        option: "CONFIG_LRU_GEN_ENABLED",
        functions: &[
            "lru_gen_add_folio",
            "lru_gen_del_folio",
            "lru_gen_update_size",
            "folio_update_gen",
        ],
        about: "the multi-gen LRU keeps pages in generations (include/linux/mm_inline.h)",
    },
    Known {
        option: "CONFIG_INIT_ON_ALLOC_DEFAULT_ON",
        functions: &[
            "clear_page_rep",
            "clear_page_erms",
            "clear_page_orig",
            "kernel_init_pages",
        ],
        about: "allocated memory is cleared (mm/page_alloc.c)",
    },
    Known {
        option: "CONFIG_HARDENED_USERCOPY",
        functions: &["__check_object_size", "check_heap_object"],
        about: "copies to and from user memory are checked (mm/usercopy.c)",
    },
    Known {
        option: "CONFIG_DEBUG_LIST",
        functions: &[
            "__list_add_valid",
            "__list_del_entry_valid",
            "__list_add_valid_or_report",
        ],
        about: "lists are checked at each change (lib/list_debug.c)",
    },
    Known {
        option: "CONFIG_SLAB_FREELIST_HARDENED",
        functions: &["freelist_ptr_decode", "get_freepointer"],
        about: "pointers in slabs are encoded (mm/slub.c)",
    },
    Known {
        option: "CONFIG_SLAB_OBJ_EXT",
        functions: &[
            "alloc_slab_obj_exts",
            "__memcg_slab_post_alloc_hook",
            "__memcg_slab_free_hook",
        ],
        about: "slab objects have a vector of extensions for accounting (mm/slub.c)",
    },
    Known {
        option: "CONFIG_PREEMPT",
        functions: &[
            "preempt_count_add",
            "preempt_count_sub",
            "preempt_schedule",
            "preempt_schedule_thunk",
        ],
        about: "the kernel can be preempted (kernel/sched/core.c)",
    },
];

/// Returns which settings that differ have functions among those that differ, as sentences.
pub(crate) fn hypotheses(
    settings: &[Setting],
    functions: &[Sides],
    decimals: usize,
) -> Vec<String> {
    let mut found = Vec::new();
    for known in KNOWN {
        let Some(setting) = settings.iter().find(|setting| setting.name == known.option) else {
            continue;
        };
        let moved: Vec<String> = functions
            .iter()
            .filter(|sides| known.functions.contains(&&*sides.name))
            .map(|sides| format!("{} {:+.decimals$}", sides.name, sides.new - sides.base))
            .collect();
        if !moved.is_empty() {
            let Setting { name, base, new } = setting;
            found.push(format!(
                "hypothesis: {name} {base} -> {new}, {}; {}",
                moved.join(", "),
                known.about
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_needs_its_functions() {
        let setting = Setting {
            name: "CONFIG_PER_VMA_LOCK".into(),
            base: "(none)".into(),
            new: "y".into(),
        };
        let walk = |new: f64| Sides {
            name: "mas_walk".into(),
            base: 0.0,
            new,
        };
        let found = hypotheses(std::slice::from_ref(&setting), &[walk(196.0)], 1);
        assert!(
            found[0].starts_with(
                "hypothesis: CONFIG_PER_VMA_LOCK (none) -> y, mas_walk +196.0; per-VMA"
            ),
            "{found:?}"
        );
        assert!(hypotheses(&[setting], &[], 1).is_empty());
        assert!(hypotheses(&[], &[walk(196.0)], 1).is_empty());
    }
}
