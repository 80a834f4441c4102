#include "kernels/optimizer/isa.h"

namespace rubato {

bool Supports(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return __builtin_cpu_supports("avx2");
#endif
  return isa == Isa::kBaseline;
}

Isa BestIsa() { return Supports(Isa::kAvx2) ? Isa::kAvx2 : Isa::kBaseline; }

}  // namespace rubato
