#ifndef RUBATO_CLI_COMMAND_SERVED_PAGE_H_
#define RUBATO_CLI_COMMAND_SERVED_PAGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/page/page_server.h"

namespace rubato {

struct ServedPage {
  std::unique_ptr<PageServer> server;
  // With the page's token behind a "#", which no browser sends to anybody, if others can connect.
  std::string url;
};

// Serves the page of runs on `listen`, "host:port", which the flag says; port 0 takes a free one. Where others can
// connect it needs a token to read, a new one each time. `source` and `clock` outlive it. Errors of PageServer::Create,
// with the flag's name.
absl::StatusOr<ServedPage> ServePage(const std::string& flag, const std::string& listen, PageSource* source,
                                     const Clock* clock);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_SERVED_PAGE_H_
