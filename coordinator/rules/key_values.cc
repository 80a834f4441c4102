#include "coordinator/rules/key_values.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::coordinator {

absl::Status CheckKey(absl::string_view key) {
  if (!key.empty() && key.size() <= KeyValues::kMaxKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key: ", key.size(), " bytes; allowed: 1 to ", KeyValues::kMaxKeyBytes));
}

absl::StatusOr<v1::JournalValue> KeyValues::Check(const v1::PutValueRequest& request) const {
  RUBATO_RETURN_IF_ERROR(CheckKey(request.key()));
  v1::JournalValue change;
  change.set_key(request.key());
  change.set_erased(request.erase());
  if (request.erase()) return change;
  if (request.value().size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(absl::StrCat("value of ", request.key(), ": ", request.value().size(),
                                                   " bytes; allowed: up to ", kMaxValueBytes));
  }
  const std::string* old = Find(request.key());
  const size_t freed = old == nullptr ? 0 : request.key().size() + old->size();
  const size_t bytes = bytes_ - freed + request.key().size() + request.value().size();
  if (bytes > kMaxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("with ", request.key(), " the job's values would take ", bytes,
                                                     " bytes; allowed: up to ", kMaxBytes, "; erase some"));
  }
  change.set_value(request.value());
  return change;
}

void KeyValues::Apply(const v1::JournalValue& change) {
  if (auto old = values_.find(change.key()); old != values_.end()) {
    bytes_ -= old->first.size() + old->second.size();
    values_.erase(old);
  }
  if (change.erased()) return;
  bytes_ += change.key().size() + change.value().size();
  values_.emplace(change.key(), change.value());
}

const std::string* KeyValues::Find(absl::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace rubato::coordinator
