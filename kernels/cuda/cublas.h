#ifndef RUBATO_KERNELS_CUDA_CUBLAS_H_
#define RUBATO_KERNELS_CUDA_CUBLAS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend_cuda.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"

namespace rubato::cuda {

// cuBLAS on one stream, loaded when it is created: a program with CUDA inside starts even if there is none. One thread
// at a time.
class Cublas {
 public:
  // An operand of a batch of products: row-major, `columns` apart from row to row and `stride` from one to the next.
  struct Operand {
    const void* data = nullptr;
    int64_t columns = 0;
    int64_t stride = 0;
    bool transposed = false;
  };
  struct Result {
    void* data = nullptr;
    ElementType type = ElementType::kFloat32;
    int64_t columns = 0;
    int64_t stride = 0;
  };
  struct Sizes {
    int64_t m = 0, n = 0, k = 0;
    int64_t batch = 1;
  };

  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  // FailedPrecondition: the library is not there, with the name that was looked for and what the loader said. Internal:
  // it refused. The workspace comes from the pool, so that products give the same bits on every run.
  static absl::StatusOr<std::unique_ptr<Cublas>> Create(Stream stream, MemoryPool* pool, MatrixPrecision precision);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // c = alpha * op(a) [m, k] op(b) [k, n] + beta * c, all sizes above 0, for each of the batch. Both operands have
  // elements of `type`, and c float32 or these; sums are float32. With beta 0, c may hold anything before. Internal:
  // the library refused.
  absl::Status Multiply(const Sizes& sizes, ElementType type, float alpha, const Operand& a, const Operand& b,
                        float beta, const Result& c);

 private:
  struct Library;

  explicit Cublas(MatrixPrecision precision);
  absl::Status Start(Stream stream, MemoryPool* pool);

  const MatrixPrecision precision_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<MemoryPool::Block> workspace_;
  void* handle_ = nullptr;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUBLAS_H_
