#ifndef RUBATO_KERNELS_CUDA_CUBLAS_LT_H_
#define RUBATO_KERNELS_CUDA_CUBLAS_LT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend_cuda.h"
#include "kernels/cuda/work.h"
#include "kernels/device_tensor.h"

namespace rubato::cuda {

// Products of cuBLASLt, which does more in a kernel than the product; loaded when it is created. One thread at a time.
class CublasLt {
 public:
  // All sizes are above 0.
  struct Sizes {
    int64_t rows = 0, inputs = 0, units = 0;
  };
  // y [rows, units] = x [rows, inputs] * weight [units, inputs]^T + bias [units], all of `type`.
  struct Linear {
    Sizes sizes;
    ElementType type = ElementType::kFloat32;
    const void *x = nullptr, *weight = nullptr, *bias = nullptr;
    void* y = nullptr;
  };
  // dweight [units, inputs] = dy [rows, units]^T * x [rows, inputs], of `type`, plus with `accumulate` what is there;
  // and dbias [units] = the sum of dy's rows. The gradients are float32.
  struct LinearGradient {
    Sizes sizes;
    ElementType type = ElementType::kFloat32;
    const void *x = nullptr, *dy = nullptr;
    bool accumulate = false;
    float *dweight = nullptr, *dbias = nullptr;
  };

  // The most that a product takes for itself.
  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  // FailedPrecondition: the library is not there. Internal: it refused.
  static absl::StatusOr<std::unique_ptr<CublasLt>> Create(MatrixPrecision precision);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // False: the library has no kernel for it, and nothing has been done. Internal: it refused.
  absl::StatusOr<bool> MultiplyAddBias(Work& work, const Linear& linear);
  absl::StatusOr<bool> MultiplySumRows(Work& work, const LinearGradient& gradient);

 private:
  struct Library;
  struct Operation;

  // One call of the library.
  struct Product;

  explicit CublasLt(MatrixPrecision precision);
  absl::Status Start();
  absl::StatusOr<bool> Multiply(Work& work, const Product& product);

  const MatrixPrecision precision_;
  std::unique_ptr<Library> library_;
  void* handle_ = nullptr;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUBLAS_LT_H_
