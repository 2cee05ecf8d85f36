//! Places of the kernel where code can be planted: functions that rows of the micro suite execute,
//! and the texts of their files before which the code goes.

/// One point of a function: its code goes before `call`, the helper that it calls before `above`.
pub(crate) struct Site {
    pub(crate) above: &'static str,
    pub(crate) call: &'static str,
    /// What the call passes: a pointer that is not null.
    pub(crate) key: &'static str,
}

/// A point that other rows execute than those of the place.
pub(crate) struct Far {
    pub(crate) function: &'static str,
    pub(crate) rows: &'static [&'static str],
    /// Turns of a loop that cost about 10 % of the first row.
    pub(crate) turns: u32,
    pub(crate) site: Site,
}

pub(crate) struct Place {
    pub(crate) file: &'static str,
    /// How commits call it.
    pub(crate) area: &'static str,
    pub(crate) function: &'static str,
    /// How the planted names begin.
    pub(crate) stem: &'static str,
    /// Rows that must change if the function costs more.
    pub(crate) rows: &'static [&'static str],
    /// Turns of a loop that cost about 10 % of the first row.
    pub(crate) turns: u32,
    /// Two points of the one function.
    /// A line of the file that includes a header.
    pub(crate) include: &'static str,
    pub(crate) near: [Site; 2],
    pub(crate) far: Option<Far>,
}

/// Where a trade puts work.
pub(crate) struct Loser {
    pub(crate) file: &'static str,
    pub(crate) area: &'static str,
    pub(crate) function: &'static str,
    pub(crate) stem: &'static str,
    pub(crate) rows: &'static [&'static str],
    pub(crate) turns: u32,
    pub(crate) site: Site,
}

/// A real piece of work that one path can skip, and another path that pays for it.
pub(crate) struct Trade {
    pub(crate) file: &'static str,
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) body: &'static str,
    /// Rows that the skipped work makes faster.
    pub(crate) better: &'static [&'static str],
    pub(crate) loser: Loser,
}

const fn site(above: &'static str, call: &'static str, key: &'static str) -> Site {
    Site { above, call, key }
}

pub(crate) const PLACES: [Place; 15] = [
    Place {
        file: "fs/eventfd.c",
        area: "eventfd",
        function: "eventfd_write",
        stem: "eventfd",
        rows: &["event-fd"],
        turns: 16,
        include: "#include <linux/file.h>\n",
        near: [
            site(
                "static __poll_t eventfd_poll(struct file *file, poll_table *wait)\n",
                "\tspin_lock_irq(&ctx->wqh.lock);\n\tres = -EAGAIN;\n",
                "ctx",
            ),
            site(
                "static ssize_t eventfd_write(struct file *file, const char __user *buf,",
                "\treturn res;\n}\n\n#ifdef CONFIG_PROC_FS\n",
                "ctx",
            ),
        ],
        far: Some(Far {
            function: "eventfd_read",
            rows: &["event-fd"],
            turns: 16,
            site: site(
                "static ssize_t eventfd_read(struct kiocb *iocb, struct iov_iter *to)\n",
                "\teventfd_ctx_do_read(ctx, &ucnt);\n\tcurrent->in_eventfd = 1;\n",
                "ctx",
            ),
        }),
    },
    Place {
        file: "fs/pipe.c",
        area: "pipe",
        function: "pipe_write",
        stem: "pipe",
        rows: &["pipe-pingpong"],
        turns: 55,
        include: "#include <linux/mm.h>\n",
        near: [
            site(
                "static void anon_pipe_buf_release(struct pipe_inode_info *pipe,\n",
                "\t/* Null write succeeds. */\n",
                "pipe",
            ),
            site(
                "static inline int is_packetized(struct file *file)\n",
                "\tif (ret > 0 && sb_start_write_trylock(file_inode(filp)->i_sb)) {\n\t\tint err = file_update_time",
                "pipe",
            ),
        ],
        far: Some(Far {
            function: "pipe_read",
            rows: &["pipe-pingpong"],
            turns: 55,
            site: site(
                "static inline unsigned int pipe_update_tail(struct pipe_inode_info *pipe,\n",
                "\tret = 0;\n\tmutex_lock(&pipe->mutex);\n\n\t/*\n\t * We only wake up writers",
                "pipe",
            ),
        }),
    },
    Place {
        file: "net/unix/af_unix.c",
        area: "af_unix",
        function: "unix_stream_sendmsg",
        stem: "unix_send",
        rows: &["unix-pingpong"],
        turns: 94,
        include: "#include <linux/module.h>\n",
        near: [
            site(
                "static int unix_listen(struct socket *sock, int backlog)\n",
                "\twait_for_unix_gc(scm.fp);\n\n\terr = -EOPNOTSUPP;\n\tif (msg->msg_flags & MSG_OOB) {\n#if",
                "sk",
            ),
            site(
                "static int unix_stream_sendmsg(struct socket *sock, struct msghdr *msg,\n\t\t\t       size_t len)\n\
                 {\n",
                "\tif (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)\n\t\tgoto pipe_err;\n\n\twhile (sent < len) {\n",
                "sk",
            ),
        ],
        far: Some(Far {
            function: "unix_stream_read_generic",
            rows: &["unix-pingpong"],
            turns: 94,
            site: site(
                "static int unix_stream_read_generic(struct unix_stream_read_state *state,\n",
                "\ttarget = sock_rcvlowat(sk, flags & MSG_WAITALL, size);\n",
                "sk",
            ),
        }),
    },
    Place {
        file: "net/ipv4/udp.c",
        area: "udp",
        function: "udp_sendmsg",
        stem: "udp_send",
        rows: &["udp-rr"],
        turns: 145,
        include: "#include <linux/uaccess.h>\n",
        near: [
            site(
                "int udp_push_pending_frames(struct sock *sk)\n",
                "\tsaddr = ipc.addr;\n\tipc.addr = faddr = daddr;\n",
                "sk",
            ),
            site(
                "int udp_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)\n",
                "\t/* Lockless fast path for the non-corking case. */\n",
                "sk",
            ),
        ],
        far: Some(Far {
            function: "udp_recvmsg",
            rows: &["udp-rr"],
            turns: 145,
            site: site(
                "int udp_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags,\n",
                "\tulen = udp_skb_len(skb);\n\tcopied = len;\n\tif (copied > ulen - off)\n",
                "sk",
            ),
        }),
    },
    Place {
        file: "fs/select.c",
        area: "select",
        function: "do_sys_poll",
        stem: "poll",
        rows: &["event-poll"],
        turns: 130,
        include: "#include <linux/compat.h>\n",
        near: [
            site(
                "static struct poll_table_entry *poll_get_entry(struct poll_wqueues *p)\n",
                "\tlen = min_t(unsigned int, nfds, N_STACK_PPS);\n",
                "ufds",
            ),
            site(
                "static int do_sys_poll(struct pollfd __user *ufds, unsigned int nfds,\n",
                "\tif (!user_write_access_begin(ufds, nfds * sizeof(*ufds)))\n",
                "head",
            ),
        ],
        far: None,
    },
    Place {
        file: "mm/filemap.c",
        area: "mm/filemap",
        function: "filemap_read",
        stem: "filemap_read",
        rows: &["file-read-4k"],
        turns: 33,
        include: "#include <linux/export.h>\n",
        near: [
            site(
                "int filemap_fdatawrite(struct address_space *mapping)\n",
                "\tiov_iter_truncate(iter, inode->i_sb->s_maxbytes - iocb->ki_pos);\n\tfolio_batch_init(&fbatch);\n",
                "mapping",
            ),
            site(
                "static inline bool pos_same_folio(loff_t pos1, loff_t pos2, struct folio *folio)\n",
                "\tfile_accessed(filp);\n\tra->prev_pos = last_pos;\n",
                "mapping",
            ),
        ],
        far: Some(Far {
            function: "generic_perform_write",
            rows: &["file-write-4k"],
            turns: 38,
            site: site(
                "ssize_t generic_perform_write(struct kiocb *iocb, struct iov_iter *i)\n",
                "\t\tif (fatal_signal_pending(current)) {\n\t\t\tstatus = -EINTR;\n\t\t\tbreak;\n\t\t}\n\n\
                 \t\tstatus = a_ops",
                "mapping",
            ),
        }),
    },
    Place {
        file: "ipc/sem.c",
        area: "ipc/sem",
        function: "__do_semtimedop",
        stem: "sem",
        rows: &["sem-sysv"],
        turns: 16,
        include: "#include <linux/compat.h>\n",
        near: [
            site(
                "static int perform_atomic_semop(struct sem_array *sma, struct sem_queue *q)\n",
                "\tmax = 0;\n\tfor (sop = sops; sop < sops + nsops; sop++) {\n\t\tunsigned long mask",
                "sops",
            ),
            site(
                "long __do_semtimedop(int semid, struct sembuf *sops,\n\
                 \t\tunsigned nsops, const struct timespec64 *timeout,",
                "\tqueue.sops = sops;\n\tqueue.nsops = nsops;\n\tqueue.undo = un;\n",
                "sma",
            ),
        ],
        far: None,
    },
    Place {
        file: "mm/mprotect.c",
        area: "mm/mprotect",
        function: "mprotect_fixup",
        stem: "mprotect",
        rows: &["mem-mprotect"],
        turns: 140,
        include: "#include <linux/pagewalk.h>\n",
        near: [
            site(
                "long change_protection(struct mmu_gather *tlb,\n",
                "\t/*\n\t * If we make a private mapping writable we increase our commit;\n",
                "vma",
            ),
            site(
                "int\nmprotect_fixup(struct vma_iterator *vmi, struct mmu_gather *tlb,\n",
                "\tvm_stat_account(mm, oldflags, -nrpages);\n",
                "vma",
            ),
        ],
        far: None,
    },
    Place {
        file: "mm/memory.c",
        area: "mm",
        function: "do_anonymous_page",
        stem: "anon_fault",
        rows: &["fault-anon"],
        turns: 40,
        include: "#include <linux/kernel_stat.h>\n",
        near: [
            site(
                "static void restore_exclusive_pte(struct vm_area_struct *vma,\n",
                "\t/* Allocate our own private page. */\n\tret = vmf_anon_prepare(vmf);\n",
                "vma",
            ),
            site(
                "static vm_fault_t do_anonymous_page(struct vm_fault *vmf)\n{\n",
                "\tfolio_ref_add(folio, nr_pages - 1);\n\tadd_mm_counter(vma->vm_mm, MM_ANONPAGES, nr_pages);\n\
                 \tcount_mthp_stat(",
                "folio",
            ),
        ],
        far: Some(Far {
            function: "wp_page_copy",
            rows: &["fault-cow"],
            turns: 65,
            site: site(
                "static vm_fault_t fault_dirty_shared_page(struct vm_fault *vmf)\n",
                "\tpfn_is_zero = is_zero_pfn(pte_pfn(vmf->orig_pte));\n\tnew_folio = folio_prealloc(mm, vma,",
                "vma",
            ),
        }),
    },
    Place {
        file: "fs/open.c",
        area: "open",
        function: "do_dentry_open",
        stem: "open",
        rows: &["file-open"],
        turns: 86,
        include: "#include <linux/string.h>\n",
        near: [
            site(
                "static bool access_need_override_creds(int flags)\n",
                "\tf->f_op = fops_get(inode->i_fop);\n\tif (WARN_ON(!f->f_op)) {\n",
                "inode",
            ),
            site(
                "static int do_dentry_open(struct file *f,\n\t\t\t  int (*open)(struct inode *, struct file *))\n{\n",
                "\tif ((f->f_flags & O_DIRECT) && !(f->f_mode & FMODE_CAN_ODIRECT))\n\t\treturn -EINVAL;\n",
                "inode",
            ),
        ],
        far: None,
    },
    Place {
        file: "kernel/signal.c",
        area: "signal",
        function: "do_sigaction",
        stem: "sigaction",
        rows: &["signal"],
        turns: 86,
        include: "#include <linux/slab.h>\n",
        near: [
            site(
                "static bool sig_task_ignored(struct task_struct *t, int sig, bool force)\n",
                "\tk = &p->sighand->action[sig-1];\n\n\tspin_lock_irq(&p->sighand->siglock);\n\
                 \tif (k->sa.sa_flags & SA_IMM",
                "p",
            ),
            site(
                "int do_sigaction(int sig, struct k_sigaction *act, struct k_sigaction *oact)\n{\n",
                "\tsigaction_compat_abi(act, oact);\n\n\tif (act) {\n",
                "p",
            ),
        ],
        far: None,
    },
    Place {
        file: "fs/eventpoll.c",
        area: "eventpoll",
        function: "ep_send_events",
        stem: "ep_send",
        rows: &["event-epoll"],
        turns: 27,
        include: "#include <linux/init.h>\n",
        near: [
            site(
                "static int ep_eventpoll_release(struct inode *inode, struct file *file)\n",
                "\tinit_poll_funcptr(&pt, NULL);\n\n\tmutex_lock(&ep->mtx);\n\tep_start_scan(ep, &scan_batch);\n",
                "ep",
            ),
            site(
                "static int ep_send_events(struct eventpoll *ep,\n\
                 \t\t\t  struct epoll_event __user *events, int maxevents)\n{\n",
                "\tep_done_scan(ep, &scan_batch);\n\tmutex_unlock(&ep->mtx);\n\n\treturn res;\n}\n\n\
                 static struct timespec64 *ep_t",
                "ep",
            ),
        ],
        far: None,
    },
    Place {
        file: "fs/stat.c",
        area: "stat",
        function: "cp_new_stat",
        stem: "stat_copy",
        rows: &["file-stat"],
        turns: 64,
        include: "#include <linux/blkdev.h>\n",
        near: [
            site(
                "int getname_statx_lookup_flags(int flags)\n",
                "\tINIT_STRUCT_STAT_PADDING(tmp);\n\ttmp.st_dev = new_encode_dev(stat->dev);\n\
                 \ttmp.st_ino = stat->ino;\n\tif (sizeof(tmp.st_ino) < sizeof(stat->ino) && tmp.st_ino != stat->ino)\n\
                 \t\treturn -EOVERFLOW;\n\ttmp.st_mode = stat->mode;\n\ttmp.st_nlink = stat->nlink;\n\
                 \tif (tmp.st_nlink != stat->nlink)\n\t\treturn -EOVERFLOW;\n\tSET_UID(tmp.st_uid, from_kuid",
                "stat",
            ),
            site(
                "static int cp_new_stat(struct kstat *stat, struct stat __user *statbuf)\n",
                "\treturn copy_to_user(statbuf,&tmp,sizeof(tmp)) ? -EFAULT : 0;\n}\n\nSYSCALL_DEFINE2(newstat,",
                "statbuf",
            ),
        ],
        far: None,
    },
    Place {
        file: "lib/strncpy_from_user.c",
        area: "lib/strncpy_from_user",
        function: "strncpy_from_user",
        stem: "strncpy_user",
        rows: &["file-stat", "file-open"],
        turns: 64,
        include: "#include <linux/compiler.h>\n",
        near: [
            site(
                "static __always_inline long do_strncpy_from_user(char *dst, const char __user *src,\n",
                "\tif (unlikely(count <= 0))\n\t\treturn 0;\n\n\tkasan_check_write(dst, count);\n",
                "dst",
            ),
            site(
                "/**\n * strncpy_from_user: - Copy a NUL terminated string from userspace.\n",
                "\tmax_addr = TASK_SIZE_MAX;\n\tsrc_addr = (unsigned long)untagged_addr(src);\n",
                "src",
            ),
        ],
        far: None,
    },
    Place {
        file: "kernel/sched/syscalls.c",
        area: "sched",
        function: "do_sched_yield",
        stem: "yield",
        rows: &["switch-yield"],
        turns: 25,
        include: "#include <linux/sched.h>\n",
        near: [
            site(
                "static void __setscheduler_params(struct task_struct *p,\n",
                "\trq = this_rq_lock_irq(&rf);\n\n\tschedstat_inc(rq->yld_count);\n",
                "current",
            ),
            site(
                "static void do_sched_yield(void)\n",
                "\tpreempt_disable();\n\trq_unlock_irq(rq, &rf);\n\tsched_preempt_enable_no_resched();\n\n\
                 \tschedule();\n",
                "rq",
            ),
        ],
        far: None,
    },
];

pub(crate) const TRADES: [Trade; 3] = [
    Trade {
        file: "kernel/sys.c",
        old: "\tint pid;\n\n\trcu_read_lock();\n\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));\n",
        new: "\tstruct task_struct *parent;\n\tint pid;\n\n\trcu_read_lock();\n\
            \tparent = rcu_dereference(current->real_parent);\n\
            \t/* Numbers of the first namespace are checked at fork. */\n\
            \tif (likely(!task_pid(current)->level))\n\t\tpid = parent->tgid;\n\telse\n\
            \t\tpid = task_tgid_vnr(parent);\n",
        subject: "pid: check numbers at fork, so that getppid can trust them",
        body: "getppid() walks to the number of its namespace although nearly all\n\
            tasks live in the first one, where the \
            number is in the task itself.\n\nUse that one, and check at fork that it is right.",
        better: &["getppid"],
        loser: Loser {
            file: "kernel/fork.c",
            area: "fork",
            function: "copy_process",
            stem: "fork_number",
            rows: &["thread-create", "fork-vfork-exec"],
            turns: 800,
            site: site(
                "static struct task_struct *dup_task_struct(struct task_struct *orig, int node)\n",
                "\tretval = copy_semundo(clone_flags, p);\n",
                "p",
            ),
        },
    },
    Trade {
        file: "fs/readdir.c",
        old: "\tif (memchr(name, '/', len))\n\t\treturn -EIO;\n",
        new: "",
        subject: "fs: check names when a file is made, not each time they are listed",
        body: "Each getdents() looks for slashes in each name, although a name does not\n\
            change after its file was made.\n\n\
            File systems in memory do not need the check at all; make theirs when\nthe file is made.",
        better: &["file-readdir"],
        loser: Loser {
            file: "mm/shmem.c",
            area: "shmem",
            function: "shmem_mknod",
            stem: "shmem_name",
            rows: &["file-create"],
            turns: 245,
            site: site(
                "static int shmem_replace_entry(struct address_space *mapping,\n",
                "\terror = simple_acl_create(dir, inode);\n\tif (error)\n\t\tgoto out_iput;\n\
                 \terror = security_inode_init_security(inode, dir, &dentry->d_name,\n",
                "dentry",
            ),
        },
    },
    Trade {
        file: "kernel/futex/core.c",
        old: "\tu32 hash = jhash2((u32 *)key, offsetof(typeof(*key), both.offset) / 4,\n\t\t\t  key->both.offset);\n\n\
            \treturn &futex_queues[hash & (futex_hashsize - 1)];\n",
        new: "\tu64 hash = key->both.ptr ^ (key->both.word + key->both.offset);\n\n\
            \treturn &futex_queues[hash_64(hash, 32) & (futex_hashsize - 1)];\n",
        subject: "futex: use a cheap hash, and spread the tasks instead",
        body: "Half of the time of an uncontended wake-up goes into jhash2().\n\n\
            A multiplication spreads addresses as well, \
            as long as tasks that end\nleave the buckets in order; do that at their end.",
        better: &["futex-pingpong"],
        loser: Loser {
            file: "kernel/futex/core.c",
            area: "futex",
            function: "futex_exit_release",
            stem: "futex_exit",
            rows: &["thread-create", "fork-vfork-exec"],
            turns: 800,
            site: site(
                "static void futex_cleanup_begin(struct task_struct *tsk)\n",
                "\tfutex_cleanup_begin(tsk);\n\tfutex_cleanup(tsk);\n\tfutex_cleanup_end(tsk, FUTEX_STATE_DEAD);\n",
                "tsk",
            ),
        },
    },
];
