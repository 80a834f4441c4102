#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::cuda {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTest, SaysThatThereIsNoDriver) {
  const absl::Status status = CheckVersions({.driver = 0, .runtime = 13000});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no NVIDIA driver"));
}

TEST(DeviceTest, SaysThatTheDriverIsOlderThanTheRuntime) {
  const absl::Status status = CheckVersions({.driver = 12040, .runtime = 13000});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("up to 12.4, and this program was built with CUDA 13.0"));
}

TEST(DeviceTest, AcceptsTheSameMajorVersion) {
  EXPECT_TRUE(CheckVersions({.driver = 13000, .runtime = 13010}).ok());
  EXPECT_TRUE(CheckVersions({.driver = 14020, .runtime = 13000}).ok());
}

TEST(DeviceTest, SaysWhereToLookWhereThereIsNoGpu) {
  for (const absl::Status& status : {CheckCount(cudaErrorNoDevice, 0), CheckCount(cudaSuccess, 0)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("finds no GPU on this machine: nvidia-smi lists"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA_VISIBLE_DEVICES"));
  }
  EXPECT_TRUE(CheckCount(cudaSuccess, 1).ok());
}

TEST(DeviceTest, NamesTheCallThatTheDriverRefused) {
  const absl::Status status = CheckCount(cudaErrorUnknown, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cudaGetDeviceCount: cudaErrorUnknown (999), "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(": nvidia-smi says whether the driver is loaded"));
}

TEST(DeviceTest, RefusesGpusWithoutCode) {
  const absl::Status status = CheckCapability({.index = 1, .name = "Old", .compute_capability = 75});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "GPU 1 (Old) has compute capability 7.5; at least 8.0 is needed");
  EXPECT_TRUE(CheckCapability({.compute_capability = 90}).ok());
}

TEST(DeviceTest, FindsTheDeviceOrSaysWhatIsMissing) {
  const absl::StatusOr<Device> device = FindDevice(0);
  if (const absl::StatusOr<int> count = CountDevices(); count.ok()) {
    EXPECT_EQ(FindDevice(*count).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(*count > 0 || !device.ok());
  }
  if (device.ok()) {
    EXPECT_FALSE(device->name.empty());
    EXPECT_GT(device->memory_bytes, 0);
  } else {
    EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition) << device.status();
  }
}

}  // namespace
}  // namespace rubato::cuda
