// A journal: what is accepted is read again as the same, and no wrong bit makes a record disappear but the last one.
//
// Input: a JournalRecord, or any other bytes, then 3 bytes: where a bit of a journal of three such records is turned
// around (2 bytes), and which one it is.
#include <algorithm>

#include "coordinator/record/journal_format.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato::coordinator {
namespace {

constexpr size_t kRecords = 3;

std::string Encoded(const std::vector<v1::JournalRecord>& records) {
  std::string bytes(kJournalFirstLine);
  for (const v1::JournalRecord& record : records) {
    const absl::Status status = AppendJournalRecord(record, &bytes);
    RUBATO_FUZZ_CHECK(status.ok(), status.message());
  }
  return bytes;
}

void ExpectSame(const std::vector<v1::JournalRecord>& read, const std::vector<v1::JournalRecord>& written) {
  RUBATO_FUZZ_CHECK(read.size() <= written.size(), read.size());
  for (size_t i = 0; i < read.size(); ++i) {
    RUBATO_FUZZ_CHECK(read[i].SerializeAsString() == written[i].SerializeAsString(), i);
  }
}

// Of any bytes.
void CheckReading(const std::string& bytes) {
  const absl::StatusOr<JournalContents> contents = DecodeJournal(bytes);
  if (!contents.ok()) return;
  RUBATO_FUZZ_CHECK(contents->bytes <= bytes.size(), contents->bytes);
  for (const std::string& again : {bytes.substr(0, contents->bytes), Encoded(contents->records)}) {
    const absl::StatusOr<JournalContents> same = DecodeJournal(again);
    RUBATO_FUZZ_CHECK(same.ok(), same.status().message());
    RUBATO_FUZZ_CHECK(same->records.size() == contents->records.size(), same->records.size());
    RUBATO_FUZZ_CHECK(same->bytes == again.size(), same->bytes);
    ExpectSame(same->records, contents->records);
  }
}

}  // namespace
}  // namespace rubato::coordinator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato::coordinator;
  rubato::Trailer trailer(data, size);
  const int bit = trailer.TakeByte() % 8;
  const size_t place = trailer.TakeWord();
  const std::string bytes = trailer.Rest();
  CheckReading(bytes);
  CheckReading(std::string(kJournalFirstLine) + bytes);

  rubato::v1::JournalRecord record;
  if (!record.ParseFromString(bytes)) return 0;
  const std::vector<rubato::v1::JournalRecord> written(kRecords, record);
  const std::string whole = Encoded(written);
  CheckReading(whole);
  std::string damaged = whole;
  const size_t at = place % whole.size();
  damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
  const absl::StatusOr<JournalContents> after_power_cut = DecodeJournal(damaged, "another boot");
  if (after_power_cut.ok()) ExpectSame(after_power_cut->records, written);
  const absl::StatusOr<JournalContents> contents = DecodeJournal(damaged);
  if (!contents.ok()) return 0;
  const size_t last = Encoded({record, record}).size();
  RUBATO_FUZZ_CHECK(at >= last && contents->records.size() == kRecords - 1, at);
  ExpectSame(contents->records, written);
  return 0;
}
