#include "common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <ctime>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/http/testing/http_client.h"

namespace rubato {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  void Serve(HttpServer::Options options = {}) {
    options.listen = "127.0.0.1:0";
    options.handler = [this](const HttpRequest& request) {
      if (request.path == "/stream") return HttpReply{.body = "all so far\n", .stream = true};
      if (request.post) return HttpReply{.body = absl::StrCat(request.peer, " says ", request.body)};
      const bool known = request.path == "/page" && request.port > 0;
      return HttpReply{.status = known ? 200 : 404, .body = known ? page_ : ""};
    };
    options.clock = &clock_;
    auto server = HttpServer::Create(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  FileDescriptor Connect() { return ConnectTo(server_->port()); }
  std::string Ask(absl::string_view request) { return rubato::Ask(server_->port(), request); }

  RealClock clock_;
  std::string page_ = "hello\n";
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesPagesOfAnySize) {
  page_ = std::string(8 << 20, 'x');
  Serve();
  const std::string answer = Ask("GET /page HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer.substr(0, 200), HasSubstr("200 OK"));
  EXPECT_THAT(answer.substr(answer.size() - page_.size()), page_);
  EXPECT_THAT(Ask("GET /other HTTP/1.1\r\n\r\n"), HasSubstr("404 Not Found"));
}

TEST_F(HttpServerTest, TakesARequestInPiecesWhileOthersAreServed) {
  Serve();
  FileDescriptor slow = Connect();
  Say(slow, "GET /pa");
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), HasSubstr("hello"));
  Say(slow, "ge HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Hear(slow), HasSubstr("hello"));
}

TEST_F(HttpServerTest, CutsOffWhoIsSilentAndServesOthersAgain) {
  Serve({.timeout = absl::Milliseconds(50), .max_connections = 2});
  FileDescriptor first = Connect();
  FileDescriptor second = Connect();
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), HasSubstr("hello"));
  EXPECT_EQ(Hear(first), "");
  EXPECT_EQ(Hear(second), "");
}

TEST_F(HttpServerTest, SurvivesWhatIsNoRequest) {
  Serve();
  EXPECT_THAT(Ask("\x16\x03\x01\x02 tls?\r\n\r\n"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(Ask("PUT /page HTTP/1.1\r\n\r\n"), HasSubstr("Allow: GET, HEAD"));
  { FileDescriptor gone = Connect(); }
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), HasSubstr("hello"));
}

TEST_F(HttpServerTest, TakesPostsIfItIsToldTo) {
  Serve({.max_body = 8});
  EXPECT_THAT(Ask("POST /page HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"), HasSubstr("127.0.0.1 says hi"));
  EXPECT_THAT(Ask("POST /page HTTP/1.1\r\nContent-Length: 9\r\n\r\n"), HasSubstr("413 Payload Too Large"));
}

TEST_F(HttpServerTest, WhatIsPublishedGoesToEveryStream) {
  Serve({.timeout = absl::Milliseconds(50), .max_connections = 1});
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    Say(clients.back(), "GET /stream HTTP/1.1\r\n\r\n");
    EXPECT_THAT(HearUntil(clients.back(), "far\n"), HasSubstr("200 OK"));
  }
  clock_.Sleep(absl::Milliseconds(100));
  server_->Publish("one\n");
  server_->Publish("two\n");
  for (const FileDescriptor& client : clients) EXPECT_EQ(HearUntil(client, "two\n"), "one\ntwo\n");
  clients.erase(clients.begin());
  server_->Publish("three\n");
  for (const FileDescriptor& client : clients) EXPECT_EQ(HearUntil(client, "three\n"), "three\n");
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), HasSubstr("hello"));
}

TEST_F(HttpServerTest, CutsOffAStreamThatIsNotRead) {
  Serve({.max_streams = 1, .max_behind = 2});
  FileDescriptor slow = Connect();
  Say(slow, "GET /stream HTTP/1.1\r\n\r\n");
  EXPECT_THAT(HearUntil(slow, "far\n"), HasSubstr("200 OK"));
  EXPECT_THAT(Ask("GET /stream HTTP/1.1\r\n\r\n"), HasSubstr("503 Service Unavailable"));
  const std::string large(8 << 20, 'x');
  for (int i = 0; i < 3; ++i) server_->Publish(large);
  // It is gone when there is room for another one.
  std::string answer;
  for (int i = 0; i < 500 && answer.find("200 OK") == std::string::npos; ++i) {
    FileDescriptor next = Connect();
    Say(next, "GET /stream HTTP/1.1\r\n\r\n");
    answer = HearUntil(next, "\n");
    clock_.Sleep(absl::Milliseconds(10));
  }
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_LT(Hear(slow).size(), 3 * large.size());
}

TEST_F(HttpServerTest, WhoIsSlowWithARequestIsToldSo) {
  Serve({.request_timeout = absl::Milliseconds(100), .max_connections = 1});
  FileDescriptor slow = Connect();
  Say(slow, "GET /page HTTP/1.1\r\nX-Slow: ");
  EXPECT_THAT(Hear(slow), AllOf(HasSubstr("408 Request Timeout"), HasSubstr("did not come within 100ms")));
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), HasSubstr("hello"));
}

TEST_F(HttpServerTest, AHeadThatIsTooLongIsRefused) {
  Serve();
  EXPECT_THAT(Ask(absl::StrCat("GET /page HTTP/1.1\r\nX-Long: ", std::string(8200, 'x'))),
              HasSubstr("431 Request Header Fields Too Large"));
}

// With fewer descriptors for a while.
class HttpDescriptorsTest : public HttpServerTest {
 protected:
  HttpDescriptorsTest() { EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~HttpDescriptorsTest() override { Allow(before_.rlim_cur); }
  void Allow(rlim_t most) {
    rlimit limit = before_;
    limit.rlim_cur = most;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static FileDescriptor Socket() { return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  // Which needs no further descriptor of this side.
  void ConnectSocket(const FileDescriptor& client) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  static constexpr char kRequest[] = "GET /page HTTP/1.1\r\n\r\n";
  rlimit before_ = {};
};

TEST_F(HttpDescriptorsTest, ServesAgainOnceThereAreSome) {
  Serve();
  const FileDescriptor watcher = Connect();
  Say(watcher, "GET /stream HTTP/1.1\r\n\r\n");
  EXPECT_THAT(HearUntil(watcher, "far\n"), HasSubstr("200 OK"));
  const FileDescriptor late = Socket();
  // Those that are open, and not one more.
  Allow(static_cast<rlim_t>(Socket().get()));
  ConnectSocket(late);
  Say(late, kRequest);
  // Those whom it has are served, and waiting for the others takes hardly any of a processor.
  const std::clock_t begin = std::clock();
  clock_.Sleep(absl::Milliseconds(300));
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC / 10);
  server_->Publish("news\n");
  EXPECT_EQ(HearUntil(watcher, "news\n"), "news\n");
  Allow(before_.rlim_cur);
  EXPECT_THAT(Hear(late), HasSubstr("hello"));
}

TEST_F(HttpDescriptorsTest, LeavesSomeToTheProcess) {
  Serve();
  EXPECT_THAT(Ask(kRequest), HasSubstr("hello"));
  const FileDescriptor client = Socket();
  // A quarter of so few is spared.
  const rlim_t most = static_cast<rlim_t>(Socket().get()) + 2;
  ASSERT_GE(most / 4, 2u);
  Allow(most);
  ConnectSocket(client);
  EXPECT_THAT(Hear(client), HasSubstr("503 Service Unavailable"));
  Allow(before_.rlim_cur);
  EXPECT_THAT(Ask(kRequest), HasSubstr("hello"));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Serve();
  const std::string taken = absl::StrCat("127.0.0.1:", server_->port());
  auto second = HttpServer::Create({.listen = taken, .clock = &clock_});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(taken, ": the port is taken")));
  EXPECT_EQ(HttpServer::Create({.listen = "203.0.113.7:0", .clock = &clock_}).status().code(),
            absl::StatusCode::kUnavailable);
  for (const char* listen : {"", "9100", ":9100", "localhost:", "localhost:65536", "localhost:http"}) {
    EXPECT_EQ(HttpServer::Create({.listen = listen, .clock = &clock_}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << listen;
  }
}

}  // namespace
}  // namespace rubato
