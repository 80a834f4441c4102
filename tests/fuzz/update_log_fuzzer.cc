// An update log: the reader finds the records that a second, simpler reading of the format finds, and ends in the same
// way.
//
// Input: the file, then one byte: odd, to put the checksums right first, which mutation alone would not achieve.
#include <zlib.h>

#include <cstring>

#include "common/storage/update_log.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

namespace rubato {
namespace {

constexpr size_t kFrameBytes = 8;
constexpr uint32_t kMaxRecordBytes = 1 << 20;

uint32_t Crc(const std::string& record) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(record.data()), static_cast<uInt>(record.size())));
}

uint32_t Word(const std::string& bytes, size_t at) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

// Calls visit(offset, length) for every record that is whole; returns the offset after the last one.
template <typename Visit>
size_t WalkFrames(const std::string& bytes, Visit visit) {
  size_t at = 0;
  while (bytes.size() - at >= kFrameBytes) {
    const uint32_t length = Word(bytes, at);
    if (length > bytes.size() - at - kFrameBytes) break;
    if (!visit(at, length)) break;
    at += kFrameBytes + length;
  }
  return at;
}

void RepairChecksums(std::string* bytes) {
  WalkFrames(*bytes, [&](size_t at, uint32_t length) {
    const uint32_t crc = Crc(bytes->substr(at + kFrameBytes, length));
    std::memcpy(bytes->data() + at + 4, &crc, sizeof(crc));
    return true;
  });
}

struct Reading {
  int records = 0;
  enum { kWhole, kTorn, kCorrupt } end = kWhole;
  bool operator==(const Reading&) const = default;
};

// The second reading.
Reading Expected(const std::string& bytes) {
  Reading reading;
  bool bad = false;
  const size_t end = WalkFrames(bytes, [&](size_t at, uint32_t length) {
    const std::string record = bytes.substr(at + kFrameBytes, length);
    v1::UpdateLogRecord parsed;
    bad = length == 0 || length > kMaxRecordBytes || Crc(record) != Word(bytes, at + 4) ||
          !parsed.ParseFromString(record) || parsed.has_header() != (reading.records == 0) ||
          parsed.body_case() == v1::UpdateLogRecord::BODY_NOT_SET;
    if (!bad) ++reading.records;
    return !bad;
  });
  const size_t rest = bytes.size() - end;
  if (!bad && rest >= kFrameBytes) bad = Word(bytes, end) > kMaxRecordBytes;
  if (bad || reading.records == 0) {
    reading.end = Reading::kCorrupt;
  } else if (rest > 0) {
    reading.end = Reading::kTorn;
  }
  return reading;
}

Reading Actual(const std::string& path) {
  Reading reading;
  const absl::StatusOr<std::unique_ptr<UpdateLogReader>> reader = UpdateLogReader::Open(path);
  if (!reader.ok()) return {0, Reading::kCorrupt};
  ++reading.records;  // The header.
  v1::UpdateLogRecord record;
  for (;; ++reading.records) {
    const absl::StatusOr<bool> found = (*reader)->Next(&record);
    if (!found.ok()) reading.end = Reading::kCorrupt;
    if (found.ok() && !*found && (*reader)->torn()) reading.end = Reading::kTorn;
    if (!found.ok() || !*found) return reading;
    RUBATO_FUZZ_CHECK(record.has_plan() || record.has_update() || record.has_served(), record.ShortDebugString());
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const bool repair = trailer.TakeByte() % 2 == 1;
  std::string bytes = trailer.Rest();
  if (repair) RepairChecksums(&bytes);
  const MemoryFile file(bytes);
  const Reading expected = Expected(bytes);
  const Reading actual = Actual(file.path());
  RUBATO_FUZZ_CHECK(actual == expected, std::to_string(actual.records) + " records, end " + std::to_string(actual.end) +
                                            "; expected " + std::to_string(expected.records) + " and " +
                                            std::to_string(expected.end));
  return 0;
}
