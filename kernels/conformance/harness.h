#ifndef RUBATO_KERNELS_CONFORMANCE_HARNESS_H_
#define RUBATO_KERNELS_CONFORMANCE_HARNESS_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/random.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/conformance/reference.h"

// The suite that every backend passes: operations on random tensors against the float64 reference. Results are read
// through CopyToHost, as on a device.
namespace rubato::conformance {

using reference::Values;

struct BackendCase {
  std::string name;
  // FailedPrecondition: what it needs is not there, and its cases are skipped.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>()> create;
  // Largest difference allowed if activations, products or convolutions are part of it, relative to the largest
  // magnitude in the expected tensor.
  double tolerance = 1e-5;

  friend void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }
};

// Every backend. Those of a device are skipped, with the reason, if there is no such device.
std::vector<BackendCase> AllBackends();

// Every value of these enums. The build fails if one is missing (-Wswitch).
std::vector<Activation> AllActivations();
std::vector<MatrixPrecision> AllPrecisions();

// The same if everything is float32 or wider.
inline constexpr double kTolerance = 1e-5;

class ConformanceTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;

  DeviceTensor Empty(Shape shape, ElementType type = ElementType::kFloat32);
  // A float32 tensor with these values, or filled with NaN to show what is not written.
  DeviceTensor Upload(Shape shape, const Values& values);
  DeviceTensor UploadInts(Shape shape, const std::vector<int32_t>& values);
  DeviceTensor Unwritten(Shape shape);
  // The same as activations: of the backend's ActivationType.
  DeviceTensor UploadActivation(Shape shape, const Values& values);
  DeviceTensor UnwrittenActivation(Shape shape);
  DeviceTensor EmptyActivation(Shape shape) { return Empty(std::move(shape), backend_->ActivationType()); }
  Values Download(const DeviceTensor& tensor);
  std::vector<int32_t> DownloadInts(const DeviceTensor& tensor);

  // As an activation can hold it; exponents that its type has not are too rare in what is tested to matter.
  double AsActivation(double value);
  // Standard normal, as an activation can hold them.
  Values RandomValues(int64_t n);

  void ExpectClose(const DeviceTensor& actual, const Values& expected, const char* what);

  std::unique_ptr<Backend> backend_;
  Random random_{20240229};
};

std::string CaseName(const ::testing::TestParamInfo<BackendCase>& info);

}  // namespace rubato::conformance

#define EXPECT_OK(expression)                               \
  do {                                                      \
    absl::Status expect_ok_status = (expression);           \
    EXPECT_TRUE(expect_ok_status.ok()) << expect_ok_status; \
  } while (false)

#endif  // RUBATO_KERNELS_CONFORMANCE_HARNESS_H_
