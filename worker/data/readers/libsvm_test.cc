#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

constexpr int64_t kFeatures = 2, kLinear = 4, kFactors = 3, kKeys = kLinear + kFactors, kTables = 2;

// Two features, and two tables that take all indices, as a factorization machine has.
ModelSpec Model(v1::ModelConfig::Loss loss = v1::ModelConfig::BINARY_CROSS_ENTROPY) {
  ModelSpec model = KeyedModel(kFeatures, {kLinear, kFactors});
  const char* const names[] = {"linear", "factors"};
  for (size_t table = 0; table < kTables; ++table) {
    model.tables[table].config.set_name(names[table]);
    model.tables[table].config.set_combine(v1::TableConfig::SUM);
  }
  model.loss = loss;
  model.output = {loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY ? 3 : 1};
  return model;
}

ModelSpec DenseModel(v1::ModelConfig::Loss loss = v1::ModelConfig::BINARY_CROSS_ENTROPY) {
  ModelSpec model = Model(loss);
  model.tables.clear();
  model.input = model.features;
  return model;
}

v1::JobConfig Config(const std::vector<std::string>& paths) {
  v1::JobConfig config;
  for (const std::string& path : paths) config.mutable_data()->mutable_libsvm()->add_train_paths(path);
  return config;
}

DatasetOr Open(const std::string& text, const ModelSpec& model = Model(), uint64_t first_key = 0) {
  v1::JobConfig config = Config({WriteTestFile("examples.libsvm", text)});
  config.mutable_data()->mutable_libsvm()->set_first_key(first_key);
  return OpenBothWays(config, model);
}

std::string Error(const std::string& text, const ModelSpec& model = Model(), uint64_t first_key = 0) {
  const absl::Status status = Open(text, model, first_key).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

struct Examples {
  explicit Examples(size_t n)
      : features(n * kFeatures),
        classes(n),
        targets(n),
        keys(n * kKeys, 999),
        counts(n * kTables, 999),
        weights(n * kKeys, 999) {}

  absl::Status Read(const Dataset& data, const std::vector<int64_t>& indices) {
    return data.Read(indices.data(), static_cast<int64_t>(indices.size()), features.data(), classes.data(),
                     targets.data(), keys.data(), counts.data(), weights.data());
  }

  std::vector<float> features;
  std::vector<int32_t> classes;
  std::vector<float> targets;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> counts;
  std::vector<float> weights;
};

Examples Read(const Dataset& data, const std::vector<int64_t>& indices) {
  Examples examples(indices.size());
  const absl::Status status = examples.Read(data, indices);
  EXPECT_TRUE(status.ok()) << status;
  return examples;
}

TEST(LibsvmDatasetTest, ReadsLabelsFeaturesKeysAndWeights) {
  const DatasetOr data = Open("1 1:0.5 7:-2 18446744073709551615:1e-3\n\n0\t2:3 # 9:9\r\n+1\n");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->input_shape(), Shape{kFeatures});
  EXPECT_EQ((*data)->keys_per_example(), kKeys);
  EXPECT_EQ((*data)->key_counts_per_example(), kTables);
  EXPECT_EQ((*data)->key_weights_per_example(), kKeys);
  const Examples examples = Read(**data, {1, 0, 2});
  EXPECT_THAT(examples.classes, ElementsAre(0, 1, 1));
  EXPECT_THAT(examples.features, ElementsAre(0, 3, 0.5f, 0, 0, 0));
  EXPECT_THAT(examples.counts, ElementsAre(1, 1, 3, 3, 0, 0));
  // Both tables have the same.
  for (const int64_t first : {int64_t{0}, kLinear}) {
    EXPECT_EQ(examples.keys[first], 2u);
    EXPECT_EQ(examples.weights[first], 3);
    const uint64_t* const keys = examples.keys.data() + kKeys + first;
    const float* const weights = examples.weights.data() + kKeys + first;
    EXPECT_THAT(std::vector<uint64_t>(keys, keys + 3), ElementsAre(1, 7, UINT64_MAX));
    EXPECT_THAT(std::vector<float>(weights, weights + 3), ElementsAre(0.5f, -2, 1e-3f));
  }
}

TEST(LibsvmDatasetTest, ZerosAndQueryIdsAreLeftOut) {
  const DatasetOr data = Open("1 qid:12 0:1 3:0 4:0.0 5:2\n");
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0});
  EXPECT_THAT(examples.counts, ElementsAre(2, 2));
  EXPECT_EQ(examples.keys[0], 0u);
  EXPECT_EQ(examples.keys[1], 5u);
}

TEST(LibsvmDatasetTest, IndicesBeforeTheFirstKeyAreFeaturesAlone) {
  const DatasetOr data = Open("1 1:4 2:5 3:6\n", Model(), 3);
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0});
  EXPECT_THAT(examples.features, ElementsAre(4, 5));
  EXPECT_THAT(examples.counts, ElementsAre(1, 1));
  EXPECT_EQ(examples.keys[0], 3u);
  EXPECT_EQ(
      Error("1 0:1\n", Model(), 3),
      ::testing::TempDir() +
          "/examples.libsvm:1: field 1: value \"0:1\"; allowed: an index from 1 to 2, as model.input_shape says, or "
          "from 3 on, as data.libsvm.first_key says");
}

TEST(LibsvmDatasetTest, WithoutTablesAllIndicesAreFeatures) {
  const DatasetOr data = Open("1 2:0.25\n0 1:1 2:0\n", DenseModel());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->keys_per_example(), 0);
  EXPECT_EQ((*data)->key_weights_per_example(), 0);
  std::vector<float> features(2 * kFeatures);
  std::vector<int32_t> classes(2);
  const int64_t indices[] = {0, 1};
  ASSERT_TRUE((*data)->Read(indices, 2, features.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(features, ElementsAre(0, 0.25f, 1, 0));
  EXPECT_THAT(classes, ElementsAre(1, 0));
  for (const char* field : {"0:1", "3:1"}) {
    EXPECT_THAT(Error(absl::StrCat("1 ", field, "\n"), DenseModel()),
                HasSubstr(absl::StrCat(":1: field 1: value \"", field,
                                       "\"; allowed: an index from 1 to 2, as model.input_shape says")));
  }
}

TEST(LibsvmDatasetTest, LabelsAreOfTheLoss) {
  const std::string text = "-1 1:1\n+1 1:1\n2.5 1:1\n";
  v1::JobConfig config = Config({WriteTestFile("labels.libsvm", text)});
  const DatasetOr numbers = OpenBothWays(config, Model(v1::ModelConfig::MEAN_SQUARED_ERROR));
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ((*numbers)->label_kind(), LabelKind::kTargets);
  EXPECT_EQ((*numbers)->target_elements(), 1);
  EXPECT_THAT(Read(**numbers, {0, 1, 2}).targets, ElementsAre(-1, 1, 2.5f));
  config.mutable_data()->mutable_libsvm()->set_label_over(0);
  for (const auto loss : {v1::ModelConfig::BINARY_CROSS_ENTROPY, v1::ModelConfig::SOFTMAX_CROSS_ENTROPY}) {
    const DatasetOr classes = OpenBothWays(config, Model(loss));
    ASSERT_TRUE(classes.ok()) << classes.status();
    EXPECT_THAT(Read(**classes, {0, 1, 2}).classes, ElementsAre(0, 1, 1));
  }
  EXPECT_THAT(Error("3 1:1\n", Model(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY)),
              HasSubstr(":1: the label: value \"3\"; allowed: a class from 0 to 2"));
}

TEST(LibsvmDatasetTest, ErrorsNameFileLineFieldAndValue) {
  const std::string path = ::testing::TempDir() + "/examples.libsvm";
  const std::string pair = "; allowed: INDEX:VALUE, a whole number from 0 to 2^64-1 and a number of at most 3.4e38";
  struct Case {
    std::string line;
    std::string message;
  };
  for (const Case& one : std::vector<Case>{
           {"-1 1:1",
            "the label: value \"-1\"; allowed: a class from 0 to 1 (data.libsvm.label_over makes them of -1 "
            "and 1)"},
           {"x\x01 1:1",
            "the label: value \"x\\x01\"; allowed: a class from 0 to 1 (data.libsvm.label_over makes them "
            "of -1 and 1)"},
           {"1,2 1:1",
            "the label: value \"1,2\"; allowed: a class from 0 to 1 (data.libsvm.label_over makes them of -1 "
            "and 1)"},
           {"# a comment",
            "the label: value \"\"; allowed: a class from 0 to 1 (data.libsvm.label_over makes them of "
            "-1 and 1)"},
           {"1 1:1 7", "field 2: value \"7\"" + pair},
           {"1 7:", "field 1: value \"7:\"" + pair},
           {"1 :7", "field 1: value \":7\"" + pair},
           {"1 7:1:1", "field 1: value \"7:1:1\"" + pair},
           {"1 -7:1", "field 1: value \"-7:1\"" + pair},
           {"1 +7:1", "field 1: value \"+7:1\"" + pair},
           {"1 7.5:1", "field 1: value \"7.5:1\"" + pair},
           {"1 18446744073709551616:1", "field 1: value \"18446744073709551616:1\"" + pair},
           {"1 7:x", "field 1: value \"7:x\"" + pair},
           {"1 7:nan", "field 1: value \"7:nan\"" + pair},
           {"1 7:-inf", "field 1: value \"7:-inf\"" + pair},
           {"1 7:1e39", "field 1: value \"7:1e39\"" + pair},
           {"1 7:1 qid:3", "field 2: value \"qid:3\"" + pair},
           {"1 qid:x 7:1", "field 1: value \"qid:x\"" + pair},
           {"1 7:1 5:1", "field 2: value \"5:1\"; allowed: an index over 7, that of the field before"},
           {"1 7:1 7:2", "field 2: value \"7:2\"; allowed: an index over 7, that of the field before"},
           {"1 1:1 2:1 3:1 4:1",
            "field 4: value \"4:1\"; allowed: the end of the line, as it has 3 keys before, the keys_per_example of "
            "model.tables[1] (factors)"},
       }) {
    EXPECT_EQ(Error(absl::StrCat("1 1:1\n\n", one.line, "\n")), absl::StrCat(path, ":3: ", one.message));
  }
  EXPECT_EQ(Error(""), path + ": no example; expected: 1 or more");
}

TEST(LibsvmDatasetTest, ALineThatDoesNotEndIsAnError) {
  EXPECT_THAT(Error(std::string(3 << 20, '1')),
              HasSubstr(":1: a line of more than 1048576 bytes; expected: a label and index:value"));
}

TEST(LibsvmDatasetTest, AFileOnTheDiskReadsAsOneInMemory) {
  std::string text;
  constexpr int kExamples = 60000;  // More than one block.
  for (int i = 0; i < kExamples; ++i) absl::StrAppend(&text, i % 2, " 2:", i, " ", i + 3, ":0.5 # ", i, "\n");
  const std::string path = WriteTestFile("large.libsvm", text);
  v1::JobConfig config = Config({path, path});
  const DatasetOr on_disk = OpenDataset(config, Model(), Split::kTrain);
  config.mutable_data()->set_memory_bytes(1 << 30);
  const DatasetOr in_memory = OpenDataset(config, Model(), Split::kTrain);
  ASSERT_TRUE(on_disk.ok()) << on_disk.status();
  ASSERT_TRUE(in_memory.ok()) << in_memory.status();
  ASSERT_EQ((*on_disk)->size(), 2 * kExamples);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < kExamples; ++i) indices.push_back(i * 7919 % (2 * kExamples));
  const Examples a = Read(**on_disk, indices), b = Read(**in_memory, indices);
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.weights, b.weights);
  for (int64_t i = 0; i < kExamples; ++i) {
    const int64_t number = indices[i] % kExamples;
    ASSERT_EQ(a.features[i * kFeatures + 1], static_cast<float>(number));
    // 0 is left out.
    ASSERT_EQ(a.keys[i * kKeys + (number == 0 ? 0 : 1)], static_cast<uint64_t>(number) + 3);
  }
}

TEST(LibsvmDatasetTest, AFileThatChangesWhileItIsReadIsAnError) {
  const std::string text = "1 1:1 2:2\n";
  const std::string path = WriteTestFile("changing.libsvm", text);
  const DatasetOr data = OpenDataset(Config({path}), Model(), Split::kTrain);
  ASSERT_TRUE(data.ok()) << data.status();
  WriteTestFile("changing.libsvm", std::string(text.size(), 'x'));
  const absl::Status status = Examples(1).Read(**data, {0});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(LibsvmDatasetTest, RefusesRowsThatAreNotAddedUp) {
  ModelSpec model = Model();
  model.tables[1].config.set_combine(v1::TableConfig::MEAN);
  EXPECT_EQ(Error("1 1:1\n", model),
            "model.tables[1].combine: value MEAN; allowed: SUM, with data.libsvm, whose values the rows are multiplied "
            "with");
  model.tables[1].config.clear_combine();
  EXPECT_THAT(Error("1 1:1\n", model), HasSubstr("model.tables[1].combine: value absent; allowed: SUM"));
}

TEST(LibsvmDatasetTest, WithoutItsPathsItSaysSo) {
  const absl::Status status = OpenDataset(Config({"a"}), Model(), Split::kTest).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("data.libsvm.test_paths"));
}

}  // namespace
}  // namespace rubato::worker
