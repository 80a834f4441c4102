#ifndef RUBATO_TESTS_SIMULATION_SERVER_DIRECTORY_H_
#define RUBATO_TESTS_SIMULATION_SERVER_DIRECTORY_H_

#include <cstdint>
#include <map>

namespace rubato::simulation {

class SimServer;

// Which process is reached at a server's address, by the server's index; a new one takes the place of the old one.
class ServerDirectory {
 public:
  void Add(uint32_t index, SimServer* server) { servers_[index] = server; }
  void Remove(uint32_t index, SimServer* server) {
    auto it = servers_.find(index);
    if (it != servers_.end() && it->second == server) servers_.erase(it);
  }
  // Null if nobody listens.
  SimServer* Find(uint32_t index) const {
    auto it = servers_.find(index);
    return it == servers_.end() ? nullptr : it->second;
  }
  const std::map<uint32_t, SimServer*>& all() const { return servers_; }

 private:
  std::map<uint32_t, SimServer*> servers_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SERVER_DIRECTORY_H_
