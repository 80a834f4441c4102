#include "kernels/optimizer/isa.h"

namespace rubato {

const char* IsaName(Isa isa) { return ForIsa(isa, "baseline", "sse4.2", "avx2", "avx512"); }

bool Supports(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kBaseline:
      return true;
    case Isa::kSse42:
      return __builtin_cpu_supports("sse4.2");
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return isa == Isa::kBaseline;
}

Isa BestIsa() {
  Isa best = Isa::kBaseline;
  for (Isa isa : kAllIsas) {
    if (Supports(isa)) best = isa;
  }
  return best;
}

}  // namespace rubato
