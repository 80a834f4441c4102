#ifndef RUBATO_CLI_LAUNCH_PROGRESS_DISPLAY_H_
#define RUBATO_CLI_LAUNCH_PROGRESS_DISPLAY_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Shows a job's progress: on a terminal one line that is written again and again, elsewhere a line every 5 s.
// Not thread-safe.
class ProgressDisplay {
 public:
  // `out` outlives the display. `columns` is the terminal's width; 0: not a terminal. `label` stands before each line.
  ProgressDisplay(std::ostream* out, size_t columns, std::string label)
      : out_(out), columns_(columns), label_(std::move(label)) {}
  // Leaves the cursor on a line of its own.
  ~ProgressDisplay() { Clear(); }

  void Show(const v1::JobStatus& status, absl::Time now);
  // A text of one or more lines that stays.
  void Print(absl::string_view text);

 private:
  void Clear();

  std::ostream* const out_;
  const size_t columns_;
  const std::string label_;
  bool line_shown_ = false;
  absl::Time last_plain_ = absl::InfinitePast();
};

// Width of the terminal on standard output; 0 when it is not a terminal.
size_t TerminalColumns();

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_PROGRESS_DISPLAY_H_
