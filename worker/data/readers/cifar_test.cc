#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A record whose channels are filled with these bytes.
std::string Record(uint8_t label, uint8_t red, uint8_t green, uint8_t blue) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

struct CifarOptions {
  std::vector<std::string> paths;
  std::vector<double> mean = {0};
  std::vector<double> standard_deviation = {1};
};

absl::StatusOr<std::shared_ptr<const Dataset>> Open(const CifarOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  v1::CifarData* cifar = config.mutable_data()->mutable_cifar();
  for (const std::string& path : options.paths) cifar->add_train_paths(path);
  for (double mean : options.mean) cifar->add_mean(mean);
  for (double deviation : options.standard_deviation) cifar->add_standard_deviation(deviation);
  return OpenBothWays(config, model);
}

std::string ErrorOf(const CifarOptions& options, const ModelSpec& model) {
  const absl::Status status = Open(options, model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CifarDatasetTest, ReadsTheRecordsOfAllFilesInOrder) {
  CifarOptions options;
  options.paths = {WriteTestFile("a.bin", Record(3, 0, 51, 102) + Record(9, 1, 2, 3)),
                   WriteTestFile("b.bin", Record(0, 4, 5, 0xff))};
  options.mean = {0, 0.5, 1};
  options.standard_deviation = {1, 2, 0.5};
  const auto data = Open(options, DataModel({3, 32, 32}, {10}));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->labels_per_example(), 1);
  const int64_t indices[] = {2, 0, 1};
  std::vector<float> inputs(3 * 3072);
  std::vector<int32_t> classes(3);
  ASSERT_TRUE((*data)->Read(indices, 3, inputs.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(classes, ElementsAre(0, 3, 9));
  EXPECT_FLOAT_EQ(inputs[0], 4 / 255.0);
  EXPECT_FLOAT_EQ(inputs[3071], 0);
  EXPECT_FLOAT_EQ(inputs[3072 + 1023], 0);
  EXPECT_FLOAT_EQ(inputs[3072 + 1024], (0.2 - 0.5) / 2);
  EXPECT_FLOAT_EQ(inputs[3072 + 2048], (0.4 - 1) / 0.5);
}

TEST(CifarDatasetTest, LabelsMayBeTheTargetsOfASquaredError) {
  const CifarOptions options = {.paths = {WriteTestFile("t.bin", Record(200, 0, 0, 0))}};
  const auto data = Open(options, DataModel({3072}, {1}, v1::ModelConfig::MEAN_SQUARED_ERROR));
  ASSERT_TRUE(data.ok()) << data.status();
  const int64_t index = 0;
  std::vector<float> inputs(3072);
  float target = 0;
  ASSERT_TRUE((*data)->Read(&index, 1, inputs.data(), nullptr, &target).ok());
  EXPECT_EQ(target, 200);
}

TEST(CifarDatasetTest, RefusesWhatIsNotWholeRecords) {
  const ModelSpec model = DataModel({3, 32, 32}, {10});
  const std::string whole = WriteTestFile("whole.bin", Record(1, 0, 0, 0));
  const std::string cut = WriteTestFile("cut.bin", Record(1, 0, 0, 0) + Record(1, 0, 0, 0).substr(0, 700));
  const std::string empty = WriteTestFile("empty.bin", "");
  EXPECT_EQ(ErrorOf({.paths = {whole, cut}}, model),
            cut + ": 3773 bytes, 1 records and 700 bytes more; expected: whole records of 3073 bytes, 1 or more");
  EXPECT_EQ(ErrorOf({.paths = {empty}}, model),
            empty + ": 0 bytes, 0 records and 0 bytes more; expected: whole records of 3073 bytes, 1 or more");
  EXPECT_EQ(Open({.paths = {whole, "no/such/file"}}, model).status().code(), absl::StatusCode::kNotFound);
}

TEST(CifarDatasetTest, RefusesLabelsWithoutAnOutputAndOtherInputs) {
  const std::string path = WriteTestFile("labels.bin", Record(9, 0, 0, 0) + Record(10, 0, 0, 0));
  EXPECT_EQ(ErrorOf({.paths = {path}}, DataModel({3, 32, 32}, {10})),
            path + ": label 10 of record 1; expected: 0 to 9, the model has 10 classes");
  EXPECT_EQ(ErrorOf({.paths = {path}}, DataModel({3, 28, 28}, {10})),
            "model.input_shape: 3x28x28; expected with data.cifar: 3x32x32 or 3072");
}

}  // namespace
}  // namespace rubato::worker
