#include "client/link/model.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

Model TwoTensors() {
  Model model;
  model.tensors = {{.name = "weight", .shape = {3, 2}, .group = 1}, {.name = "bias"}};
  model.groups = {{.learning_rate = 0.1}, {.learning_rate = 0.2, .momentum = 0.9}};
  model.algorithm = 2;
  model.leased_examples = 1000;
  model.keep_weights = true;
  model.tables = {{.name = "users",
                   .dimension = 16,
                   .algorithm = RUBATO_TABLE_LAZY_ADAM,
                   .shards = 8,
                   .learning_rate = 0.5,
                   .beta2 = 0.9,
                   .memory_bytes = 1,
                   .admit_after = 2,
                   .admission_counters = 3,
                   .expire_after_steps = 4,
                   .most_rows = 5,
                   .precision = RUBATO_BF16,
                   .push = 6,
                   .pull = 7}};
  return model;
}

TEST(ModelTest, KnowsWhatServersKeep) {
  EXPECT_EQ(SlotsOf(RUBATO_SGD), 0u);
  EXPECT_EQ(SlotsOf(RUBATO_MOMENTUM), 1u);
  EXPECT_EQ(SlotsOf(RUBATO_ADAMW), 2u);
  EXPECT_EQ(SlotsOf(static_cast<rubato_algorithm>(99)), 0u);
}

TEST(ModelTest, ArrivesAsItWasSent) {
  Model model;
  ASSERT_TRUE(DecodeModel(EncodeModel(TwoTensors()), &model));
  ASSERT_EQ(model.tensors.size(), 2u);
  EXPECT_EQ(model.tensors[0].name, "weight");
  EXPECT_EQ(model.tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(model.tensors[0].group, 1u);
  EXPECT_TRUE(model.tensors[1].shape.empty());
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[1].momentum, 0.9);
  EXPECT_EQ(model.algorithm, 2u);
  EXPECT_EQ(model.leased_examples, 1000);
  EXPECT_TRUE(model.keep_weights);
  ASSERT_EQ(model.tables.size(), 1u);
  EXPECT_EQ(model.tables[0].name, "users");
  EXPECT_EQ(model.tables[0].dimension, 16);
  EXPECT_EQ(model.tables[0].algorithm, RUBATO_TABLE_LAZY_ADAM);
  EXPECT_EQ(model.tables[0].shards, 8u);
  EXPECT_EQ(model.tables[0].learning_rate, 0.5);
  EXPECT_EQ(model.tables[0].beta2, 0.9);
  EXPECT_EQ(model.tables[0].memory_bytes, 1u);
  EXPECT_EQ(model.tables[0].admit_after, 2u);
  EXPECT_EQ(model.tables[0].admission_counters, 3u);
  EXPECT_EQ(model.tables[0].expire_after_steps, 4u);
  EXPECT_EQ(model.tables[0].most_rows, 5u);
  EXPECT_EQ(model.tables[0].precision, static_cast<uint32_t>(RUBATO_BF16));
  EXPECT_EQ(model.tables[0].push, 6u);
  EXPECT_EQ(model.tables[0].pull, 7u);
}

TEST(ModelTest, RefusesWhatIsCutOffAnywhere) {
  const std::string body = EncodeModel(TwoTensors());
  Model model;
  for (size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(DecodeModel(body.substr(0, size), &model)) << size;
  EXPECT_FALSE(DecodeModel(body + "x", &model));
}

}  // namespace
}  // namespace rubato::client
