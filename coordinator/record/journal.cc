#include "coordinator/record/journal.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

constexpr size_t kFrameBytes = 8;
constexpr uint32_t kMaxRecordBytes = 256u << 20;

absl::Status FileError(const std::string& path, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(path, ": cannot ", what, ": ", strerror(errno)));
}

uint32_t ReadU32(const char* at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(at[i]);
  return value;
}

void AppendU32(uint32_t value, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t Crc(const char* data, size_t bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data), bytes));
}

}  // namespace

absl::StatusOr<JournalContents> ReadJournal(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) return FileError(path, "read");
  JournalContents contents;
  size_t at = 0;
  while (bytes.size() - at >= kFrameBytes) {
    const uint32_t length = ReadU32(&bytes[at]);
    const size_t left = bytes.size() - at - kFrameBytes;
    if (length > left) {
      if (length <= kMaxRecordBytes) break;
      return absl::DataLossError(absl::StrCat(path, ": record at byte ", at, " has length ", length));
    }
    const char* data = bytes.data() + at + kFrameBytes;
    v1::JournalRecord record;
    if (Crc(data, length) != ReadU32(&bytes[at + 4]) || !record.ParseFromArray(data, static_cast<int>(length))) {
      if (length == left) break;
      return absl::DataLossError(absl::StrCat(path, ": record at byte ", at, " is damaged"));
    }
    contents.records.push_back(std::move(record));
    at += kFrameBytes + length;
  }
  contents.bytes = static_cast<int64_t>(at);
  return contents;
}

absl::StatusOr<std::unique_ptr<JournalWriter>> JournalWriter::Open(const std::string& path, int64_t bytes) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, "open");
  std::unique_ptr<JournalWriter> writer(new JournalWriter(path, file));
  if (ftruncate(file, bytes) != 0) return FileError(path, "truncate");
  if (lseek(file, 0, SEEK_END) < 0) return FileError(path, "seek");
  return writer;
}

JournalWriter::~JournalWriter() { close(file_); }

absl::Status JournalWriter::Append(const v1::JournalRecord& record, bool durable) {
  const std::string data = record.SerializeAsString();
  if (data.size() > kMaxRecordBytes) {
    return absl::UnavailableError(absl::StrCat(path_, ": a record of ", data.size(), " bytes is too large"));
  }
  std::string frame;
  frame.reserve(kFrameBytes + data.size());
  AppendU32(static_cast<uint32_t>(data.size()), &frame);
  AppendU32(Crc(data.data(), data.size()), &frame);
  frame += data;
  for (size_t done = 0; done < frame.size();) {
    ssize_t written = write(file_, frame.data() + done, frame.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path_, "write");
    done += static_cast<size_t>(written);
  }
  if (durable && fdatasync(file_) != 0) return FileError(path_, "sync");
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
