#ifndef RUBATO_COMMON_MODEL_SPEC_TABLES_H_
#define RUBATO_COMMON_MODEL_SPEC_TABLES_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Calls `error` with the field and what is wrong with it, for each field of the table that is out of range. Defaults are
// filled in.
void CheckTable(const v1::TableConfig& table,
                const std::function<void(absl::string_view field, absl::string_view what)>& error);

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_TABLES_H_
