#ifndef RUBATO_COMMON_HTTP_HTTP_SERVER_H_
#define RUBATO_COMMON_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/http/http_request.h"
#include "common/mutex.h"

namespace rubato {

// Answers HTTP/1 GET and HEAD requests, and POST if it is told to, for pages that are fetched now and then: one request
// per connection, all of them on one thread of its own. Slow or silent clients are cut off, and there is a bound on
// connections and on what a request may send. Out of descriptors, it serves those whom it has, and others once there
// are some again. An answer may be a stream of what is published from then on, the same for all who watch. Whom it
// answers is for the handler to say.
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
    // From the connection to its last byte, or to the first one of a stream.
    absl::Duration timeout = absl::Seconds(5);
    // From the connection to the end of its request; who has said a part of one by then is answered 408.
    absl::Duration request_timeout = absl::Seconds(2);
    // More clients wait until one is served, or cut off.
    size_t max_connections = 32;
    // Of the process, that no client gets; fewer if it may have few at all. A further client is answered 503.
    size_t spare_descriptors = 32;
    // Streams beside these; more are answered 503. Who has not read as many messages as `max_behind` is cut off.
    size_t max_streams = 256;
    size_t max_behind = 16;
    // Bytes of a POST's body; 0: POST is answered 405.
    size_t max_body = 0;
  };

  // Listens when it returns. InvalidArgument: `listen` is not "host:port". Unavailable: the port is taken, or the host
  // is not an address of this machine; the message names both.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(Options options);
  // No handler call is running or comes afterwards. What was published is sent as far as that needs no waiting.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on.
  int port() const { return port_; }

  // Sends `message` to all streams. Any thread; returns at once.
  void Publish(std::string message);

 private:
  struct Connection {
    FileDescriptor socket;
    absl::Time deadline;
    absl::Time request_deadline;
    std::string peer;
    std::string received;
    // What is to be sent, the first of it without its first `sent` bytes.
    std::deque<std::shared_ptr<const std::string>> answer;
    size_t sent = 0;
    bool answered = false;
    bool stream = false;
  };

  explicit HttpServer(Options options) : options_(std::move(options)) {}

  absl::Status Listen();
  // The thread's.
  void Run();
  // Waits for what the connections, and others, have. False: the thread is to end.
  bool Await(std::vector<short>* events);
  void Accept();
  // Whether it may go on after this time; who has been too slow with a request is told so.
  bool InTime(Connection* connection, absl::Time now);
  void SendPublished();
  // Reads or writes what can be without waiting. False: the connection is over.
  bool Serve(Connection* connection);
  bool Read(Connection* connection);
  bool Send(Connection* connection);
  HttpReply AnswerOf(const HttpRequest& request) const;
  size_t CountStreams() const;

  const Options options_;
  int port_ = 0;
  FileDescriptor socket_;
  // Readable when the thread is to end.
  FileDescriptor stop_;
  // Readable when there is something in published_.
  FileDescriptor wake_;
  Mutex mu_;
  std::vector<std::shared_ptr<const std::string>> published_ ABSL_GUARDED_BY(mu_);
  std::list<Connection> connections_;
  // Without descriptors nobody is accepted before this time.
  absl::Time accept_again_ = absl::InfinitePast();
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_HTTP_SERVER_H_
