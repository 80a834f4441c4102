#ifndef RUBATO_WEB_PAGE_H_
#define RUBATO_WEB_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace rubato {

// The page of runs as one HTML file that needs no other. `json`: what it shows, as in PageSource::Everything; empty: it
// asks whoever served it, and goes on asking.
std::string PageOf(absl::string_view json);

// JSON that may stand inside of a script element: nothing in it ends that.
std::string JsonForScript(absl::string_view json);

}  // namespace rubato

#endif  // RUBATO_WEB_PAGE_H_
