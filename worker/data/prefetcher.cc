#include "worker/data/prefetcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

constexpr size_t kMaxRanges = 4096;
constexpr int kMaxThreads = 64;

absl::Status BadOption(absl::string_view name, int64_t value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("prefetcher option ", name, ": value ", value, "; allowed: ", allowed));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Prefetcher>> Prefetcher::Create(Options options) {
  if (options.dataset == nullptr) return absl::InvalidArgumentError("prefetcher option dataset: null");
  if (options.clock == nullptr) return absl::InvalidArgumentError("prefetcher option clock: null");
  if (options.batch_size < 1) return BadOption("batch_size", options.batch_size, "1 or more");
  if (options.queue_batches < 1) return BadOption("queue_batches", options.queue_batches, "1 or more");
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return BadOption("threads", options.threads, absl::StrCat("1 to ", kMaxThreads));
  }
  std::unique_ptr<Prefetcher> prefetcher(new Prefetcher(std::move(options)));
  for (int i = 0; i < prefetcher->options_.threads; ++i) {
    prefetcher->threads_.emplace_back([raw = prefetcher.get()] { raw->Run(); });
  }
  return prefetcher;
}

Prefetcher::Prefetcher(Options options)
    : options_(std::move(options)),
      orders_(options_.seed, options_.dataset->size(), options_.shuffle),
      batch_size_(options_.batch_size) {}

Prefetcher::~Prefetcher() {
  Shutdown();
  {
    MutexLock lock(mu_);
    while (callers_ > 0) idle_.Wait(mu_);
  }
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::Shutdown() {
  MutexLock lock(mu_);
  stopped_ = true;
  work_.NotifyAll();
  ready_.NotifyAll();
}

absl::Status Prefetcher::Push(const ExampleRange& range) {
  const int64_t size = options_.dataset->size();
  if (range.epoch < 0 || range.begin < 0 || range.begin > range.end || range.end > size) {
    return absl::InvalidArgumentError(absl::StrCat("examples ", range.begin, " to ", range.end, " of epoch ",
                                                   range.epoch, "; allowed: a part of 0 to ", size,
                                                   " of an epoch counted from 0"));
  }
  MutexLock lock(mu_);
  if (stopped_) return absl::CancelledError("the prefetcher is shut down");
  if (ranges_.size() >= kMaxRanges) {
    return absl::ResourceExhaustedError(absl::StrCat("the prefetcher holds ", ranges_.size(), " ranges already"));
  }
  ranges_.push_back(range);
  examples_queued_ += range.end - range.begin;
  work_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Batch>> Prefetcher::Next(absl::Duration timeout) {
  const absl::Time deadline = options_.clock->Now() + timeout;
  MutexLock lock(mu_);
  ++callers_;
  absl::StatusOr<std::optional<Batch>> result = NextLocked(deadline);
  if (--callers_ == 0) idle_.NotifyAll();
  return result;
}

absl::StatusOr<std::optional<Batch>> Prefetcher::NextLocked(absl::Time deadline) {
  // The system's wait overflows on an endless timeout.
  constexpr absl::Duration kLongestWait = absl::Hours(1);
  for (;;) {
    if (stopped_) return absl::CancelledError("the prefetcher is shut down");
    if (!error_.ok()) return error_;
    if (finished_.count(next_out_) > 0) break;
    const absl::Duration left = deadline - options_.clock->Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    ready_.WaitFor(mu_, std::min(left, kLongestWait));
  }
  auto node = finished_.extract(next_out_);
  ++next_out_;
  work_.NotifyAll();
  if (!node.mapped().ok()) {
    error_ = node.mapped().status();
    ready_.NotifyAll();
    return error_;
  }
  examples_queued_ -= node.mapped()->examples;
  return std::optional<Batch>(*std::move(node.mapped()));
}

const Batch* Prefetcher::Peek() const {
  MutexLock lock(mu_);
  const auto next = finished_.find(next_out_);
  return next != finished_.end() && next->second.ok() ? &*next->second : nullptr;
}

void Prefetcher::SetBatchSize(int64_t examples) {
  MutexLock lock(mu_);
  batch_size_ = std::max<int64_t>(examples, 1);
}

void Prefetcher::Recycle(Batch batch) {
  MutexLock lock(mu_);
  KeepSpare(std::move(batch));
}

void Prefetcher::KeepSpare(Batch batch) {
  if (static_cast<int64_t>(spares_.size()) <= options_.queue_batches) spares_.push_back(std::move(batch));
}

void Prefetcher::Clear() {
  MutexLock lock(mu_);
  ranges_.clear();
  for (auto& [ticket, batch] : finished_) {
    if (batch.ok()) KeepSpare(*std::move(batch));
  }
  finished_.clear();
  // What the threads are at comes back with a ticket that has passed.
  next_out_ = next_ticket_;
  examples_queued_ = 0;
}

int64_t Prefetcher::examples_queued() const {
  MutexLock lock(mu_);
  return examples_queued_;
}

void Prefetcher::Run() {
  std::vector<int64_t> indices;
  Job job;
  while (TakeJob(&job)) {
    absl::Status status = Fill(job.range, &indices, &job.batch);
    FinishJob(std::move(job), std::move(status));
    job = Job();
  }
}

bool Prefetcher::TakeJob(Job* job) {
  MutexLock lock(mu_);
  while (!stopped_ && (ranges_.empty() || next_ticket_ - next_out_ >= static_cast<uint64_t>(options_.queue_batches))) {
    work_.Wait(mu_);
  }
  if (stopped_) return false;
  ExampleRange& front = ranges_.front();
  job->ticket = next_ticket_++;
  job->range = front;
  if (front.end - front.begin > batch_size_) {
    job->range.end = front.begin + batch_size_;
    job->range.last_of_shard = false;
    front.begin = job->range.end;
  } else {
    ranges_.pop_front();
  }
  if (!spares_.empty()) {
    job->batch = std::move(spares_.back());
    spares_.pop_back();
  }
  return true;
}

absl::Status Prefetcher::Fill(const ExampleRange& range, std::vector<int64_t>* indices, Batch* batch) {
  const Dataset& dataset = *options_.dataset;
  const int64_t n = range.end - range.begin;
  const bool classes = dataset.label_kind() == LabelKind::kClasses;
  batch->examples = n;
  batch->epoch = range.epoch;
  batch->begin = range.begin;
  batch->end = range.end;
  batch->shard = range.shard;
  batch->last_of_shard = range.last_of_shard;
  batch->inputs.resize(n * dataset.input_elements());
  batch->classes.resize(classes ? n * dataset.labels_per_example() : 0);
  batch->targets.resize(classes ? 0 : n * dataset.target_elements());
  batch->keys.resize(n * dataset.keys_per_example());
  batch->key_counts.resize(n * dataset.key_counts_per_example());
  batch->key_weights.resize(n * dataset.key_weights_per_example());
  if (n == 0) return absl::OkStatus();
  const std::shared_ptr<const EpochOrder> order = orders_.Get(range.epoch);
  indices->resize(n);
  for (int64_t i = 0; i < n; ++i) (*indices)[i] = order->At(range.begin + i);
  RUBATO_RETURN_IF_ERROR(dataset.Read(indices->data(), n, batch->inputs.data(), batch->classes.data(),
                                      batch->targets.data(), batch->keys.data(), batch->key_counts.data(),
                                      batch->key_weights.data()));
  if (options_.augmenter == nullptr) return absl::OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    options_.augmenter->Apply(range.epoch, (*indices)[i], batch->inputs.data() + i * dataset.input_elements());
  }
  return absl::OkStatus();
}

void Prefetcher::FinishJob(Job job, absl::Status status) {
  MutexLock lock(mu_);
  if (job.ticket < next_out_) {
    KeepSpare(std::move(job.batch));
    return;
  }
  if (status.ok()) {
    finished_.emplace(job.ticket, std::move(job.batch));
  } else {
    finished_.emplace(job.ticket, std::move(status));
  }
  ready_.NotifyAll();
}

}  // namespace rubato::worker
