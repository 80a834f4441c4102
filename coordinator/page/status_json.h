#ifndef RUBATO_COORDINATOR_PAGE_STATUS_JSON_H_
#define RUBATO_COORDINATOR_PAGE_STATUS_JSON_H_

#include <nlohmann/json.hpp>

#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// What a page shows of a job as it is now ("status" in docs/formats.md): its plan, its checkpoint, and each task with
// what it does, waits for and holds. Pure.
nlohmann::ordered_json StatusJson(const v1::JobStatus& status);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_PAGE_STATUS_JSON_H_
