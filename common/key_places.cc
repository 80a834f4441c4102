#include "common/key_places.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato {

absl::StatusOr<std::vector<KeyPlace>> PlacesOfKeys(const v1::ColumnsData& columns,
                                                   const std::vector<TableSpec>& tables) {
  std::vector<KeyPlace> result;
  // Of the next entry, and of the next place.
  int entry = 0;
  int64_t first = 0;
  for (size_t table = 0; table < tables.size(); ++table) {
    const int64_t end = first + tables[table].keys_per_example();
    while (first < end) {
      const bool is_text = entry < columns.keys_size() && IsText(columns.keys(entry));
      if (is_text && (!tables[table].is_bag() || first + tables[table].keys_per_example() != end)) {
        const absl::string_view field = columns.keys(entry).words() ? "words" : "byte_pairs";
        return absl::InvalidArgumentError(absl::StrCat(
            "data.columns.keys[", entry, "].", field, ": value true; allowed: false, as the entry is one of the ",
            tables[table].keys_per_example(), " of table ", tables[table].config.name(), "; an entry of ", field,
            " is the only one of a table with combine"));
      }
      result.push_back({.entry = entry++, .table = table, .first = first, .places = is_text ? end - first : 1});
      first += result.back().places;
    }
  }
  if (entry == columns.keys_size()) return result;
  return absl::InvalidArgumentError(absl::StrCat("data.columns.keys: value ", columns.keys_size(),
                                                 " entries; allowed: ", entry, ", as the model's tables have keys"));
}

}  // namespace rubato
