#ifndef RUBATO_CLI_LAUNCH_STATUS_LINE_H_
#define RUBATO_CLI_LAUNCH_STATUS_LINE_H_

#include <string>

#include "proto/coordinator.pb.h"

namespace rubato {

// Where a job stands, in one line without a newline: step, epoch, speed, loss, accuracy (of a regression held-out loss
// and R2), mode, staleness, waiting, time left; or what it waits for before it trains.
std::string StatusLine(const v1::JobStatus& status);

// "training", "failed", ...
std::string PhaseName(v1::JobStatus::Phase phase);

// "45 s", "3 min 20 s", "2 h 5 min".
std::string FormatSeconds(double seconds);

// The text cut to that many columns, one for each UTF-8 character.
std::string CutToColumns(const std::string& text, size_t columns);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_STATUS_LINE_H_
