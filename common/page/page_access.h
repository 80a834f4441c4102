#ifndef RUBATO_COMMON_PAGE_PAGE_ACCESS_H_
#define RUBATO_COMMON_PAGE_PAGE_ACCESS_H_

#include <optional>
#include <string>

#include "common/http/http_request.h"

namespace rubato {

// Who may do what on a page. Pure.
struct PageAccess {
  // Where the page is served, "host:port".
  std::string listen;
  // Of the operator; empty: nobody has one, and nothing can be asked for.
  std::string token = {};
};

// Why a request is not answered; nothing if it is. What a browser fetches because another site told it to is refused:
// on loopback its Host must be a name of loopback (DNS rebinding), and a POST's Origin the page's own. POST needs the
// token ("Authorization: Bearer TOKEN"), and so does everything but the empty page where others can connect. A refusal
// names what is wrong, never what would be right.
std::optional<HttpReply> Refusal(const PageAccess& access, const HttpRequest& request);

}  // namespace rubato

#endif  // RUBATO_COMMON_PAGE_PAGE_ACCESS_H_
