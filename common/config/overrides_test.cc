#include "common/config/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::HasSubstr;

// Applies to `config` and returns the error's text, empty when there is none.
std::string Apply(const std::vector<std::string>& overrides, v1::JobConfig* config) {
  return std::string(ApplyOverrides(overrides, config).message());
}

v1::JobConfig TwoLayers() {
  v1::JobConfig config;
  config.mutable_model()->add_input_shape(784);
  config.mutable_model()->add_layers()->mutable_relu();
  config.mutable_model()->add_layers()->mutable_linear()->set_units(10);
  return config;
}

TEST(OverridesTest, SetsEveryKindOfScalar) {
  v1::JobConfig config;
  EXPECT_EQ(Apply({"name=a b=\"c\"", "seed=18446744073709551615", "cluster.workers=3", "training.epochs=-4",
                   "optimizer.learning_rate=1e-3", "optimizer.momentum=0.5", "cluster.update_log=true",
                   "consistency.mode=ssp"},
                  &config),
            "");
  EXPECT_EQ(config.name(), "a b=\"c\"");
  EXPECT_EQ(config.seed(), ~uint64_t{0});
  EXPECT_EQ(config.cluster().workers(), 3u);
  EXPECT_EQ(config.training().epochs(), -4);
  EXPECT_EQ(config.optimizer().learning_rate(), 1e-3);
  EXPECT_EQ(config.optimizer().momentum(), 0.5);
  EXPECT_TRUE(config.cluster().update_log());
  EXPECT_EQ(config.consistency().mode(), v1::SSP);
}

TEST(OverridesTest, LaterOverridesWin) {
  v1::JobConfig config;
  EXPECT_EQ(Apply({"name=first", "name=second"}, &config), "");
  EXPECT_EQ(config.name(), "second");
}

TEST(OverridesTest, SetsElementsOfLists) {
  v1::JobConfig config = TwoLayers();
  config.mutable_model()->add_input_shape(5);
  EXPECT_EQ(Apply({"model.layers[1].linear.units=64", "model.input_shape[0]=7", "model.input_shape[2]=9"}, &config),
            "");
  EXPECT_EQ(config.model().layers(1).linear().units(), 64);
  EXPECT_THAT(config.model().input_shape(), ::testing::ElementsAre(7, 5, 9));
}

TEST(OverridesTest, IndexAfterTheLastAppends) {
  v1::JobConfig config;
  EXPECT_EQ(Apply({"consistency.schedule[0].at_step=100", "consistency.schedule[0].mode=ASYNC"}, &config), "");
  ASSERT_EQ(config.consistency().schedule_size(), 1);
  EXPECT_EQ(config.consistency().schedule(0).at_step(), 100);
  EXPECT_EQ(config.consistency().schedule(0).mode(), v1::ASYNC);
}

TEST(OverridesTest, SettingInsideAOneofSwitchesToIt) {
  v1::JobConfig config;
  config.mutable_data()->mutable_teacher()->set_train_examples(5);
  EXPECT_EQ(Apply({"data.idx.train_images=foo"}, &config), "");
  EXPECT_EQ(config.data().source_case(), v1::DataConfig::kIdx);
  EXPECT_EQ(config.data().idx().train_images(), "foo");
}

TEST(OverridesTest, SetsAWholeMessage) {
  v1::JobConfig config = TwoLayers();
  EXPECT_EQ(Apply({"model.layers[0].tanh={}", "data.teacher={train_examples: 9 hidden_units: 0}",
                   "model.layers[1]={conv2d {filters: 2 stride: 0}}"},
                  &config),
            "");
  EXPECT_TRUE(config.model().layers(0).has_tanh());
  EXPECT_EQ(config.data().teacher().train_examples(), 9);
  ASSERT_EQ(config.model().layers_size(), 2);
  EXPECT_EQ(config.model().layers(1).conv2d().filters(), 2);
  EXPECT_TRUE(config.data().teacher().has_hidden_units());
  EXPECT_TRUE(config.model().layers(1).conv2d().has_stride());
}

TEST(OverridesTest, AnEmptyValueClears) {
  v1::JobConfig config = TwoLayers();
  config.mutable_optimizer()->set_momentum(0.9);
  EXPECT_EQ(Apply({"optimizer.momentum=", "model.layers=", "model.input_shape="}, &config), "");
  EXPECT_FALSE(config.optimizer().has_momentum());
  EXPECT_EQ(config.model().layers_size(), 0);
  EXPECT_EQ(config.model().input_shape_size(), 0);
}

struct BadOverride {
  const char* text;
  const char* message;
};

TEST(OverridesTest, ErrorsNamePathValueAndWhatIsAllowed) {
  for (const BadOverride& bad : std::vector<BadOverride>{
           {"training.epochs", "no \"=\"; allowed: path=value"},
           {"=3", "no field \"\" in JobConfig; allowed: name, seed"},
           {"cluster.wrkers=3",
            "no field \"wrkers\" in ClusterConfig; did you mean workers?; allowed: servers, workers, evaluators"},
           {"cluster..workers=3", "no field \"\" in ClusterConfig"},
           {"cluster.workers.x=3", "workers has no fields"},
           {"cluster.workers[0]=3", "\"workers[0]\" has an index but is no list; allowed: workers"},
           {"cluster.workers=-1", "value -1 ("},
           {"cluster.workers=-1", "allowed: an integer from 0 to 4294967295"},
           {"cluster.workers=4294967296", "allowed: an integer from 0 to 4294967295"},
           {"training.epochs=1.5", "allowed: an integer from -9223372036854775808 to 9223372036854775807"},
           {"training.epochs=3 4", "value 3 4 ("},
           {"optimizer.learning_rate=fast", "value fast ("},
           {"optimizer.learning_rate=fast", "allowed: a number"},
           {"cluster.update_log=maybe", "allowed: true, false"},
           {"consistency.mode=slow", "allowed: SYNC, SSP, ASYNC"},
           {"model.layers.relu={}", "layers is a list; allowed: an index, as in layers[0]"},
           {"model.input_shape=3", "input_shape is a list"},
           {"model.layers[5].relu={}", "index 5 of layers; allowed: 0 to 2"},
           {"model.layers[-1].relu={}", "allowed: a number from 0 in brackets"},
           {"model.layers[99999999999].relu={}", "allowed: a number from 0 in brackets"},
           {"model.layers[1.relu={}", "allowed: a number from 0 in brackets"},
           {"data.teacher=5", "allowed: {...} in text format, or one of its fields: train_examples"},
           {"data.teacher={examples: 5}", "no field named \"examples\""},
       }) {
    v1::JobConfig config = TwoLayers();
    const std::string message = Apply({bad.text}, &config);
    EXPECT_THAT(message, HasSubstr(std::string("--set ") + bad.text + ": "));
    EXPECT_THAT(message, HasSubstr(bad.message)) << bad.text;
  }
}

TEST(OverridesTest, ReportsAllErrorsAtOnce) {
  v1::JobConfig config;
  const std::string message = Apply({"a=1", "seed=2", "b=3"}, &config);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1);
  EXPECT_THAT(message, HasSubstr("--set a=1"));
  EXPECT_THAT(message, HasSubstr("--set b=3"));
}

}  // namespace
}  // namespace rubato
