#include "kernels/cuda/cublas_lt.h"

#include <cublasLt.h>

#include <array>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cublas_types.h"
#include "kernels/cuda/shared_library.h"
#include "toolkit.h"

// Where `library` points to a CublasLt::Library.
#define RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, expression)                                                     \
  do {                                                                                                            \
    const cublasStatus_t rubato_cublas_status_ = (expression);                                                    \
    if (rubato_cublas_status_ != CUBLAS_STATUS_SUCCESS) {                                                         \
      return absl::InternalError(absl::StrCat(#expression, ": ", (library)->status_string(rubato_cublas_status_), \
                                              " (", rubato_cublas_status_, ")"));                                 \
    }                                                                                                             \
  } while (false)

namespace rubato::cuda {
namespace {

// What the library expects of addresses unless it is told otherwise.
constexpr uintptr_t kAlignment = 256;

bool IsAligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % kAlignment == 0; }

}  // namespace

struct CublasLt::Library {
  std::unique_ptr<SharedLibrary> lt;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmul) multiply;

  struct Choice {
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
  };
  // By epilogue and sizes: what the library chose, or that it has nothing.
  std::map<std::array<int64_t, 4>, std::optional<Choice>> choices;

  absl::Status Load() {
    RUBATO_ASSIGN_OR_RETURN(
        lt, SharedLibrary::Open(absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), RUBATO_CUDA_LIBRARIES));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtCreate", &create));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtDestroy", &destroy));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtGetStatusString", &status_string));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulDescCreate", &create_operation));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulDescDestroy", &destroy_operation));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulDescSetAttribute", &set_operation));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatrixLayoutCreate", &create_layout));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatrixLayoutDestroy", &destroy_layout));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulPreferenceCreate", &create_preference));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulPreferenceDestroy", &destroy_preference));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulPreferenceSetAttribute", &set_preference));
    RUBATO_RETURN_IF_ERROR(lt->Find("cublasLtMatmulAlgoGetHeuristic", &choose));
    return lt->Find("cublasLtMatmul", &multiply);
  }
};

// d [m, n] = op(a) [m, k] * op(b) [k, n] + beta * d. Matrices are column-major, where ours are their transposes.
struct CublasLt::Product {
  struct Matrix {
    const void* data;
    int64_t rows, columns;
    bool transposed;
  };
  Matrix a, b;
  ElementType operands;
  void* d;
  int64_t m, n;
  ElementType result;
  float beta;
  cublasLtEpilogue_t epilogue;
  // What the epilogue adds or writes.
  const void* bias;
};

// What the library is told of a product.
struct CublasLt::Operation {
  explicit Operation(const Library* library) : library(library) {}
  ~Operation() {
    if (d != nullptr) (void)library->destroy_layout(d);
    if (b != nullptr) (void)library->destroy_layout(b);
    if (a != nullptr) (void)library->destroy_layout(a);
    if (operation != nullptr) (void)library->destroy_operation(operation);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  absl::Status Describe(MatrixPrecision precision, const Product& product) {
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library,
                                     library->create_operation(&operation, ComputeType(precision), CUDA_R_32F));
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      return library->set_operation(operation, attribute, &value, sizeof(value));
    };
    const auto transposed = [](const Product::Matrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, set(CUBLASLT_MATMUL_DESC_TRANSA, transposed(product.a)));
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, set(CUBLASLT_MATMUL_DESC_TRANSB, transposed(product.b)));
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, set(CUBLASLT_MATMUL_DESC_EPILOGUE, product.epilogue));
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias));
    const auto layout = [&](ElementType type, int64_t rows, int64_t columns, cublasLtMatrixLayout_t* made) {
      return library->create_layout(made, DataType(type), rows, columns, rows);
    };
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, layout(product.operands, product.a.rows, product.a.columns, &a));
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, layout(product.operands, product.b.rows, product.b.columns, &b));
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, layout(product.result, product.m, product.n, &d));
    return absl::OkStatus();
  }

  // The library's first choice, or nothing: why it has none is for the product in steps to say.
  absl::StatusOr<std::optional<Library::Choice>> Choose(cublasLtHandle_t handle) const {
    cublasLtMatmulPreference_t preference = nullptr;
    RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library, library->create_preference(&preference));
    const uint64_t most = kWorkspaceBytes;
    // If a product is split, its parts are added up in float32 and not in the type of the result.
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulHeuristicResult_t result = {};
    int count = 0;
    cublasStatus_t status =
        library->set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = library->set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                       sizeof(reductions));
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = library->choose(handle, operation, a, b, d, d, preference, 1, &result, &count);
    }
    (void)library->destroy_preference(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || result.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
    return Library::Choice{result.algo, static_cast<int64_t>(result.workspaceSize)};
  }

  const Library* const library;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
};

CublasLt::CublasLt(MatrixPrecision precision) : precision_(precision) {}

absl::StatusOr<std::unique_ptr<CublasLt>> CublasLt::Create(MatrixPrecision precision) {
  std::unique_ptr<CublasLt> cublas(new CublasLt(precision));
  RUBATO_RETURN_IF_ERROR(cublas->Start());
  return cublas;
}

absl::Status CublasLt::Start() {
  library_ = std::make_unique<Library>();
  RUBATO_RETURN_IF_ERROR(library_->Load());
  cublasLtHandle_t handle = nullptr;
  RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library_, library_->create(&handle));
  handle_ = handle;
  return absl::OkStatus();
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) (void)library_->destroy(static_cast<cublasLtHandle_t>(handle_));
}

absl::StatusOr<bool> CublasLt::MultiplyAddBias(Work& work, const Linear& linear) {
  const auto& [rows, inputs, units] = linear.sizes;
  // y^T = weight * x^T.
  return Multiply(work, {.a = {linear.weight, inputs, units, true},
                         .b = {linear.x, inputs, rows, false},
                         .operands = linear.type,
                         .d = linear.y,
                         .m = units,
                         .n = rows,
                         .result = linear.type,
                         .beta = 0,
                         .epilogue = CUBLASLT_EPILOGUE_BIAS,
                         .bias = linear.bias});
}

absl::StatusOr<bool> CublasLt::MultiplySumRows(Work& work, const LinearGradient& gradient) {
  const auto& [rows, inputs, units] = gradient.sizes;
  // dweight^T = x^T * dy, of which the second is added up.
  return Multiply(work, {.a = {gradient.x, inputs, rows, false},
                         .b = {gradient.dy, units, rows, true},
                         .operands = gradient.type,
                         .d = gradient.dweight,
                         .m = inputs,
                         .n = units,
                         .result = ElementType::kFloat32,
                         .beta = gradient.accumulate ? 1.0f : 0.0f,
                         .epilogue = CUBLASLT_EPILOGUE_BGRADB,
                         .bias = gradient.dbias});
}

absl::StatusOr<bool> CublasLt::Multiply(Work& work, const Product& product) {
  for (const void* address : {product.a.data, product.b.data, static_cast<const void*>(product.d), product.bias}) {
    if (!IsAligned(address)) return false;
  }
  const auto handle = static_cast<cublasLtHandle_t>(handle_);
  Operation operation(library_.get());
  RUBATO_RETURN_IF_ERROR(operation.Describe(precision_, product));
  const std::array<int64_t, 4> key = {product.epilogue, product.a.rows, product.a.columns, product.n};
  auto known = library_->choices.find(key);
  if (known == library_->choices.end()) {
    RUBATO_ASSIGN_OR_RETURN(std::optional<Library::Choice> choice, operation.Choose(handle));
    known = library_->choices.emplace(key, choice).first;
  }
  if (!known->second.has_value()) return false;
  const Library::Choice choice = *known->second;
  RUBATO_ASSIGN_OR_RETURN(char* workspace, work.Scratch<char>(choice.workspace_bytes));
  const float one = 1;
  const cublasStatus_t status =
      library_->multiply(handle, operation.operation, &one, product.a.data, operation.a, product.b.data, operation.b,
                         &product.beta, product.d, operation.d, product.d, operation.d, &choice.algorithm, workspace,
                         choice.workspace_bytes, work.stream());
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    // It chose what it has not.
    known->second = std::nullopt;
    return false;
  }
  RUBATO_CUBLAS_LT_RETURN_IF_ERROR(library_, status);
  return true;
}

}  // namespace rubato::cuda
