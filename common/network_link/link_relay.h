#ifndef RUBATO_COMMON_NETWORK_LINK_LINK_RELAY_H_
#define RUBATO_COMMON_NETWORK_LINK_LINK_RELAY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/network_link/link_model.h"

namespace rubato {

// Puts this process behind a slow network link: TCP connections that it opens through the relay carry the same bytes,
// as much later and as slowly as over that link, all of them sharing it. Bytes really wait, so that protocols see what
// they would see there: full buffers, windows, and messages behind others. Thread-safe; a thread of its own moves the
// bytes.
//
//   RUBATO_ASSIGN_OR_RETURN(auto relay, LinkRelay::Create(link, &clock));
//   RUBATO_ASSIGN_OR_RETURN(std::string address, relay->AddressFor("host:7000"));   // connect to this instead
class LinkRelay {
 public:
  // Unavailable: the system has no sockets left.
  static absl::StatusOr<std::unique_ptr<LinkRelay>> Create(const LinkModel& link, const Clock* clock);
  // Breaks all connections.
  ~LinkRelay();
  LinkRelay(const LinkRelay&) = delete;
  LinkRelay& operator=(const LinkRelay&) = delete;

  const LinkModel& link() const { return link_; }

  // "127.0.0.1:port", on which a connection is one to `target` ("host:port") behind the link. The same for the same
  // target. A target that cannot be reached breaks the connections that are made to it. InvalidArgument: not
  // "host:port".
  absl::StatusOr<std::string> AddressFor(const std::string& target);

 private:
  struct Piece {
    absl::Time arrives;
    std::vector<char> bytes;
    size_t written = 0;
  };
  // From one socket to the other.
  struct Direction {
    int from = -1;
    int to = -1;
    LinkShaper* shaper = nullptr;
    std::deque<Piece> pieces;
    // In the pieces.
    size_t bytes = 0;
    // No more bytes come; and the other side knows.
    bool ended = false;
    bool closed = false;
  };
  struct Connection {
    int near = -1;
    int far = -1;
    // `far` is not connected yet.
    bool connecting = true;
    bool broken = false;
    Direction up;
    Direction down;
  };
  struct Target {
    int listener = -1;
    std::string address;
    // Of the target, as the system writes it.
    std::vector<char> socket_address;
  };

  LinkRelay(const LinkModel& link, const Clock* clock, int wake_read, int wake_write);

  void Run();
  // Waits for sockets, for bytes that arrive, or for something that the thread has to know.
  void Poll();
  void Accept(const Target& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What can be moved now.
  void Move(Connection* connection, absl::Time now);
  void Read(Direction* direction, absl::Time now, Connection* connection);
  void Write(Direction* direction, absl::Time now, Connection* connection);
  static void Close(Connection* connection);

  const LinkModel link_;
  const Clock* const clock_;
  // A pipe.
  const int wake_read_;
  const int wake_write_;
  LinkShaper up_;
  LinkShaper down_;
  Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Target> targets_ ABSL_GUARDED_BY(mu_);
  // The thread's.
  std::list<Connection> connections_;
  std::vector<char> buffer_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_NETWORK_LINK_LINK_RELAY_H_
