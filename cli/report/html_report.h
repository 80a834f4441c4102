#ifndef RUBATO_CLI_REPORT_HTML_REPORT_H_
#define RUBATO_CLI_REPORT_HTML_REPORT_H_

#include <string>

#include "cli/report/comparison.h"

namespace rubato {

// A whole page that needs nothing but itself: style, script and data are inside. Light or dark as the reader's system
// is. The data is JSON, from which page/page.js makes all that is shown; it treats every text as text.
std::string HtmlReport(const Comparison& comparison);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_HTML_REPORT_H_
