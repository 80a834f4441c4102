#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kThreeImages("\x00\xff\x33\x01\x02\x03\x04\x05\x06\x07\x08\x09", 12);

struct IdxOptions {
  std::string images;
  std::string labels;
  double mean = 0;
  double standard_deviation = 1;
};

absl::StatusOr<std::shared_ptr<const Dataset>> Open(const IdxOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  v1::IdxData* idx = config.mutable_data()->mutable_idx();
  idx->set_train_images(options.images);
  idx->set_train_labels(options.labels);
  idx->set_mean(options.mean);
  idx->set_standard_deviation(options.standard_deviation);
  return OpenBothWays(config, model);
}

class IdxDatasetTest : public ::testing::Test {
 protected:
  std::string Name(const std::string& kind) const {
    return std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + kind;
  }

  void Write(const std::string& images, const std::string& labels) {
    options_.images = WriteTestFile(Name("-images"), images);
    options_.labels = WriteTestFile(Name("-labels"), labels);
  }

  std::string Error(const ModelSpec& model) { return std::string(Open(options_, model).status().message()); }

  IdxOptions options_;
  const ModelSpec model_ = DataModel({1, 2, 2}, {10});
  const std::string good_images_ = IdxBytes({3, 2, 2}, kThreeImages);
  const std::string good_labels_ = IdxBytes({3}, std::string("\x07\x00\x09", 3));
};

TEST_F(IdxDatasetTest, ReadsImagesAndClasses) {
  Write(good_images_, good_labels_);
  absl::StatusOr<std::shared_ptr<const Dataset>> data = Open(options_, model_);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->input_shape(), Shape({1, 2, 2}));
  EXPECT_EQ((*data)->label_kind(), LabelKind::kClasses);
  const int64_t indices[] = {2, 0};
  float inputs[8];
  int32_t classes[2];
  ASSERT_TRUE((*data)->Read(indices, 2, inputs, classes, nullptr).ok());
  EXPECT_THAT(classes, ElementsAre(9, 7));
  EXPECT_THAT(inputs, ElementsAre(6 / 255.0f, 7 / 255.0f, 8 / 255.0f, 9 / 255.0f, 0.0f, 1.0f, 51 / 255.0f, 1 / 255.0f));
}

TEST_F(IdxDatasetTest, NormalisesPixels) {
  Write(good_images_, good_labels_);
  options_.mean = 0.5;
  options_.standard_deviation = 0.25;
  absl::StatusOr<std::shared_ptr<const Dataset>> data = Open(options_, model_);
  ASSERT_TRUE(data.ok()) << data.status();
  const int64_t index = 0;
  float inputs[4];
  int32_t label;
  ASSERT_TRUE((*data)->Read(&index, 1, inputs, &label, nullptr).ok());
  EXPECT_EQ(inputs[0], -2.0f);
  EXPECT_EQ(inputs[1], 2.0f);
}

TEST_F(IdxDatasetTest, IndexOutOfRangeIsNamed) {
  Write(good_images_, good_labels_);
  absl::StatusOr<std::shared_ptr<const Dataset>> data = Open(options_, model_);
  ASSERT_TRUE(data.ok()) << data.status();
  float inputs[4];
  int32_t label;
  for (int64_t index : {-1, 3}) {
    const absl::Status status = (*data)->Read(&index, 1, inputs, &label, nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: 0 to 2"));
  }
}

TEST_F(IdxDatasetTest, FlatInputTakesImages) {
  Write(good_images_, good_labels_);
  EXPECT_EQ(Error(DataModel({4}, {10})), "");
}

TEST_F(IdxDatasetTest, SquaredErrorTakesTheLabelAsANumber) {
  Write(good_images_, good_labels_);
  absl::StatusOr<std::shared_ptr<const Dataset>> data =
      Open(options_, DataModel({4}, {1}, v1::ModelConfig::MEAN_SQUARED_ERROR));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->label_kind(), LabelKind::kTargets);
  EXPECT_EQ((*data)->target_elements(), 1);
  const int64_t index = 2;
  float inputs[4], target;
  ASSERT_TRUE((*data)->Read(&index, 1, inputs, nullptr, &target).ok());
  EXPECT_EQ(target, 9.0f);
}

void WriteGzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST_F(IdxDatasetTest, ReadsGzip) {
  Write(good_images_, good_labels_);
  WriteGzip(options_.images, good_images_);
  EXPECT_EQ(Error(model_), "");
}

TEST_F(IdxDatasetTest, DamagedGzipIsAnErrorWithTheFilesName) {
  Write(good_images_, good_labels_);
  WriteGzip(options_.images, good_images_);
  const std::string whole = Contents(options_.images);
  for (size_t length = 4; length < whole.size(); ++length) {
    WriteTestFile(Name("-images"), whole.substr(0, length));
    EXPECT_THAT(Error(model_), HasSubstr(options_.images)) << length;
  }
  std::string flipped = whole;
  flipped[whole.size() - 6] ^= 1;  // The checksum.
  WriteTestFile(Name("-images"), flipped);
  EXPECT_THAT(Error(model_), HasSubstr("damaged or truncated gzip file " + options_.images));
}

TEST_F(IdxDatasetTest, MissingFileIsNotFound) {
  Write(good_images_, good_labels_);
  options_.labels = "no/such/labels";
  const absl::Status status = Open(options_, model_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/such/labels"));
}

TEST_F(IdxDatasetTest, DirectoryIsAnError) {
  Write(good_images_, good_labels_);
  options_.images = ::testing::TempDir();
  EXPECT_THAT(Error(model_), HasSubstr(::testing::TempDir()));
}

TEST_F(IdxDatasetTest, WrongMagicNumberIsShownWithTheRightOne) {
  Write(good_labels_, good_labels_);
  EXPECT_EQ(Error(model_), options_.images +
                               ": magic number 0x00000801; expected for images: 0x00000802, 0x00000803, "
                               "0x00000804 (IDX of unsigned bytes)");
  Write(good_images_, good_images_);
  EXPECT_EQ(Error(model_), options_.labels +
                               ": magic number 0x00000803; expected for labels: 0x00000801 (IDX of "
                               "unsigned bytes)");
  Write(BigEndianWord(0x00000d03) + good_images_.substr(4), good_labels_);  // Floats.
  EXPECT_THAT(Error(model_), HasSubstr("magic number 0x00000d03"));
}

TEST_F(IdxDatasetTest, EveryTruncationIsAnError) {
  for (size_t length = 0; length < good_images_.size(); ++length) {
    Write(good_images_.substr(0, length), good_labels_);
    EXPECT_THAT(Error(model_), HasSubstr(options_.images + ": truncated")) << length;
  }
  Write(good_images_.substr(0, good_images_.size() - 2), good_labels_);
  EXPECT_EQ(Error(model_),
            options_.images + ": truncated: 10 bytes after the header; expected: 12 for dimensions [3, 2, 2]");
}

TEST_F(IdxDatasetTest, TrailingBytesAreAnError) {
  Write(good_images_, good_labels_ + "x");
  EXPECT_EQ(Error(model_),
            options_.labels + ": bytes follow the last example; expected: 3 after the header for dimensions [3]");
}

TEST_F(IdxDatasetTest, HugeDimensionsTakeNoMemory) {
  Write(IdxBytes({2000000000, 28, 28}, "abc"), good_labels_);
  EXPECT_THAT(Error(DataModel({784}, {10})), HasSubstr("truncated: 3 bytes after the header; expected: 1568000000000"));
  Write(IdxBytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc"), good_labels_);
  EXPECT_THAT(Error(model_), HasSubstr("expected: at most 2^31-1 examples"));
  Write(IdxBytes({0, 2, 2}, ""), good_labels_);
  EXPECT_THAT(Error(model_), HasSubstr("dimension 0 is 0; expected: 1 or more"));
}

TEST_F(IdxDatasetTest, CountsMustAgree) {
  Write(good_images_, IdxBytes({2}, "\x01\x02"));
  EXPECT_EQ(Error(model_), options_.labels + ": 2 labels; expected: 3, the number of images in " + options_.images);
}

TEST_F(IdxDatasetTest, LabelOutOfRangeIsNamed) {
  Write(good_images_, good_labels_);
  EXPECT_EQ(Error(DataModel({4}, {9})),
            options_.labels + ": label 9 of example 2; expected: 0 to 8, the model has 9 classes");
}

TEST_F(IdxDatasetTest, ImageSizeMustBeTheModels) {
  Write(good_images_, good_labels_);
  EXPECT_EQ(Error(DataModel({1, 4, 1}, {10})), options_.images +
                                                   ": images of [2, 2]; expected: model.input_shape, "
                                                   "[1, 4, 1]");
  EXPECT_THAT(Error(DataModel({5}, {10})), HasSubstr("expected: model.input_shape, [5]"));
}

}  // namespace
}  // namespace rubato::worker
