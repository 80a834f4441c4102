#ifndef RUBATO_COMMON_PART_COPIES_PART_STORE_H_
#define RUBATO_COMMON_PART_COPIES_PART_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/storage/checkpoint.h"
#include "proto/part_copies.pb.h"

namespace rubato {

// The parts in a server's checkpoint directory, for other tasks: gives them pieces of those that are there, and takes
// copies of theirs. Errors are those of proto/part_copies.proto, and the disk's. Thread-safe; calls block for as long
// as the disk does.
class PartStore {
 public:
  // The longest piece.
  static constexpr uint32_t kMaxBytes = 16u << 20;

  struct Options {
    // That of all checkpoints.
    std::string directory;
    // The server.
    v1::TaskId task;
    // Outlives the store.
    const Clock* clock = nullptr;
    // Copies that may be in flight at the same time; more are ResourceExhausted. Each takes some 4 MiB.
    size_t max_incoming = 64;
    // One of which no piece has come for this long may be dropped for another.
    absl::Duration idle = absl::Minutes(2);
  };

  explicit PartStore(Options options) : options_(std::move(options)) {}

  // The job that the server is in, JobDescription.fingerprint. Before, nothing is given or taken.
  void SetJob(uint64_t fingerprint);

  absl::StatusOr<v1::ReadPartReply> Read(const v1::ReadPartRequest& request) const;
  absl::StatusOr<v1::WritePartReply> Write(const v1::WritePartRequest& request);

 private:
  // By role and index.
  using Key = std::pair<int, uint32_t>;
  // A copy that is in flight.
  struct Incoming {
    // Held while a piece is written.
    Mutex mu;
    std::string checkpoint ABSL_GUARDED_BY(mu);
    v1::CheckpointManifest manifest ABSL_GUARDED_BY(mu);
    std::unique_ptr<CheckpointWriter> writer ABSL_GUARDED_BY(mu);
    uint64_t bytes ABSL_GUARDED_BY(mu) = 0;
    absl::Time last;  // Guarded by the store's.
  };

  absl::Status Check(const v1::PartName& part) const;
  std::string DirectoryOf(const v1::PartName& part) const;
  // Whether the very part is there.
  bool Has(const v1::PartName& part, const v1::CheckpointManifest& manifest) const;
  // Its place among those in flight, a new one if `begins`. Null: there is none.
  absl::StatusOr<std::shared_ptr<Incoming>> Find(const Key& key, bool begins);
  absl::StatusOr<v1::WritePartReply> Take(const v1::WritePartRequest& request, const std::shared_ptr<Incoming>& copy);
  void Drop(const Key& key, const std::shared_ptr<Incoming>& copy);

  const Options options_;
  mutable Mutex mu_;
  uint64_t fingerprint_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, std::shared_ptr<Incoming>> incoming_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_PART_COPIES_PART_STORE_H_
