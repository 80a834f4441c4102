#ifndef RUBATO_TESTS_SECURITY_CERTIFIED_JOB_H_
#define RUBATO_TESTS_SECURITY_CERTIFIED_JOB_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/security/identity.h"
#include "common/security/task_security.h"

namespace rubato {

// Certificates of a job "mnist" with three of each task, in a folder of the test's.
class CertifiedJob {
 public:
  // `name`: of the folder, within the test's. What is there is renewed under its authority.
  explicit CertifiedJob(const std::string& name, const std::string& job = "mnist", absl::Time begin = absl::Now());

  const std::string& folder() const { return folder_; }
  // As who opens it at `now`.
  std::shared_ptr<const TaskSecurity> As(Party party, uint32_t index = 0, absl::Time now = absl::Now()) const;

 private:
  std::string folder_;
};

// What a task at "127.0.0.1:port" that is taken for `to` answers to a call of this method with an empty message. Any
// service has an answer; nothing of the message is known to it.
absl::Status CallMethod(int port, Party to, const TaskSecurity* security, const std::string& method);

}  // namespace rubato

#endif  // RUBATO_TESTS_SECURITY_CERTIFIED_JOB_H_
