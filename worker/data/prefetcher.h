#ifndef RUBATO_WORKER_DATA_PREFETCHER_H_
#define RUBATO_WORKER_DATA_PREFETCHER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "worker/data/dataset.h"
#include "worker/data/epoch_order.h"
#include "worker/data/image_augmenter.h"

namespace rubato::worker {

// Positions [begin, end) of an epoch's order: a shard or a part of one, or a step's slice.
struct ExampleRange {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t shard = 0;
  // Whether the shard ends with this range.
  bool last_of_shard = true;
};

// At most batch_size consecutive positions of one range, ready to compute with.
struct Batch {
  std::vector<float> inputs;     // [examples, input shape]
  std::vector<int32_t> classes;  // [examples, labels per example], or empty.
  std::vector<float> targets;    // [examples, target elements], or empty.
  std::vector<uint64_t> keys;    // [examples, keys per example], or empty.
  // [examples, tables], as Dataset::Read has them; empty: each place has a key.
  std::vector<uint32_t> key_counts;
  std::vector<float> key_weights;  // [examples, keys per example], or empty: each is 1.
  int64_t examples = 0;
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t shard = 0;
  // Whether the shard ends with this batch.
  bool last_of_shard = false;
};

// Prepares batches ahead of the trainer on threads of its own. Ranges go in, their batches come out in the same order;
// an empty range comes out as one batch without examples. Thread-safe.
//
//   RUBATO_RETURN_IF_ERROR(prefetcher->Push({.epoch = 0, .begin = 0, .end = 640, .shard = 7}));
//   RUBATO_ASSIGN_OR_RETURN(std::optional<Batch> batch, prefetcher->Next(absl::Seconds(1)));
//   if (batch.has_value()) { ...; prefetcher->Recycle(*std::move(batch)); }
class Prefetcher {
 public:
  struct Options {
    std::shared_ptr<const Dataset> dataset;
    // For Next's timeout. Outlives the prefetcher.
    const Clock* clock = nullptr;
    // Of the epochs' orders.
    uint64_t seed = 0;
    bool shuffle = true;
    // Until SetBatchSize.
    int64_t batch_size = 0;
    // Batches ready or in preparation at any time, 1 or more.
    int64_t queue_batches = 4;
    // Changes the examples' inputs. Null: they are as in the data set.
    std::shared_ptr<const ImageAugmenter> augmenter;
    // Threads that prepare batches, 1 to 64.
    int threads = 1;
  };

  // InvalidArgument names the option that is out of range.
  static absl::StatusOr<std::unique_ptr<Prefetcher>> Create(Options options);
  // Waits for the threads, which finish the batch that they are at. Callers blocked in Next return Cancelled first.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Does not block. InvalidArgument: not a range of the data set. ResourceExhausted: thousands of ranges are waiting.
  // Cancelled: shut down.
  absl::Status Push(const ExampleRange& range);

  // The next batch; waits for it, and for a Push if nothing is queued, for at most `timeout`. Nothing when that has
  // passed. Cancelled: shut down. An error of the data set comes in its batch's place and stays.
  absl::StatusOr<std::optional<Batch>> Next(absl::Duration timeout);

  // What Next would return now without waiting; null if there is nothing yet. Valid until Next, Clear or the end.
  const Batch* Peek() const;

  // From now on batches have so many examples, 1 or more, at most. Those that are ready or in preparation stay.
  void SetBatchSize(int64_t examples);

  // Takes back a batch that is no longer needed, so that its memory is used again.
  void Recycle(Batch batch);

  // Drops all that was pushed and has not come out.
  void Clear();

  // Examples that were pushed and have not come out.
  int64_t examples_queued() const;

  // Ends all waiting; Next and Push then return Cancelled. May be called more than once.
  void Shutdown();

 private:
  // A batch to prepare, and its place in the order.
  struct Job {
    uint64_t ticket = 0;
    ExampleRange range;
    Batch batch;
  };

  explicit Prefetcher(Options options);

  void Run();
  // Waits for work; false when it is time to end.
  bool TakeJob(Job* job);
  absl::Status Fill(const ExampleRange& range, std::vector<int64_t>* indices, Batch* batch);
  void FinishJob(Job job, absl::Status status);
  void KeepSpare(Batch batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::optional<Batch>> NextLocked(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  EpochOrders orders_;

  mutable Mutex mu_;
  CondVar work_;   // A thread may have something to do.
  CondVar ready_;  // Next may have something to return.
  CondVar idle_;   // The last caller of Next has left.
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // The first error that came out.
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  int64_t batch_size_ ABSL_GUARDED_BY(mu_);
  std::deque<ExampleRange> ranges_ ABSL_GUARDED_BY(mu_);
  // Tickets number the batches. Those in [next_out_, next_ticket_) are in finished_ or with a thread.
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_out_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, absl::StatusOr<Batch>> finished_ ABSL_GUARDED_BY(mu_);
  std::vector<Batch> spares_ ABSL_GUARDED_BY(mu_);
  int64_t examples_queued_ ABSL_GUARDED_BY(mu_) = 0;
  int callers_ ABSL_GUARDED_BY(mu_) = 0;

  std::vector<std::thread> threads_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_PREFETCHER_H_
