#include "kernels/cuda/cublas.h"

#include <cublas_v2.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cublas_types.h"
#include "kernels/cuda/shared_library.h"
#include "toolkit.h"

#define RUBATO_CUBLAS_RETURN_IF_ERROR(expression)                                                                      \
  do {                                                                                                                 \
    const cublasStatus_t rubato_cublas_status_ = (expression);                                                         \
    if (rubato_cublas_status_ != CUBLAS_STATUS_SUCCESS) {                                                              \
      return absl::InternalError(absl::StrCat(#expression, ": ", library_->status_string(rubato_cublas_status_), " (", \
                                              rubato_cublas_status_, ")"));                                            \
    }                                                                                                                  \
  } while (false)

namespace rubato::cuda {
struct Cublas::Library {
  // The second needs the first; loaded by us, it is found wherever the second is.
  std::unique_ptr<SharedLibrary> lt, blas;
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasGetStatusString) status_string;
  decltype(&cublasGemmStridedBatchedEx_64) gemm;

  absl::Status Load() {
    const std::string suffix = absl::StrCat(".so.", CUBLAS_VER_MAJOR);
    RUBATO_ASSIGN_OR_RETURN(lt, SharedLibrary::Open("libcublasLt" + suffix, RUBATO_CUDA_LIBRARIES));
    RUBATO_ASSIGN_OR_RETURN(blas, SharedLibrary::Open("libcublas" + suffix, RUBATO_CUDA_LIBRARIES));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasCreate_v2", &create));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasDestroy_v2", &destroy));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasSetStream_v2", &set_stream));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasSetWorkspace_v2", &set_workspace));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasSetMathMode", &set_math_mode));
    RUBATO_RETURN_IF_ERROR(blas->Find("cublasGetStatusString", &status_string));
    return blas->Find("cublasGemmStridedBatchedEx_64", &gemm);
  }
};

Cublas::Cublas(MatrixPrecision precision) : precision_(precision) {}

absl::StatusOr<std::unique_ptr<Cublas>> Cublas::Create(Stream stream, MemoryPool* pool, MatrixPrecision precision) {
  std::unique_ptr<Cublas> cublas(new Cublas(precision));
  RUBATO_RETURN_IF_ERROR(cublas->Start(stream, pool));
  return cublas;
}

absl::Status Cublas::Start(Stream stream, MemoryPool* pool) {
  library_ = std::make_unique<Library>();
  RUBATO_RETURN_IF_ERROR(library_->Load());
  cublasHandle_t handle = nullptr;
  RUBATO_CUBLAS_RETURN_IF_ERROR(library_->create(&handle));
  handle_ = handle;
  RUBATO_CUBLAS_RETURN_IF_ERROR(library_->set_stream(handle, stream));
  // After the stream: setting one takes the library's own workspace again.
  RUBATO_ASSIGN_OR_RETURN(workspace_, pool->Allocate(kWorkspaceBytes));
  RUBATO_CUBLAS_RETURN_IF_ERROR(library_->set_workspace(handle, workspace_->address(), kWorkspaceBytes));
  const cublasMath_t mode =
      precision_ == MatrixPrecision::kFloat32
          ? CUBLAS_PEDANTIC_MATH
          : static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  RUBATO_CUBLAS_RETURN_IF_ERROR(library_->set_math_mode(handle, mode));
  return absl::OkStatus();
}

Cublas::~Cublas() {
  if (handle_ != nullptr) (void)library_->destroy(static_cast<cublasHandle_t>(handle_));
}

absl::Status Cublas::Multiply(const Sizes& sizes, ElementType type, float alpha, const Operand& a, const Operand& b,
                              float beta, const Result& c) {
  const cublasComputeType_t compute = ComputeType(precision_);
  const auto operation = [](const Operand& operand) { return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  // The library's matrices are column-major, where ours are their transposes: c^T = op(b)^T op(a)^T.
  RUBATO_CUBLAS_RETURN_IF_ERROR(
      library_->gemm(static_cast<cublasHandle_t>(handle_), operation(b), operation(a), sizes.n, sizes.m, sizes.k,
                     &alpha, b.data, DataType(type), b.columns, b.stride, a.data, DataType(type), a.columns, a.stride,
                     &beta, c.data, DataType(c.type), c.columns, c.stride, sizes.batch, compute, CUBLAS_GEMM_DEFAULT));
  return absl::OkStatus();
}

}  // namespace rubato::cuda
