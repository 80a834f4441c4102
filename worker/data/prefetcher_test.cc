#include "worker/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An example that cannot be read.
constexpr int64_t kBroken = 166;

// Input and label of an example are its index. Reads wait while the gate is shut.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(int64_t size) : Dataset({.size = size, .input_shape = {1}}) {}

  void Shut() {
    MutexLock lock(mu_);
    shut_ = true;
  }
  void Open() {
    MutexLock lock(mu_);
    shut_ = false;
    changed_.NotifyAll();
  }
  void WaitForReads(int64_t count) {
    MutexLock lock(mu_);
    while (reads_ < count) changed_.Wait(mu_);
  }
  int64_t reads() const {
    MutexLock lock(mu_);
    return reads_;
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t*,
                            uint32_t*) const override {
    {
      MutexLock lock(mu_);
      ++reads_;
      changed_.NotifyAll();
      while (shut_) changed_.Wait(mu_);
    }
    for (int64_t i = 0; i < n; ++i) {
      if (indices[i] == kBroken) return absl::DataLossError("example 166 is broken");
      inputs[i] = static_cast<float>(indices[i]);
      classes[i] = static_cast<int32_t>(indices[i]);
    }
    return absl::OkStatus();
  }

  mutable Mutex mu_;
  mutable CondVar changed_;
  mutable int64_t reads_ ABSL_GUARDED_BY(mu_) = 0;
  bool shut_ ABSL_GUARDED_BY(mu_) = false;
};

// The keys of example i are 2 i and 2 i + 1, of which it has one if i is odd; a key's weight is half of it.
class KeyedDataset : public Dataset {
 public:
  KeyedDataset()
      : Dataset({.size = 100,
                 .input_shape = {1},
                 .keys_per_example = 2,
                 .key_counts_per_example = 1,
                 .has_key_weights = true}) {}

 private:
  absl::Status ReadExamples(const int64_t*, int64_t, float*, int32_t*, float*, uint64_t*, uint32_t*) const override {
    return absl::InternalError("without the weights");
  }

  absl::Status ReadWeightedExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*,
                                    uint64_t* keys, uint32_t* key_counts, float* key_weights) const override {
    for (int64_t i = 0; i < n; ++i) {
      inputs[i] = 0;
      classes[i] = static_cast<int32_t>(indices[i]);
      keys[2 * i] = 2 * indices[i];
      keys[2 * i + 1] = 2 * indices[i] + 1;
      key_counts[i] = indices[i] % 2 == 0 ? 2 : 1;
      for (int64_t j = 2 * i; j < 2 * i + 2; ++j) key_weights[j] = 0.5f * static_cast<float>(keys[j]);
    }
    return absl::OkStatus();
  }
};

// Tells when somebody asks for the time.
class WatchedClock : public FakeClock {
 public:
  absl::Time Now() const override {
    MutexLock lock(mu_);
    ++calls_;
    called_.NotifyAll();
    return absl::UnixEpoch();
  }
  void WaitForCalls(int count) {
    MutexLock lock(mu_);
    while (calls_ < count) called_.Wait(mu_);
  }

 private:
  mutable Mutex mu_;
  mutable CondVar called_;
  mutable int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

class PrefetcherTest : public ::testing::Test {
 protected:
  std::unique_ptr<Prefetcher> Make(int64_t batch_size, int threads = 1, bool shuffle = false,
                                   int64_t queue_batches = 4) {
    absl::StatusOr<std::unique_ptr<Prefetcher>> prefetcher = Prefetcher::Create({.dataset = dataset_,
                                                                                 .clock = &clock_,
                                                                                 .seed = 9,
                                                                                 .shuffle = shuffle,
                                                                                 .batch_size = batch_size,
                                                                                 .queue_batches = queue_batches,
                                                                                 .threads = threads});
    EXPECT_TRUE(prefetcher.ok()) << prefetcher.status();
    return *std::move(prefetcher);
  }

  // The next batch; the test fails if there is none.
  Batch Take(Prefetcher* prefetcher) {
    absl::StatusOr<std::optional<Batch>> batch = prefetcher->Next(absl::InfiniteDuration());
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() && batch->has_value() ? **std::move(batch) : Batch();
  }

  RealClock clock_;
  std::shared_ptr<CountingDataset> dataset_ = std::make_shared<CountingDataset>(100);
};

TEST_F(PrefetcherTest, CutsARangeIntoBatches) {
  auto prefetcher = Make(4);
  ASSERT_TRUE(prefetcher->Push({.epoch = 2, .begin = 10, .end = 20, .shard = 7}).ok());
  EXPECT_EQ(prefetcher->examples_queued(), 10);
  const Batch first = Take(prefetcher.get());
  EXPECT_THAT(first.classes, ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(first.inputs, ElementsAre(10, 11, 12, 13));
  EXPECT_TRUE(first.targets.empty());
  EXPECT_TRUE(first.keys.empty());
  EXPECT_EQ(first.examples, 4);
  EXPECT_EQ(first.epoch, 2);
  EXPECT_EQ(first.begin, 10);
  EXPECT_EQ(first.end, 14);
  EXPECT_EQ(first.shard, 7u);
  EXPECT_FALSE(first.last_of_shard);
  EXPECT_EQ(prefetcher->examples_queued(), 6);
  EXPECT_FALSE(Take(prefetcher.get()).last_of_shard);
  const Batch last = Take(prefetcher.get());
  EXPECT_THAT(last.classes, ElementsAre(18, 19));
  EXPECT_TRUE(last.last_of_shard);
  EXPECT_EQ(prefetcher->examples_queued(), 0);
}

TEST_F(PrefetcherTest, ANewSizeIsOfWhatIsNotInPreparationYet) {
  auto prefetcher = Make(4, /*threads=*/1, /*shuffle=*/false, /*queue_batches=*/1);
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 14, .shard = 7}).ok());
  dataset_->WaitForReads(1);
  prefetcher->SetBatchSize(5);
  for (int64_t examples : {4, 5, 5}) EXPECT_EQ(Take(prefetcher.get()).examples, examples);
  EXPECT_EQ(prefetcher->examples_queued(), 0);
}

TEST_F(PrefetcherTest, APartOfAShardDoesNotEndIt) {
  auto prefetcher = Make(4);
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 4, .last_of_shard = false}).ok());
  EXPECT_FALSE(Take(prefetcher.get()).last_of_shard);
}

TEST_F(PrefetcherTest, EmptyRangeIsOneEmptyBatch) {
  auto prefetcher = Make(4);
  ASSERT_TRUE(prefetcher->Push({.begin = 5, .end = 5, .shard = 3}).ok());
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 1}).ok());
  const Batch empty = Take(prefetcher.get());
  EXPECT_EQ(empty.examples, 0);
  EXPECT_EQ(empty.shard, 3u);
  EXPECT_EQ(Take(prefetcher.get()).examples, 1);
}

TEST_F(PrefetcherTest, FollowsTheEpochsOrder) {
  auto prefetcher = Make(100, 1, true);
  const EpochOrder order(9, 3, 100, true);
  ASSERT_TRUE(prefetcher->Push({.epoch = 3, .begin = 0, .end = 100}).ok());
  const Batch batch = Take(prefetcher.get());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(batch.classes[i], order.At(i));
}

TEST_F(PrefetcherTest, KeysComeWithTheirExamples) {
  const auto dataset = std::make_shared<KeyedDataset>();
  auto prefetcher =
      *Prefetcher::Create({.dataset = dataset, .clock = &clock_, .seed = 9, .shuffle = true, .batch_size = 30});
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 100}).ok());
  ASSERT_TRUE(prefetcher->Push({.begin = 5, .end = 5}).ok());
  for (const size_t examples : {30, 30, 30, 10, 0}) {
    Batch batch = Take(prefetcher.get());
    ASSERT_EQ(batch.classes.size(), examples);
    ASSERT_EQ(batch.keys.size(), 2 * examples);
    for (size_t i = 0; i < batch.keys.size(); ++i) EXPECT_EQ(batch.keys[i], 2 * batch.classes[i / 2] + i % 2);
    ASSERT_EQ(batch.key_counts.size(), examples);
    for (size_t i = 0; i < examples; ++i) EXPECT_EQ(batch.key_counts[i], batch.classes[i] % 2 == 0 ? 2u : 1u);
    ASSERT_EQ(batch.key_weights.size(), 2 * examples);
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      EXPECT_EQ(batch.key_weights[i], 0.5f * static_cast<float>(batch.keys[i]));
    }
    prefetcher->Recycle(std::move(batch));
  }
}

TEST_F(PrefetcherTest, KeepsTheOrderWithManyThreads) {
  auto prefetcher = Make(3, 4, false, 8);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    ASSERT_TRUE(prefetcher->Push({.epoch = epoch, .begin = 0, .end = 100}).ok());
  }
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    for (int64_t begin = 0; begin < 100; begin += 3) {
      Batch batch = Take(prefetcher.get());
      ASSERT_EQ(batch.epoch, epoch);
      ASSERT_EQ(batch.begin, begin);
      ASSERT_EQ(batch.classes[0], begin);
      prefetcher->Recycle(std::move(batch));
    }
  }
}

TEST_F(PrefetcherTest, PreparesNoMoreThanItsBound) {
  auto prefetcher = Make(1, 2, false, 3);
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 50}).ok());
  for (int64_t taken = 0; taken < 20; ++taken) {
    EXPECT_LE(dataset_->reads(), taken + 3);
    Take(prefetcher.get());
  }
}

TEST_F(PrefetcherTest, UsesReturnedMemoryAgain) {
  auto prefetcher = Make(4, 1, false, 1);
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 100}).ok());
  std::vector<const float*> seen;
  for (int i = 0; i < 25; ++i) {
    Batch batch = Take(prefetcher.get());
    seen.push_back(batch.inputs.data());
    prefetcher->Recycle(std::move(batch));
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_LE(seen.size(), 3u);
}

TEST_F(PrefetcherTest, NothingComesWithinTheTimeout) {
  auto prefetcher = Make(4);
  absl::StatusOr<std::optional<Batch>> batch = prefetcher->Next(absl::ZeroDuration());
  ASSERT_TRUE(batch.ok());
  EXPECT_FALSE(batch->has_value());
  batch = prefetcher->Next(absl::Milliseconds(5));
  ASSERT_TRUE(batch.ok());
  EXPECT_FALSE(batch->has_value());
}

TEST_F(PrefetcherTest, PeekShowsWhatNextGives) {
  auto prefetcher = Make(4);
  EXPECT_EQ(prefetcher->Peek(), nullptr);
  ASSERT_TRUE(prefetcher->Push({.begin = 20, .end = 28}).ok());
  for (int64_t begin : {20, 24}) {
    while (prefetcher->Peek() == nullptr) clock_.Sleep(absl::Milliseconds(1));
    EXPECT_EQ(prefetcher->Peek()->begin, begin);
    EXPECT_EQ(Take(prefetcher.get()).begin, begin);
  }
  EXPECT_EQ(prefetcher->Peek(), nullptr);
  EXPECT_EQ(prefetcher->examples_queued(), 0);
}

TEST_F(PrefetcherTest, NextWaitsForAPush) {
  auto prefetcher = Make(4);
  std::thread pusher([&] { EXPECT_TRUE(prefetcher->Push({.begin = 0, .end = 4}).ok()); });
  EXPECT_EQ(Take(prefetcher.get()).examples, 4);
  pusher.join();
}

TEST_F(PrefetcherTest, ClearDropsWhatIsReadyPendingAndInPreparation) {
  auto prefetcher = Make(4, 1, false, 2);
  dataset_->Shut();
  ASSERT_TRUE(prefetcher->Push({.begin = 0, .end = 100}).ok());
  dataset_->WaitForReads(1);
  prefetcher->Clear();
  EXPECT_EQ(prefetcher->examples_queued(), 0);
  ASSERT_TRUE(prefetcher->Push({.begin = 50, .end = 54}).ok());
  dataset_->Open();
  EXPECT_EQ(Take(prefetcher.get()).begin, 50);
  EXPECT_EQ(prefetcher->examples_queued(), 0);
}

TEST_F(PrefetcherTest, ShutdownEndsWaiting) {
  auto prefetcher = Make(4);
  std::thread waiter(
      [&] { EXPECT_EQ(prefetcher->Next(absl::InfiniteDuration()).status().code(), absl::StatusCode::kCancelled); });
  prefetcher->Shutdown();
  waiter.join();
  EXPECT_EQ(prefetcher->Push({.begin = 0, .end = 1}).code(), absl::StatusCode::kCancelled);
}

TEST_F(PrefetcherTest, DestructionReleasesABlockedCaller) {
  WatchedClock clock;
  auto prefetcher = Prefetcher::Create({.dataset = dataset_, .clock = &clock, .batch_size = 1});
  ASSERT_TRUE(prefetcher.ok());
  std::thread waiter([raw = prefetcher->get()] {
    EXPECT_EQ(raw->Next(absl::InfiniteDuration()).status().code(), absl::StatusCode::kCancelled);
  });
  // The second question comes from under the lock, which is given up in the wait alone.
  clock.WaitForCalls(2);
  prefetcher->reset();
  waiter.join();
}

TEST_F(PrefetcherTest, AnErrorComesInItsPlaceAndStays) {
  dataset_ = std::make_shared<CountingDataset>(200);
  auto prefetcher = Make(10, 3);
  ASSERT_TRUE(prefetcher->Push({.begin = 140, .end = 200}).ok());
  EXPECT_EQ(Take(prefetcher.get()).begin, 140);
  EXPECT_EQ(Take(prefetcher.get()).begin, 150);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(prefetcher->Next(absl::InfiniteDuration()).status().message(), "example 166 is broken");
  }
}

TEST_F(PrefetcherTest, DestructionWithFullQueuesDoesNotHang) {
  auto prefetcher = Make(1, 3, true, 2);
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    ASSERT_TRUE(prefetcher->Push({.epoch = epoch, .begin = 0, .end = 100}).ok());
  }
  Take(prefetcher.get());
}

TEST_F(PrefetcherTest, RefusesBadRanges) {
  auto prefetcher = Make(4);
  for (const ExampleRange& range : std::vector<ExampleRange>{{.begin = 5, .end = 4},
                                                             {.begin = -1, .end = 4},
                                                             {.begin = 0, .end = 101},
                                                             {.epoch = -1, .begin = 0, .end = 1}}) {
    EXPECT_EQ(prefetcher->Push(range).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(prefetcher->examples_queued(), 0);
}

TEST_F(PrefetcherTest, BoundsItsRanges) {
  auto prefetcher = Make(1, 1, false, 1);
  absl::Status status;
  int pushed = 0;
  while (status.ok() && pushed < 100000) {
    status = prefetcher->Push({.begin = 0, .end = 10});
    ++pushed;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PrefetcherTest, RefusesBadOptions) {
  Prefetcher::Options good = {.dataset = dataset_, .clock = &clock_, .batch_size = 1};
  const auto error = [](Prefetcher::Options options) {
    return std::string(Prefetcher::Create(std::move(options)).status().message());
  };
  EXPECT_EQ(error(good), "");
  Prefetcher::Options bad = good;
  bad.dataset = nullptr;
  EXPECT_THAT(error(bad), HasSubstr("dataset"));
  bad = good;
  bad.clock = nullptr;
  EXPECT_THAT(error(bad), HasSubstr("clock"));
  bad = good;
  bad.batch_size = 0;
  EXPECT_THAT(error(bad), HasSubstr("batch_size: value 0; allowed: 1 or more"));
  bad = good;
  bad.queue_batches = -1;
  EXPECT_THAT(error(bad), HasSubstr("queue_batches: value -1"));
  bad = good;
  bad.threads = 65;
  EXPECT_THAT(error(bad), HasSubstr("threads: value 65; allowed: 1 to 64"));
}

TEST_F(PrefetcherTest, ExamplesChangeByTheirEpochAndNumber) {
  v1::ImageAugmentation config;
  config.set_crop_padding(1);
  const auto augmenter = std::make_shared<const ImageAugmenter>(config, 9, Shape{1, 1, 1});
  auto prefetcher = *Prefetcher::Create(
      {.dataset = dataset_, .clock = &clock_, .seed = 9, .shuffle = true, .batch_size = 50, .augmenter = augmenter});
  int changed = 0;
  for (int64_t epoch : {0, 1}) {
    ASSERT_TRUE(prefetcher->Push({.epoch = epoch, .begin = 20, .end = 70}).ok());
    const Batch batch = Take(prefetcher.get());
    ASSERT_EQ(batch.examples, 50);
    for (int i = 0; i < 50; ++i) {
      float expected = static_cast<float>(batch.classes[i]);
      augmenter->Apply(epoch, batch.classes[i], &expected);
      EXPECT_EQ(batch.inputs[i], expected);
      changed += expected != static_cast<float>(batch.classes[i]);
    }
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace rubato::worker
