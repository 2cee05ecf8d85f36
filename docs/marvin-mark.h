/* Marks around what `marvin compare A B --marks -- ./my-bench` measures: instructions that do nothing on any x86-64
 * processor and that Marvin's plugin for QEMU sees. Each run must mark the same number of regions. */
#ifndef MARVIN_MARK_H
#define MARVIN_MARK_H
static inline void marvin_begin(void) { __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x4b, 0x4d" ::: "memory"); }
static inline void marvin_end(void) { __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0xff, 0xff, 0x4b, 0x4d" ::: "memory"); }
#endif
