#include "common/config/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rubato {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kMostNames = 3;

// Letters to insert, delete or replace.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// Alike enough to be a slip: about one letter in three.
std::vector<std::string> Alike(absl::string_view name, const Descriptor* descriptor) {
  std::vector<std::pair<size_t, std::string>> found;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string& field = descriptor->field(i)->name();
    const size_t distance = EditDistance(name, field);
    if (3 * distance <= std::min(name.size(), field.size()) + 2) found.emplace_back(distance, field);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (found.size() > kMostNames) found.resize(kMostNames);
  std::vector<std::string> names;
  for (const auto& [distance, field] : found) names.push_back(field);
  return names;
}

// Not in lists, whose elements have no path that could be written down as it is.
void AddElsewhere(absl::string_view name, const Descriptor* descriptor, const Descriptor* except,
                  const std::string& prefix, std::vector<std::string>* paths) {
  for (int i = 0; i < descriptor->field_count() && paths->size() < kMostNames; ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string path = absl::StrCat(prefix, field->name());
    if (field->name() == name && descriptor != except) paths->push_back(path);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      AddElsewhere(name, field->message_type(), except, path + ".", paths);
    }
  }
}

}  // namespace

std::string NearestFields(absl::string_view name, const Descriptor* descriptor, const Descriptor* root) {
  std::vector<std::string> names = Alike(name, descriptor);
  std::vector<std::string> elsewhere;
  AddElsewhere(name, root, descriptor, "", &elsewhere);
  names.insert(names.end(), elsewhere.begin(), elsewhere.end());
  return names.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(names, " or "), "?");
}

}  // namespace rubato
