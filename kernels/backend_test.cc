// What Backend does by itself, for every device: it checks arguments, and hands operations on.
#include "kernels/backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "kernels/planning_backend.h"
#include "kernels/testing/deferred_backend.h"

namespace rubato {
namespace {

using absl::StatusCode;

TEST(BackendTest, ArgumentsAreCheckedWhereNothingIsComputed) {
  PlanningBackend plan;
  const DeviceTensor x = *plan.Allocate({2, 3}), y = *plan.Allocate({2, 4}),
                     ints = *plan.Allocate({2}, ElementType::kInt32);
  EXPECT_TRUE(plan.Gemm(true, false, 1, x, y, 0, *plan.Allocate({3, 4})).ok());
  EXPECT_EQ(plan.Gemm(false, false, 1, x, y, 0, *plan.Allocate({3, 4})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(plan.Add(x, y, x).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(plan.Fill(0, ints).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(plan.Allocate({2}, ElementType::kBfloat16).status().code(), StatusCode::kInvalidArgument);
}

TEST(BackendTest, WhatIsWrongIsSaidAtOnceWhereTheDeviceComputesLater) {
  DeferredBackend device;
  const DeviceTensor x = *device.Allocate({3}), y = *device.Allocate({4});
  EXPECT_EQ(device.Copy(x, y).code(), StatusCode::kInvalidArgument);
  float host[4] = {};
  EXPECT_EQ(device.CopyToHost(x, 1, 3, host).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(device.CopyToDevice(x, -1, 1, host).code(), StatusCode::kOutOfRange);
  // Nothing of it has been given to the device.
  EXPECT_TRUE(device.Synchronize().ok());
}

TEST(BackendTest, OperationsAreDoneLaterWithTheArgumentsOfTheirCall) {
  DeferredBackend device;
  DeviceTensor x = *device.Allocate({3});
  float host[3] = {7, 7, 7};
  ASSERT_TRUE(device.Fill(2, x).ok());
  ASSERT_TRUE(device.Scale(3, x).ok());
  ASSERT_TRUE(device.CopyToHost(x, 0, 3, host).ok());
  x = DeviceTensor();
  EXPECT_EQ(host[0], 7);
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(host[2], 6);
}

TEST(BackendTest, OnlyABackendOfTheSameClassIsAPeer) {
  DeferredBackend device, peer;
  PlanningBackend plan;
  const DeviceTensor x = *peer.Allocate({3}), y = *device.Allocate({3});
  EXPECT_TRUE(device.CopyFromPeer(&peer, x, y).ok());
  const absl::Status status = device.CopyFromPeer(&plan, x, y);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "CopyFromPeer: plan is no peer of deferred");
  EXPECT_TRUE(device.Synchronize().ok());
}

}  // namespace
}  // namespace rubato
