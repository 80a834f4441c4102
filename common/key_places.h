#ifndef RUBATO_COMMON_KEY_PLACES_H_
#define RUBATO_COMMON_KEY_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/data_config.pb.h"

namespace rubato {

// Where the keys of an entry of data.columns.keys stand among an example's keys.
struct KeyPlace {
  int entry = 0;
  size_t table = 0;
  // The first of so many places. More than one if IsText.
  int64_t first = 0;
  int64_t places = 1;
};

// Whether the entry's column is text, which has a key for each word or byte pair.
inline bool IsText(const v1::KeyColumns& entry) { return entry.words() || entry.byte_pairs(); }

// Deals the entries to the model's tables, in the order of both: one for each of a table's keys_per_example, or all of
// them to an entry of text, which a table with `combine` alone takes. Ascending by place. InvalidArgument with the
// error of an entry that does not fit, or of there being too many or too few, as ErrorList has it.
absl::StatusOr<std::vector<KeyPlace>> PlacesOfKeys(const v1::ColumnsData& columns,
                                                   const std::vector<TableSpec>& tables);

}  // namespace rubato

#endif  // RUBATO_COMMON_KEY_PLACES_H_
