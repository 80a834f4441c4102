#include <dnnl.h>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/openmp_threads.h"
#include "kernels/cpu/sgemm.h"

namespace rubato::cpu {

absl::Status Sgemm(int threads, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, const float* b, float beta, float* c, const RowStrides& strides) {
  omp_set_num_threads(threads);
  dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, strides.a, b,
                                    strides.b, beta, c, strides.c);
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("oneDNN refused a product of ", m, "x", k, " and ", k, "x", n, ": status ", status));
}

}  // namespace rubato::cpu
