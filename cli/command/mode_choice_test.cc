#include "cli/command/mode_choice.h"

#include "common/config/load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kStatic[] = R"pb(
  name: "job"
  cluster { workers: 2 }
  model {
    input_shape: 8
    layers { linear { units: 4 } }
    loss: SOFTMAX_CROSS_ENTROPY
  }
  data {
    teacher { train_examples: 100 }
    dispatch: STATIC
  }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 5 epochs: 1 }
)pb";

TEST(ModeChoiceTest, ReadsWhatItWrites) {
  for (const char* text : {"sync", "async", "ssp:1", "ssp:1048576"}) {
    absl::StatusOr<ModeChoice> mode = ParseMode(text, "--to");
    ASSERT_TRUE(mode.ok()) << mode.status();
    EXPECT_EQ(mode->Name(), text);
  }
  EXPECT_EQ(ParseMode("ssp:2", "--to")->DirectoryName(), "ssp2");
}

TEST(ModeChoiceTest, RefusesOtherTextsAndSaysWhatIsAllowed) {
  for (const char* text : {"", "SYNC", "ssp", "ssp:", "ssp:0", "ssp:-1", "ssp:1048577", "ssp:2x", "bsp"}) {
    absl::Status status = ParseMode(text, "--to").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--to: value \"")) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: sync, async, or ssp:N")) << text;
  }
}

TEST(ModeChoiceTest, RefusesAnEmptyListAndRepetitions) {
  EXPECT_FALSE(ParseModes({}, "--modes").ok());
  EXPECT_FALSE(ParseModes({"sync", "sync"}, "--modes").ok());
  EXPECT_TRUE(ParseModes({"ssp:1", "ssp:2"}, "--modes").ok());
}

TEST(ModeChoiceTest, PutsAConfigInAnyMode) {
  absl::StatusOr<v1::JobConfig> config = ParseJobConfig(kStatic, "test", {});
  ASSERT_TRUE(config.ok()) << config.status();
  config->mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config->mutable_consistency()->set_policy(v1::ConsistencyConfig::QUORUM);
  config->mutable_consistency()->mutable_quorum_policy()->set_share_min(0.5);
  for (const char* text : {"sync", "ssp:2", "async"}) {
    absl::StatusOr<v1::JobConfig> changed = ConfigInMode(*config, *ParseMode(text, "--modes"));
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(ModeOfConfig(*changed).Name(), text);
    EXPECT_GT(changed->data().shard_examples(), 0);
    EXPECT_EQ(changed->consistency().policy(), v1::ConsistencyConfig::SCHEDULE);
  }
}

TEST(ModeChoiceTest, TakesOutScheduledChanges) {
  absl::StatusOr<v1::JobConfig> config = ParseJobConfig(
      kStatic, "test", {"data.dispatch=DYNAMIC", "consistency.mode=SSP", "consistency.staleness_bound=2"});
  ASSERT_TRUE(config.ok()) << config.status();
  v1::ScheduledSwitch* change = config->mutable_consistency()->add_schedule();
  change->set_at_step(5);
  change->set_mode(v1::ASYNC);
  absl::StatusOr<v1::JobConfig> changed = ConfigInMode(*config, {v1::SYNC, 0});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->consistency().schedule_size(), 0);
  EXPECT_EQ(changed->consistency().staleness_bound(), 0);
}

TEST(ModeChoiceTest, AModeThatTheConfigCannotHaveIsAnError) {
  absl::StatusOr<v1::JobConfig> config = ParseJobConfig(kStatic, "test", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(ConfigInMode(*config, {v1::ASYNC, 0}).ok());
}

}  // namespace
}  // namespace rubato
