#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

struct CsvOptions {
  std::string path;
  int64_t label_column = 0;
  bool header = false;
};

const ModelSpec& Model() {
  static const ModelSpec* const model = new ModelSpec(DataModel({2}, {3}));
  return *model;
}

CsvOptions Options(const std::string& text, int64_t label_column = 0, bool header = false) {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return {.path = WriteTestFile(name + ".csv", text), .label_column = label_column, .header = header};
}

DatasetOr Open(const CsvOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  v1::CsvData* csv = config.mutable_data()->mutable_csv();
  csv->set_train_path(options.path);
  csv->set_label_column(options.label_column);
  csv->set_header(options.header);
  return OpenBothWays(config, model);
}

std::string Error(const CsvOptions& options, const ModelSpec& model = Model()) {
  return std::string(Open(options, model).status().message());
}

TEST(CsvDatasetTest, ReadsFeaturesAroundTheLabel) {
  DatasetOr data = Open(Options("0.5,2,-1e-1\n1.5,0,3\n", 1), Model());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
  const int64_t indices[] = {1, 0};
  float inputs[4];
  int32_t classes[2];
  ASSERT_TRUE((*data)->Read(indices, 2, inputs, classes, nullptr).ok());
  EXPECT_THAT(inputs, ElementsAre(1.5f, 3.0f, 0.5f, -0.1f));
  EXPECT_THAT(classes, ElementsAre(0, 2));
}

TEST(CsvDatasetTest, SkipsHeaderBlanksAndEmptyLines) {
  DatasetOr data = Open(Options("\xef\xbb\xbflabel,a,b\r\n 1 , 2,\t3 \r\n\r\n2,4,5", 0, true), Model());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
}

TEST(CsvDatasetTest, SquaredErrorTakesAnyNumber) {
  DatasetOr data = Open(Options("1,2,-7.5\n", 2), DataModel({2}, {1}, v1::ModelConfig::MEAN_SQUARED_ERROR));
  ASSERT_TRUE(data.ok()) << data.status();
  const int64_t index = 0;
  float inputs[2], target;
  ASSERT_TRUE((*data)->Read(&index, 1, inputs, nullptr, &target).ok());
  EXPECT_EQ(target, -7.5f);
}

TEST(CsvDatasetTest, ErrorsNameFileLineAndColumn) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& one : std::vector<Case>{
           {"0,1,2\n0,x,2\n", ":2: column 1: value \"x\"; allowed: a finite number"},
           {"0,1,2\n\n0,1,\n", ":3: column 2: value \"\"; allowed: a finite number"},
           {"0,nan,2\n", ":1: column 1: value \"nan\"; allowed: a finite number"},
           {"0,1e999,2\n", ":1: column 1: value \"1e999\"; allowed: a finite number"},
           {"3,1,2\n", ":1: column 0 (the label): value \"3\"; allowed: a class from 0 to 2"},
           {"-1,1,2\n", ":1: column 0 (the label): value \"-1\"; allowed: a class from 0 to 2"},
           {"1.5,1,2\n", ":1: column 0 (the label): value \"1.5\"; allowed: a class from 0 to 2"},
           {"0,1\n", ":1: 2 columns; expected: 3 (a label, and one for each of the model's 2 inputs)"},
           {"0,1,2,3\n", ":1: 4 columns; expected: 3 (a label, and one for each of the model's 2 inputs)"},
           {"", ": no example; expected: 1 or more"},
           {"\n\n", ": no example; expected: 1 or more"},
       }) {
    const CsvOptions options = Options(one.text);
    EXPECT_EQ(Error(options), options.path + one.message);
  }
}

TEST(CsvDatasetTest, BinaryDataIsShownEscapedAndCut) {
  const CsvOptions options = Options("0,1," + std::string(1000, '\x01') + "\n");
  EXPECT_THAT(Error(options), HasSubstr(":1: column 2: value \"\\x01"));
  EXPECT_LT(Error(options).size(), options.path.size() + 250);
}

TEST(CsvDatasetTest, MissingFileIsNotFound) {
  EXPECT_EQ(Open({.path = "no/such.csv"}, Model()).status().code(), absl::StatusCode::kNotFound);
}

TEST(CsvDatasetTest, ReadsFilesLongerThanOneBlock) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "1,2,3\n";
  DatasetOr data = Open(Options(text), Model());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 300000);
}

TEST(CsvDatasetTest, ALineWithoutAnEndIsRefusedBeforeItFillsTheMemory) {
  const CsvOptions options = {.path = "/dev/zero"};
  EXPECT_THAT(Error(options), HasSubstr("/dev/zero:1: a line of more than"));
}

}  // namespace
}  // namespace rubato::worker
