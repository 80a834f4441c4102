#ifndef RUBATO_COMMON_PAGE_PAGE_SERVER_H_
#define RUBATO_COMMON_PAGE_PAGE_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/http/http_server.h"
#include "common/mutex.h"
#include "common/page/page_access.h"

namespace rubato {

// What a page shows and does.
class PageSource {
 public:
  virtual ~PageSource() = default;
  // Before each News, on a thread of its own: may wait a moment.
  virtual void Refresh() = 0;
  // JSON of what has come since the last call, and of everything that News has returned. Not called at the same time.
  virtual std::string News() = 0;
  virtual std::string Everything() = 0;
  // Answers GET of other paths than the page's own, and every POST, whose sender may ask for things. Must be quick.
  virtual HttpReply Answer(const HttpRequest& request) = 0;
};

// Serves a page over HTTP: the page itself, and a stream of server-sent events that begins with everything there is and
// goes on with what is new, once a second. That is made once, for all who watch. Owns the listener and two threads.
//
//   GET /        the page                GET /events  event "all" with Everything, then events "news", each with an id
//   GET, POST /* PageSource::Answer
class PageServer {
 public:
  struct Options {
    // access.listen: port 0 takes a free one.
    PageAccess access;
    // Both outlive the server.
    PageSource* source = nullptr;
    const Clock* clock = nullptr;
    absl::Duration period = absl::Seconds(1);
  };

  // Errors of HttpServer::Create.
  static absl::StatusOr<std::unique_ptr<PageServer>> Create(Options options);
  // No call to the source is running or comes afterwards.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // "host:port" where others reach it.
  std::string address() const;

  // Sends what is new now, so that nobody misses how it ended.
  void Flush();

 private:
  explicit PageServer(Options options) : options_(std::move(options)) {}
  void Run();
  HttpReply Answer(const HttpRequest& request);

  const Options options_;
  Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Of the last news.
  uint64_t id_ ABSL_GUARDED_BY(mu_) = 0;
  // The event with everything up to that id, for all who come before the next news; empty: nobody has come.
  std::string all_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_PAGE_PAGE_SERVER_H_
