#ifndef RUBATO_KERNELS_OPTIMIZER_ISA_H_
#define RUBATO_KERNELS_OPTIMIZER_ISA_H_

namespace rubato {

// Instruction sets that a kernel is compiled for, so that one binary runs everywhere and fast. With AVX2 the loops
// reach the memory's speed; with AVX-512 they were slower, because most of its loads from unaligned buffers cross cache
// lines.
enum class Isa { kBaseline, kAvx2 };

// Whether this processor and its operating system can run it.
bool Supports(Isa isa);

// The widest one that is supported.
Isa BestIsa();

}  // namespace rubato

// Marks a function as compiled for a wider instruction set; it inlines RUBATO_KERNEL_BODY functions. (target_clones
// would need ifunc relocations, which the sanitizers do not survive.)
#if defined(__x86_64__)
#define RUBATO_TARGET_AVX2 __attribute__((target("avx2")))
#else
#define RUBATO_TARGET_AVX2
#endif
#define RUBATO_KERNEL_BODY inline __attribute__((always_inline))

#endif  // RUBATO_KERNELS_OPTIMIZER_ISA_H_
