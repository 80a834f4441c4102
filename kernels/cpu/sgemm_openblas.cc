#include <cblas-openblas.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/sgemm.h"

namespace rubato::cpu {

absl::Status Sgemm(int threads, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, const float* b, float beta, float* c, const RowStrides& strides) {
  constexpr int64_t kMax = std::numeric_limits<blasint>::max();
  if (std::max({m, n, k, strides.a, strides.b, strides.c}) > kMax) {
    return absl::InternalError(absl::StrCat("OpenBLAS cannot multiply ", m, "x", k, " and ", k, "x", n,
                                            ": a side or a row's stride is over ", kMax));
  }
  openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a,
              static_cast<blasint>(strides.a), b, static_cast<blasint>(strides.b), beta, c,
              static_cast<blasint>(strides.c));
  return absl::OkStatus();
}

}  // namespace rubato::cpu
