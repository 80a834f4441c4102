#include "client/sidecar/results.h"

namespace rubato::client {

rubato_result ResultOfRequest(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return RUBATO_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAlreadyExists:
      return RUBATO_INVALID;
    case absl::StatusCode::kNotFound:
      return RUBATO_NOT_FOUND;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return RUBATO_UNAVAILABLE;
    default:
      return RUBATO_FAILED;
  }
}

rubato_result ResultOfOffer(const absl::Status& status) {
  const rubato_result result = ResultOfRequest(status);
  return result == RUBATO_INVALID || result == RUBATO_NOT_FOUND ? RUBATO_REFUSED : result;
}

rubato_result ResultOfEnd(const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) return RUBATO_ENDED;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ? RUBATO_UNAVAILABLE : RUBATO_FAILED;
}

}  // namespace rubato::client
