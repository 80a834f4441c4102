#ifndef RUBATO_COMMON_SHARED_MEMORY_TESTING_PEERS_H_
#define RUBATO_COMMON_SHARED_MEMORY_TESTING_PEERS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/shared_memory/link.h"
#include "common/shared_memory/listener.h"
#include "common/shared_memory/region.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Longer than anything takes that works.
inline constexpr absl::Duration kTestTimeout = absl::Seconds(30);

v1::TaskId TestWorker(uint32_t index);

// Of `bytes` bytes, the first of which is `first`; named "rubato-test-<this process>".
std::shared_ptr<SharedRegion> TestRegion(size_t bytes, uint8_t first);
std::string TestRegionName();

// Open files of this process, and its mappings of regions of that name.
size_t OpenFileCount();
size_t MappingCount(const std::string& region_name);

// As SendPacket, with any number of descriptors. Returns whether it was sent.
bool SendRaw(const FileDescriptor& socket, const std::string& bytes, const std::vector<int>& descriptors);

// A memfd of `bytes` zeros with these F_SEAL_ flags.
FileDescriptor TestMemfd(size_t bytes, int seals);

// A listener that offers a page whose first byte is 7.
class TestServer {
 public:
  explicit TestServer(SharedMemoryListener::Options options = {});

  const v1::SharedMemoryAddress& address() const { return listener_->address(); }
  std::shared_ptr<const SharedRegion> Find(uint64_t session, const v1::TaskId& task) const {
    return listener_->Find(session, task);
  }
  SharedRegion& region() { return *region_; }
  absl::StatusOr<std::unique_ptr<SharedMemoryLink>> Connect(uint32_t worker, std::shared_ptr<SharedRegion> offered);

 private:
  RealClock clock_;
  Logger log_;
  std::shared_ptr<SharedRegion> region_;
  std::unique_ptr<SharedMemoryListener> listener_;
};

// A forked process that runs `body` and exits. To be made before the test starts any thread. It is killed with the
// object.
class ChildProcess {
 public:
  // The two ends exchange texts; Receive returns "" when the other end is gone.
  class Channel {
   public:
    explicit Channel(int descriptor) : socket_(descriptor) {}
    void Send(const std::string& text);
    std::string Receive();

   private:
    FileDescriptor socket_;
  };

  explicit ChildProcess(const std::function<void(Channel&)>& body);
  ~ChildProcess() { Kill(); }

  pid_t process() const { return process_; }
  Channel& channel() { return *channel_; }
  // Returns when it is gone.
  void Kill();

 private:
  pid_t process_ = -1;
  std::unique_ptr<Channel> channel_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_TESTING_PEERS_H_
