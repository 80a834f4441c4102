#include "cli/replay/recorded_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/batch_sizes.h"
#include "common/config/local_sgd.h"
#include "common/status.h"
#include "worker/training/dynamic_source.h"
#include "worker/training/read_batch.h"

namespace rubato {

absl::StatusOr<worker::ExampleRange> RecordedSource::RangeOf(const RecordedRun::Step& step) const {
  const v1::ShardSlice& slice = step.slice;
  const int64_t shard_examples = std::max<int64_t>(options_.config->data().shard_examples(), 1);
  const int64_t shards_per_epoch = (options_.train_examples + shard_examples - 1) / shard_examples;
  const auto shard = static_cast<int64_t>(slice.shard()) - 1;
  const int64_t begin = shard % shards_per_epoch * shard_examples;
  const int64_t end = std::min(begin + shard_examples, options_.train_examples);
  const int64_t batch = LargestBatch(*options_.config) * MostBatchesPerStep(*options_.config);
  const bool fits = begin <= slice.begin() && slice.begin() < slice.end() && slice.end() <= end;
  if (!fits || slice.end() - slice.begin() > batch) {
    return absl::DataLossError(absl::StrCat(
        "step ", step.step, " of worker ", options_.member->task.index(), " trained examples ", slice.begin(), " to ",
        slice.end(), " of shard ", slice.shard(), ", which has ", begin, " to ", end, ", in batches of ", batch));
  }
  return worker::ExampleRange{shard / shards_per_epoch, slice.begin(), slice.end(), slice.shard(), true};
}

absl::Status RecordedSource::ReadAhead() {
  const size_t ahead = options_.config->data().prefetch_batches();
  for (; asked_ < std::min(options_.member->steps.size(), next_ + 1 + ahead); ++asked_) {
    const RecordedRun::Step& step = options_.member->steps[asked_];
    if (step.slice.shard() == 0) continue;
    RUBATO_ASSIGN_OR_RETURN(const worker::ExampleRange range, RangeOf(step));
    RUBATO_RETURN_IF_ERROR(options_.prefetcher->Push(range));
  }
  return absl::OkStatus();
}

void RecordedSource::Begun() {
  ++next_;
  if (options_.by_plan != nullptr) options_.by_plan->Begun();
}

absl::StatusOr<worker::BatchSource::Next> RecordedSource::Get(const worker::Parameters::Step& step) {
  RUBATO_ASSIGN_OR_RETURN(const Next next, GetRecorded(step));
  if (next.kind == Kind::kEmpty && options_.on_empty) options_.on_empty();
  return next;
}

absl::StatusOr<worker::BatchSource::Next> RecordedSource::GetRecorded(const worker::Parameters::Step& step) {
  if (batch_.has_value()) options_.prefetcher->Recycle(*std::exchange(batch_, std::nullopt));
  if (next_ == options_.member->steps.size()) return Next{.kind = Kind::kDone};
  if (options_.by_plan != nullptr) return options_.by_plan->Get(step);
  RUBATO_RETURN_IF_ERROR(ReadAhead());
  if (options_.member->steps[next_].slice.shard() == 0) return Next{.kind = Kind::kEmpty};
  RUBATO_ASSIGN_OR_RETURN(batch_, worker::ReadBatch(options_.prefetcher, nullptr));
  return worker::NextOfShard(*batch_, options_.train_examples);
}

}  // namespace rubato
