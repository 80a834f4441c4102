#include "kernels/cuda/emulation/gpu.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/device.h"

namespace rubato::cuda::emulation {
namespace {

constexpr int kElements = 16;
constexpr size_t kBytes = kElements * sizeof(float);

#define EXPECT_CUDA_OK(expression) EXPECT_EQ(expression, cudaSuccess)

class EmulatedGpuTest : public testing::Test {
 protected:
  EmulatedGpuTest() {
    EXPECT_CUDA_OK(cudaSetDevice(0));
    for (Stream& stream : streams_) EXPECT_CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    EXPECT_CUDA_OK(cudaMalloc(reinterpret_cast<void**>(&memory_), kBytes));
    EXPECT_CUDA_OK(cudaHostAlloc(reinterpret_cast<void**>(&host_), kBytes, cudaHostAllocPortable));
  }
  ~EmulatedGpuTest() override {
    for (Stream stream : streams_) EXPECT_CUDA_OK(cudaStreamDestroy(stream));
    EXPECT_CUDA_OK(cudaFree(memory_));
    EXPECT_CUDA_OK(cudaFreeHost(host_));
    (void)cudaGetLastError();
  }

  void Write(Stream stream, float value) {
    EXPECT_CUDA_OK(Enqueue(stream, [this, value] { memory_[0] = value; }));
  }

  Stream streams_[2];
  float *memory_ = nullptr, *host_ = nullptr;
};

TEST_F(EmulatedGpuTest, MemoryBeginsWithNaN) {
  EXPECT_CUDA_OK(cudaMemcpy(host_, memory_, kBytes, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::isnan(host_[kElements - 1]));
}

TEST_F(EmulatedGpuTest, WorkIsDoneWhenItIsWaitedFor) {
  bool late = false;
  for (int round = 0; round < 20; ++round) {
    const auto value = static_cast<float>(round);
    Write(streams_[0], value);
    late = late || memory_[0] != value;
    EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[0]));
    EXPECT_EQ(memory_[0], value);
  }
  EXPECT_TRUE(late);
}

TEST_F(EmulatedGpuTest, StreamsKeepTheOrderThatEventsGiveThem) {
  cudaEvent_t event;
  EXPECT_CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 0; round < 50; ++round) {
    Write(streams_[0], 1);
    EXPECT_CUDA_OK(cudaEventRecord(event, streams_[0]));
    EXPECT_CUDA_OK(cudaStreamWaitEvent(streams_[1], event, 0));
    Write(streams_[1], 2);
    EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[1]));
    EXPECT_EQ(memory_[0], 2);
    EXPECT_CUDA_OK(cudaEventQuery(event));
    EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[0]));
    EXPECT_EQ(memory_[0], 2);
  }
  EXPECT_CUDA_OK(cudaEventDestroy(event));
}

TEST_F(EmulatedGpuTest, AMissingEventShows) {
  int wrong = 0;
  for (int round = 0; round < 50; ++round) {
    Write(streams_[0], 1);
    Write(streams_[1], 2);
    for (Stream stream : {streams_[1], streams_[0]}) EXPECT_CUDA_OK(cudaStreamSynchronize(stream));
    wrong += memory_[0] != 2 ? 1 : 0;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(EmulatedGpuTest, RefusesCopiesOfWhatIsNotThere) {
  float pageable[kElements] = {};
  EXPECT_EQ(cudaMemcpyAsync(memory_, pageable, kBytes, cudaMemcpyHostToDevice, streams_[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host_, memory_ + 1, kBytes, cudaMemcpyDeviceToHost, streams_[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host_, host_, kBytes, cudaMemcpyDeviceToHost, streams_[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(EmulatedGpuTest, RefusesWorkForTheOtherGpu) {
  EXPECT_CUDA_OK(cudaSetDevice(1));
  EXPECT_EQ(Enqueue(streams_[0], [] {}), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA_OK(cudaSetDevice(0));
  EXPECT_CUDA_OK(Enqueue(streams_[0], [] {}));
}

TEST_F(EmulatedGpuTest, CapturedWorkIsDoneOnlyWhenItIsLaunched) {
  Write(streams_[0], 0);
  EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[0]));
  EXPECT_CUDA_OK(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA_OK(Enqueue(streams_[0], [this] { ++memory_[0]; }));
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA_OK(cudaStreamEndCapture(streams_[0], &graph));
  EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[0]));
  EXPECT_EQ(memory_[0], 0);
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_CUDA_OK(cudaGraphDestroy(graph));
  for (int launch = 0; launch < 3; ++launch) EXPECT_CUDA_OK(cudaGraphLaunch(executable, streams_[0]));
  EXPECT_CUDA_OK(cudaStreamSynchronize(streams_[0]));
  EXPECT_EQ(memory_[0], 3);
  EXPECT_CUDA_OK(cudaGraphExecDestroy(executable));
}

TEST_F(EmulatedGpuTest, WhatMayNotBeRecordedEndsTheRecording) {
  EXPECT_CUDA_OK(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal));
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, kBytes), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(streams_[0], &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_CUDA_OK(cudaMalloc(&more, kBytes));
  EXPECT_CUDA_OK(cudaFree(more));
}

TEST_F(EmulatedGpuTest, IsCountedAndFound) {
  EXPECT_EQ(*CountDevices(), 2);
  EXPECT_EQ(FindDevice(1)->name, "emulated GPU");
}

}  // namespace
}  // namespace rubato::cuda::emulation
