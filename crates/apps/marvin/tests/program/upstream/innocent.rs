//! Commits without an effect on any row: in files that are not compiled, in functions that no row
//! executes, and changes of words in functions that rows execute. Some speak of performance.

pub(crate) struct Innocent {
    pub(crate) file: &'static str,
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) body: &'static str,
}

const fn innocent(
    file: &'static str,
    old: &'static str,
    new: &'static str,
    subject: &'static str,
    body: &'static str,
) -> Innocent {
    Innocent {
        file,
        old,
        new,
        subject,
        body,
    }
}

pub(crate) const INNOCENTS: [Innocent; 37] = [
    // Not compiled.
    innocent(
        "drivers/net/tun.c",
        "/* TODO: keep queueing to old queue until it's empty? */",
        "/* TODO: keep queueing to the old queue until it is empty? */",
        "tun: reword a comment about queue selection",
        "",
    ),
    innocent(
        "arch/arm64/mm/fault.c",
        "/* only preserve the access flags and write permission */",
        "/* Only preserve the access flags and write permission: no extra fault */",
        "arm64: mm: explain why permissions are preserved on a fault",
        "A second fault for each page was measured to cost 12% of a fork benchmark\nbefore this was so. Say so.",
    ),
    innocent(
        "fs/xfs/xfs_super.c",
        "/* make sure statp->f_bfree does not underflow */",
        "/* Make sure that statp->f_bfree does not underflow. */",
        "xfs: speak in whole sentences in xfs_fs_statfs",
        "",
    ),
    innocent(
        "net/sctp/socket.c",
        "/* Is this a valid SCTP address?  */",
        "/* Is this a valid SCTP address? */",
        "sctp: remove a stray space",
        "",
    ),
    innocent(
        "drivers/nvme/host/pci.c",
        "/* host memory buffer support: */",
        "/* Host memory buffer support; large buffers are faster. */",
        "nvme-pci: note that large host memory buffers are faster",
        "Devices without DRAM lose about 30% of random reads with small buffers.\n\
         Do not let readers of the code find that out \
         again.",
    ),
    innocent(
        "fs/btrfs/inode.c",
        "/* Output without objectid, which is more meaningful */",
        "/* Output without the objectid, which says more. */",
        "btrfs: reword a comment in btrfs_print_data_csum_error",
        "",
    ),
    innocent(
        "fs/ext4/super.c",
        "/* leave es->s_feature_*compat flags alone */",
        "/* Leave the es->s_feature_*compat flags alone. */",
        "ext4: reword a comment in ext4_commit_super",
        "",
    ),
    innocent(
        "arch/riscv/mm/fault.c",
        "/* Kernel mode? Handle exceptions or die */",
        "/* Kernel mode? Handle the exception or die. */",
        "riscv: mm: reword a comment about exceptions",
        "",
    ),
    innocent(
        "sound/core/pcm.c",
        "/* to be sure, set the state unconditionally */",
        "/* Set the state in any case, to be sure. */",
        "ALSA: pcm: reword a comment in snd_pcm_dev_disconnect",
        "",
    ),
    innocent(
        "fs/nfs/inode.c",
        "/* Deal with crossing mountpoints */",
        "/* Deal with mount points that are crossed. */",
        "NFS: reword a comment in nfs_fhget",
        "",
    ),
    innocent(
        "net/ipv6/udp.c",
        "/* Lookup connected or non-wildcard sockets */",
        "/* Look up connected or non-wildcard sockets: the fast path. */",
        "udp: ipv6: mark the fast path of the lookup",
        "The lookup of connected sockets is 2x faster than that of wildcards; name\nit, so that it stays first.",
    ),
    innocent(
        "drivers/block/loop.c",
        "/* Compute loopsize in bytes */",
        "/* Compute loopsize, in bytes. */",
        "loop: add punctuation",
        "",
    ),
    innocent(
        "Documentation/mm/index.rst",
        "   zsmalloc",
        "   zsmalloc\n",
        "Documentation: mm: end the list with an empty line",
        "",
    ),
    innocent(
        "Documentation/filesystems/vfs.rst",
        "A small trail through the Linux kernel by Andries Brouwer. 2001",
        "A small trail through the Linux kernel, by Andries Brouwer. 2001",
        "Documentation: vfs: add a comma",
        "",
    ),
    // Compiled, but not executed.
    innocent(
        "fs/utimes.c",
        "static bool nsec_valid(long nsec)",
        "static noinline bool nsec_valid(long nsec)",
        "utimes: keep nsec_valid out of line",
        "Smaller code is faster code: it is called twice.",
    ),
    innocent(
        "fs/pipe.c",
        "\tunsigned int count, head, tail, mask;\n\n\tswitch (cmd) {\n\tcase FIONREAD:\n",
        "\tunsigned int head, tail, mask;\n\tunsigned long count;\n\n\tswitch (cmd) {\n\tcase FIONREAD:\n",
        "pipe: count in unsigned long in pipe_ioctl",
        "A large pipe cannot overflow it then.",
    ),
    innocent(
        "fs/eventfd.c",
        "\"eventfd-count: %16llx\\n\"",
        "\"eventfd-count: %llx\\n\"",
        "eventfd: do not pad the count in fdinfo",
        "Padding makes the file larger and slower to read for programs that poll\nit.",
    ),
    innocent(
        "fs/stat.c",
        "\tif (bufsiz <= 0)\n\t\treturn -EINVAL;\n\nretry:\n\tname = getname_flags(pathname, lookup_flags);\n",
        "\tif (unlikely(bufsiz <= 0))\n\t\treturn -EINVAL;\n\nretry:\n\
         \tname = getname_flags(pathname, lookup_flags);\n",
        "stat: mark the error path of readlink as unlikely",
        "Saves a taken branch for each readlink(): 1% of a loop over a folder of\nlinks.",
    ),
    innocent(
        "mm/mlock.c",
        "\tif (flags & MCL_FUTURE) {\n\t\tcurrent->mm->def_flags |= VM_LOCKED;\n\n\t\tif (flags & MCL_ONFAULT)\n",
        "\tif (unlikely(flags & MCL_FUTURE)) {\n\t\tcurrent->mm->def_flags |= VM_LOCKED;\n\n\
         \t\tif (flags & MCL_ONFAULT)\n",
        "mm/mlock: expect MCL_FUTURE rarely",
        "Few programs use it; let the others fall through.",
    ),
    innocent(
        "kernel/sys.c",
        "/* normalize: avoid signed division (rounding problems) */",
        "/* Normalize first: a signed division would round in the wrong direction. */",
        "sys: reword a comment in setpriority",
        "",
    ),
    innocent(
        "fs/fcntl.c",
        "\tstruct f_owner_ex __user *owner_p = (void __user *)arg;\n\tstruct f_owner_ex owner;\n\tstruct pid *pid;\n",
        "\tstruct f_owner_ex __user *owner_p = (void __user *)arg;\n\tstruct f_owner_ex owner = {};\n\
         \tstruct pid *pid;\n",
        "fcntl: initialise the owner in f_setown_ex",
        "copy_from_user() fills it, but checkers do not know.",
    ),
    innocent(
        "fs/namei.c",
        "/* Are we the owner? If so, ACL's don't matter */",
        "/* Are we the owner? If so, ACLs do not matter. */",
        "namei: fix a possessive apostrophe",
        "",
    ),
    // Executed, but the same code.
    innocent(
        "fs/select.c",
        "walk != NULL; walk = walk->next",
        "walk; walk = walk->next",
        "select: drop a redundant comparison with NULL in do_poll",
        "The loop is hot: poll() of many descriptors spends most of its time\nhere.",
    ),
    innocent(
        "fs/select.c",
        "\tpoll_table* pt = &wait->pt;\n\tktime_t expire, *to = NULL;\n\tint timed_out = 0, count = 0;\n",
        "\tpoll_table *table = &wait->pt, *pt = table;\n\tktime_t expire, *to = NULL;\n\
         \tint timed_out = 0, count = 0;\n",
        "select: name the table of do_poll",
        "",
    ),
    innocent(
        "fs/select.c",
        "struct pollfd * pfd, * pfd_end;",
        "struct pollfd *pfd, *pfd_end;",
        "select: fix the style of a declaration",
        "",
    ),
    innocent(
        "net/ipv4/udp.c",
        "if (msg->msg_flags&MSG_CONFIRM)",
        "if (msg->msg_flags & MSG_CONFIRM)",
        "udp: add missing spaces in udp_sendmsg",
        "",
    ),
    innocent(
        "net/unix/af_unix.c",
        "amount = unix_outq_len(sk);",
        "amount = max(unix_outq_len(sk), 0L);",
        "af_unix: never report a negative queue in SIOCOUTQ",
        "It looked like a performance problem to a monitor of queues.",
    ),
    innocent(
        "fs/pipe.c",
        "/* Was it a packet buffer? Clean up and exit */",
        "/* Was it a packet buffer? Then clean up and exit. */",
        "pipe: reword a comment in pipe_read",
        "",
    ),
    innocent(
        "fs/open.c",
        "\tstruct filename *tmp;\n\n\tif (fd)\n\t\treturn fd;\n\n\ttmp = getname(filename);\n\tif (IS_ERR(tmp))\n\
         \t\treturn PTR_ERR(tmp);\n\n\tfd = get_unused_fd_flags(how->flags);\n\tif (fd >= 0) {\n\
         \t\tstruct file *f = do_filp_open(dfd, tmp, &op);\n",
        "\tstruct filename *name, *tmp;\n\n\tif (fd)\n\t\treturn fd;\n\n\tname = getname(filename);\n\
         \tif (IS_ERR(name))\n\
         \t\treturn PTR_ERR(name);\n\ttmp = name;\n\n\tfd = get_unused_fd_flags(how->flags);\n\tif (fd >= 0) {\n\
         \t\tstruct file *f = do_filp_open(dfd, name, &op);\n",
        "open: name the name of the file in do_sys_openat2",
        "Preparation for a faster getname(), which follows in another series.",
    ),
    innocent(
        "mm/mprotect.c",
        "/* Get target node for single threaded private VMAs */",
        "/* Get the target node of private VMAs of single threads. */",
        "mm/mprotect: reword a comment about target nodes",
        "",
    ),
    innocent(
        "mm/memory.c",
        "/* Currently it's only used for huge pfnmaps */",
        "/* Only huge pfnmaps use it at present. */",
        "mm: reword a comment in vm_normal_page_pmd",
        "",
    ),
    innocent(
        "ipc/sem.c",
        "/* One semaphore structure for each semaphore in the system. */",
        "/* One structure for each semaphore in the system; it fills a cache line. */",
        "ipc/sem: say that semaphores fill cache lines",
        "Two semaphores in one cache line were 40% slower on two sockets.",
    ),
    innocent(
        "kernel/signal.c",
        "/* Given the mask, find the first available signal that should be serviced. */",
        "/* Find the first pending signal that the mask lets through. */",
        "signal: reword the comment above next_signal",
        "",
    ),
    innocent(
        "mm/mmap.c",
        "/* Search one past newbrk */",
        "/* Search one byte past newbrk. */",
        "mm/mmap: reword a comment in brk",
        "",
    ),
    innocent(
        "fs/eventpoll.c",
        "/* Wait structure used by the poll hooks */",
        "/* What the poll hooks wait with. */",
        "eventpoll: reword the comment of struct eppoll_entry",
        "",
    ),
    innocent(
        "kernel/fork.c",
        "/* copy all the process information */",
        "/* Copy what describes the process. */",
        "fork: reword a comment in copy_process",
        "",
    ),
    innocent(
        "kernel/exit.c",
        "/* more a memory barrier than a real lock */",
        "/* A memory barrier rather than a lock: it is never contended. */",
        "exit: explain the lock that is never contended",
        "Lock statistics list it first when processes end quickly. That is no\nregression.",
    ),
];
