#include "kernels/optimizer/isa.h"

namespace rubato {

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kSse42:
      return "sse4.2";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    default:
      return "baseline";
  }
}

bool Supports(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kSse42:
      return __builtin_cpu_supports("sse4.2");
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default:
      break;
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
