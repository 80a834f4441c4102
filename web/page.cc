#include "web/page.h"

#include "absl/strings/str_replace.h"
#include "web/page_parts.inc"

namespace rubato {

std::string JsonForScript(absl::string_view json) { return absl::StrReplaceAll(json, {{"<", "\\u003c"}}); }

std::string PageOf(absl::string_view json) {
  return absl::StrReplaceAll(kPage, {{"@STYLE@", kStyle},
                                     {"@PAGE_STYLE@", kPageStyle},
                                     {"@CHARTS@", kChartsScript},
                                     {"@RUNS@", kRunsScript},
                                     {"@LANES@", kLanesScript},
                                     {"@PANELS@", kPanelsScript},
                                     {"@CONTROLS@", kControlsScript},
                                     {"@TRACE@", kTraceScript},
                                     {"@PAGE@", kPageScript},
                                     {"@DATA@", JsonForScript(json)}});
}

}  // namespace rubato
