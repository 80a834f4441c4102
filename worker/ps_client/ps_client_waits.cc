// How a PsClient's trainer waits, and who wakes it.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

void PsClient::WakeTrainer() {
  {
    MutexLock lock(mu_);
    untold_bytes_ = 0;
    if (awaited_ == nullptr || !(*awaited_)()) return;
  }
  // Whoever is woken begins at once, in this thread's place where processors are few, and must not find the lock held.
  changed_.NotifyAll();
}

absl::Status PsClient::AwaitLocked(const std::function<bool()>& done) {
  if (failed_.ok() && done()) {
    counters_.waiting_for.clear();
    return absl::OkStatus();
  }
  // No wait depends on what its caller is still to push.
  if (!waits_for_rows_.empty() || missing_pushes_.tables % std::max<size_t>(tables_.size(), 1) != 0) SendQueued();
  const absl::Time begin = options_.clock->Now();
  absl::Time next_log = begin + absl::Seconds(5);
  awaited_ = &done;
  waits_since_ = begin;
  while (failed_.ok() && !done()) {
    changed_.WaitFor(mu_, absl::Milliseconds(200));
    const absl::Time now = options_.clock->Now();
    if (done() || (now < next_log && now - begin <= options_.wait_timeout)) continue;
    const std::string what = counters_.waiting_for.empty()
                                 ? absl::StrCat("step ", machine_.step(), " waits for the servers' answers")
                                 : counters_.waiting_for;
    if (now >= next_log) {
      options_.log->Info(
          absl::StrCat(what, ", for ", absl::FormatDuration(absl::Floor(now - begin, absl::Seconds(1)))));
      next_log = now + absl::Seconds(5);
    }
    if (now - begin > options_.wait_timeout) {
      Fail(absl::DeadlineExceededError(absl::StrCat(
          what, ", longer than cluster.wait_timeout_seconds = ", absl::ToDoubleSeconds(options_.wait_timeout))));
    }
  }
  awaited_ = nullptr;
  waits_since_ = absl::InfiniteFuture();
  step_wait_ += options_.clock->Now() - begin;
  counters_.waiting_for.clear();
  return failed_;
}

bool PsClient::IsThere(int tensor, int64_t elements) const {
  const std::vector<PartOfTensor>& parts = batching_.parts_of_tensor[tensor];
  return std::all_of(parts.begin(), parts.end(), [&](const PartOfTensor& part) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return part.begin >= elements || machine_.Have(part.batch);
  });
}

absl::StatusOr<bool> PsClient::AwaitElements(int tensor, int64_t elements) {
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(
      AwaitLocked([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || IsThere(tensor, elements); }));
  return !machine_.moved();
}

absl::StatusOr<bool> PsClient::AwaitAll(const std::function<bool()>& enough) {
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(AwaitLocked(
      [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || machine_.complete() || enough(); }));
  return !machine_.moved() && machine_.complete();
}

absl::StatusOr<int> PsClient::AwaitMore(int tensors, const std::function<bool()>& enough) {
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(
      AwaitLocked([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || IsThere(tensors) || enough(); }));
  if (machine_.moved()) return tensors;
  while (tensors < static_cast<int>(absent_.size()) && IsThere(tensors)) ++tensors;
  return tensors;
}

absl::Status PsClient::AwaitAcknowledgements() {
  MutexLock lock(mu_);
  return AwaitLocked([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.open_pushes() == 0; });
}

}  // namespace rubato::worker
