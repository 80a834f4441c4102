#include "worker/data/record_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;

absl::Status Accept(const RecordFiles::Record&) { return absl::OkStatus(); }

TEST(RecordFilesTest, ChecksEachRecordOnceAndReadsExamples) {
  const std::string first = WriteTestFile("first", "header 1\n\na\r\nb"),
                    second = WriteTestFile("second", "header 2\nc\n");
  std::vector<std::string> seen;
  const auto check = [&](const RecordFiles::Record& record) {
    seen.push_back(absl::StrCat(record.file, ":", record.text));
    return absl::OkStatus();
  };
  for (const int64_t memory_bytes : {0, 1 << 20}) {
    seen.clear();
    const auto files = RecordFiles::Open({first, second}, {.header = true}, memory_bytes, check);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(seen, ElementsAre("0:header 1", "0:a", "0:b", "1:header 2", "1:c"));
    ASSERT_EQ((*files)->size(), 3);
    std::vector<uint8_t> scratch;
    const std::vector<std::string> texts = {"a", "b", "c"};
    for (const int64_t index : {2, 0, 1}) {
      const auto record = (*files)->Read(index, &scratch);
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_EQ(record->text, texts[index]);
      EXPECT_EQ(record->file, index == 2 ? 1u : 0u);
    }
  }
}

// Records end where the format says, and lines are counted all the same.
TEST(RecordFilesTest, ErrorsNameTheLineWhereTheRecordBegins) {
  RecordFiles::Format format;
  format.length = [](absl::string_view text) {
    const size_t end = text.find(";\n");
    return end == absl::string_view::npos ? end : end + 1;
  };
  const std::string path = WriteTestFile("lines", "a\nb;\nbad;\n");
  const auto check = [](const RecordFiles::Record& record) {
    return record.text == "bad;" ? absl::InvalidArgumentError("no") : absl::OkStatus();
  };
  EXPECT_EQ(RecordFiles::Open({path}, format, 0, check).status(), absl::InvalidArgumentError(path + ":3: no"));
}

TEST(RecordFilesTest, FilesWithoutExamplesAreErrors) {
  const std::string path = WriteTestFile("empty", "header\n");
  EXPECT_EQ(RecordFiles::Open({path}, {.header = true}, 0, Accept).status(),
            absl::InvalidArgumentError(path + ": no example; expected: a header, and 1 or more"));
  EXPECT_EQ(RecordFiles::Open({"no/such/file"}, {}, 0, Accept).status().code(), absl::StatusCode::kNotFound);
}

TEST(RecordFilesTest, ALineOverAMebibyteIsAnError) {
  for (const size_t bytes : {(size_t{1} << 20) + 1, size_t{3} << 20}) {
    const std::string path = WriteTestFile("long", "a\n" + std::string(bytes, 'x') + "\nb\n");
    EXPECT_EQ(RecordFiles::Open({path}, {.expected = "less"}, 0, Accept).status(),
              absl::InvalidArgumentError(path + ":2: a line of more than 1048576 bytes; expected: less"));
  }
  const std::string path = WriteTestFile("longest", std::string(1 << 20, 'x') + "\n");
  EXPECT_TRUE(RecordFiles::Open({path}, {}, 0, Accept).ok());
}

TEST(RecordFilesTest, AFileThatHasChangedIsNamed) {
  const std::string path = WriteTestFile("changed", "a\nb\n");
  const auto files = RecordFiles::Open({path}, {}, 0, Accept);
  ASSERT_TRUE(files.ok()) << files.status();
  WriteTestFile("changed", "a\n\n\n");
  std::vector<uint8_t> scratch;
  EXPECT_EQ((*files)->Read(1, &scratch).status(), (*files)->Changed(1));
  EXPECT_EQ((*files)->Changed(1), absl::DataLossError(path + ": example 1 is not what it was when the file was opened; "
                                                             "expected: no change"));
}

}  // namespace
}  // namespace rubato::worker
