#include "common/storage/update_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

// Length and CRC.
constexpr size_t kFrameBytes = 8;
// The largest record is a plan with 1024 members, well under this. A larger length is corrupt.
constexpr uint32_t kMaxRecordBytes = 1 << 20;
constexpr size_t kReadBytes = 256 * 1024;

void PutWord(uint32_t word, char* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(word >> (8 * i));
}

uint32_t GetWord(const char* from) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= uint32_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return word;
}

uint32_t Crc(const char* data, size_t bytes) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data), static_cast<uInt>(bytes)));
}

}  // namespace

std::string UpdateLogName(uint32_t server, uint32_t partition, uint64_t rollback_term) {
  const std::string term = rollback_term <= 1 ? "" : absl::StrCat("-term", rollback_term);
  return absl::StrCat("updates-server", server, "-partition", partition, term, ".log");
}

absl::StatusOr<std::unique_ptr<UpdateLogWriter>> UpdateLogWriter::Create(const std::string& path,
                                                                         const v1::LogHeader& header) {
  RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path, FileWriter::kNew));
  std::unique_ptr<UpdateLogWriter> writer(new UpdateLogWriter(std::move(file)));
  v1::UpdateLogRecord record;
  *record.mutable_header() = header;
  RUBATO_RETURN_IF_ERROR(writer->Append(record));
  RUBATO_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

absl::Status UpdateLogWriter::Append(const v1::UpdateLogRecord& record) {
  const size_t bytes = record.ByteSizeLong();
  if (bytes == 0 || bytes > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->path(), ": a record of ", bytes, " bytes; 1 to ", kMaxRecordBytes, " are allowed"));
  }
  frame_.resize(kFrameBytes + bytes);
  record.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(frame_.data() + kFrameBytes));
  PutWord(static_cast<uint32_t>(bytes), frame_.data());
  PutWord(Crc(frame_.data() + kFrameBytes, bytes), frame_.data() + 4);
  return file_->Write(frame_);
}

absl::StatusOr<std::unique_ptr<UpdateLogReader>> UpdateLogReader::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<UpdateLogReader> reader(new UpdateLogReader(path, descriptor));
  v1::UpdateLogRecord record;
  RUBATO_ASSIGN_OR_RETURN(bool found, reader->ReadRecord(&record));
  if (!found) return absl::DataLossError(absl::StrCat(path, ": holds no whole record"));
  if (!record.has_header()) return absl::DataLossError(absl::StrCat(path, ": the first record is not a header"));
  reader->header_ = record.header();
  return reader;
}

UpdateLogReader::~UpdateLogReader() { close(descriptor_); }

absl::StatusOr<bool> UpdateLogReader::Next(v1::UpdateLogRecord* record) {
  const uint64_t at = offset_;
  RUBATO_ASSIGN_OR_RETURN(bool found, ReadRecord(record));
  if (found && (record->has_header() || record->body_case() == v1::UpdateLogRecord::BODY_NOT_SET)) {
    return absl::DataLossError(
        absl::StrCat(path_, ": record at byte ", at, ": neither a plan, nor an update, nor what was served"));
  }
  return found;
}

absl::Status UpdateLogReader::Corrupt(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": record at byte ", offset_, ": ", what));
}

absl::StatusOr<bool> UpdateLogReader::ReadRecord(v1::UpdateLogRecord* record) {
  RUBATO_ASSIGN_OR_RETURN(bool whole_frame, Fill(kFrameBytes));
  if (!whole_frame) {
    torn_ = position_ < buffer_.size();
    return false;
  }
  const uint32_t bytes = GetWord(buffer_.data() + position_);
  if (bytes == 0 || bytes > kMaxRecordBytes) {
    return Corrupt(absl::StrCat("length ", bytes, "; 1 to ", kMaxRecordBytes, " are allowed"));
  }
  RUBATO_ASSIGN_OR_RETURN(bool whole_record, Fill(kFrameBytes + bytes));
  if (!whole_record) {
    torn_ = true;
    return false;
  }
  const char* payload = buffer_.data() + position_ + kFrameBytes;
  if (Crc(payload, bytes) != GetWord(buffer_.data() + position_ + 4)) return Corrupt("its CRC does not match");
  if (!record->ParseFromArray(payload, static_cast<int>(bytes))) return Corrupt("not a valid message");
  position_ += kFrameBytes + bytes;
  offset_ += kFrameBytes + bytes;
  return true;
}

absl::StatusOr<bool> UpdateLogReader::Fill(size_t bytes) {
  while (buffer_.size() - position_ < bytes) {
    buffer_.erase(0, position_);
    position_ = 0;
    const size_t used = buffer_.size();
    buffer_.resize(used + std::max(kReadBytes, bytes));
    const ssize_t got = read(descriptor_, buffer_.data() + used, buffer_.size() - used);
    const int error = errno;
    buffer_.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", path_));
    if (got == 0) return false;
  }
  return true;
}

}  // namespace rubato
