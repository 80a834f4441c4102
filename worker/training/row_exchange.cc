#include "worker/training/row_exchange.h"

#include <utility>

#include "common/status.h"

namespace rubato::worker {

void RowExchange::Ask(const Batch& batch) {
  if (empty()) return;
  if (next_.epoch == batch.epoch && next_.begin == batch.begin && next_.end == batch.end) return;
  next_ = {.epoch = batch.epoch, .begin = batch.begin, .end = batch.end, .tables = KeysOfBatch(*spec_, hashes_, batch)};
  for (size_t table = 0; table < next_.tables.size(); ++table) {
    parameters_->AskRows(static_cast<int>(table), next_.tables[table].keys);
  }
}

absl::StatusOr<bool> RowExchange::Await() {
  for (size_t table = 0; table < spec_->tables.size(); ++table) {
    RUBATO_ASSIGN_OR_RETURN(const bool there, parameters_->AwaitRows(static_cast<int>(table)));
    if (!there) return false;
  }
  return true;
}

const float* RowExchange::Compose(const Batch& batch) {
  const int64_t input = NumElements(spec_->input);
  PutFeatures(*spec_, batch.inputs.data(), batch.examples, &inputs_);
  for (size_t table = 0; table < spec_->tables.size(); ++table) {
    PutRows(spec_->tables[table], next_.tables[table], parameters_->rows(static_cast<int>(table)), batch.examples,
            input, inputs_.data());
  }
  return inputs_.data();
}

void RowExchange::Begun() { current_ = std::exchange(next_, {}); }

void RowExchange::Push(const float* input_gradient, const Parameters::Pushed& pushed) {
  const int64_t input = NumElements(spec_->input);
  for (size_t table = 0; table < spec_->tables.size(); ++table) {
    const TableKeysOfBatch& keys = current_.tables[table];
    const std::vector<float> gradients =
        SumRowGradients(spec_->tables[table], keys, input_gradient, static_cast<int64_t>(pushed.examples), input);
    parameters_->PushRows(static_cast<int>(table), keys.keys, gradients, pushed);
  }
}

void RowExchange::PushNothing(const Parameters::Pushed& pushed) {
  for (size_t table = 0; table < spec_->tables.size(); ++table) {
    parameters_->PushRows(static_cast<int>(table), {}, {}, pushed);
  }
}

}  // namespace rubato::worker
