#include "kernels/cuda/cudnn.h"

#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/shared_library.h"
#include "toolkit.h"

#define RUBATO_CUDNN_RETURN_IF_ERROR(expression)                                                                     \
  do {                                                                                                               \
    const cudnnStatus_t rubato_cudnn_status_ = (expression);                                                         \
    if (rubato_cudnn_status_ != CUDNN_STATUS_SUCCESS) {                                                              \
      return absl::InternalError(absl::StrCat(#expression, ": ", library_->error_string(rubato_cudnn_status_), " (", \
                                              static_cast<int>(rubato_cudnn_status_), ")"));                         \
    }                                                                                                                \
  } while (false)

namespace rubato::cuda {
namespace {

// The fastest of those that give the same bits every time.
constexpr cudnnConvolutionFwdAlgo_t kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr cudnnConvolutionBwdDataAlgo_t kBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr cudnnConvolutionBwdFilterAlgo_t kBackwardWeight = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

constexpr float kOne = 1, kZero = 0;

#if CUDNN_MAJOR >= 9
constexpr std::array<const char*, 3> kParts = {"libcudnn_graph.so.", "libcudnn_ops.so.", "libcudnn_cnn.so."};
#else
constexpr std::array<const char*, 0> kParts = {};
#endif

// Version 9 has a range of reasons.
bool IsNotSupported(int status) {
  return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_NOT_SUPPORTED + (CUDNN_MAJOR < 9 ? 1 : 1000);
}

cudnnDataType_t DataType(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::kFloat32:
    case MatrixPrecision::kTf32:
      return CUDNN_DATA_FLOAT;
    case MatrixPrecision::kBf16:
      return CUDNN_DATA_BFLOAT16;
    case MatrixPrecision::kFp16:
      return CUDNN_DATA_HALF;
  }
  return CUDNN_DATA_FLOAT;
}

// The default is TF32 for float32 if the GPU has it, and leaves tensor cores aside for 16 bits.
cudnnMathType_t MathType(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::kFloat32:
      return CUDNN_FMA_MATH;
    case MatrixPrecision::kTf32:
      return CUDNN_DEFAULT_MATH;
    case MatrixPrecision::kBf16:
    case MatrixPrecision::kFp16:
      return CUDNN_TENSOR_OP_MATH;
  }
  return CUDNN_DEFAULT_MATH;
}

}  // namespace

struct Cudnn::Library {
  std::unique_ptr<SharedLibrary> library;
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnSetFilter4dDescriptor) set_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionMathType) set_math;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_bytes;
  decltype(&cudnnConvolutionForward) forward;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) backward_data_bytes;
  decltype(&cudnnConvolutionBackwardData) backward_data;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) backward_weight_bytes;
  decltype(&cudnnConvolutionBackwardFilter) backward_weight;

  absl::Status Load() {
    // Version 9 is several libraries, and the one that is called ends the program if another is missing.
    for (const char* part : kParts) {
      RUBATO_RETURN_IF_ERROR(SharedLibrary::Open(absl::StrCat(part, CUDNN_MAJOR), RUBATO_CUDA_LIBRARIES).status());
    }
    RUBATO_ASSIGN_OR_RETURN(library,
                            SharedLibrary::Open(absl::StrCat("libcudnn.so.", CUDNN_MAJOR), RUBATO_CUDA_LIBRARIES));
    absl::Status status;
    const auto find = [&](const char* name, auto* function) { status.Update(library->Find(name, function)); };
    find("cudnnGetVersion", &version);
    find("cudnnGetErrorString", &error_string);
    find("cudnnCreate", &create);
    find("cudnnDestroy", &destroy);
    find("cudnnSetStream", &set_stream);
    find("cudnnCreateTensorDescriptor", &create_tensor);
    find("cudnnDestroyTensorDescriptor", &destroy_tensor);
    find("cudnnSetTensor4dDescriptor", &set_tensor);
    find("cudnnCreateFilterDescriptor", &create_filter);
    find("cudnnDestroyFilterDescriptor", &destroy_filter);
    find("cudnnSetFilter4dDescriptor", &set_filter);
    find("cudnnCreateConvolutionDescriptor", &create_convolution);
    find("cudnnDestroyConvolutionDescriptor", &destroy_convolution);
    find("cudnnSetConvolution2dDescriptor", &set_convolution);
    find("cudnnSetConvolutionMathType", &set_math);
    find("cudnnGetConvolutionForwardWorkspaceSize", &forward_bytes);
    find("cudnnConvolutionForward", &forward);
    find("cudnnGetConvolutionBackwardDataWorkspaceSize", &backward_data_bytes);
    find("cudnnConvolutionBackwardData", &backward_data);
    find("cudnnGetConvolutionBackwardFilterWorkspaceSize", &backward_weight_bytes);
    find("cudnnConvolutionBackwardFilter", &backward_weight);
    return status;
  }
};

struct Cudnn::Convolution {
  explicit Convolution(const Library* library) : library(library) {}
  ~Convolution() {
    if (x != nullptr) (void)library->destroy_tensor(x);
    if (y != nullptr) (void)library->destroy_tensor(y);
    if (weight != nullptr) (void)library->destroy_filter(weight);
    if (convolution != nullptr) (void)library->destroy_convolution(convolution);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  const Library* const library;
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t weight = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  // Whether the library has an algorithm for each pass, and their scratch memory.
  bool supported = false;
  size_t forward_bytes = 0, backward_data_bytes = 0, backward_weight_bytes = 0;
};

Cudnn::Cudnn(MatrixPrecision precision) : precision_(precision) {}

absl::StatusOr<std::unique_ptr<Cudnn>> Cudnn::Create(Stream stream, MatrixPrecision precision) {
  std::unique_ptr<Cudnn> cudnn(new Cudnn(precision));
  RUBATO_RETURN_IF_ERROR(cudnn->Start(stream));
  return cudnn;
}

absl::Status Cudnn::Start(Stream stream) {
  library_ = std::make_unique<Library>();
  RUBATO_RETURN_IF_ERROR(library_->Load());
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = library_->create(&handle); status != CUDNN_STATUS_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("cudnnCreate: ", library_->error_string(status), " (", static_cast<int>(status), ")"));
  }
  handle_ = handle;
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_stream(handle, stream));
  return absl::OkStatus();
}

Cudnn::~Cudnn() {
  convolutions_.clear();
  if (handle_ != nullptr) (void)library_->destroy(static_cast<cudnnHandle_t>(handle_));
}

std::string Cudnn::Name() const {
  const size_t version = library_->version();
  const size_t major = CUDNN_MAJOR < 9 ? 1000 : 10000;
  return absl::StrCat("cuDNN ", version / major, ".", version % major / 100, ".", version % 100);
}

absl::StatusOr<bool> Cudnn::CanDo(const Conv2dGeometry& g, int64_t images, int64_t scratch_bytes) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (std::max({images * g.channels * g.height * g.width, images * g.filters * g.output_height() * g.output_width(),
                g.filters * g.channels * g.kernel * g.kernel}) > kMost) {
    return false;
  }
  RUBATO_ASSIGN_OR_RETURN(const Convolution* c, Describe(g, images));
  return c->supported && std::max({c->forward_bytes, c->backward_data_bytes, c->backward_weight_bytes}) <=
                             static_cast<size_t>(scratch_bytes);
}

absl::StatusOr<Cudnn::Convolution*> Cudnn::Describe(const Conv2dGeometry& geometry, int64_t images) {
  std::unique_ptr<Convolution>& known = convolutions_[{geometry, images}];
  if (known == nullptr) {
    auto convolution = std::make_unique<Convolution>(library_.get());
    RUBATO_RETURN_IF_ERROR(Fill(geometry, images, convolution.get()));
    known = std::move(convolution);
  }
  return known.get();
}

absl::Status Cudnn::Fill(const Conv2dGeometry& g, int64_t images, Convolution* c) {
  const auto number = [](int64_t size) { return static_cast<int>(size); };
  const cudnnDataType_t type = DataType(precision_);
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->create_tensor(&c->x));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->create_tensor(&c->y));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->create_filter(&c->weight));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->create_convolution(&c->convolution));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_tensor(c->x, CUDNN_TENSOR_NCHW, type, number(images), number(g.channels),
                                                    number(g.height), number(g.width)));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_tensor(c->y, CUDNN_TENSOR_NCHW, type, number(images), number(g.filters),
                                                    number(g.output_height()), number(g.output_width())));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_filter(c->weight, type, CUDNN_TENSOR_NCHW, number(g.filters),
                                                    number(g.channels), number(g.kernel), number(g.kernel)));
  const int padding = number(g.padding), stride = number(g.stride);
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_convolution(c->convolution, padding, padding, stride, stride, 1, 1,
                                                         CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  RUBATO_CUDNN_RETURN_IF_ERROR(library_->set_math(c->convolution, MathType(precision_)));
  // Why it has none is for the convolution by im2col to say.
  const auto handle = static_cast<cudnnHandle_t>(handle_);
  c->supported = library_->forward_bytes(handle, c->x, c->weight, c->convolution, c->y, kForward, &c->forward_bytes) ==
                     CUDNN_STATUS_SUCCESS &&
                 library_->backward_data_bytes(handle, c->weight, c->y, c->convolution, c->x, kBackwardData,
                                               &c->backward_data_bytes) == CUDNN_STATUS_SUCCESS &&
                 library_->backward_weight_bytes(handle, c->x, c->y, c->convolution, c->weight, kBackwardWeight,
                                                 &c->backward_weight_bytes) == CUDNN_STATUS_SUCCESS;
  return absl::OkStatus();
}

absl::StatusOr<bool> Cudnn::Outcome(int status, Convolution* convolution) {
  if (status == CUDNN_STATUS_SUCCESS) return true;
  if (IsNotSupported(status)) {
    convolution->supported = false;
    return false;
  }
  return absl::InternalError(absl::StrCat(
      "cuDNN's convolution: ", library_->error_string(static_cast<cudnnStatus_t>(status)), " (", status, ")"));
}

absl::StatusOr<bool> Cudnn::Forward(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* x,
                                    const void* weight, void* y) {
  RUBATO_ASSIGN_OR_RETURN(Convolution * c, Describe(geometry, images));
  RUBATO_ASSIGN_OR_RETURN(char* scratch, work.Scratch<char>(static_cast<int64_t>(c->forward_bytes)));
  return Outcome(library_->forward(static_cast<cudnnHandle_t>(handle_), &kOne, c->x, x, c->weight, weight,
                                   c->convolution, kForward, scratch, c->forward_bytes, &kZero, c->y, y),
                 c);
}

absl::StatusOr<bool> Cudnn::BackwardData(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* dy,
                                         const void* weight, void* dx) {
  RUBATO_ASSIGN_OR_RETURN(Convolution * c, Describe(geometry, images));
  RUBATO_ASSIGN_OR_RETURN(char* scratch, work.Scratch<char>(static_cast<int64_t>(c->backward_data_bytes)));
  return Outcome(
      library_->backward_data(static_cast<cudnnHandle_t>(handle_), &kOne, c->weight, weight, c->y, dy, c->convolution,
                              kBackwardData, scratch, c->backward_data_bytes, &kZero, c->x, dx),
      c);
}

absl::StatusOr<bool> Cudnn::BackwardWeight(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* x,
                                           const void* dy, bool accumulate, void* dweight) {
  RUBATO_ASSIGN_OR_RETURN(Convolution * c, Describe(geometry, images));
  RUBATO_ASSIGN_OR_RETURN(char* scratch, work.Scratch<char>(static_cast<int64_t>(c->backward_weight_bytes)));
  return Outcome(library_->backward_weight(static_cast<cudnnHandle_t>(handle_), &kOne, c->x, x, c->y, dy,
                                           c->convolution, kBackwardWeight, scratch, c->backward_weight_bytes,
                                           accumulate ? &kOne : &kZero, c->weight, dweight),
                 c);
}

}  // namespace rubato::cuda

#else  // Without cuDNN's headers.

namespace rubato::cuda {

struct Cudnn::Library {};
struct Cudnn::Convolution {};

absl::StatusOr<std::unique_ptr<Cudnn>> Cudnn::Create(Stream, MatrixPrecision) {
  return absl::FailedPreconditionError("the program was built without cuDNN");
}
Cudnn::~Cudnn() = default;
std::string Cudnn::Name() const { return ""; }
absl::StatusOr<bool> Cudnn::CanDo(const Conv2dGeometry&, int64_t, int64_t) { return false; }
absl::StatusOr<bool> Cudnn::Forward(Work&, const Conv2dGeometry&, int64_t, const void*, const void*, void*) {
  return absl::InternalError("no cuDNN");
}
absl::StatusOr<bool> Cudnn::BackwardData(Work&, const Conv2dGeometry&, int64_t, const void*, const void*, void*) {
  return absl::InternalError("no cuDNN");
}
absl::StatusOr<bool> Cudnn::BackwardWeight(Work&, const Conv2dGeometry&, int64_t, const void*, const void*, bool,
                                           void*) {
  return absl::InternalError("no cuDNN");
}

}  // namespace rubato::cuda

#endif
