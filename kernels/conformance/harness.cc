#include "kernels/conformance/harness.h"

#include <cmath>
#include <limits>

#include "kernels/backend_cuda.h"
#include "kernels/cpu/cpu_backend.h"

namespace rubato::conformance {

std::vector<BackendCase> AllBackends() {
  return {
      {"Cpu", [] { return CreateCpuBackend({}); }},
      {"CpuIm2col", [] { return CreateCpuBackend({.compute_threads = 1, .im2col_convolutions = true}); }},
      {"CpuTwoThreads", [] { return CreateCpuBackend({.compute_threads = 2}); }},
      {"Cuda", [] { return CreateCudaBackend({}); }},
      {"CudaWithoutCudnn", [] { return CreateCudaBackend({.cudnn = false}); }},
      // Images and rows of scores in many parts.
      {"CudaInParts", [] { return CreateCudaBackend({.cudnn = false, .workspace_elements = 1000}); }},
      // Inputs keep 10 bits after the point; sums of random products average the rounding out.
      {"CudaTf32", [] { return CreateCudaBackend({.precision = MatrixPrecision::kTf32}); }, 4e-3},
      // Inputs are what activations can hold, and so is what comes out: 7 and 10 bits.
      {"CudaBf16", [] { return CreateCudaBackend({.precision = MatrixPrecision::kBf16}); }, 1e-2},
      {"CudaFp16", [] { return CreateCudaBackend({.precision = MatrixPrecision::kFp16}); }, 4e-3},
      {"CudaFp16WithoutFusedAttention",
       [] { return CreateCudaBackend({.precision = MatrixPrecision::kFp16, .fused_attention = false}); }, 4e-3},
  };
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
  const int bits = type == ElementType::kBfloat16 ? 8 : type == ElementType::kFloat16 ? 11 : 24;
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
