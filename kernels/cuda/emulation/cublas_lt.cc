// The functions of cuBLASLt that the backend calls, on an emulated GPU: products with a bias that is added to each
// column of the result, or to which the columns of B are added up. Sizes that are not multiples of 4 are not supported,
// as for some kernels of a GPU's library.

#include <cublasLt.h>

#include <cstring>

#include "kernels/cuda/emulation/gpu.h"
#include "kernels/cuda/emulation/host_product.h"

namespace {

struct Operation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t transa = CUBLAS_OP_N, transb = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
};

struct Layout {
  cudaDataType type;
  int64_t rows, columns, leading;
};

const Operation& Of(cublasLtMatmulDesc_t operation) { return *reinterpret_cast<const Operation*>(operation); }
const Layout& Of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<const Layout*>(layout); }

template <typename T>
cublasStatus_t Set(T& value, const void* from, size_t bytes) {
  if (bytes != sizeof(value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// As op(a) and op(b) have them.
int64_t Rows(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.rows : layout.columns;
}
int64_t Columns(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.columns : layout.rows;
}

bool Fits(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  return Columns(a, operation.transa) == Rows(b, operation.transb) && d.rows == Rows(a, operation.transa) &&
         d.columns == Columns(b, operation.transb) && a.leading >= a.rows && b.leading >= b.rows && d.leading >= d.rows;
}

bool IsSupported(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  return (operation.epilogue == CUBLASLT_EPILOGUE_BIAS || operation.epilogue == CUBLASLT_EPILOGUE_BGRADB) &&
         operation.bias != nullptr && a.type == b.type && (d.type == CUDA_R_32F || d.type == a.type) &&
         a.rows % 4 == 0 && a.columns % 4 == 0;
}

// bias [columns of op(b)] = the sums of these columns, in d's type.
void SumColumns(const Operation& operation, const rubato::cuda::emulation::HostMatrix& b, int64_t rows, int64_t columns,
                cudaDataType type) {
  for (int64_t column = 0; column < columns; ++column) {
    float sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += b.At(0, row, column);
    rubato::cuda::emulation::SetElement(type, operation.bias, column, sum);
  }
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t) { return "an emulated GPU refuses it"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute, cudaDataType_t) {
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{.compute = compute});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete reinterpret_cast<Operation*>(operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, size_t bytes) {
  auto* const to = reinterpret_cast<Operation*>(operation);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) return Set(to->transa, from, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) return Set(to->transb, from, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) return Set(to->epilogue, from, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return Set(to->bias, from, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new uint64_t(0));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<uint64_t*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* from,
                                                    size_t bytes) {
  // No product is split here.
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return CUBLAS_STATUS_SUCCESS;
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_NOT_SUPPORTED;
  return Set(*reinterpret_cast<uint64_t*>(preference), from, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  *count = 0;
  if (!Fits(Of(operation), Of(a), Of(b), Of(d))) return CUBLAS_STATUS_INVALID_VALUE;
  if (!IsSupported(Of(operation), Of(a), Of(b), Of(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = 1;
  results[0] = {};
  results[0].workspaceSize = std::min<uint64_t>(1024, *reinterpret_cast<uint64_t*>(preference));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t a_layout, const void* B, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void*, cublasLtMatrixLayout_t, void* D,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t stream) {
  const Layout &a = Of(a_layout), &b = Of(b_layout), &d = Of(d_layout);
  const Operation& given = Of(operation);
  if (!Fits(given, a, b, d) || *static_cast<const float*>(alpha) != 1) return CUBLAS_STATUS_INVALID_VALUE;
  // Also some of what was chosen: there is no algorithm that is bound to be there.
  if (!IsSupported(given, a, b, d) || d.columns % 2 == 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool tf32 = given.compute == CUBLAS_COMPUTE_32F_FAST_TF32, sums = given.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  const rubato::cuda::emulation::HostProduct product = {
      .m = d.rows,
      .n = d.columns,
      .k = Rows(b, given.transb),
      .a = {A, a.type, a.leading, 0, given.transa != CUBLAS_OP_N, tf32},
      .b = {B, b.type, b.leading, 0, given.transb != CUBLAS_OP_N, tf32},
      .beta = *static_cast<const float*>(beta),
      .bias = sums ? nullptr : given.bias,
      .c = D,
      .c_type = d.type,
      .c_column = d.leading,
      .downwards = true,
  };
  const int error = rubato::cuda::emulation::Enqueue(stream, [product, given, sums] {
    product.Compute();
    if (sums) SumColumns(given, product.b, product.k, product.n, product.c_type);
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
