#ifndef RUBATO_WORKER_DATA_BYTE_PAIRS_LEARN_FROM_FILES_H_
#define RUBATO_WORKER_DATA_BYTE_PAIRS_LEARN_FROM_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/byte_pairs/byte_pairs.h"

namespace rubato::worker {

struct LearnOptions {
  // Plain or gzip.
  std::vector<std::string> paths;
  // What to read of files with columns (data.columns); empty: files are text throughout.
  std::string column;
  char separator = ',';
  // The share at the end of each file of text that is not read, 0 to under 1: what a job holds out to test with.
  double leave_out = 0;
  bool lower_case = false;
  uint32_t tokens = 4096;
};

struct LearnedPairs {
  BytePairs pairs;
  // Of the text that was read.
  int64_t bytes = 0;
  int64_t tokens = 0;
};

// Learns byte pairs from files, of which it keeps no more than their different pieces. InvalidArgument: a
// file has no such column, or there is no text. Otherwise the errors of StoredBytes and RecordFiles, with the path.
absl::StatusOr<LearnedPairs> LearnFromFiles(const LearnOptions& options);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_BYTE_PAIRS_LEARN_FROM_FILES_H_
