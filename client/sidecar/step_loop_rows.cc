// What a StepLoop does with rows of tables.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/sidecar/step_loop.h"
#include "common/status.h"
#include "common/straggler/sleep_unless.h"

namespace rubato::client {

void StepLoop::PushRows(const Frame& frame) {
  RowsBody body;
  std::vector<uint64_t> keys;
  std::vector<float> gradients;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || body.table >= options_.spec->tables.size() || !reader.Array(body.keys, &keys)) return;
  const auto dimension = static_cast<size_t>(options_.spec->tables[body.table].dimension());
  if (!reader.Array(keys.size() * dimension, &gradients) || !reader.AtEnd()) return;
  PushRows(static_cast<int>(body.table), keys, gradients, body.examples);
}

void StepLoop::PushRows(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                        uint64_t examples) {
  if (!CountPush(options_.spec->tensors.size() + static_cast<size_t>(table))) return;
  const absl::Time begin = options_.clock->Now();
  rows_->Push(table, keys, gradients, {.examples = examples, .epoch = epoch_, .slice = slice_});
  progress_.OnPushed(begin, examples);
}

void StepLoop::AskRows(const Frame& frame) {
  RowsBody body;
  std::vector<uint64_t> keys;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || body.table >= options_.spec->tables.size() || !reader.Array(body.keys, &keys)) return;
  rows_->Ask(static_cast<int>(body.table), keys);
}

absl::Status StepLoop::ReadRows() {
  if (!options_.calls->read.has_value()) return absl::OkStatus();
  RowsBody body;
  std::vector<uint64_t> keys;
  BodyReader reader(options_.calls->read->body);
  absl::StatusOr<std::string> rows = "";
  if (reader.Get(&body) && body.table < options_.spec->tables.size() && reader.Array(body.keys, &keys)) {
    rows = rows_->Read(static_cast<int>(body.table), keys);
  }
  if (rows.ok()) {
    unreadable_since_.reset();
    options_.answer_rows(std::exchange(options_.calls->read, std::nullopt)->request, *rows);
    return absl::OkStatus();
  }
  if (options_.cancelled()) return absl::OkStatus();
  const absl::Time now = options_.clock->Now();
  if (!unreadable_since_.has_value()) unreadable_since_ = now;
  const bool may_come_back = absl::IsUnavailable(rows.status()) || absl::IsDeadlineExceeded(rows.status());
  if (!may_come_back || now - *unreadable_since_ > absl::Seconds(options_.config->cluster().start_timeout_seconds())) {
    return Annotate(rows.status(), "rows of tables");
  }
  SleepUnless([this] { return options_.cancelled() || options_.queue->leaves(); }, kPoll, options_.clock);
  return absl::OkStatus();
}

}  // namespace rubato::client
