#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "common/random.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

struct ClicksOptions {
  uint64_t seed = 3;
  int64_t examples = 200;
  int64_t keys = 1000;
  double exponent = 1.05;
  bool test = false;
};

absl::StatusOr<std::shared_ptr<const Dataset>> TryToOpen(const ClicksOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  config.set_seed(options.seed);
  v1::ClicksData* clicks = config.mutable_data()->mutable_clicks();
  options.test ? clicks->set_test_examples(options.examples) : clicks->set_train_examples(options.examples);
  clicks->set_keys(options.keys);
  clicks->set_exponent(options.exponent);
  return OpenDataset(config, model, options.test ? Split::kTest : Split::kTrain);
}

std::shared_ptr<const Dataset> Open(const ClicksOptions& options, const ModelSpec& model) {
  return *TryToOpen(options, model);
}

struct Examples {
  std::vector<float> inputs;
  std::vector<int32_t> classes;
  std::vector<uint64_t> keys;
};

Examples Read(const Dataset& data, const std::vector<int64_t>& indices) {
  const auto n = static_cast<int64_t>(indices.size());
  Examples examples = {std::vector<float>(n * data.input_elements()), std::vector<int32_t>(n),
                       std::vector<uint64_t>(n * data.keys_per_example())};
  EXPECT_TRUE(
      data.Read(indices.data(), n, examples.inputs.data(), examples.classes.data(), nullptr, examples.keys.data())
          .ok());
  return examples;
}

Examples ReadAll(const Dataset& data) {
  std::vector<int64_t> indices(data.size());
  for (int64_t i = 0; i < data.size(); ++i) indices[i] = i;
  return Read(data, indices);
}

const ModelSpec kModel = KeyedModel(5, {1, 2});

TEST(ClicksDatasetTest, HasTheShapeOfTheModelsFeaturesAndTables) {
  const auto data = Open({}, kModel);
  EXPECT_EQ(data->size(), 200);
  EXPECT_EQ(data->input_shape(), Shape{5});
  EXPECT_EQ(data->keys_per_example(), 3);
  EXPECT_EQ(data->label_kind(), LabelKind::kClasses);
  EXPECT_EQ(data->labels_per_example(), 1);
}

TEST(ClicksDatasetTest, DependsOnTheSeedAlone) {
  const Examples a = ReadAll(*Open({.seed = 3}, kModel));
  const Examples b = ReadAll(*Open({.seed = 3}, kModel));
  const Examples c = ReadAll(*Open({.seed = 4}, kModel));
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_NE(a.inputs, c.inputs);
  EXPECT_NE(a.classes, c.classes);
  EXPECT_NE(a.keys, c.keys);
}

TEST(ClicksDatasetTest, AnExampleIsTheSameWhereverItIsRead) {
  const auto data = Open({}, kModel);
  const Examples all = ReadAll(*data);
  const Examples some = Read(*data, {17, 150});
  for (const size_t i : {0, 1}) {
    const size_t index = i == 0 ? 17 : 150;
    EXPECT_TRUE(std::equal(&some.inputs[5 * i], &some.inputs[5 * i] + 5, &all.inputs[5 * index]));
    EXPECT_TRUE(std::equal(&some.keys[3 * i], &some.keys[3 * i] + 3, &all.keys[3 * index]));
    EXPECT_EQ(some.classes[i], all.classes[index]);
  }
}

TEST(ClicksDatasetTest, TrainAndTestAreDifferentExamplesOfTheSameKeys) {
  const Examples train = ReadAll(*Open({.keys = 10}, kModel));
  const Examples test = ReadAll(*Open({.keys = 10, .test = true}, kModel));
  const std::set<float> seen(train.inputs.begin(), train.inputs.end());
  int shared = 0;
  for (float value : test.inputs) shared += seen.count(value) > 0 ? 1 : 0;
  EXPECT_LT(shared, 5);
  EXPECT_NE(train.keys, test.keys);
  EXPECT_EQ(std::set<uint64_t>(train.keys.begin(), train.keys.end()),
            std::set<uint64_t>(test.keys.begin(), test.keys.end()));
}

TEST(ClicksDatasetTest, EachPlaceHasKeysOfItsOwn) {
  const Examples examples = ReadAll(*Open({.examples = 2000, .keys = 10}, kModel));
  EXPECT_EQ(std::set<uint64_t>(examples.keys.begin(), examples.keys.end()).size(), 30u);
}

TEST(ClicksDatasetTest, KeysFollowThePowerLaw) {
  constexpr int64_t kExamples = 20000;
  for (const double exponent : {1.05, 2.0}) {
    double sum = 0;
    for (int k = 1; k <= 1000; ++k) sum += std::pow(k, -exponent);
    const Examples examples = ReadAll(*Open({.examples = kExamples, .exponent = exponent}, KeyedModel(1, {2})));
    std::map<uint64_t, int64_t> counts;
    for (uint64_t key : examples.keys) ++counts[key];
    for (const uint64_t place : {0, 1}) {
      for (const uint64_t rank : {1, 2, 3}) {
        const double expected = static_cast<double>(kExamples) * std::pow(rank, -exponent) / sum;
        // More than four standard deviations.
        EXPECT_NEAR(static_cast<double>(counts[StreamId("clicks", place, rank)]), expected, 4.5 * std::sqrt(expected));
      }
    }
  }
}

TEST(ClicksDatasetTest, TakesNoMemoryForItsKeysAndExamples) {
  const auto data = Open({.examples = (int64_t{1} << 31) - 1, .keys = int64_t{1} << 40, .exponent = 0.5}, kModel);
  const Examples examples = Read(*data, {0, 1, (int64_t{1} << 31) - 2});
  EXPECT_EQ(std::set<uint64_t>(examples.keys.begin(), examples.keys.end()).size(), 9u);
}

TEST(ClicksDatasetTest, BothClassesAreCommon) {
  int64_t ones = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int32_t one : ReadAll(*Open({.seed = seed, .examples = 500}, KeyedModel(4, {26}))).classes) {
      ASSERT_TRUE(one == 0 || one == 1);
      ones += one;
    }
  }
  EXPECT_NEAR(static_cast<double>(ones) / 10000, 0.5, 0.1);
}

// The mean square over many seeds, as each draws few hidden weights.
template <typename Statistic>
double MeanSquare(const ClicksOptions& options, const ModelSpec& model, Statistic statistic) {
  constexpr int kSeeds = 30;
  double sum = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ClicksOptions seeded = options;
    seeded.seed = seed;
    const double value = statistic(ReadAll(*Open(seeded, model)));
    sum += value * value;
  }
  return sum / kSeeds;
}

double LogOdds(int64_t ones, int64_t examples) {
  return std::log((static_cast<double>(ones) + 0.5) / (static_cast<double>(examples - ones) + 0.5));
}

TEST(ClicksDatasetTest, TheClassFollowsTheFeatures) {
  // One key, whose weight is the same for all.
  const auto slope = [](const Examples& examples) {
    int64_t ones[2] = {}, all[2] = {};
    for (size_t i = 0; i < examples.classes.size(); ++i) {
      const bool positive = examples.inputs[i] > 0;
      ones[positive] += examples.classes[i];
      ++all[positive];
    }
    return LogOdds(ones[1], all[1]) - LogOdds(ones[0], all[0]);
  };
  // By chance it would be about 8 / 1000.
  EXPECT_GT(MeanSquare({.examples = 1000, .keys = 1}, KeyedModel(1, {1}), slope), 0.5);
}

// Log odds of the class by the ranks, 1 or 2, of the first two keys.
std::vector<double> LogOddsByRanks(const Examples& examples) {
  int64_t ones[4] = {}, all[4] = {};
  for (size_t i = 0; i < examples.classes.size(); ++i) {
    const size_t cell = (examples.keys[2 * i] == StreamId("clicks", 0, 1) ? 0 : 2) +
                        (examples.keys[2 * i + 1] == StreamId("clicks", 1, 1) ? 0 : 1);
    ones[cell] += examples.classes[i];
    ++all[cell];
  }
  std::vector<double> odds(4);
  for (int cell = 0; cell < 4; ++cell) odds[cell] = LogOdds(ones[cell], all[cell]);
  return odds;
}

TEST(ClicksDatasetTest, TheClassFollowsEachKeyAndThePairOfTheFirstTwo) {
  const ClicksOptions options = {.examples = 1000, .keys = 2, .exponent = 0.01};
  const ModelSpec model = KeyedModel(1, {1, 1});
  const auto pair = [](const Examples& examples) {
    const std::vector<double> odds = LogOddsByRanks(examples);
    return odds[0] - odds[1] - odds[2] + odds[3];
  };
  // Of the first key alone, whatever the pairs add: its two weights are the same in both columns.
  const auto first = [](const Examples& examples) {
    const std::vector<double> odds = LogOddsByRanks(examples);
    return (odds[0] + odds[1] - odds[2] - odds[3]) / 2;
  };
  // Four weights with a variance of 1 each, less what the features blur. By chance it would be about 0.07.
  const double of_pairs = MeanSquare(options, model, pair);
  EXPECT_GT(of_pairs, 1);
  EXPECT_LT(of_pairs, 8);
  // Pairs alone would make a quarter of that.
  EXPECT_GT(MeanSquare(options, model, first), 0.4 * of_pairs);
}

TEST(ClicksDatasetTest, RefusesAModelWithoutTwoClasses) {
  ModelSpec three_classes = kModel, targets = kModel;
  three_classes.output = {3};
  targets.output = {1};
  targets.loss = v1::ModelConfig::MEAN_SQUARED_ERROR;
  for (const ModelSpec& model : {three_classes, targets}) {
    const absl::Status status = TryToOpen({}, model).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("; expected with data.clicks: BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over 2 classes"));
  }
}

TEST(ClicksDatasetTest, TakesAModelWithOneLogit) {
  ModelSpec model = kModel;
  model.output = {1};
  model.loss = v1::ModelConfig::BINARY_CROSS_ENTROPY;
  const Examples of_logits = ReadAll(*Open({.keys = 10}, model)), of_classes = ReadAll(*Open({.keys = 10}, kModel));
  EXPECT_EQ(of_logits.classes, of_classes.classes);
}

}  // namespace
}  // namespace rubato::worker
