#include "cli/launch/progress_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/launch/status_line.h"

namespace rubato {
namespace {

constexpr absl::Duration kPlainInterval = absl::Seconds(5);

}  // namespace

void ProgressDisplay::Show(const v1::JobStatus& status, absl::Time now) {
  std::string line = absl::StrCat(label_, StatusLine(status));
  if (columns_ > 0) {
    *out_ << "\r\x1b[K" << CutToColumns(line, columns_ - 1) << std::flush;
    line_shown_ = true;
    return;
  }
  if (now - last_plain_ < kPlainInterval) return;
  last_plain_ = now;
  *out_ << line << std::endl;
}

void ProgressDisplay::Print(absl::string_view text) {
  Clear();
  *out_ << text << (absl::EndsWith(text, "\n") ? "" : "\n") << std::flush;
}

void ProgressDisplay::Clear() {
  if (line_shown_) *out_ << "\r\x1b[K" << std::flush;
  line_shown_ = false;
}

size_t TerminalColumns() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  struct winsize size = {};
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace rubato
