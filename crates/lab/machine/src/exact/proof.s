# The firmware of `marvin doctor`: a guest as small as can be that does what kernels do and the
# plugin counts. proof.bin is made of it by
#   as --64 proof.s -o proof.o && ld -Ttext 0x8000 --oformat binary proof.o -o proof.bin
# which a test repeats. It is at the beginning of the ROM, and runs in memory at 0x8000.
#
# A process runs in user mode: it computes, reads RDRAND, traps and makes system calls, some of
# which halt the processor in another task until the timer interrupts. At the end are the addresses
# that the plugin has to know.

        .set    HIGH, 0xffff800000000000 # where the kernel sees all memory
        .set    TABLES, 0x1000
        .set    DIRECTORY, 0x2000
        .set    TSS, 0x3000
        .set    USER_TASK, 0x3800
        .set    IDLE_TASK, 0x3810
        .set    SAVED, 0x3a00           # the process's stack pointer
        .set    TICKS, 0x3a08
        .set    BUFFER, 0x3b00
        .set    USER_STACK, 0x5000
        .set    IDLE_STACK, 0x6000
        .set    KERNEL_STACK, 0x7000
        .set    TRAP_STACK, 0x7f00
        .set    DATA, 0x200000          # what the process writes: 4 MiB
        .set    STACK_POINTER, 0x100    # within a task
        .set    APIC, HIGH + 0xfee00000
        .set    ROUNDS, 8000

        .text
        .globl  _start
        .code16
_start:
        cli
        cld
        xor     %ax, %ax
        mov     %ax, %es
        mov     %ax, %ss
        xor     %si, %si
        mov     $_start, %di
        mov     $(end - _start), %cx
        rep movsb %cs:(%si), %es:(%di)
        ljmp    $0, $low
low:
        mov     %ax, %ds
        lgdtl   gdt_pointer
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmp    $0x18, $protected

        .code32
protected:
        mov     $0x10, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        xor     %eax, %eax
        mov     $TABLES, %edi
        mov     $0xc00, %ecx
        rep stosl
        # Pages of 1 GiB for all, from the process's addresses and from the kernel's.
        movl    $(DIRECTORY | 7), TABLES
        movl    $(DIRECTORY | 7), TABLES + 256 * 8
        movl    $0x87, DIRECTORY
        movl    $0xc0000087, DIRECTORY + 3 * 8
        mov     $TABLES, %eax
        mov     %eax, %cr3
        mov     $0x20, %eax             # PAE
        mov     %eax, %cr4
        mov     $0xc0000080, %ecx       # EFER: SYSCALL, long mode
        mov     $0x101, %eax
        xor     %edx, %edx
        wrmsr
        mov     %cr0, %eax
        or      $0x80000000, %eax
        mov     %eax, %cr0
        ljmp    $0x08, $long

        .code64
long:
        movabs  $(HIGH + kernel), %rax
        jmp     *%rax

kernel:
        movabs  $HIGH, %rbp             # stays there in the kernel
        lea     KERNEL_STACK(%rbp), %rsp
        lidt    idt_pointer(%rbp)
        lea     TRAP_STACK(%rbp), %rax
        mov     %rax, TSS + 4(%rbp)
        movw    $0x30, %ax
        ltr     %ax
        mov     $0xc0000081, %ecx       # STAR: segments of SYSCALL and SYSRET
        xor     %eax, %eax
        mov     $0x001b0008, %edx
        wrmsr
        inc     %ecx                    # LSTAR
        mov     $system_call, %eax
        mov     $0xffff8000, %edx
        wrmsr
        inc     %ecx
        inc     %ecx                    # FMASK: no interrupts, forward
        mov     $0x600, %eax
        xor     %edx, %edx
        wrmsr

        # The timer wakes the processor after 3 s; the watchdog stops the machine after 2 s.
        movabs  $APIC, %rbx
        movl    $0x121, 0xf0(%rbx)
        movl    $0x0b, 0x3e0(%rbx)
        movl    $0x20, 0x320(%rbx)
        movl    $3000000000, 0x380(%rbx)
        mov     $0x443, %dx
        mov     $0x0e, %al
        out     %al, %dx
        sti
        hlt
        cli

        # From here on it is the job: an interrupt every 250 us.
        movl    $0x20020, 0x320(%rbx)
        movl    $250000, 0x380(%rbx)
        lea     IDLE_STACK - 8(%rbp), %rax
        movabs  $(HIGH + idle), %rcx
        mov     %rcx, (%rax)
        mov     %rax, IDLE_TASK + STACK_POINTER(%rbp)
        mov     $process, %ecx
        mov     $0x202, %r11d
        mov     $USER_STACK, %esp
        sysretq

        # In user mode.
process:
        mov     $ROUNDS, %r15d
        mov     $1, %ebx
        .byte   0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x4b, 0x4d # the region begins
        rdtsc
        mov     %eax, %r13d
        shl     $32, %rdx
        or      %rdx, %r13
round:
        mov     $1000, %ecx
1:      imul    $0x5851f42d, %rbx, %rbx
        add     $0x14057b7f, %rbx
        mov     %rbx, %rdx
        shr     $13, %rdx
        and     $0x3ffff8, %edx
        add     %rbx, DATA(%rdx)
        dec     %ecx
        jnz     1b
2:      rdrand  %rax
        jnc     2b
        and     $15, %eax
3:      dec     %eax
        jns     3b
        int3
        # One of 16 system calls naps; the last one does not.
        mov     %r15d, %eax
        and     $15, %eax
        cmp     $8, %eax
        sete    %al
        movzbl  %al, %eax
        syscall
        dec     %r15d
        jnz     round
        rdtsc
        .byte   0x0f, 0x1f, 0x84, 0x00, 0xff, 0xff, 0x4b, 0x4d # the region ends
        shl     $32, %rdx
        or      %rdx, %rax
        sub     %r13, %rax
        mov     %rax, %r13
        mov     $2, %eax
        syscall

        # Of the kernel: RAX is what is wanted.
system_call:
        movabs  $HIGH, %rbp
        mov     %rsp, SAVED(%rbp)
        lea     KERNEL_STACK(%rbp), %rsp
        push    %rcx
        push    %r11
        cmp     $1, %eax
        je      nap
        ja      finish
        sti
        lea     BUFFER(%rbp), %rdi
        mov     $DATA, %esi
        mov     $64, %ecx
        rep movsb
        mov     $100, %ecx
1:      dec     %ecx
        jnz     1b
        cli
        jmp     leave
nap:
        lea     USER_TASK(%rbp), %rdi
        lea     IDLE_TASK(%rbp), %rsi
        call    switch
leave:
        pop     %r11
        pop     %rcx
        mov     SAVED(%rbp), %rsp
        sysretq

        # Loads the stack of the task in RSI.
switch:
        mov     %rsp, STACK_POINTER(%rdi)
        mov     STACK_POINTER(%rsi), %rsp
        ret

        # The task that runs if no other does.
idle:
        sti
        hlt
        cli
        lea     IDLE_TASK(%rbp), %rdi
        lea     USER_TASK(%rbp), %rsi
        call    switch
        jmp     idle

timer:
        push    %rax
        push    %rbp
        movabs  $HIGH, %rbp
        incq    TICKS(%rbp)
        mov     $50, %eax
1:      dec     %eax
        jnz     1b
        movabs  $APIC, %rax
        movl    $0, 0xb0(%rax)
        pop     %rbp
        pop     %rax
spurious:
        iretq

trap:
        push    %rax
        mov     $10, %eax
1:      dec     %eax
        jnz     1b
        pop     %rax
        iretq

        # Sends R13 to the serial line and switches off.
finish:
        mov     $8, %ecx
1:      mov     $0x3fd, %dx
2:      in      %dx, %al
        test    $0x20, %al
        jz      2b
        mov     $0x3f8, %dx
        mov     %r13b, %al
        out     %al, %dx
        shr     $8, %r13
        dec     %ecx
        jnz     1b
        lidt    nothing(%rbp)
        int3

        .balign 8
gdt:    .quad   0
        .quad   0x00af9b000000ffff      # 08: code of the kernel
        .quad   0x00cf93000000ffff      # 10: data of the kernel
        .quad   0x00cf9b000000ffff      # 18: code of 32 bits
        .quad   0x00cff3000000ffff      # 20: data of the process
        .quad   0x00affb000000ffff      # 28: code of the process
        .word   0x67, TSS, 0x8900, 0    # 30: where interrupts find their stack
        .long   HIGH >> 32, 0
gdt_end:
gdt_pointer:
        .word   gdt_end - gdt - 1
        .quad   gdt                     # of 32 bits there, and the kernel's page is the same
idt_pointer:
        .word   idt_end - idt - 1
        .quad   HIGH + idt
nothing:
        .word   0
        .quad   0

        .balign 8
        .macro  gate handler, kind
        .word   \handler, 0x08, \kind, 0
        .long   HIGH >> 32, 0
        .endm
idt:    .fill   3 * 16
        gate    trap, 0xee00            # int3
        .fill   28 * 16
        gate    timer, 0x8e00           # 20
        gate    spurious, 0x8e00        # 21
idt_end:
end:
        .quad   HIGH + timer, HIGH + trap, HIGH + system_call, HIGH + switch
