#include "common/config/checkpoint_directory.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(CheckpointDirectoryTest, IsInTheRunDirectoryUnlessTheConfigSaysWhere) {
  v1::JobConfig config;
  config.set_run_directory("runs/a");
  EXPECT_EQ(CheckpointDirectory(config), "runs/a/checkpoints");
  config.mutable_checkpoint()->set_directory("/shared/a");
  EXPECT_EQ(CheckpointDirectory(config), "/shared/a");
}

}  // namespace
}  // namespace rubato
