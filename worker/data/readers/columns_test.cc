#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

// Two features, a table of a column, a cross and buckets, and a bag of words.
constexpr char kColumns[] = R"(
  separator: ","
  label: "late"
  features { column: "miles" mean: 100 standard_deviation: 50 }
  features { column: "age" standard_deviation: 1 log1p: true }
  keys { columns: "from" }
  keys { columns: "from" columns: "to" }
  keys { columns: "miles" bucket: 100 }
  keys { columns: "text" words: true }
)";
constexpr int64_t kTables = 2, kPlaces = 3, kWords = 4, kKeys = kPlaces + kWords, kFeatures = 2;
constexpr char kHeader[] = "late,from,to,miles,age,text\n";

ModelSpec Model(v1::ModelConfig::Loss loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
  ModelSpec model = KeyedModel(kFeatures, {kPlaces, kWords});
  model.tables[0].config.set_name("places");
  model.tables[1].config.set_name("words");
  model.tables[1].config.set_combine(v1::TableConfig::MEAN);
  model.loss = loss;
  if (loss != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) model.output = {1};
  return model;
}

v1::JobConfig Config(const std::vector<std::string>& paths, const std::string& more = "") {
  v1::JobConfig config;
  v1::ColumnsData* const columns = config.mutable_data()->mutable_columns();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kColumns + more, columns));
  for (const std::string& path : paths) columns->add_train_paths(path);
  return config;
}

DatasetOr Open(const std::string& text, const ModelSpec& model = Model(), const std::string& more = "") {
  return OpenBothWays(Config({WriteTestFile("columns.csv", text)}, more), model);
}

std::string Error(const std::string& text, const ModelSpec& model = Model(), const std::string& more = "") {
  const absl::Status status = Open(text, model, more).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

struct Examples {
  std::vector<float> features;
  std::vector<int32_t> classes;
  std::vector<float> targets;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> counts;
};

Examples Read(const Dataset& data, const std::vector<int64_t>& indices) {
  const size_t n = indices.size();
  Examples examples = {std::vector<float>(n * kFeatures), std::vector<int32_t>(n), std::vector<float>(n),
                       std::vector<uint64_t>(n * kKeys), std::vector<uint32_t>(n * kTables)};
  const absl::Status status =
      data.Read(indices.data(), static_cast<int64_t>(n), examples.features.data(), examples.classes.data(),
                examples.targets.data(), examples.keys.data(), examples.counts.data());
  EXPECT_TRUE(status.ok()) << status;
  return examples;
}

TEST(ColumnsDatasetTest, ReadsLabelsFeaturesAndKeys) {
  const DatasetOr data = Open(absl::StrCat(kHeader, "1,LAS,PHL,250,3,\"A word, a WORD\"\n0,LAS,SAV,,,\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
  EXPECT_EQ((*data)->input_shape(), Shape{kFeatures});
  EXPECT_EQ((*data)->keys_per_example(), kKeys);
  EXPECT_EQ((*data)->key_counts_per_example(), kTables);
  const Examples examples = Read(**data, {1, 0});
  EXPECT_THAT(examples.classes, ElementsAre(0, 1));
  EXPECT_THAT(examples.features, ElementsAre(0, 0, 3, std::log1p(3.0f)));
  EXPECT_THAT(examples.counts, ElementsAre(3, 0, 3, 4));
  const uint64_t* const second = examples.keys.data();
  const uint64_t* const first = second + kKeys;
  EXPECT_EQ(first[0], second[0]);
  // The same numbers as in column_keys_test.cc: entry 0, "LAS".
  EXPECT_EQ(first[0], 0xb93ddaa9158ebe85u);
  EXPECT_NE(first[1], second[1]);
  EXPECT_NE(first[2], second[2]);
  EXPECT_EQ(first[3], first[5]);
  EXPECT_EQ(first[4], first[6]);
  EXPECT_EQ(std::set<uint64_t>(first, first + kKeys).size(), 5u);
}

TEST(ColumnsDatasetTest, BucketsAreOneKey) {
  std::string text = kHeader;
  for (const char* miles : {"100", "199.9", "200", "99", "-1", ""}) absl::StrAppend(&text, "0,A,B,", miles, ",1,\n");
  const DatasetOr data = Open(text);
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0, 1, 2, 3, 4, 5});
  std::set<uint64_t> different;
  for (int i = 0; i < 6; ++i) different.insert(examples.keys[i * kKeys + 2]);
  EXPECT_EQ(examples.keys[2], examples.keys[kKeys + 2]);
  EXPECT_EQ(different.size(), 5u);
}

TEST(ColumnsDatasetTest, ColumnsAreFoundByNameInEachFile) {
  const std::string first = WriteTestFile("first.csv", absl::StrCat(kHeader, "1,A,B,150,0,x\n"));
  const std::string second =
      WriteTestFile("second.csv", "\xef\xbb\xbftext,more,age,miles,to,from,late\r\nx,?,0,150,B,A,0\r\n");
  const DatasetOr data = OpenBothWays(Config({first, second}), Model());
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 2);
  const Examples examples = Read(**data, {0, 1});
  EXPECT_THAT(examples.classes, ElementsAre(1, 0));
  EXPECT_THAT(examples.features, ElementsAre(1, 0, 1, 0));
  for (int i = 0; i < kPlaces + 1; ++i) EXPECT_EQ(examples.keys[i], examples.keys[kKeys + i]) << i;
}

TEST(ColumnsDatasetTest, LabelsAreOfTheLoss) {
  const std::string text = absl::StrCat(kHeader, "15,A,B,1,1,\n15.5,A,B,1,1,\n-3,A,B,1,1,\n");
  const std::string over = "label_over: 15";
  for (const auto loss : {v1::ModelConfig::SOFTMAX_CROSS_ENTROPY, v1::ModelConfig::BINARY_CROSS_ENTROPY}) {
    const DatasetOr data = Open(text, Model(loss), over);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->label_kind(), LabelKind::kClasses);
    EXPECT_THAT(Read(**data, {0, 1, 2}).classes, ElementsAre(0, 1, 0));
  }
  const ModelSpec squared = Model(v1::ModelConfig::MEAN_SQUARED_ERROR);
  const DatasetOr numbers = Open(text, squared);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ((*numbers)->label_kind(), LabelKind::kTargets);
  EXPECT_EQ((*numbers)->target_elements(), 1);
  EXPECT_THAT(Read(**numbers, {0, 1, 2}).targets, ElementsAre(15, 15.5f, -3));
  const DatasetOr above = Open(text, squared, over);
  ASSERT_TRUE(above.ok()) << above.status();
  EXPECT_THAT(Read(**above, {0, 1, 2}).targets, ElementsAre(0, 1, 0));
}

TEST(ColumnsDatasetTest, OneKeyOfABagNeedsNoCounts) {
  v1::JobConfig config = Config({WriteTestFile("bag.csv", absl::StrCat(kHeader, "1,A,B,1,1,\n"))});
  config.mutable_data()->mutable_columns()->mutable_keys()->DeleteSubrange(1, 3);
  ModelSpec model = KeyedModel(kFeatures, {1});
  model.tables[0].config.set_combine(v1::TableConfig::SUM);
  const DatasetOr data = OpenBothWays(config, model);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->key_counts_per_example(), 0);
  const int64_t index = 0;
  float features[kFeatures];
  int32_t label = 0;
  uint64_t key = 0;
  ASSERT_TRUE((*data)->Read(&index, 1, features, &label, nullptr, &key).ok());
  EXPECT_NE(key, 0u);
}

TEST(ColumnsDatasetTest, ErrorsNameFileLineColumnAndValue) {
  const std::string path = ::testing::TempDir() + "/columns.csv";
  const std::string good = absl::StrCat(kHeader, "1,A,B,1,1,x\n");
  struct Case {
    std::string text;
    std::string message;
  };
  for (const Case& one : std::vector<Case>{
           {good + "2,A,B,1,1,x\n", ":3: column \"late\": value \"2\"; allowed: a class from 0 to 1, the label"},
           {good + ",A,B,1,1,x\n", ":3: column \"late\": value \"\"; allowed: a class from 0 to 1, the label"},
           {good + "0.5,A,B,1,1,x\n", ":3: column \"late\": value \"0.5\"; allowed: a class from 0 to 1, the label"},
           {good + "1,A,B,x\x01,1,x\n", ":3: column \"miles\": value \"x\\x01\"; allowed: a number, or nothing"},
           {good + "1,A,B,inf,1,x\n", ":3: column \"miles\": value \"inf\"; allowed: a number, or nothing"},
           {good + "1,A,B,1e300,1,x\n",
            ":3: column \"miles\": value \"1e300\"; allowed: a number whose feature is at most 3.4e38"},
           {good + "1,A,B,1e30,1,x\n",
            ":3: column \"miles\": value \"1e30\"; allowed: a number of at most 2^63 buckets of 100, or nothing"},
           {good + "1,A,B,1,-1,x\n", ":3: column \"age\": value \"-1\"; allowed: a number >= 0, or nothing"},
           {good + "1,A,B,1,1,a b c d e\n",
            ":3: column \"text\": 5 words; allowed: 4, the keys_per_example of model.tables[1] (words)"},
           {good + "1,A,B,1,1\n", ":3: 5 columns; expected: 6, as in the first line"},
           {good + "1,A,\"B\nC\",1,1,x\n2,A,B,1,1,x\n",
            ":5: column \"late\": value \"2\"; allowed: a class from 0 to 1, the label"},
           {good + "1,A,\"B,1,1,x\n",
            ":3: column 2: value \"\\\"B,1,1,x\\n\"; allowed: text without quotes, or between two of them and with "
            "each "
            "inside twice"},
           {"late,from,to,age,text\n1,A,B,1,x\n",
            ":1: no column \"miles\"; there are: \"late\", \"from\", \"to\", \"age\", \"text\""},
           {"late,from,to,miles,age,text,to\n1,A,B,1,1,x,B\n", ":1: two columns \"to\"; expected: one"},
           {kHeader, ": no example; expected: a header, and 1 or more"},
           {"", ": no example; expected: a header, and 1 or more"},
       }) {
    EXPECT_EQ(Error(one.text), path + one.message);
  }
  EXPECT_EQ(Error(absl::StrCat(kHeader, "x,A,B,1,1,x\n"), Model(), "label_over: 15"),
            path + ":2: column \"late\": value \"x\"; allowed: a number, the label");
}

TEST(ColumnsDatasetTest, AQuoteThatDoesNotEndIsAnError) {
  const std::string text = absl::StrCat(kHeader, "1,A,\"B", std::string(3 << 20, 'x'));
  EXPECT_THAT(Error(text), HasSubstr(":2: a line of more than 1048576 bytes; expected: columns, and quotes that end"));
}

TEST(ColumnsDatasetTest, AFileOnTheDiskReadsAsOneInMemory) {
  std::string text = kHeader;
  constexpr int kExamples = 30000;  // More than one block.
  for (int i = 0; i < kExamples; ++i) {
    absl::StrAppend(&text, i % 2, ",A", i % 7, ",\"B\n", i % 5, "\",", i, ",", i % 9, ",\"w", i % 3, ", w\"\n");
  }
  const std::string path = WriteTestFile("large.csv", text);
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
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto number = static_cast<float>(indices[i] % kExamples);
    ASSERT_EQ(a.features[i * kFeatures], (number - 100) / 50);
  }
}

TEST(ColumnsDatasetTest, AFileThatChangesWhileItIsReadIsAnError) {
  const std::string text = absl::StrCat(kHeader, "1,A,B,1,1,x\n");
  const std::string path = WriteTestFile("changing.csv", text);
  const DatasetOr data = OpenDataset(Config({path}), Model(), Split::kTrain);
  ASSERT_TRUE(data.ok()) << data.status();
  WriteTestFile("changing.csv", std::string(text.size(), 'x'));
  const int64_t index = 0;
  Examples out = {std::vector<float>(kFeatures),
                  std::vector<int32_t>(1),
                  {},
                  std::vector<uint64_t>(kKeys),
                  std::vector<uint32_t>(kTables)};
  const absl::Status status =
      (*data)->Read(&index, 1, out.features.data(), out.classes.data(), nullptr, out.keys.data(), out.counts.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(ColumnsDatasetTest, RefusesAModelOfAnotherShape) {
  const std::string text = absl::StrCat(kHeader, "1,A,B,1,1,x\n");
  ModelSpec model = Model();
  model.features = {3};
  EXPECT_EQ(Error(text, model), "data.columns.features: 2; expected: 3, as model.input_shape says");
  model = Model();
  model.tables.pop_back();
  EXPECT_EQ(Error(text, model), "data.columns.keys: value 4 entries; allowed: 3, as the model's tables have keys");
}

// Of "ab" and " ab", instead of words.
v1::JobConfig PairsConfig(const std::string& text) {
  v1::JobConfig config = Config({WriteTestFile("columns.csv", text)});
  v1::ColumnsData* const columns = config.mutable_data()->mutable_columns();
  columns->mutable_keys(3)->set_words(false);
  columns->mutable_keys(3)->set_byte_pairs(true);
  columns->set_byte_pairs(
      WriteTestFile("pairs", "rubato byte pairs 1\nlower_case 1\ntokens 258\n97 98 ab\n32 256 _ab\n"));
  return config;
}

TEST(ColumnsDatasetTest, BytePairsAreKeysOfTheirText) {
  const DatasetOr data =
      OpenBothWays(PairsConfig(std::string(kHeader) + "1,LAS,PHL,50,0,Ab abz\n0,LAS,PHL,50,0,\n"), Model());
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples read = Read(**data, {0, 1});
  EXPECT_THAT(read.counts, ElementsAre(kPlaces, 3, kPlaces, 0));
  const DatasetOr words = Open(std::string(kHeader) + "1,LAS,PHL,50,0,z ab\n");
  ASSERT_TRUE(words.ok()) << words.status();
  const Examples of_words = Read(**words, {0});
  // A piece has the key that a word of the same text has.
  EXPECT_EQ(read.keys[kPlaces], of_words.keys[kPlaces + 1]);
  EXPECT_NE(read.keys[kPlaces + 1], read.keys[kPlaces]);
  EXPECT_EQ(read.keys[kPlaces + 2], of_words.keys[kPlaces]);
}

TEST(ColumnsDatasetTest, TooManyBytePairsAreRefused) {
  const absl::Status status =
      OpenBothWays(PairsConfig(std::string(kHeader) + "1,LAS,PHL,50,0,vwxyz\n"), Model()).status();
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(":2: column \"text\": 5 byte pairs; allowed: 4, the keys_per_example of model.tables[1] (words)"));
}

}  // namespace
}  // namespace rubato::worker
