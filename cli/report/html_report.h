#ifndef RUBATO_CLI_REPORT_HTML_REPORT_H_
#define RUBATO_CLI_REPORT_HTML_REPORT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cli/report/comparison.h"

namespace rubato {

// A whole page that needs nothing but itself: style, script and data are inside. Light or dark as the reader's system
// is. Every text that comes from the runs is escaped.
std::string HtmlReport(const Comparison& comparison);

// The text with &, <, >, " and ' as character references.
std::string EscapeHtml(absl::string_view text);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_HTML_REPORT_H_
