#include "coordinator/record/journal_format.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato::coordinator {
namespace {

constexpr absl::string_view kFirstWords = "rubato journal ";
// Version 1: length and CRC of the data. Version 2: these, and the CRC of these 8 bytes.
constexpr size_t kOldFrameBytes = 8;
constexpr size_t kFrameBytes = 12;
constexpr uint32_t kMaxRecordBytes = 256u << 20;

uint32_t ReadU32(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

void AppendU32(uint32_t value, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t Crc(absl::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

absl::Status Damaged(size_t at, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("record at byte ", at, " ", what));
}

absl::Status AddRecord(absl::string_view data, size_t at, JournalContents* contents) {
  v1::JournalRecord record;
  if (!record.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
    return Damaged(at, "is no JournalRecord, although its checksum is right");
  }
  contents->records.push_back(std::move(record));
  return absl::OkStatus();
}

// Whether the head of a record is at this byte, with the right checksum.
bool HasHead(absl::string_view bytes, size_t at) {
  return ReadU32(bytes, at) <= kMaxRecordBytes && Crc(bytes.substr(at, 8)) == ReadU32(bytes, at + 8);
}

// Whether anything was appended behind a record whose length cannot be trusted.
bool AnyHeadAfter(absl::string_view bytes, size_t at) {
  for (++at; at + kFrameBytes <= bytes.size(); ++at) {
    if (HasHead(bytes, at)) return true;
  }
  return false;
}

absl::StatusOr<JournalContents> Decode(absl::string_view bytes) {
  JournalContents contents;
  size_t at = kJournalFirstLine.size();
  while (bytes.size() - at >= kFrameBytes) {
    if (!HasHead(bytes, at)) {
      if (!AnyHeadAfter(bytes, at)) break;
      return Damaged(at, "has a damaged length or checksum, and is not the last one");
    }
    const uint32_t length = ReadU32(bytes, at);
    const size_t left = bytes.size() - at - kFrameBytes;
    if (length > left) break;
    const absl::string_view data = bytes.substr(at + kFrameBytes, length);
    if (Crc(data) != ReadU32(bytes, at + 4)) {
      if (length == left) break;
      return Damaged(at, "is damaged, and is not the last one");
    }
    RUBATO_RETURN_IF_ERROR(AddRecord(data, at, &contents));
    at += kFrameBytes + length;
  }
  contents.bytes = at;
  return contents;
}

absl::StatusOr<JournalContents> DecodeOld(absl::string_view bytes) {
  JournalContents contents;
  contents.format_version = 1;
  size_t at = 0;
  while (bytes.size() - at >= kOldFrameBytes) {
    const uint32_t length = ReadU32(bytes, at);
    const size_t left = bytes.size() - at - kOldFrameBytes;
    if (length > kMaxRecordBytes) return Damaged(at, absl::StrCat("has length ", length));
    if (length > left) break;
    const absl::string_view data = bytes.substr(at + kOldFrameBytes, length);
    if (Crc(data) != ReadU32(bytes, at + 4)) {
      if (length == left) break;
      return Damaged(at, "is damaged, and is not the last one");
    }
    RUBATO_RETURN_IF_ERROR(AddRecord(data, at, &contents));
    at += kOldFrameBytes + length;
  }
  contents.bytes = at;
  return contents;
}

}  // namespace

absl::Status AppendJournalRecord(const v1::JournalRecord& record, std::string* bytes) {
  const std::string data = record.SerializeAsString();
  if (data.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a journal record of ", data.size(), " bytes; up to ", kMaxRecordBytes, " are allowed"));
  }
  const size_t at = bytes->size();
  AppendU32(static_cast<uint32_t>(data.size()), bytes);
  AppendU32(Crc(data), bytes);
  AppendU32(Crc(absl::string_view(*bytes).substr(at)), bytes);
  *bytes += data;
  return absl::OkStatus();
}

absl::StatusOr<JournalContents> DecodeJournal(absl::string_view bytes) {
  if (absl::StartsWith(bytes, kJournalFirstLine)) return Decode(bytes);
  // The first line itself may be torn.
  if (absl::StartsWith(kJournalFirstLine, bytes)) return JournalContents();
  if (absl::ConsumePrefix(&bytes, kFirstWords)) {
    const absl::string_view version = bytes.substr(0, bytes.find('\n'));
    uint32_t number = 0;
    if (absl::SimpleAtoi(version.substr(0, 16), &number) && number > kJournalFormatVersion) {
      return absl::UnimplementedError(
          absl::StrCat("has format version ", number, ", this program reads up to ", kJournalFormatVersion));
    }
    return absl::DataLossError("the line at byte 0 is damaged");
  }
  // "ruba" as a length, and with a wrong bit too, is above what version 1 may have.
  return DecodeOld(bytes);
}

}  // namespace rubato::coordinator
