#ifndef RUBATO_WORKER_DATA_SHOWN_FIELD_H_
#define RUBATO_WORKER_DATA_SHOWN_FIELD_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rubato::worker {

// A field of a text file, for messages: long enough to recognise what is wrong, short enough to read.
inline std::string ShownField(absl::string_view field) {
  constexpr size_t kShownLetters = 40;
  return absl::StrCat("\"", absl::CHexEscape(field.substr(0, kShownLetters)), "\"");
}

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_SHOWN_FIELD_H_
