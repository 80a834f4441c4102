#include "coordinator/record/journal_format.h"

#include <zlib.h>

#include <optional>
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

// Whether this record and all before it are synced before anything is appended behind it, as its kind always is.
bool IsSynced(const v1::JournalRecord& record) {
  return record.has_announce() || record.has_plan() || record.has_phase() || record.has_term() || record.has_cut() ||
         record.has_stop_request();
}

// Of the last record that names one.
absl::string_view LastBoot(const std::vector<v1::JournalRecord>& records) {
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (record->has_term()) return record->term().boot_id();
    if (record->has_header()) return record->header().boot_id();
  }
  return "";
}

// The whole record at this byte; nothing when there is none. Its end is left in `at`.
std::optional<v1::JournalRecord> WholeRecord(absl::string_view bytes, size_t* at) {
  const uint32_t length = ReadU32(bytes, *at);
  const absl::string_view data = bytes.substr(*at + kFrameBytes, length);
  if (data.size() < length || Crc(data) != ReadU32(bytes, *at + 4)) return std::nullopt;
  v1::JournalRecord record;
  if (!record.ParseFromArray(data.data(), static_cast<int>(data.size()))) return std::nullopt;
  *at += kFrameBytes + length;
  return record;
}

// Whether the records behind a damaged one show that it had been synced.
bool WasSynced(absl::string_view bytes, size_t damaged) {
  bool synced = false;
  for (size_t at = damaged + 1; at + kFrameBytes <= bytes.size();) {
    std::optional<v1::JournalRecord> record;
    if (HasHead(bytes, at)) record = WholeRecord(bytes, &at);
    if (!record) {
      ++at;
      continue;
    }
    if (synced) return true;
    synced = IsSynced(*record);
  }
  return false;
}

// Whether what is at this byte, and all behind it, may be what a power cut left.
bool LostWithPower(absl::string_view bytes, size_t at, const JournalContents& before, absl::string_view boot_id) {
  const absl::string_view last = LastBoot(before.records);
  // The first record is the one that would say of which boot it is.
  const bool of_another_boot = last.empty() ? before.records.empty() : last != boot_id;
  return !boot_id.empty() && of_another_boot && !WasSynced(bytes, at);
}

// Whether anything was appended behind a record whose length cannot be trusted.
bool AnyHeadAfter(absl::string_view bytes, size_t at) {
  for (++at; at + kFrameBytes <= bytes.size(); ++at) {
    if (HasHead(bytes, at)) return true;
  }
  return false;
}

absl::StatusOr<JournalContents> Decode(absl::string_view bytes, absl::string_view boot_id) {
  JournalContents contents;
  size_t at = kJournalFirstLine.size();
  while (bytes.size() - at >= kFrameBytes) {
    if (!HasHead(bytes, at)) {
      if (!AnyHeadAfter(bytes, at) || LostWithPower(bytes, at, contents, boot_id)) break;
      return Damaged(at, "has a damaged length or checksum, and is not the last one");
    }
    const uint32_t length = ReadU32(bytes, at);
    const size_t left = bytes.size() - at - kFrameBytes;
    if (length > left) break;
    const absl::string_view data = bytes.substr(at + kFrameBytes, length);
    if (Crc(data) != ReadU32(bytes, at + 4)) {
      if (length == left || LostWithPower(bytes, at, contents, boot_id)) break;
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

absl::StatusOr<JournalContents> DecodeJournal(absl::string_view bytes, absl::string_view boot_id) {
  if (absl::StartsWith(bytes, kJournalFirstLine)) return Decode(bytes, boot_id);
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
  // No record of version 1 is empty: the disk never wrote the beginning. No decision was made, or there are records
  // behind it that show it.
  if (bytes.substr(0, kOldFrameBytes).find_first_not_of('\0') == absl::string_view::npos) {
    if (WasSynced(bytes, 0)) return Damaged(0, "is damaged, and is not the last one");
    return JournalContents();
  }
  // "ruba" as a length, and with a wrong bit too, is above what version 1 may have.
  return DecodeOld(bytes);
}

}  // namespace rubato::coordinator
