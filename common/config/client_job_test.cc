#include "common/config/client_job.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/config/load.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kAwaiting[] = R"(
  name: "clients"
  cluster { workers: 2 }
  consistency { mode: SYNC }
)";

constexpr char kOffer[] = R"(
  manifest {
    groups: 2
    tensors { name: "weight" shape: 8 shape: 3 }
    tensors { name: "bias" shape: 8 group: 1 }
    tensors { name: "scale" }
  }
  optimizer { algorithm: ADAM beta2: 0.99 }
)";

v1::OfferModelRequest Offer(const std::string& more = "") {
  v1::OfferModelRequest offer;
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(kOffer + more, &offer));
  return offer;
}

v1::JobConfig Awaiting(const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<v1::JobConfig> config =
      ParseJobConfig(kAwaiting, "job.textproto", overrides, {.may_await_model = true});
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(v1::JobConfig());
}

v1::JobConfig Complete(const v1::OfferModelRequest& offer = Offer(), const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<v1::JobConfig> config = CompleteJobConfig(Awaiting(overrides), offer);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(v1::JobConfig());
}

std::string ErrorOf(const v1::OfferModelRequest& offer, const std::vector<std::string>& overrides = {}) {
  return std::string(CompleteJobConfig(Awaiting(overrides), offer).status().message());
}

TEST(ClientJobTest, AConfigAwaitsItsModelOnlyWhereItMay) {
  EXPECT_TRUE(AwaitsModel(Awaiting()));
  EXPECT_TRUE(IsClientJob(Awaiting()));
  const absl::Status refused = ParseJobConfig(kAwaiting, "job.textproto", {}).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("model.layers: at least one layer is required"));
  const absl::Status half =
      ParseJobConfig(kAwaiting, "job.textproto", {"optimizer.algorithm=SGD"}, {.may_await_model = true}).status();
  EXPECT_THAT(std::string(half.message()), HasSubstr("model.layers: at least one layer is required"));
}

TEST(ClientJobTest, TheRestOfAnAwaitingConfigIsChecked) {
  const auto error = [](const char* override_text) {
    return std::string(ParseJobConfig(kAwaiting, "job", {override_text}, {.may_await_model = true}).status().message());
  };
  EXPECT_EQ(error("cluster.evaluators=1"),
            "cluster.evaluators: value 1; allowed: 0 in a client's job (model.manifest, or no model)");
  EXPECT_EQ(error("consistency.sync_every=4"),
            "consistency.sync_every: value 4; allowed: 1 in a client's job (model.manifest, or no model)");
  EXPECT_EQ(error("cluster.workers=0"), "cluster.workers: value 0; allowed: 1 to 1024");
}

TEST(ClientJobTest, AnOfferCompletesTheConfig) {
  const v1::JobConfig config = Complete();
  EXPECT_FALSE(AwaitsModel(config));
  EXPECT_TRUE(IsClientJob(config));
  EXPECT_EQ(config.model().manifest().tensors_size(), 3);
  EXPECT_EQ(config.data().dispatch(), v1::DataConfig::OWN);
  EXPECT_FALSE(config.data().has_shard_examples());
  EXPECT_EQ(config.optimizer().beta1(), 0.9);
  EXPECT_EQ(config.optimizer().beta2(), 0.99);
  EXPECT_EQ(config.training().epochs(), 0);
}

TEST(ClientJobTest, ACompleteConfigIsReadAgainAsItIs) {
  const v1::JobConfig config = Complete(Offer("data { train_examples: 1000 } epochs: 2"));
  const absl::StatusOr<v1::JobConfig> again = ParseJobConfig(ConfigText(config), "job.textproto", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), config.SerializeAsString());
}

TEST(ClientJobTest, LeasedDataHaveShardsAndEpochs) {
  const v1::JobConfig config = Complete(Offer("data { train_examples: 100000 } epochs: 3"));
  EXPECT_EQ(config.data().dispatch(), v1::DataConfig::DYNAMIC);
  EXPECT_EQ(config.data().shard_examples(), 2500);
  EXPECT_EQ(config.training().epochs(), 3);
  EXPECT_EQ(Complete(Offer("data { train_examples: 5 } epochs: 3")).data().shard_examples(), 10);
  EXPECT_EQ(Complete(Offer("data { train_examples: 5 } epochs: 3 shard_examples: 7")).data().shard_examples(), 7);
  EXPECT_EQ(Complete(Offer("data { train_examples: 5 }"), {"training.epochs=4"}).training().epochs(), 4);
  EXPECT_EQ(ErrorOf(Offer("data { train_examples: 5 }")),
            "training.epochs: value 0; allowed: 1 or more, unless training.max_steps is 1 or more");
}

TEST(ClientJobTest, AnOfferThatIsNoGoodIsRefusedWithAllErrors) {
  EXPECT_EQ(ErrorOf(Offer("optimizer { rho: 0.5 momentum: 2 } epochs: 2")),
            "optimizer.momentum: value 2; allowed: absent unless optimizer.algorithm is MOMENTUM, NESTEROV or "
            "LARS\n"
            "optimizer.momentum: value 2; allowed: 0 or more, less than 1\n"
            "optimizer.rho: value 0.5; allowed: absent unless optimizer.algorithm is RMSPROP\n"
            "training.epochs: value 2; allowed: absent if data.dispatch is OWN");
}

TEST(ClientJobTest, AModelMayHaveTables) {
  constexpr char kTable[] = "manifest { tables { name: \"users\" dimension: 16 algorithm: SGD learning_rate: 1 } }";
  const v1::JobConfig config = Complete(Offer(kTable));
  // As the client has offered it.
  EXPECT_FALSE(config.model().manifest().tables(0).has_shards());
  EXPECT_EQ(ErrorOf(Offer(kTable), {"consistency.compensation={dc_asgd {}}"}),
            "consistency.compensation: value present; allowed: absent in a job with model.manifest.tables");
  EXPECT_EQ(ErrorOf(Offer("manifest { tables { name: \"users\" dimension: 16 algorithm: SGD } }")),
            "model.manifest.tables[0].learning_rate: value 0; allowed: a number > 0 (users)");
}

TEST(ClientJobTest, MeanIsOfSyncAlone) {
  const v1::OfferModelRequest offer = Offer("optimizer { algorithm: MEAN }");
  v1::OfferModelRequest mean = offer;
  mean.mutable_optimizer()->clear_beta2();
  EXPECT_EQ(ErrorOf(mean), "");
  EXPECT_EQ(ErrorOf(mean, {"consistency.mode=ASYNC"}),
            "consistency.mode: value ASYNC; allowed: SYNC if optimizer.algorithm is MEAN");
  EXPECT_EQ(ErrorOf(mean, {"consistency.schedule[0].at_step=5", "consistency.schedule[0].mode=SSP",
                           "consistency.schedule[0].staleness_bound=2"}),
            "consistency.schedule[0].mode: value SSP; allowed: SYNC if optimizer.algorithm is MEAN");
}

TEST(ClientJobTest, OnlyAnAwaitingConfigIsCompleted) {
  EXPECT_TRUE(absl::IsFailedPrecondition(CompleteJobConfig(Complete(), Offer()).status()));
}

TEST(ClientJobTest, AServersConfigTakesTheModelAndKeepsWhatIsItsOwn) {
  const absl::StatusOr<v1::JobConfig> config =
      WithModelOf(Awaiting({"run_directory=elsewhere"}), Complete(Offer("data { train_examples: 5 } epochs: 2")));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run_directory(), "elsewhere");
  EXPECT_EQ(ConfigFingerprint(*config), ConfigFingerprint(Complete(Offer("data { train_examples: 5 } epochs: 2"))));
}

TEST(FirstDifferencesTest, AreNamedByPosition) {
  const v1::Manifest has = Offer().manifest();
  EXPECT_EQ(FirstDifferences(has, has), "");
  v1::Manifest other = has;
  other.mutable_tensors()->SwapElements(0, 1);
  other.mutable_tensors(2)->set_group(1);
  other.add_tensors()->set_name("more");
  EXPECT_EQ(FirstDifferences(has, other),
            "tensor 0: \"weight\" 8x3 in group 0, but this worker has \"bias\" 8 in group 1\n"
            "tensor 1: \"bias\" 8 in group 1, but this worker has \"weight\" 8x3 in group 0\n"
            "tensor 2: \"scale\" scalar in group 0, but this worker has \"scale\" scalar in group 1");
  other = has;
  other.mutable_tensors()->RemoveLast();
  other.set_groups(3);
  EXPECT_EQ(FirstDifferences(has, other),
            "tensor 2: \"scale\" scalar in group 0, but this worker has no tensor there\n"
            "groups: 2, but this worker has 3");
}

TEST(FirstDifferencesTest, TablesAreNamedByPosition) {
  constexpr char kTable[] = "manifest { tables { name: \"users\" dimension: 16 algorithm: SGD learning_rate: 1 } }";
  const v1::Manifest has = Offer(kTable).manifest();
  EXPECT_EQ(FirstDifferences(has, has), "");
  v1::Manifest other = has;
  other.mutable_tables(0)->set_dimension(8);
  EXPECT_EQ(FirstDifferences(has, other),
            "table 0: { name: \"users\" dimension: 16 algorithm: SGD learning_rate: 1 }, but this worker has "
            "{ name: \"users\" dimension: 8 algorithm: SGD learning_rate: 1 }");
  EXPECT_EQ(FirstDifferences(Offer().manifest(), has),
            "table 0: no table there, but this worker has "
            "{ name: \"users\" dimension: 16 algorithm: SGD learning_rate: 1 }");
}

TEST(FirstDifferencesTest, OfAnOfferAreAlsoOptimizerAndData) {
  const v1::JobConfig config = Complete();
  EXPECT_EQ(FirstDifferences(config, Offer()), "");
  EXPECT_EQ(FirstDifferences(config, Offer("optimizer { learning_rate: 0.5 weight_decay: 1 }")), "");
  EXPECT_EQ(FirstDifferences(config, Offer("optimizer { algorithm: ADAMW } data { train_examples: 5 } epochs: 1")),
            "optimizer: ADAM, but this worker has ADAMW\n"
            "data: data of its own, but this worker has 5 leased examples in shards of 10, 1 epochs");
}

}  // namespace
}  // namespace rubato
