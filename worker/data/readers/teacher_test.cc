#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

struct Examples {
  std::vector<float> inputs;
  std::vector<int32_t> classes;
};

Examples ReadAll(const Dataset& data) {
  std::vector<int64_t> indices(data.size());
  for (int64_t i = 0; i < data.size(); ++i) indices[i] = i;
  Examples examples = {std::vector<float>(data.size() * data.input_elements()), std::vector<int32_t>(data.size())};
  EXPECT_TRUE(data.Read(indices.data(), data.size(), examples.inputs.data(), examples.classes.data(), nullptr).ok());
  return examples;
}

struct TeacherOptions {
  uint64_t seed = 0;
  int64_t examples = 0;
  double noise = 0;
  bool test = false;
};

std::shared_ptr<const Dataset> Open(const TeacherOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  config.set_seed(options.seed);
  v1::TeacherData* teacher = config.mutable_data()->mutable_teacher();
  options.test ? teacher->set_test_examples(options.examples) : teacher->set_train_examples(options.examples);
  teacher->set_hidden_units(64);
  teacher->set_noise(options.noise);
  return *OpenDataset(config, model, options.test ? Split::kTest : Split::kTrain);
}

const ModelSpec kModel = DataModel({6}, {4});

TEST(TeacherDatasetTest, DependsOnTheSeedAlone) {
  const Examples a = ReadAll(*Open({.seed = 3, .examples = 200}, kModel));
  const Examples b = ReadAll(*Open({.seed = 3, .examples = 200}, kModel));
  const Examples c = ReadAll(*Open({.seed = 4, .examples = 200}, kModel));
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_NE(a.inputs, c.inputs);
}

TEST(TeacherDatasetTest, AnExampleIsTheSameWhereverItIsRead) {
  const auto data = Open({.seed = 3, .examples = 50, .noise = 0.1}, kModel);
  const Examples all = ReadAll(*data);
  const int64_t index = 17;
  std::vector<float> input(6);
  int32_t label;
  ASSERT_TRUE(data->Read(&index, 1, input.data(), &label, nullptr).ok());
  EXPECT_EQ(input, std::vector<float>(all.inputs.begin() + 17 * 6, all.inputs.begin() + 18 * 6));
  EXPECT_EQ(label, all.classes[17]);
}

TEST(TeacherDatasetTest, TrainAndTestAreDifferentExamplesOfOneTeacher) {
  const Examples train = ReadAll(*Open({.seed = 3, .examples = 200}, kModel));
  const Examples test = ReadAll(*Open({.seed = 3, .examples = 200, .test = true}, kModel));
  const std::set<float> seen(train.inputs.begin(), train.inputs.end());
  int shared = 0;
  for (float value : test.inputs) shared += seen.count(value) > 0 ? 1 : 0;
  EXPECT_LT(shared, 5);
}

TEST(TeacherDatasetTest, UsesEveryClass) {
  const Examples examples = ReadAll(*Open({.seed = 1, .examples = 500}, kModel));
  EXPECT_EQ(std::set<int32_t>(examples.classes.begin(), examples.classes.end()), (std::set<int32_t>{0, 1, 2, 3}));
}

TEST(TeacherDatasetTest, OneOutputTellsTwoClassesApart) {
  const ModelSpec model = DataModel({6}, {1}, v1::ModelConfig::BINARY_CROSS_ENTROPY);
  const Examples examples = ReadAll(*Open({.seed = 1, .examples = 500}, model));
  const auto ones = std::count(examples.classes.begin(), examples.classes.end(), 1);
  EXPECT_EQ(std::count(examples.classes.begin(), examples.classes.end(), 0), 500 - ones);
  EXPECT_GT(ones, 150);
  EXPECT_LT(ones, 350);
}

TEST(TeacherDatasetTest, NoiseChangesSomeLabelsAndNoInput) {
  const Examples clean = ReadAll(*Open({.seed = 1, .examples = 500}, kModel));
  const Examples noisy = ReadAll(*Open({.seed = 1, .examples = 500, .noise = 0.2}, kModel));
  EXPECT_EQ(clean.inputs, noisy.inputs);
  int changed = 0;
  for (size_t i = 0; i < clean.classes.size(); ++i) changed += clean.classes[i] != noisy.classes[i] ? 1 : 0;
  EXPECT_GT(changed, 10);
  EXPECT_LT(changed, 250);
}

TEST(TeacherDatasetTest, SquaredErrorTakesTheOutputs) {
  const auto data = Open({.seed = 1, .examples = 5}, DataModel({6}, {2, 2}, v1::ModelConfig::MEAN_SQUARED_ERROR));
  EXPECT_EQ(data->label_kind(), LabelKind::kTargets);
  ASSERT_EQ(data->target_elements(), 4);
  const int64_t indices[] = {0, 1};
  std::vector<float> inputs(12), targets(8);
  ASSERT_TRUE(data->Read(indices, 2, inputs.data(), nullptr, targets.data()).ok());
  EXPECT_EQ(std::set<float>(targets.begin(), targets.end()).size(), 8u);
}

}  // namespace
}  // namespace rubato::worker
