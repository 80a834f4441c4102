#ifndef RUBATO_KERNELS_OPTIMIZER_ISA_H_
#define RUBATO_KERNELS_OPTIMIZER_ISA_H_

namespace rubato {

// Instruction sets that a kernel is compiled for, so that one binary runs everywhere and fast; narrowest first. A
// kernel gives the same bits on all of them.
enum class Isa { kBaseline, kSse42, kAvx2, kAvx512 };

inline constexpr Isa kAllIsas[] = {Isa::kBaseline, Isa::kSse42, Isa::kAvx2, Isa::kAvx512};

// "baseline", "sse4.2", "avx2", "avx512".
const char* IsaName(Isa isa);

// Whether this processor and its operating system can run it.
bool Supports(Isa isa);

// The widest one that is supported.
Isa BestIsa();

// What was made for an instruction set, of what was made for each: pointers to functions, as a rule.
//
//   ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)(data, n);
template <typename T>
constexpr T ForIsa(Isa isa, T baseline, T sse42, T avx2, T avx512) {
  switch (isa) {
    case Isa::kBaseline:
      break;
    case Isa::kSse42:
      return sse42;
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvx512:
      return avx512;
  }
  return baseline;
}

}  // namespace rubato

// Marks a function as compiled for a wider instruction set; it inlines RUBATO_KERNEL_BODY functions. (target_clones
// would need ifunc relocations, which the sanitizers do not survive.)
#if defined(__x86_64__)
#define RUBATO_TARGET_SSE42 __attribute__((target("sse4.2")))
#define RUBATO_TARGET_AVX2 __attribute__((target("avx2")))
#define RUBATO_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define RUBATO_TARGET_SSE42
#define RUBATO_TARGET_AVX2
#define RUBATO_TARGET_AVX512
#endif
#define RUBATO_KERNEL_BODY inline __attribute__((always_inline))

#endif  // RUBATO_KERNELS_OPTIMIZER_ISA_H_
