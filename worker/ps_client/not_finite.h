#ifndef RUBATO_WORKER_PS_CLIENT_NOT_FINITE_H_
#define RUBATO_WORKER_PS_CLIENT_NOT_FINITE_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace rubato::worker {

inline constexpr char kNotFinitePayload[] = "rubato/not_finite";

// OutOfRange: a loss or a gradient is not finite if consistency.on_non_finite is STOP_JOB. The worker leaves with
// it, and the job fails. `where` names worker, step and what is not finite.
inline absl::Status NotFiniteError(absl::string_view where) {
  absl::Status status = absl::OutOfRangeError(where);
  status.SetPayload(kNotFinitePayload, absl::Cord());
  return status;
}

// Other errors have the code, too.
inline bool IsNotFinite(const absl::Status& status) { return status.GetPayload(kNotFinitePayload).has_value(); }

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_NOT_FINITE_H_
