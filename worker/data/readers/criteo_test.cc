#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

constexpr int64_t kFeatures = 13, kKeys = 26;

const ModelSpec& Model() {
  static const ModelSpec* const model = new ModelSpec(KeyedModel(kFeatures, {20, 6}));
  return *model;
}

DatasetOr Open(const std::vector<std::string>& paths, const ModelSpec& model = Model(), Split split = Split::kTrain) {
  v1::JobConfig config;
  v1::CriteoData* criteo = config.mutable_data()->mutable_criteo();
  auto* const field = split == Split::kTest ? criteo->mutable_test_paths() : criteo->mutable_train_paths();
  for (const std::string& path : paths) *field->Add() = path;
  return OpenBothWays(config, model, split);
}

DatasetOr OpenInMemory(const std::string& path) {
  v1::JobConfig config;
  config.mutable_data()->mutable_criteo()->add_train_paths(path);
  config.mutable_data()->set_memory_bytes(1 << 20);
  return OpenDataset(config, Model(), Split::kTrain);
}

std::string Error(const std::vector<std::string>& paths, const ModelSpec& model = Model()) {
  const absl::Status status = Open(paths, model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

struct Examples {
  std::vector<float> features;
  std::vector<int32_t> classes;
  std::vector<uint64_t> keys;
};

Examples Read(const Dataset& data, const std::vector<int64_t>& indices) {
  const auto n = static_cast<int64_t>(indices.size());
  Examples examples = {std::vector<float>(n * kFeatures), std::vector<int32_t>(n), std::vector<uint64_t>(n * kKeys)};
  const absl::Status status =
      data.Read(indices.data(), n, examples.features.data(), examples.classes.data(), nullptr, examples.keys.data());
  EXPECT_TRUE(status.ok()) << status;
  return examples;
}

// A line of that label, with the integers `first` and 2 to 13, and the categories "c0" to "c25".
std::string Line(absl::string_view label = "0", absl::string_view first = "1") {
  std::string line = absl::StrCat(label, "\t", first);
  for (int i = 2; i <= kFeatures; ++i) absl::StrAppend(&line, "\t", i);
  for (int i = 0; i < kKeys; ++i) absl::StrAppend(&line, "\tc", i);
  return line + "\n";
}

std::string WithColumn(int column, absl::string_view value) {
  std::string line = Line(), result;
  line.pop_back();
  for (int i = 0; i < 1 + kFeatures + kKeys; ++i) {
    const size_t end = std::min(line.find('\t'), line.size());
    absl::StrAppend(&result, i == 0 ? "" : "\t", i == column ? value : absl::string_view(line).substr(0, end));
    line.erase(0, end + 1);
  }
  return result + "\n";
}

std::string WriteGzip(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(file);
  return path;
}

TEST(CriteoDatasetTest, ReadsLabelsFeaturesAndKeys) {
  const DatasetOr data = Open({WriteTestFile("good.tsv", Line("0", "0") + Line("1", "100"))});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
  EXPECT_EQ((*data)->input_shape(), Shape{kFeatures});
  EXPECT_EQ((*data)->keys_per_example(), kKeys);
  const Examples examples = Read(**data, {1, 0});
  EXPECT_THAT(examples.classes, ElementsAre(1, 0));
  EXPECT_FLOAT_EQ(examples.features[0], std::log(101.0f));
  EXPECT_FLOAT_EQ(examples.features[12], std::log(14.0f));
  EXPECT_EQ(examples.features[kFeatures], 0);
  EXPECT_FLOAT_EQ(examples.features[kFeatures + 1], std::log(3.0f));
}

TEST(CriteoDatasetTest, MissingAndNegativeIntegersAreZero) {
  const DatasetOr data = Open({WriteTestFile("missing.tsv", WithColumn(1, "") + WithColumn(13, "-2"))});
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0, 1});
  EXPECT_EQ(examples.features[0], 0);
  EXPECT_EQ(examples.features[kFeatures + 12], 0);
}

// docs/formats.md has the formula; these numbers are from another implementation of it.
TEST(CriteoDatasetTest, KeysAreTheDocumentedHash) {
  const DatasetOr data = Open({WriteTestFile("hash.tsv", WithColumn(14, "68fd1e64") + WithColumn(39, ""))});
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0, 1});
  EXPECT_EQ(examples.keys[0], 0xb3e6832d5ae5d349u);
  EXPECT_EQ(examples.keys[kKeys + 25], 0x7c3618d31456032au);
}

TEST(CriteoDatasetTest, EqualTextHasAKeyInEachColumn) {
  for (const std::string text : {"", "a"}) {
    std::string line = "1";
    for (int i = 0; i < kFeatures; ++i) line += "\t";
    for (int i = 0; i < kKeys; ++i) line += "\t" + text;
    const DatasetOr data = Open({WriteTestFile("equal.tsv", line)});
    ASSERT_TRUE(data.ok()) << data.status();
    const Examples examples = Read(**data, {0});
    EXPECT_EQ(std::set<uint64_t>(examples.keys.begin(), examples.keys.end()).size(), 26u);
  }
}

TEST(CriteoDatasetTest, KeysDependOnTheTextAlone) {
  const DatasetOr data = Open({WriteTestFile("same.tsv", Line("0", "7") + Line("1", "8") + WithColumn(20, "other"))});
  ASSERT_TRUE(data.ok()) << data.status();
  const Examples examples = Read(**data, {0, 1, 2});
  for (int64_t i = 0; i < kKeys; ++i) {
    EXPECT_EQ(examples.keys[i], examples.keys[kKeys + i]);
    EXPECT_EQ(examples.keys[i] == examples.keys[2 * kKeys + i], i != 20 - 1 - kFeatures);
  }
}

TEST(CriteoDatasetTest, SeveralFilesFollowEachOtherPlainOrCompressed) {
  const std::string plain = WriteTestFile("part0", Line("0", "1") + Line("1", "2"));
  const std::string compressed = WriteGzip("part1", Line("1", "3"));
  const std::string last = WriteTestFile("part2", Line("0", "4") + Line("0", "5"));
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const DatasetOr data = Open({plain, compressed, last}, Model(), split);
    ASSERT_TRUE(data.ok()) << data.status();
    ASSERT_EQ((*data)->size(), 5);
    const Examples examples = Read(**data, {0, 1, 2, 3, 4});
    EXPECT_THAT(examples.classes, ElementsAre(0, 1, 1, 0, 0));
    for (int i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(examples.features[i * kFeatures], std::log(i + 2.0f));
  }
}

TEST(CriteoDatasetTest, SkipsCarriageReturnsAndEmptyLines) {
  std::string windows = Line("1");
  windows.insert(windows.size() - 1, "\r");
  std::string without_end = Line();
  without_end.pop_back();
  const DatasetOr data = Open({WriteTestFile("windows.tsv", "\n" + windows + "\r\n\n" + Line() + without_end)});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  const Examples examples = Read(**data, {0, 1, 2});
  EXPECT_THAT(examples.classes, ElementsAre(1, 0, 0));
  EXPECT_EQ(examples.keys[25], examples.keys[kKeys + 25]);
  EXPECT_EQ(examples.keys[25], examples.keys[2 * kKeys + 25]);
}

TEST(CriteoDatasetTest, ErrorsNameFileLineAndColumn) {
  const std::string columns = " columns; expected: 40 (a label, 13 integers and 26 categories, separated by tabs)";
  const std::string integer = "; allowed: an integer from -2^63 to 2^63-1, or nothing";
  struct Case {
    std::string text;
    std::string message;
  };
  for (const Case& one : std::vector<Case>{
           {Line("2"), ":1: column 0 (the label): value \"2\"; allowed: 0 or 1"},
           {Line(""), ":1: column 0 (the label): value \"\"; allowed: 0 or 1"},
           {Line() + "\n" + Line("0.5"), ":3: column 0 (the label): value \"0.5\"; allowed: 0 or 1"},
           {Line() + WithColumn(5, "x\x01"), ":2: column 5: value \"x\\x01\"" + integer},
           {WithColumn(13, "1.5"), ":1: column 13: value \"1.5\"" + integer},
           {WithColumn(1, " "), ":1: column 1: value \" \"" + integer},
           {WithColumn(1, "9223372036854775808"), ":1: column 1: value \"9223372036854775808\"" + integer},
           {Line() + Line().substr(2), ":2: 39" + columns},
           {Line() + "1\t" + Line(), ":2: 41" + columns},
           {Line() + "0,1,2", ":2: 1" + columns},
           {"", ": no example; expected: 1 or more"},
           {"\n\r\n", ": no example; expected: 1 or more"},
       }) {
    const std::string path = WriteTestFile("bad.tsv", one.text);
    EXPECT_EQ(Error({path}), path + one.message);
    // The file that is bad is named, not the first.
    EXPECT_EQ(Error({WriteTestFile("good.tsv", Line()), path}), path + one.message);
  }
}

TEST(CriteoDatasetTest, LongValuesAreCutAndEndlessLinesRefused) {
  EXPECT_LT(Error({WriteTestFile("long.tsv", WithColumn(3, std::string(1000, 'x')))}).size(), 300u);
  const std::string endless = WriteTestFile("endless.tsv", Line() + std::string(3 << 20, 'x'));
  EXPECT_EQ(Error({endless}), endless + ":2: a line of more than 1048576 bytes; expected: columns separated by tabs");
}

TEST(CriteoDatasetTest, MissingAndDamagedFilesAreErrors) {
  EXPECT_EQ(Open({"no/such/file"}).status().code(), absl::StatusCode::kNotFound);
  const std::string whole = WriteGzip("whole.gz", Line() + Line());
  std::ifstream stream(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  EXPECT_EQ(Open({WriteTestFile("cut.gz", bytes.substr(0, bytes.size() / 2))}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(CriteoDatasetTest, AFileOnTheDiskReadsAsOneInMemory) {
  std::string text;
  constexpr int kExamples = 20000;  // More than one block.
  for (int i = 0; i < kExamples; ++i) {
    text += Line(i % 3 == 0 ? "1" : "0", absl::StrCat(i));
    if (i % 1000 == 0) text += "\n";
  }
  for (const std::string& path : {WriteTestFile("large.tsv", text), WriteGzip("large.gz", text)}) {
    const DatasetOr on_disk = Open({path}), in_memory = OpenInMemory(path);
    ASSERT_TRUE(on_disk.ok()) << on_disk.status();
    ASSERT_TRUE(in_memory.ok()) << in_memory.status();
    ASSERT_EQ((*on_disk)->size(), kExamples);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < kExamples; ++i) indices.push_back(i * 7919 % kExamples);
    const Examples a = Read(**on_disk, indices), b = Read(**in_memory, indices);
    EXPECT_EQ(a.features, b.features);
    EXPECT_EQ(a.classes, b.classes);
    EXPECT_EQ(a.keys, b.keys);
    for (int64_t i = 0; i < kExamples; ++i) {
      ASSERT_FLOAT_EQ(a.features[i * kFeatures], std::log1p(static_cast<float>(indices[i])));
      ASSERT_EQ(a.classes[i], indices[i] % 3 == 0 ? 1 : 0);
    }
  }
}

TEST(CriteoDatasetTest, AFileThatChangesWhileItIsReadIsAnError) {
  const std::string text = Line() + Line();
  const std::string path = WriteTestFile("changing.tsv", text);
  const DatasetOr data = Open({path});
  ASSERT_TRUE(data.ok()) << data.status();
  const int64_t index = 1;
  Examples out = {std::vector<float>(kFeatures), std::vector<int32_t>(1), std::vector<uint64_t>(kKeys)};
  for (const std::string& changed : {std::string(text.size(), 'x'), std::string(text.size(), '\n'), Line()}) {
    WriteTestFile("changing.tsv", changed);
    const absl::Status status =
        (*data)->Read(&index, 1, out.features.data(), out.classes.data(), nullptr, out.keys.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(CriteoDatasetTest, RefusesAModelOfAnotherShape) {
  const std::string path = WriteTestFile("shape.tsv", Line());
  EXPECT_EQ(Error({path}, KeyedModel(12, {26})), "model.input_shape: 12; expected with data.criteo: 13");
  EXPECT_EQ(Error({path}, KeyedModel(13, {25})), "model.tables: the model has 25 keys per example and the data 26");
  ModelSpec three_classes = Model();
  three_classes.output = {3};
  EXPECT_EQ(
      Error({path}, three_classes),
      "model.layers: an output of 3; expected with data.criteo: BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over "
      "2 classes");
  ModelSpec one_logit = Model();
  one_logit.output = {1};
  one_logit.loss = v1::ModelConfig::BINARY_CROSS_ENTROPY;
  EXPECT_TRUE(Open({path}, one_logit).ok());
}

}  // namespace
}  // namespace rubato::worker
