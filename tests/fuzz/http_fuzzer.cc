// What an HTTP client sends: however it is cut into packets the request that comes out is the same, and what is served
// fits the page server's limits.
//
// Input: what the client sends, then 3 bytes: where the first packet ends (2 bytes), and the longest body (in units of
// 16 bytes; 0: no POST).
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "common/http/http_request.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato {
namespace {

bool Same(const HttpRequest& a, const HttpRequest& b) {
  return a.head_only == b.head_only && a.post == b.post && a.path == b.path && a.headers == b.headers &&
         a.body == b.body && a.error == b.error;
}

void CheckRequest(const HttpRequest& request, size_t body_max) {
  RUBATO_FUZZ_CHECK(request.body.size() <= body_max, request.body.size());
  RUBATO_FUZZ_CHECK(!request.post || body_max > 0, "a POST that nobody serves");
  RUBATO_FUZZ_CHECK(request.body.empty() || request.post, "a body without a POST");
  if (request.error != 0) {
    RUBATO_FUZZ_CHECK(request.error >= 400 && request.error < 500, request.error);
    return;
  }
  RUBATO_FUZZ_CHECK(absl::StartsWith(request.path, "/"), request.path);
  RUBATO_FUZZ_CHECK(!absl::StrContains(request.path, ' ') && !absl::StrContains(request.path, '?'), request.path);
  for (const auto& [name, value] : request.headers) {
    RUBATO_FUZZ_CHECK(!name.empty() && !absl::StrContains(name, ' ') && !absl::StrContains(name, ':'), name);
    RUBATO_FUZZ_CHECK(!absl::StrContains(value, "\r\n"), value);
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const size_t body_max = size_t{trailer.TakeByte()} * 16;
  size_t cut = trailer.TakeWord();
  const std::string bytes = trailer.Rest();
  cut = std::min(cut, bytes.size());

  const std::optional<HttpRequest> whole = ParseHttpRequest(bytes, body_max);
  if (whole.has_value()) CheckRequest(*whole, body_max);
  const std::optional<HttpRequest> first = ParseHttpRequest(std::string(bytes, 0, cut), body_max);
  // What was complete stays as it is, whatever comes after it, and nothing is given up that may still be read.
  if (first.has_value()) {
    RUBATO_FUZZ_CHECK(whole.has_value() && Same(*first, *whole), "what comes later changes a request");
  }
  RUBATO_FUZZ_CHECK(whole.has_value() || bytes.size() <= kHttpHeadMax + 4 + body_max, "a client is waited for forever");
  return 0;
}
