#include "kernels/conformance/harness.h"

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/cpu_backend.h"

namespace rubato::conformance {

namespace {

BackendCase CudaCase(std::string name, const CudaBackendOptions& options, double tolerance = 1e-5) {
  return {std::move(name), [options] { return CreateCudaBackend(options); }, tolerance};
}

BackendCase PrecisionCase(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::kFloat32:
      return CudaCase("Cuda", {.precision = precision});
    // Inputs keep 10 bits after the point; sums of random products average the rounding out.
    case MatrixPrecision::kTf32:
      return CudaCase("CudaTf32", {.precision = precision}, 4e-3);
    // Inputs are what activations can hold, and so is what comes out: 7 and 10 bits.
    case MatrixPrecision::kBf16:
      return CudaCase("CudaBf16", {.precision = precision}, 1e-2);
    case MatrixPrecision::kFp16:
      return CudaCase("CudaFp16", {.precision = precision}, 4e-3);
  }
  return {};
}

// Bits of a number's significand.
int Precision(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 24;
    case ElementType::kFloat64:
      return 53;
    case ElementType::kBfloat16:
      return 8;
    case ElementType::kFloat16:
      return 11;
    case ElementType::kInt32:
      break;
  }
  return 31;
}

}  // namespace

// Each value brings the next one.
std::vector<Activation> AllActivations() {
  std::vector<Activation> all = {Activation::kRelu};
  while (true) {
    switch (all.back()) {
      case Activation::kRelu:
        all.push_back(Activation::kTanh);
        break;
      case Activation::kTanh:
        all.push_back(Activation::kGelu);
        break;
      case Activation::kGelu:
        return all;
    }
  }
}

std::vector<MatrixPrecision> AllPrecisions() {
  std::vector<MatrixPrecision> all = {MatrixPrecision::kFloat32};
  while (true) {
    switch (all.back()) {
      case MatrixPrecision::kFloat32:
        all.push_back(MatrixPrecision::kTf32);
        break;
      case MatrixPrecision::kTf32:
        all.push_back(MatrixPrecision::kBf16);
        break;
      case MatrixPrecision::kBf16:
        all.push_back(MatrixPrecision::kFp16);
        break;
      case MatrixPrecision::kFp16:
        return all;
    }
  }
}

std::vector<BackendCase> AllBackends() {
  std::vector<BackendCase> backends = {
      {"Cpu", [] { return CreateCpuBackend({}); }},
      {"CpuIm2col", [] { return CreateCpuBackend({.compute_threads = 1, .im2col_convolutions = true}); }},
      {"CpuTwoThreads", [] { return CreateCpuBackend({.compute_threads = 2}); }},
      CudaCase("CudaWithoutCudnn", {.cudnn = false}),
      // Images and rows of scores in many parts.
      CudaCase("CudaInParts", {.cudnn = false, .workspace_elements = 1000}),
      CudaCase("CudaFp16WithoutFusedAttention", {.precision = MatrixPrecision::kFp16, .fused_attention = false}, 4e-3),
  };
  for (MatrixPrecision precision : AllPrecisions()) backends.push_back(PrecisionCase(precision));
  return backends;
}

std::string CaseName(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

void ConformanceTest::SetUp() {
  absl::StatusOr<std::unique_ptr<Backend>> backend = GetParam().create();
  if (absl::IsFailedPrecondition(backend.status()))
    GTEST_SKIP() << GetParam().name << ": " << backend.status().message();
  ASSERT_TRUE(backend.ok()) << backend.status();
  backend_ = *std::move(backend);
}

DeviceTensor ConformanceTest::Empty(Shape shape, ElementType type) {
  absl::StatusOr<DeviceTensor> tensor = backend_->Allocate(std::move(shape), type);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return *tensor;
}

DeviceTensor ConformanceTest::Upload(Shape shape, const Values& values) {
  std::vector<float> floats(values.begin(), values.end());
  DeviceTensor tensor = Empty(std::move(shape));
  EXPECT_OK(backend_->CopyToDevice(tensor, 0, tensor.elements(), floats.data()));
  EXPECT_OK(backend_->Synchronize());
  return tensor;
}

DeviceTensor ConformanceTest::UploadInts(Shape shape, const std::vector<int32_t>& values) {
  DeviceTensor tensor = Empty(std::move(shape), ElementType::kInt32);
  EXPECT_OK(backend_->CopyToDevice(tensor, 0, tensor.elements(), values.data()));
  EXPECT_OK(backend_->Synchronize());
  return tensor;
}

DeviceTensor ConformanceTest::Unwritten(Shape shape) {
  return Upload(shape, Values(NumElements(shape), std::numeric_limits<double>::quiet_NaN()));
}

DeviceTensor ConformanceTest::UploadActivation(Shape shape, const Values& values) {
  const DeviceTensor floats = Upload(shape, values);
  if (backend_->ActivationType() == floats.type()) return floats;
  DeviceTensor tensor = EmptyActivation(std::move(shape));
  EXPECT_OK(backend_->Copy(floats, tensor));
  return tensor;
}

DeviceTensor ConformanceTest::UnwrittenActivation(Shape shape) {
  return UploadActivation(shape, Values(NumElements(shape), std::numeric_limits<double>::quiet_NaN()));
}

Values ConformanceTest::Download(const DeviceTensor& tensor) {
  if (ElementBytes(tensor.type()) == 2) {
    const DeviceTensor floats = Empty(tensor.shape());
    EXPECT_OK(backend_->Copy(tensor, floats));
    return Download(floats);
  }
  if (tensor.type() == ElementType::kFloat64) {
    Values values(tensor.elements());
    EXPECT_OK(backend_->CopyToHost(tensor, 0, tensor.elements(), values.data()));
    EXPECT_OK(backend_->Synchronize());
    return values;
  }
  std::vector<float> floats(tensor.elements());
  EXPECT_OK(backend_->CopyToHost(tensor, 0, tensor.elements(), floats.data()));
  EXPECT_OK(backend_->Synchronize());
  return Values(floats.begin(), floats.end());
}

std::vector<int32_t> ConformanceTest::DownloadInts(const DeviceTensor& tensor) {
  std::vector<int32_t> values(tensor.elements());
  EXPECT_OK(backend_->CopyToHost(tensor, 0, tensor.elements(), values.data()));
  EXPECT_OK(backend_->Synchronize());
  return values;
}

double ConformanceTest::AsActivation(double value) {
  const ElementType type = backend_->ActivationType();
  const int bits = Precision(type);
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

Values ConformanceTest::RandomValues(int64_t n) {
  Values values(n);
  for (double& value : values) value = AsActivation(random_.Normal());
  return values;
}

void ConformanceTest::ExpectClose(const DeviceTensor& actual, const Values& expected, const char* what) {
  const Values values = Download(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  double scale = 0;
  for (double value : expected) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], GetParam().tolerance * scale)
        << what << ", element " << i << " of " << values.size();
  }
}

}  // namespace rubato::conformance
