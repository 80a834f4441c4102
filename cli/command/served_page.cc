#include "cli/command/served_page.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/http/listen_address.h"
#include "common/page/page_access.h"
#include "common/security/token_file.h"
#include "common/status.h"

namespace rubato {

absl::StatusOr<ServedPage> ServePage(const std::string& flag, const std::string& listen, PageSource* source,
                                     const Clock* clock) {
  PageAccess access = {.listen = listen};
  if (!IsLoopback(listen)) {
    RUBATO_ASSIGN_OR_RETURN(access.token, RandomToken());
  }
  const std::string token = access.token;
  absl::StatusOr<std::unique_ptr<PageServer>> server =
      PageServer::Create({.access = std::move(access), .source = source, .clock = clock});
  if (!server.ok()) return Annotate(server.status(), flag);
  ServedPage page;
  page.url = absl::StrCat("http://", (*server)->address(), "/", token.empty() ? "" : absl::StrCat("#token=", token));
  page.server = *std::move(server);
  return page;
}

}  // namespace rubato
