#include "kernels/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace rubato {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Backend> NewBackend(int threads = 1) {
  absl::StatusOr<std::unique_ptr<Backend>> backend = CreateCpuBackend({.compute_threads = threads});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return *std::move(backend);
}

DeviceTensor New(Backend& backend, Shape shape, ElementType type = ElementType::kFloat32) {
  absl::StatusOr<DeviceTensor> tensor = backend.Allocate(std::move(shape), type);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return *tensor;
}

void ExpectRefused(const absl::Status& status, const char* message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(CpuBackendTest, RefusesThreadCountsOutOfRange) {
  EXPECT_EQ(CreateCpuBackend({.compute_threads = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateCpuBackend({.compute_threads = 1025}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuBackendTest, RefusesImpossibleAllocations) {
  auto backend = NewBackend();
  EXPECT_EQ(backend->Allocate({-1, 3}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend->Allocate({int64_t{1} << 40, int64_t{1} << 40}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CpuBackendTest, WhatIsInUseIsNotFree) {
  const DeviceMemory memory = *NewBackend()->Memory();
  EXPECT_GT(memory.free, 0);
  EXPECT_LT(memory.free, memory.total);
}

TEST(CpuBackendTest, HostPointerSharesTheElements) {
  auto backend = NewBackend();
  DeviceTensor tensor = New(*backend, {2, 3});
  float* host = backend->HostPointer(tensor);
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(host) % 64, 0u);
  ASSERT_TRUE(backend->Fill(4, tensor.Rows(1)).ok());
  EXPECT_EQ(std::vector<float>(host, host + 6), (std::vector<float>{4, 4, 4, 0, 0, 0}));
  EXPECT_EQ(backend->HostPointer(New(*backend, {2}, ElementType::kInt32)), nullptr);
  EXPECT_EQ(backend->HostPointer(DeviceTensor()), nullptr);
}

TEST(CpuBackendTest, NamesTheArgumentThatDoesNotFit) {
  auto backend = NewBackend();
  DeviceTensor a = New(*backend, {2, 3}), b = New(*backend, {4, 5}), c = New(*backend, {2, 5});
  ExpectRefused(backend->Gemm(false, false, 1, a, b, 0, c),
                "Gemm: b is float32 [4x5], expected a side of 3 to meet a, float32 [2x3]");
  ExpectRefused(backend->Gemm(true, true, 1, a, New(*backend, {4, 2}), 0, c),
                "Gemm: c is float32 [2x5], expected 3 rows of 4");
  ExpectRefused(backend->Axpy(1, a, b), "Axpy: y is float32 [4x5], expected float32 [2x3]");
  ExpectRefused(backend->AddBias(New(*backend, {4}), a), "AddBias: bias is float32 [4], expected float32 [3]");
  ExpectRefused(backend->Fill(1, DeviceTensor()), "Fill: y is no tensor, expected a float32 tensor, or one of 16 bits");
  ExpectRefused(backend->Dropout({.rate = 1}, a, a), "Dropout: rate 1 is not in 0 to 1 (excluded)");
  DeviceTensor sums = New(*backend, {2}, ElementType::kFloat64);
  ExpectRefused(backend->SoftmaxCrossEntropy(a, New(*backend, {2}), 1, {}, sums),
                "SoftmaxCrossEntropy: classes is float32 [2], expected int32 [2]");
  ExpectRefused(backend->MeanSquaredError(a, a, 1, {}, New(*backend, {2})),
                "MeanSquaredError: sums is float32 [2], expected float64 [2]");
}

TEST(CpuBackendTest, RefusesImagesThatDoNotFitTheirGeometry) {
  auto backend = NewBackend();
  Conv2dGeometry conv = {.channels = 1, .height = 4, .width = 4, .filters = 2, .kernel = 3};
  DeviceTensor x = New(*backend, {5, 1, 4, 4}), w = New(*backend, {2, 1, 3, 3});
  ExpectRefused(backend->Conv2d(conv, x, w, New(*backend, {5, 2, 3, 3})),
                "Conv2d: y is float32 [5x2x3x3], expected float32 [5x2x2x2]");
  conv.kernel = 5;
  EXPECT_THAT(std::string(backend->Conv2d(conv, x, w, x).message()), HasSubstr("do not fit an input of 4x4"));
  Pool2dGeometry pool = {.channels = 1, .height = 4, .width = 4, .window = 5, .stride = 1};
  EXPECT_THAT(std::string(backend->AveragePool2d(pool, x, x).message()), HasSubstr("do not fit an input of 4x4"));
}

// The rows that a batch has in common with another one are equal up to rounding.
TEST(CpuBackendTest, RowsDoNotDependOnTheRestOfTheBatch) {
  auto backend = NewBackend();
  DeviceTensor x = New(*backend, {64, 100}), w = New(*backend, {30, 100});
  for (int64_t i = 0; i < x.elements(); ++i) backend->HostPointer(x)[i] = static_cast<float>(i % 17) - 8;
  for (int64_t i = 0; i < w.elements(); ++i) backend->HostPointer(w)[i] = 0.1f * static_cast<float>(i % 13) - 0.5f;
  DeviceTensor all = New(*backend, {64, 30}), some = New(*backend, {7, 30});
  ASSERT_TRUE(backend->Gemm(false, true, 1, x, w, 0, all).ok());
  ASSERT_TRUE(backend->Gemm(false, true, 1, x.Rows(7), w, 0, some).ok());
  for (int64_t i = 0; i < some.elements(); ++i) {
    ASSERT_NEAR(backend->HostPointer(all)[i], backend->HostPointer(some)[i], 1e-4);
  }
}

#ifndef RUBATO_PORTABLE
// OpenBLAS starts its threads when it is loaded.
TEST(CpuBackendTest, OneComputeThreadStartsNoThread) {
  auto thread_count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = thread_count();
  auto backend = NewBackend();
  DeviceTensor a = New(*backend, {512, 512}), c = New(*backend, {512, 512});
  ASSERT_TRUE(backend->Gemm(false, false, 1, a, a, 0, c).ok());
  Conv2dGeometry conv = {.channels = 8, .height = 16, .width = 16, .filters = 8, .kernel = 3};
  ASSERT_TRUE(backend
                  ->Conv2d(conv, New(*backend, conv.InputShape(32)), New(*backend, conv.WeightShape()),
                           New(*backend, conv.OutputShape(32)))
                  .ok());
  EXPECT_EQ(thread_count(), before);
}
#endif

}  // namespace
}  // namespace rubato
