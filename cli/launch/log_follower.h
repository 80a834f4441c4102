#ifndef RUBATO_CLI_LAUNCH_LOG_FOLLOWER_H_
#define RUBATO_CLI_LAUNCH_LOG_FOLLOWER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rubato {

// The lines that a process appends to its log, each with a prefix, for a terminal that shows those of several. The
// process writes to the file by itself, so it never waits for the terminal. Not thread-safe.
//
//   LogFollower follower("logs/worker-0.log", "[0] ");
//   for (const std::string& line : follower.Read()) ...  // "[0] epoch 1"
class LogFollower {
 public:
  // Begins at the file's present end, or at its beginning when there is no such file yet.
  LogFollower(std::string path, std::string prefix);

  // Whole lines that have been written since the last call, without their newlines. Of a line that was written anew
  // after carriage returns, as progress bars do, there is what it was in the end. A line of more than 64 KiB comes in
  // pieces.
  std::vector<std::string> Read();
  // Also what is there of a line that has no newline: the process has ended.
  std::vector<std::string> ReadAll();

 private:
  std::string Shown(const std::string& line) const;

  const std::string path_;
  const std::string prefix_;
  uint64_t offset_ = 0;
  // Of a line that is not whole.
  std::string rest_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_LOG_FOLLOWER_H_
