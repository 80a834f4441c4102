#include "common/page/page_server.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/http/listen_address.h"
#include "common/status.h"
#include "web/page.h"

namespace rubato {
namespace {

// Nothing is loaded from elsewhere, nobody shows the page inside of his own, and nothing stays in a cache.
const std::vector<std::string>& Headers() {
  static const auto* const headers = new std::vector<std::string>{
      "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
      "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store"};
  return *headers;
}

// JSON has no line breaks of its own.
std::string Event(absl::string_view kind, uint64_t id, absl::string_view json) {
  return absl::StrCat("event: ", kind, "\nid: ", id, "\ndata: ", json, "\n\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Create(Options options) {
  std::unique_ptr<PageServer> page(new PageServer(std::move(options)));
  RUBATO_ASSIGN_OR_RETURN(
      page->server_,
      HttpServer::Create({.listen = page->options_.access.listen,
                          .handler = [self = page.get()](const HttpRequest& request) { return self->Answer(request); },
                          .clock = page->options_.clock,
                          .max_body = 4096}));
  page->thread_ = std::thread([self = page.get()] { self->Run(); });
  return page;
}

PageServer::~PageServer() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mu_);
    stop_ = true;
    stopped_.NotifyAll();
  }
  thread_.join();
}

std::string PageServer::address() const { return ReachableAddress(options_.access.listen, server_->port()); }

void PageServer::Run() {
  absl::Time next = options_.clock->Now();
  for (;;) {
    {
      MutexLock lock(mu_);
      while (!stop_) {
        const absl::Duration left = next - options_.clock->Now();
        if (left <= absl::ZeroDuration()) break;
        stopped_.WaitFor(mu_, left);
      }
      if (stop_) return;
    }
    Flush();
    next = options_.clock->Now() + options_.period;
  }
}

void PageServer::Flush() {
  options_.source->Refresh();
  MutexLock lock(mu_);
  ++id_;
  all_.clear();
  server_->Publish(Event("news", id_, options_.source->News()));
}

HttpReply PageServer::Answer(const HttpRequest& request) {
  HttpReply reply;
  if (std::optional<HttpReply> refusal = Refusal(options_.access, request)) {
    reply = *std::move(refusal);
  } else if (request.path == "/" && !request.post) {
    reply = {.content_type = "text/html; charset=utf-8", .body = PageOf("")};
  } else if (request.path == "/events" && !request.post) {
    MutexLock lock(mu_);
    if (all_.empty()) all_ = Event("all", id_, options_.source->Everything());
    // Those with this id and earlier ones, which may still be on their way, are in it.
    reply = {.content_type = "text/event-stream", .body = all_, .stream = true};
  } else {
    reply = options_.source->Answer(request);
  }
  reply.headers.insert(reply.headers.end(), Headers().begin(), Headers().end());
  return reply;
}

}  // namespace rubato
