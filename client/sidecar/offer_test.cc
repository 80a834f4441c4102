#include "client/sidecar/offer.h"

#include <gtest/gtest.h>

#include "common/task.h"

namespace rubato::client {
namespace {

Model TwoTensors() {
  Model model;
  model.tensors = {{.name = "weight", .shape = {3, 2}, .group = 1}, {.name = "bias"}};
  model.groups = {{.learning_rate = 0.1, .weight_decay = 0.5, .momentum = 0.9, .epsilon = 1},
                  {.learning_rate = 0.2, .momentum = 0.8}};
  model.algorithm = v1::OptimizerConfig::MOMENTUM;
  model.initial_accumulator = 3;
  return model;
}

v1::TaskId Worker() {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(1);
  return task;
}

TEST(OfferTest, SaysWhatTheModelConsistsOf) {
  const v1::OfferModelRequest offer = MakeOffer(TwoTensors(), Worker());
  EXPECT_EQ(offer.task().index(), 1u);
  EXPECT_EQ(offer.protocol_version(), kProtocolVersion);
  EXPECT_EQ(offer.manifest().groups(), 2u);
  ASSERT_EQ(offer.manifest().tensors_size(), 2);
  EXPECT_EQ(offer.manifest().tensors(0).name(), "weight");
  EXPECT_EQ(offer.manifest().tensors(0).shape_size(), 2);
  EXPECT_EQ(offer.manifest().tensors(0).group(), 1u);
  EXPECT_EQ(offer.manifest().tensors(1).shape_size(), 0);
  EXPECT_FALSE(offer.has_data());
}

TEST(OfferTest, HasWhatTheAlgorithmTakesAndNothingElse) {
  const v1::OptimizerConfig optimizer = MakeOffer(TwoTensors(), Worker()).optimizer();
  EXPECT_EQ(optimizer.algorithm(), v1::OptimizerConfig::MOMENTUM);
  EXPECT_EQ(optimizer.learning_rate(), 0.1);
  EXPECT_EQ(optimizer.momentum(), 0.9);
  EXPECT_FALSE(optimizer.has_epsilon());
  EXPECT_FALSE(optimizer.has_initial_accumulator());
  const v1::GroupHyperparameters group = MakeGroup(1, TwoTensors().groups[1], v1::OptimizerConfig::ADAGRAD);
  EXPECT_EQ(group.group(), 1u);
  EXPECT_EQ(group.learning_rate(), 0.2);
  EXPECT_FALSE(group.has_momentum());
  EXPECT_TRUE(group.has_epsilon());
}

TEST(OfferTest, TablesHaveWhatTheirAlgorithmTakes) {
  Model model = TwoTensors();
  Model::Table table = {
      .name = "users", .dimension = 16, .shards = 8, .learning_rate = 0.5, .epsilon = 1, .beta2 = 0.9};
  table.algorithm = RUBATO_TABLE_ADAGRAD;
  model.tables.push_back(table);
  table.algorithm = RUBATO_TABLE_FTRL;
  table.l1 = 3;
  table.shards = 0;
  table.admit_after = 2;
  table.admission_counters = 1 << 20;
  table.expire_after_steps = 4;
  table.most_rows = 1000;
  table.precision = RUBATO_BF16;
  table.pull = RUBATO_BF16;
  model.tables.push_back(table);
  const v1::Manifest manifest = MakeOffer(model, Worker()).manifest();
  ASSERT_EQ(manifest.tables_size(), 2);
  EXPECT_EQ(manifest.tables(0).name(), "users");
  EXPECT_EQ(manifest.tables(0).dimension(), 16);
  EXPECT_EQ(manifest.tables(0).algorithm(), v1::TableConfig::ADAGRAD);
  EXPECT_EQ(manifest.tables(0).learning_rate(), 0.5);
  EXPECT_EQ(manifest.tables(0).epsilon(), 1);
  EXPECT_FALSE(manifest.tables(0).has_beta2());
  EXPECT_EQ(manifest.tables(0).shards(), 8u);
  EXPECT_TRUE(manifest.tables(0).has_initial_bound());
  EXPECT_FALSE(manifest.tables(1).has_epsilon());
  EXPECT_EQ(manifest.tables(1).l1(), 3);
  EXPECT_FALSE(manifest.tables(1).has_shards());
  EXPECT_FALSE(manifest.tables(1).has_memory_bytes());
  EXPECT_FALSE(manifest.tables(0).has_admit_after());
  EXPECT_FALSE(manifest.tables(0).has_admission_counters());
  EXPECT_EQ(manifest.tables(1).admit_after(), 2u);
  EXPECT_EQ(manifest.tables(1).admission_counters(), 1u << 20);
  EXPECT_EQ(manifest.tables(1).expire_after_steps(), 4u);
  EXPECT_EQ(manifest.tables(1).most_rows(), 1000u);
  EXPECT_FALSE(manifest.tables(0).has_precision());
  EXPECT_EQ(manifest.tables(1).precision(), v1::TableConfig::BF16);
  EXPECT_EQ(manifest.tables(1).push(), v1::CODEC_UNSPECIFIED);
  EXPECT_EQ(manifest.tables(1).pull(), v1::BF16);
}

TEST(OfferTest, LeasedDataAreOffered) {
  Model model = TwoTensors();
  model.leased_examples = 1000;
  model.shard_examples = 50;
  model.epochs = 3;
  const v1::OfferModelRequest offer = MakeOffer(model, Worker());
  EXPECT_EQ(offer.data().train_examples(), 1000);
  EXPECT_EQ(offer.shard_examples(), 50);
  EXPECT_EQ(offer.epochs(), 3);
}

TEST(OfferTest, AConfigOfAnotherModelIsRefused) {
  const v1::OfferModelRequest offer = MakeOffer(TwoTensors(), Worker());
  v1::JobConfig config;
  *config.mutable_model()->mutable_manifest() = offer.manifest();
  *config.mutable_optimizer() = offer.optimizer();
  EXPECT_TRUE(CheckConfig(config, offer).ok());
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  EXPECT_EQ(CheckConfig(config, offer).message(),
            "the coordinator's config has the optimizer SGD, and this worker MOMENTUM");
  config.mutable_model()->mutable_manifest()->mutable_tensors(1)->set_name("other");
  EXPECT_EQ(CheckConfig(config, offer).message(),
            "the coordinator's config has another model, of 2 tensors, than this worker's, of 2");
}

}  // namespace
}  // namespace rubato::client
