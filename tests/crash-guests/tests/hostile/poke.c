// A guest's only program: pokes ports and device memory at random, from a seed, until it or the machine ends.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static uint64_t state;

static uint64_t draw(void) // xorshift64
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// These end or stop the machine: keyboard controller, fast A20 and reset, watchdog, reset control.
static int ends(unsigned port)
{
    return port == 0x64 || port == 0x92 || (port >= 0x440 && port <= 0x443) || port == 0xcf9;
}

static void poke_port(void)
{
    // Often where devices are: below 0x600.
    unsigned port = draw() % 4 ? draw() % 0x600 : draw() % 0x10000;
    if (ends(port) && draw() % 100000)
        return;
    // A wider access to the serial line ends QEMU 7.2 by an assertion (hw/char/serial.c), almost at once.
    if (port >= 0x3f5 && port <= 0x3ff && draw() % 100000)
        return;
    switch (draw() % 6) {
    case 0: outb(draw(), port); break;
    case 1: outw(draw(), port); break;
    case 2: outl(draw(), port); break;
    case 3: inb(port); break;
    case 4: inw(port); break;
    default: inl(port);
    }
}

static void poke_page(int memory)
{
    // Device pages of microvm (hw/i386/microvm.c, include/hw/i386/microvm.h), or any above 3 GiB.
    static const uint64_t known[] = {0xfea00000, 0xfeb00000, 0xfeb01000, 0xfeb02000, 0xfec00000, 0xfec10000, 0xfee00000};
    uint64_t page = draw() % 2 ? known[draw() % 7] : 0xc0000000 + draw() % 0x40000 * 4096;
    volatile uint32_t *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, page);
    if (at == MAP_FAILED)
        return;
    for (int times = 0; times < 16; times++) {
        unsigned word = draw() % 1024;
        if (draw() % 2)
            at[word] = draw();
        else
            (void)at[word];
    }
    munmap((void *)at, 4096);
}

int main(void)
{
    const char *seed = getenv("pokeseed"); // the kernel passes parameters that it does not know
    state = 0x9e3779b97f4a7c15 ^ (seed ? strtoull(seed, 0, 10) : 0);
    mkdir("/dev", 0755);
    mknod("/dev/mem", S_IFCHR | 0600, makedev(1, 1));
    int memory = open("/dev/mem", O_RDWR | O_SYNC);
    if (iopl(3))
        return 1;
    static const char begins[] = "poke: begins\n";
    for (const char *c = begins; *c; c++)
        outb(*c, 0x3f8);
    for (;;) {
        poke_port();
        if (memory >= 0 && draw() % 8 == 0)
            poke_page(memory);
    }
}
