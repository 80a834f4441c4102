#include "common/limits/port_limits.h"

#include <gtest/gtest.h>

#include <climits>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

v1::JobConfig Config(uint32_t workers) {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(2);
  config.mutable_cluster()->set_workers(workers);
  config.mutable_cluster()->set_chunk_bytes(kMiB / 2);
  config.mutable_cluster()->set_message_bytes(kMiB);
  config.mutable_cluster()->set_connections_per_server(2);
  return config;
}

ModelSpec Model(int64_t elements) {
  ModelSpec model;
  model.tensors.push_back({.name = "a.weight", .shape = {elements}});
  return model;
}

TEST(PortLimitsTest, AServerTakesWhatItsModelNeedsAndNotMuchMore) {
  const PortLimits small = ServerLimits(Config(2), Model(1000));
  EXPECT_GE(small.message_bytes, 2 * kMiB);
  EXPECT_LE(small.message_bytes, 4 * kMiB);
  EXPECT_GE(small.queued_bytes, 64 * kMiB);
  EXPECT_LE(small.queued_bytes, 65 * kMiB);
  EXPECT_GE(small.streams_per_task, 4u);
  EXPECT_GT(small.calls_per_connection, static_cast<int>(small.streams_per_task));
  EXPECT_EQ(small.memory_bytes, 1024 * kMiB);
}

TEST(PortLimitsTest, WhatWaitsGrowsWithTheModelAndWhatAllHaveWithTheWorkers) {
  const size_t bytes = 400 * kMiB;
  const ModelSpec model = Model(static_cast<int64_t>(bytes / sizeof(float)));
  const PortLimits few = ServerLimits(Config(2), model);
  const PortLimits many = ServerLimits(Config(64), model);
  EXPECT_LE(few.message_bytes, 4 * kMiB);
  // A worker pushes everything, and asks for everything, before the first answer.
  EXPECT_GE(few.unanswered_bytes, bytes);
  EXPECT_GE(few.unanswered_requests, 800u);
  EXPECT_GE(few.queued_bytes, bytes);
  EXPECT_GE(many.memory_bytes, 64 * bytes);
  EXPECT_GT(many.memory_bytes, few.memory_bytes);
  EXPECT_GT(many.streams_per_host, 64 * many.streams_per_task);
}

TEST(PortLimitsTest, RowsAndCopiesOfPartsMayBeLarger) {
  v1::JobConfig config = Config(2);
  config.mutable_checkpoint()->set_copies(2);
  EXPECT_GT(ServerLimits(config, Model(1000)).message_bytes, 16 * kMiB);
  ModelSpec model = Model(1000);
  model.tables.emplace_back();
  EXPECT_GT(ServerLimits(Config(2), model).message_bytes, 256 * kMiB);
}

TEST(PortLimitsTest, AMessageHasASizeThatGrpcKnows) {
  v1::JobConfig config = Config(1024);
  config.mutable_checkpoint()->set_copies(2);
  EXPECT_LE(ServerLimits(config, Model(int64_t{1} << 38)).message_bytes, static_cast<size_t>(INT_MAX));
}

}  // namespace
}  // namespace rubato
