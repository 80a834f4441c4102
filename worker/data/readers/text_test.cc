#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec TextModel(int64_t positions) {
  ModelSpec model = DataModel({positions}, {positions, 256});
  model.vocabulary = 256;
  return model;
}

struct TextOptions {
  std::string path;
  std::string byte_pairs = {};
  double test_fraction = 0;
  bool test = false;
};

absl::StatusOr<std::shared_ptr<const Dataset>> Open(const TextOptions& options, const ModelSpec& model) {
  v1::JobConfig config;
  config.mutable_data()->mutable_text()->set_path(options.path);
  config.mutable_data()->mutable_text()->set_byte_pairs(options.byte_pairs);
  config.mutable_data()->mutable_text()->set_test_fraction(options.test_fraction);
  return OpenBothWays(config, model, options.test ? Split::kTest : Split::kTrain);
}

TEST(TextDatasetTest, WindowsFollowEachOtherAndLabelsAreTheNextBytes) {
  const std::string path = WriteTestFile("text",
                                         "abcdefgh\xff"
                                         "j");
  const auto data = Open({.path = path}, TextModel(3));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->labels_per_example(), 3);
  const int64_t indices[] = {2, 0};
  std::vector<float> inputs(6);
  std::vector<int32_t> classes(6);
  ASSERT_TRUE((*data)->Read(indices, 2, inputs.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(inputs, ElementsAre('g', 'h', 255, 'a', 'b', 'c'));
  EXPECT_THAT(classes, ElementsAre('h', 255, 'j', 'b', 'c', 'd'));
}

TEST(TextDatasetTest, TheEndOfTheFileIsHeldOut) {
  const std::string path = WriteTestFile("text", "abcdefghij");
  TextOptions options = {.path = path, .test_fraction = 0.4};
  const auto train = Open(options, TextModel(2));
  options.test = true;
  const auto test = Open(options, TextModel(2));
  ASSERT_TRUE(train.ok() && test.ok());
  // "abcdef" and "ghij": a window and the byte after it.
  EXPECT_EQ((*train)->size(), 2);
  EXPECT_EQ((*test)->size(), 1);
  const int64_t last = 1, first = 0;
  std::vector<float> inputs(2);
  std::vector<int32_t> classes(2);
  ASSERT_TRUE((*train)->Read(&last, 1, inputs.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(classes, ElementsAre('d', 'e'));
  ASSERT_TRUE((*test)->Read(&first, 1, inputs.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(inputs, ElementsAre('g', 'h'));
}

// "ab" and " ab".
constexpr char kPairs[] = "rubato byte pairs 1\nlower_case 0\ntokens 258\n97 98 ab\n32 256 _ab\n";

TEST(TextDatasetTest, BytePairsAreTokens) {
  ModelSpec model = TextModel(2);
  model.vocabulary = 258;
  model.output = {2, 300};
  // The last three words are held out.
  TextOptions options = {.path = WriteTestFile("text", "ab abc ab ab ab ab"),
                         .byte_pairs = WriteTestFile("pairs", kPairs),
                         .test_fraction = 0.5};
  const auto train = Open(options, model);
  options.test = true;
  const auto test = Open(options, model);
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE(test.ok()) << test.status();
  // Tokens 256, 257, 'c' and 257; three times 257.
  EXPECT_EQ((*train)->size(), 1);
  EXPECT_EQ((*test)->size(), 1);
  const int64_t first = 0;
  std::vector<float> inputs(2);
  std::vector<int32_t> classes(2);
  ASSERT_TRUE((*train)->Read(&first, 1, inputs.data(), classes.data(), nullptr).ok());
  EXPECT_THAT(inputs, ElementsAre(256, 257));
  EXPECT_THAT(classes, ElementsAre(257, 'c'));
}

TEST(TextDatasetTest, RefusesBytePairsThatTheModelHasNoTokensFor) {
  TextOptions options = {.path = WriteTestFile("text", "ab abc ab ab ab"),
                         .byte_pairs = WriteTestFile("pairs", kPairs)};
  const absl::Status few = Open(options, TextModel(2)).status();
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(few.message(),
            "model: from 2 with a vocabulary of 256 to 2x256; expected with the byte pairs of " + options.byte_pairs +
                ": SOFTMAX_CROSS_ENTROPY from positions, with a vocabulary of at least 258, to positions "
                "x at least 258");
  options.byte_pairs = "no/such/file";
  EXPECT_EQ(Open(options, TextModel(2)).status().code(), absl::StatusCode::kNotFound);
}

TEST(TextDatasetTest, RefusesAPartThatIsShorterThanAWindow) {
  const std::string path = WriteTestFile("text", "abcdefghij");
  const absl::Status train = Open({.path = path, .test_fraction = 0.5}, TextModel(5)).status();
  EXPECT_EQ(train.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(train.message(),
            path + ": 5 bytes to train with (data.text.test_fraction: 0.5); expected: at least 6, one window");
  EXPECT_THAT(std::string(Open({.path = path, .test_fraction = 0.2, .test = true}, TextModel(5)).status().message()),
              HasSubstr("2 bytes are held out"));
  EXPECT_EQ(Open({.path = "no/such/file"}, TextModel(5)).status().code(), absl::StatusCode::kNotFound);
}

TEST(TextDatasetTest, RefusesAModelThatDoesNotReadBytesAndPredictThem) {
  const std::string path = WriteTestFile("text", "abcdefghij");
  ModelSpec few_tokens = TextModel(3), few_classes = TextModel(3), one_label = TextModel(3);
  few_tokens.vocabulary = 255;
  few_classes.output = {3, 255};
  one_label.output = {256};
  for (const ModelSpec& model : {few_tokens, few_classes, one_label}) {
    EXPECT_EQ(Open({.path = path}, model).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rubato::worker
