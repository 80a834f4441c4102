#include "common/storage/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/storage/file.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The bytes of a file with this header and these data.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  return bytes + header + data;
}

template <typename Element>
std::string BytesOf(const std::vector<Element>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element));
}

std::string Written(const std::string& bytes) {
  const std::string path = JoinPath(testing::TempDir(), "safetensors_file_test.safetensors");
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return path;
}

// "a.weight" [2, 2] and "a.bias" [2], in another order than a model has them.
std::string SmallFile() {
  return FileOf(R"({"a.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                R"("__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}} )",
                BytesOf<float>({5, 6, 1, 2, 3, 4}));
}

ModelSpec SmallModel() {
  ModelSpec model;
  model.tensors.push_back({.name = "a.weight", .shape = {2, 2}});
  model.tensors.push_back({.name = "a.bias", .shape = {2}});
  return model;
}

std::string RefusalOf(const std::string& header, const std::string& data) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Written(FileOf(header, data)));
  if (!file.ok()) {
    EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
    return std::string(file.status().message());
  }
  const absl::Status status = file->CheckFits(SmallModel());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(SafetensorsFileTest, ReadsSlicesOfTensorsByName) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Written(SmallFile()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->CheckFits(SmallModel()).ok()) << file->CheckFits(SmallModel());
  std::vector<float> values(4);
  ASSERT_TRUE(file->Read("a.weight", 0, 4, values.data()).ok());
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(file->Read("a.weight", 3, 1, values.data()).ok());
  ASSERT_TRUE(file->Read("a.bias", 1, 1, values.data() + 1).ok());
  EXPECT_THAT(values, ElementsAre(4, 6, 3, 4));
  EXPECT_EQ(file->Read("a.weight", 3, 2, values.data()).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read("b.weight", 0, 1, values.data()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SafetensorsFileTest, ConvertsNumbersOf16Bits) {
  const std::string header = R"({"half":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},)"
                             R"("brain":{"dtype":"BF16","shape":[3],"data_offsets":[14,20]}})";
  // 1, -2, 65504 (the largest), 2^-24 (the smallest), -0, infinity, NaN; 1, -3.0e38 rounded, NaN.
  const std::vector<uint16_t> data = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00, 0x7e00, 0x3f80, 0xff62, 0x7fc0};
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Written(FileOf(header, BytesOf(data))));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> half(7), brain(3);
  ASSERT_TRUE(file->Read("half", 0, 7, half.data()).ok());
  ASSERT_TRUE(file->Read("brain", 0, 3, brain.data()).ok());
  EXPECT_EQ(half[0], 1);
  EXPECT_EQ(half[1], -2);
  EXPECT_EQ(half[2], 65504);
  EXPECT_EQ(half[3], std::ldexp(1.0f, -24));
  EXPECT_TRUE(half[4] == 0 && std::signbit(half[4]));
  EXPECT_TRUE(std::isinf(half[5]));
  EXPECT_TRUE(std::isnan(half[6]));
  EXPECT_EQ(brain[0], 1);
  EXPECT_NEAR(brain[1], -3.0e38, 1e36);
  EXPECT_TRUE(std::isnan(brain[2]));
}

TEST(SafetensorsFileTest, NamesAllThatDoNotFitTheModelAtOnce) {
  const std::string refusal = RefusalOf(R"({"a.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                                        R"("b.weight":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}})",
                                        std::string(20, '\0'));
  EXPECT_THAT(refusal, HasSubstr("a.weight: shape [4], the job's is [2, 2]; a.bias: missing; "
                                 "b.weight: not in the job's model"));
  EXPECT_THAT(RefusalOf(R"({"a.weight":{"dtype":"I64","shape":[2,2],"data_offsets":[0,32]},)"
                        R"("a.bias":{"dtype":"BF16","shape":[2],"data_offsets":[32,36]}})",
                        std::string(36, '\0')),
              HasSubstr("a.weight: dtype I64; allowed: F32, F16, BF16"));
}

TEST(SafetensorsFileTest, SaysWhyAFileIsNone) {
  EXPECT_THAT(RefusalOf("[]", ""), HasSubstr("its header is not a JSON object"));
  EXPECT_THAT(RefusalOf(R"({"a":)", ""), HasSubstr("its header is not a JSON object"));
  EXPECT_THAT(RefusalOf(R"({"a":{"dtype":"F32","shape":[2]}})", ""), HasSubstr("tensor a has no dtype"));
  EXPECT_THAT(RefusalOf(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", std::string(8, '\0')),
              HasSubstr("tensor a has no dtype, shape"));
  EXPECT_THAT(RefusalOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", std::string(8, '\0')),
              HasSubstr("tensor a is at 0 to 9 of 8 bytes of data"));
  EXPECT_THAT(RefusalOf(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", std::string(8, '\0')),
              HasSubstr("tensor a of F32 [3] has 8 bytes"));
  EXPECT_THAT(RefusalOf(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}})", ""),
              HasSubstr("tensor a of F32"));
  EXPECT_EQ(SafetensorsFile::Open("/no/such.safetensors").status().code(), absl::StatusCode::kNotFound);
}

TEST(SafetensorsFileTest, AFileThatWasCutShortIsRefused) {
  const std::string bytes = SmallFile();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(SafetensorsFile::Open(Written(bytes.substr(0, length))).status().code(), absl::StatusCode::kDataLoss)
        << length << " of " << bytes.size() << " bytes";
  }
}

TEST(SafetensorsFileTest, IsKnownByItsName) {
  EXPECT_TRUE(IsSafetensorsPath("runs/a/model.safetensors"));
  EXPECT_FALSE(IsSafetensorsPath("runs/a/checkpoints/final"));
}

}  // namespace
}  // namespace rubato
