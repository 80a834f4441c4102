#ifndef RUBATO_COMMON_HTTP_HTTP_SERVER_H_
#define RUBATO_COMMON_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/http/http_request.h"

namespace rubato {

// Answers HTTP/1 GET and HEAD requests, for pages that programs fetch now and then: one request per connection, all of
// them on one thread of its own. Slow or silent clients are cut off, and there is a bound on connections and on what a
// request may send. Anybody who reaches the port may read the pages.
//
//   RUBATO_ASSIGN_OR_RETURN(auto server, HttpServer::Create({.listen = "0.0.0.0:9100", .handler = ..., .clock = &c}));
class HttpServer {
 public:
  // Called on the server's thread with a request without error; must be quick.
  using Handler = std::function<HttpReply(const HttpRequest& request)>;

  struct Options {
    // "host:port"; port 0 takes a free one.
    std::string listen = {};
    Handler handler = {};
    // Outlives the server.
    const Clock* clock = nullptr;
    // From the connection to its last byte.
    absl::Duration timeout = absl::Seconds(5);
    // More clients wait until one is served.
    size_t max_connections = 32;
  };

  // Listens when it returns. InvalidArgument: `listen` is not "host:port". Unavailable: the port is taken, or the host
  // is not an address of this machine; the message names both.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(Options options);
  // No handler call is running or comes afterwards.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on.
  int port() const { return port_; }

 private:
  struct Connection {
    FileDescriptor socket;
    absl::Time deadline;
    std::string received;
    // What is left of the answer; empty while the request is still to come.
    std::string answer;
    bool answered = false;
  };

  explicit HttpServer(Options options) : options_(std::move(options)) {}

  absl::Status Listen();
  // The thread's.
  void Run();
  void Accept();
  // Reads or writes what can be without waiting. False: the connection is over.
  bool Serve(Connection* connection);
  bool Read(Connection* connection);

  const Options options_;
  int port_ = 0;
  FileDescriptor socket_;
  // Readable when the thread is to end.
  FileDescriptor stop_;
  std::list<Connection> connections_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_HTTP_SERVER_H_
