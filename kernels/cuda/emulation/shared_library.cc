#include "kernels/cuda/shared_library.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

// What is loaded beside an emulated GPU is in the program itself.
namespace rubato::cuda {
namespace {

using Functions = std::map<std::string, void*>;

Functions* TheFunctions() {
  static Functions functions = {
    {"cublasCreate_v2", reinterpret_cast<void*>(&cublasCreate_v2)},
    {"cublasDestroy_v2", reinterpret_cast<void*>(&cublasDestroy_v2)},
    {"cublasSetStream_v2", reinterpret_cast<void*>(&cublasSetStream_v2)},
    {"cublasSetWorkspace_v2", reinterpret_cast<void*>(&cublasSetWorkspace_v2)},
    {"cublasSetMathMode", reinterpret_cast<void*>(&cublasSetMathMode)},
    {"cublasGetStatusString", reinterpret_cast<void*>(&cublasGetStatusString)},
    {"cublasGemmStridedBatchedEx_64", reinterpret_cast<void*>(&cublasGemmStridedBatchedEx_64)},
    {"cublasLtCreate", reinterpret_cast<void*>(&cublasLtCreate)},
    {"cublasLtDestroy", reinterpret_cast<void*>(&cublasLtDestroy)},
    {"cublasLtGetStatusString", reinterpret_cast<void*>(&cublasLtGetStatusString)},
    {"cublasLtMatmulDescCreate", reinterpret_cast<void*>(&cublasLtMatmulDescCreate)},
    {"cublasLtMatmulDescDestroy", reinterpret_cast<void*>(&cublasLtMatmulDescDestroy)},
    {"cublasLtMatmulDescSetAttribute", reinterpret_cast<void*>(&cublasLtMatmulDescSetAttribute)},
    {"cublasLtMatrixLayoutCreate", reinterpret_cast<void*>(&cublasLtMatrixLayoutCreate)},
    {"cublasLtMatrixLayoutDestroy", reinterpret_cast<void*>(&cublasLtMatrixLayoutDestroy)},
    {"cublasLtMatmulPreferenceCreate", reinterpret_cast<void*>(&cublasLtMatmulPreferenceCreate)},
    {"cublasLtMatmulPreferenceDestroy", reinterpret_cast<void*>(&cublasLtMatmulPreferenceDestroy)},
    {"cublasLtMatmulPreferenceSetAttribute", reinterpret_cast<void*>(&cublasLtMatmulPreferenceSetAttribute)},
    {"cublasLtMatmulAlgoGetHeuristic", reinterpret_cast<void*>(&cublasLtMatmulAlgoGetHeuristic)},
    {"cublasLtMatmul", reinterpret_cast<void*>(&cublasLtMatmul)},
#if __has_include(<cudnn.h>)
    {"cudnnGetVersion", reinterpret_cast<void*>(&cudnnGetVersion)},
    {"cudnnGetErrorString", reinterpret_cast<void*>(&cudnnGetErrorString)},
    {"cudnnCreate", reinterpret_cast<void*>(&cudnnCreate)},
    {"cudnnDestroy", reinterpret_cast<void*>(&cudnnDestroy)},
    {"cudnnSetStream", reinterpret_cast<void*>(&cudnnSetStream)},
    {"cudnnCreateTensorDescriptor", reinterpret_cast<void*>(&cudnnCreateTensorDescriptor)},
    {"cudnnDestroyTensorDescriptor", reinterpret_cast<void*>(&cudnnDestroyTensorDescriptor)},
    {"cudnnSetTensor4dDescriptor", reinterpret_cast<void*>(&cudnnSetTensor4dDescriptor)},
    {"cudnnCreateFilterDescriptor", reinterpret_cast<void*>(&cudnnCreateFilterDescriptor)},
    {"cudnnDestroyFilterDescriptor", reinterpret_cast<void*>(&cudnnDestroyFilterDescriptor)},
    {"cudnnSetFilter4dDescriptor", reinterpret_cast<void*>(&cudnnSetFilter4dDescriptor)},
    {"cudnnCreateConvolutionDescriptor", reinterpret_cast<void*>(&cudnnCreateConvolutionDescriptor)},
    {"cudnnDestroyConvolutionDescriptor", reinterpret_cast<void*>(&cudnnDestroyConvolutionDescriptor)},
    {"cudnnSetConvolution2dDescriptor", reinterpret_cast<void*>(&cudnnSetConvolution2dDescriptor)},
    {"cudnnSetConvolutionMathType", reinterpret_cast<void*>(&cudnnSetConvolutionMathType)},
    {"cudnnGetConvolutionForwardWorkspaceSize", reinterpret_cast<void*>(&cudnnGetConvolutionForwardWorkspaceSize)},
    {"cudnnConvolutionForward", reinterpret_cast<void*>(&cudnnConvolutionForward)},
    {"cudnnGetConvolutionBackwardDataWorkspaceSize",
     reinterpret_cast<void*>(&cudnnGetConvolutionBackwardDataWorkspaceSize)},
    {"cudnnConvolutionBackwardData", reinterpret_cast<void*>(&cudnnConvolutionBackwardData)},
    {"cudnnGetConvolutionBackwardFilterWorkspaceSize",
     reinterpret_cast<void*>(&cudnnGetConvolutionBackwardFilterWorkspaceSize)},
    {"cudnnConvolutionBackwardFilter", reinterpret_cast<void*>(&cudnnConvolutionBackwardFilter)},
#endif
  };
  return &functions;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedLibrary>> SharedLibrary::Open(const std::string& name, const std::string&) {
  return std::unique_ptr<SharedLibrary>(new SharedLibrary(name, TheFunctions()));
}

SharedLibrary::~SharedLibrary() = default;

absl::Status SharedLibrary::FindAddress(const char* name, void** address) const {
  const auto& functions = *static_cast<const Functions*>(handle_);
  const auto found = functions.find(name);
  if (found == functions.end()) return absl::FailedPreconditionError(absl::StrCat(name_, " has no ", name));
  *address = found->second;
  return absl::OkStatus();
}

}  // namespace rubato::cuda
