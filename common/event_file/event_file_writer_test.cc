#include "common/event_file/event_file_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <iterator>

#include "common/event_file/crc32c.h"

namespace rubato {
namespace {

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Takes the first record off, and checks its CRCs.
tensorflow::Event TakeRecord(std::string* bytes) {
  const absl::string_view all = *bytes;
  const uint64_t length = LittleEndian(all.substr(0, 8));
  EXPECT_EQ(LittleEndian(all.substr(8, 4)), MaskedCrc32c(all.substr(0, 8)));
  const absl::string_view data = all.substr(12, length);
  EXPECT_EQ(LittleEndian(all.substr(12 + length, 4)), MaskedCrc32c(data));
  tensorflow::Event event;
  EXPECT_TRUE(event.ParseFromArray(data.data(), static_cast<int>(data.size())));
  *bytes = bytes->substr(16 + length);
  return event;
}

class EventFileWriterTest : public testing::Test {
 protected:
  EventFileWriterTest() {
    directory_ = testing::TempDir() + "/events-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string directory_;
  const absl::Time now_ = absl::FromUnixMillis(1769860800500);
};

TEST_F(EventFileWriterTest, BeginsWithTheVersionAndKeepsTheOrder) {
  auto writer = EventFileWriter::Create(directory_, now_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_NE((*writer)->path().find("/events.out.tfevents.1769860800."), std::string::npos);
  for (int step : {3, 4}) {
    tensorflow::Event event;
    event.set_step(step);
    event.mutable_summary()->add_value()->set_simple_value(0.5f);
    ASSERT_TRUE((*writer)->Append(event).ok());
  }
  std::string bytes = Read((*writer)->path());
  const tensorflow::Event version = TakeRecord(&bytes);
  EXPECT_EQ(version.file_version(), "brain.Event:2");
  EXPECT_EQ(version.wall_time(), 1769860800.5);
  EXPECT_EQ(TakeRecord(&bytes).step(), 3);
  EXPECT_EQ(TakeRecord(&bytes).summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(bytes, "");
}

TEST_F(EventFileWriterTest, LeavesEarlierFilesAlone) {
  auto first = EventFileWriter::Create(directory_, now_);
  auto second = EventFileWriter::Create(directory_, now_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE((*first)->path(), (*second)->path());
  EXPECT_EQ(Read((*first)->path()), Read((*second)->path()));
}

TEST_F(EventFileWriterTest, SaysWhatCannotBeWritten) {
  std::filesystem::create_directories(directory_);
  std::ofstream(directory_ + "/file") << "x";
  auto writer = EventFileWriter::Create(directory_ + "/file", now_);
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace rubato
