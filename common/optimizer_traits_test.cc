#include "common/optimizer_traits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace rubato {
namespace {

using v1::OptimizerConfig;

TEST(OptimizerTraitsTest, EveryOptionalFieldIsAParameterThatSomeAlgorithmTakes) {
  const google::protobuf::Descriptor* message = OptimizerConfig::descriptor();
  size_t optional_fields = 0;
  for (int i = 0; i < message->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = message->field(i);
    if (!field->has_optional_keyword()) continue;
    ++optional_fields;
    const auto parameter =
        std::find_if(std::begin(optimizer::kAll), std::end(optimizer::kAll),
                     [&](const OptimizerParameter* candidate) { return candidate->field == field->name(); });
    ASSERT_NE(parameter, std::end(optimizer::kAll)) << field->name();
    int users = 0;
    for (OptimizerConfig::Algorithm algorithm : AllAlgorithms())
      users += TakesParameter(algorithm, **parameter) ? 1 : 0;
    EXPECT_GT(users, 0) << field->name();
  }
  EXPECT_EQ(std::size(optimizer::kAll), optional_fields);
}

TEST(OptimizerTraitsTest, AParameterReadsAndWritesItsField) {
  for (const OptimizerParameter* parameter : optimizer::kAll) {
    SCOPED_TRACE(parameter->field);
    OptimizerConfig config;
    EXPECT_TRUE(parameter->range.holds(parameter->default_value));
    EXPECT_EQ(ParameterOf(config, *parameter), parameter->default_value);
    (config.*parameter->set)(0.25);
    EXPECT_TRUE((config.*parameter->is_set)());
    EXPECT_EQ(ParameterOf(config, *parameter), 0.25);
    const google::protobuf::FieldDescriptor* field = OptimizerConfig::descriptor()->FindFieldByName(parameter->field);
    EXPECT_EQ(config.GetReflection()->GetDouble(config, field), 0.25);
  }
}

TEST(OptimizerTraitsTest, TheLearningRateFollowsTheContributionsOrTheirRoot) {
  EXPECT_EQ(LearningRateFactor(OptimizerConfig::SGD, 0.25), 0.25);
  EXPECT_EQ(LearningRateFactor(OptimizerConfig::NESTEROV, 4), 4);
  EXPECT_EQ(LearningRateFactor(OptimizerConfig::ADAM, 0.25), 0.5);
  EXPECT_EQ(LearningRateFactor(OptimizerConfig::ADAGRAD, 4), 2);
}

TEST(OptimizerTraitsTest, WhatIsNoAlgorithmTakesNothing) {
  EXPECT_TRUE(ParametersOf(OptimizerConfig::ALGORITHM_UNSPECIFIED).empty());
  EXPECT_TRUE(ParametersOf(static_cast<OptimizerConfig::Algorithm>(99)).empty());
}

TEST(OptimizerTraitsTest, AllAlgorithmsAreThoseOfTheEnum) {
  const std::vector<OptimizerConfig::Algorithm> all = AllAlgorithms();
  ASSERT_EQ(static_cast<int>(all.size()), OptimizerConfig::Algorithm_descriptor()->value_count() - 1);
  EXPECT_EQ(all.front(), OptimizerConfig::SGD);
}

}  // namespace
}  // namespace rubato
