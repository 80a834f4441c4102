#ifndef RUBATO_COORDINATOR_RULES_KEY_VALUES_H_
#define RUBATO_COORDINATOR_RULES_KEY_VALUES_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// What workers have told each other by keys. Pure; not thread-safe. A change is a journal record, which Apply takes
// when it is made and again when the journal is read.
//
//   RUBATO_ASSIGN_OR_RETURN(v1::JournalValue change, values.Check(request));
//   ... append it to the journal ...
//   values.Apply(change);
class KeyValues {
 public:
  static constexpr size_t kMaxKeyBytes = 256;
  static constexpr size_t kMaxValueBytes = size_t{1} << 20;
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // The change that the request asks for. InvalidArgument: key or value is too long, or the key empty.
  // ResourceExhausted: there would be more than kMaxBytes.
  absl::StatusOr<v1::JournalValue> Check(const v1::PutValueRequest& request) const;
  void Apply(const v1::JournalValue& change);
  // Null: nobody has put it.
  const std::string* Find(absl::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
  // Of all keys and values.
  size_t bytes_ = 0;
};

// InvalidArgument unless it may be a key.
absl::Status CheckKey(absl::string_view key);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_KEY_VALUES_H_
