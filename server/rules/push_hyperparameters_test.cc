#include "server/rules/push_hyperparameters.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace rubato::server {
namespace {

v1::OptimizerConfig Adam() {
  v1::OptimizerConfig config;
  config.set_algorithm(v1::OptimizerConfig::ADAM);
  config.set_learning_rate(0.1);
  config.set_beta1(0.9);
  config.set_beta2(0.999);
  config.set_epsilon(1e-8);
  return config;
}

absl::StatusOr<std::shared_ptr<const PushHyperparameters>> Read(const std::string& groups, uint32_t count = 2) {
  v1::PushPull push;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(groups, &push));
  const v1::OptimizerConfig optimizer = Adam();
  return PushHyperparameters::Read(push.groups(), {.optimizer = &optimizer, .groups = count});
}

std::string ErrorOf(const std::string& groups, uint32_t count = 2) {
  return std::string(Read(groups, count).status().message());
}

TEST(PushHyperparametersTest, AGroupHasTheJobsOptimizerWithWhatThePushSays) {
  const auto read = Read("groups { group: 1 learning_rate: 0.5 weight_decay: 0.25 beta2: 0.99 }");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->Find(0), nullptr);
  const v1::OptimizerConfig* config = (*read)->Find(1);
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->learning_rate(), 0.5);
  EXPECT_EQ(config->weight_decay(), 0.25);
  EXPECT_EQ(config->beta1(), 0.9);
  EXPECT_EQ(config->beta2(), 0.99);
}

TEST(PushHyperparametersTest, ALearningRateMayBeZero) { EXPECT_EQ(ErrorOf("groups { group: 1 }"), ""); }

TEST(PushHyperparametersTest, WhatIsNotAllowedIsNamed) {
  EXPECT_EQ(ErrorOf("groups { group: 2 }"), "push_pull.groups[0].group: 2; allowed: below 2");
  EXPECT_EQ(ErrorOf("groups { group: 1 } groups { group: 1 }"),
            "push_pull.groups[1].group: 1; allowed: a group that is named once");
  EXPECT_EQ(ErrorOf("groups { learning_rate: -1 }"), "push_pull.groups[0].learning_rate: -1; allowed: a number >= 0");
  EXPECT_EQ(ErrorOf("groups { learning_rate: inf }"), "push_pull.groups[0].learning_rate: inf; allowed: a number >= 0");
  EXPECT_EQ(ErrorOf("groups { weight_decay: nan }"), "push_pull.groups[0].weight_decay: nan; allowed: a number >= 0");
  EXPECT_EQ(ErrorOf("groups { beta1: 1 }"), "push_pull.groups[0].beta1: 1; allowed: 0 or more, less than 1");
  EXPECT_EQ(ErrorOf("groups { momentum: 0 }"), "push_pull.groups[0].momentum: 0; allowed: absent with ADAM");
  EXPECT_EQ(ErrorOf("groups { }", 0),
            "push_pull.groups: present; allowed: absent unless the job's workers are clients");
}

TEST(PushHyperparametersTest, AreComparedByValue) {
  v1::OptimizerConfig other = Adam();
  other.clear_beta1();  // The default is what the first one says.
  EXPECT_TRUE(SameHyperparameters(Adam(), other));
  other.set_beta2(0.99);
  EXPECT_FALSE(SameHyperparameters(Adam(), other));
}

}  // namespace
}  // namespace rubato::server
