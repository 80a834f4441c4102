#include "worker/data/open_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

TEST(OpenDatasetTest, OpensBothSplitsOfTheTeacher) {
  v1::JobConfig config;
  config.mutable_data()->mutable_teacher()->set_train_examples(20);
  config.mutable_data()->mutable_teacher()->set_test_examples(7);
  config.mutable_data()->mutable_teacher()->set_hidden_units(3);
  const ModelSpec model = DataModel({2}, {2});
  EXPECT_EQ((*OpenDataset(config, model, Split::kTrain))->size(), 20);
  EXPECT_EQ((*OpenDataset(config, model, Split::kTest))->size(), 7);
}

TEST(OpenDatasetTest, OpensIdxAndCsv) {
  v1::JobConfig config;
  config.mutable_data()->mutable_idx()->set_train_images(WriteTestFile("images", IdxBytes({1, 1, 2}, "ab")));
  config.mutable_data()->mutable_idx()->set_train_labels(WriteTestFile("labels", IdxBytes({1}, "\x01")));
  config.mutable_data()->mutable_idx()->set_standard_deviation(1);
  const ModelSpec model = DataModel({2}, {2});
  EXPECT_TRUE(OpenDataset(config, model, Split::kTrain).ok());
  config.mutable_data()->mutable_csv()->set_test_path(WriteTestFile("test.csv", "1,2,3\n"));
  EXPECT_TRUE(OpenDataset(config, model, Split::kTest).ok());
}

TEST(OpenDatasetTest, AMissingSplitNamesItsField) {
  v1::JobConfig config;
  const ModelSpec model = DataModel({2}, {2});
  const auto error = [&] {
    const absl::Status status = OpenDataset(config, model, Split::kTest).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(error(), HasSubstr("the source of data is not set"));
  config.mutable_data()->mutable_idx();
  EXPECT_THAT(error(), HasSubstr("data.idx.test_images is not set"));
  config.mutable_data()->mutable_csv();
  EXPECT_THAT(error(), HasSubstr("data.csv.test_path is not set"));
  config.mutable_data()->mutable_teacher();
  EXPECT_THAT(error(), HasSubstr("data.teacher.test_examples is not set"));
  config.mutable_data()->mutable_criteo();
  EXPECT_THAT(error(), HasSubstr("data.criteo.test_paths is not set"));
  config.mutable_data()->mutable_clicks();
  EXPECT_THAT(error(), HasSubstr("data.clicks.test_examples is not set"));
}

TEST(OpenDatasetTest, KeysAreAsManyAsTheModelHas) {
  v1::JobConfig config;
  config.mutable_data()->mutable_teacher()->set_train_examples(20);
  config.mutable_data()->mutable_teacher()->set_hidden_units(3);
  EXPECT_EQ(OpenDataset(config, KeyedModel(2, {1, 2}), Split::kTrain).status(),
            absl::InvalidArgumentError("model.tables: the model has 3 keys per example and the data 0"));
}

TEST(OpenDatasetTest, FilesDoNotFillVectorTargets) {
  v1::JobConfig config;
  config.mutable_data()->mutable_csv()->set_train_path("any");
  const ModelSpec model = DataModel({2}, {2}, v1::ModelConfig::MEAN_SQUARED_ERROR);
  EXPECT_THAT(std::string(OpenDataset(config, model, Split::kTrain).status().message()), HasSubstr("model.loss"));
}

}  // namespace
}  // namespace rubato::worker
