#ifndef RUBATO_COMMON_PAGE_RUN_FEED_H_
#define RUBATO_COMMON_PAGE_RUN_FEED_H_

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/run_record.pb.h"

namespace rubato {

// What a page shows of one run: takes the lines of its record as they come, and gives what a page that is opened now
// has to know, and what one that is open has not been told yet. Both are one kind of JSON object (docs/formats.md).
// Keeps so much and no more, however long the run is: when there are too many points, neighbours become one. Pure; not
// thread-safe.
//
//   feed.Add(line);
//   Send(feed.News());               // once a second, to all
//   SendTo(watcher, feed.Everything());  // who comes later: all that was in News
class RunFeed {
 public:
  using Json = nlohmann::ordered_json;

  // Of what is kept.
  static constexpr size_t kPointsMax = 1200;
  static constexpr size_t kWorkerSamplesMax = 160;
  static constexpr size_t kRecentSamples = 64;
  static constexpr size_t kLogMax = 1000;

  struct About {
    // What it is called where several are shown.
    std::string name;
    std::string directory;
    // The job's, in text format.
    std::string config_text;
  };
  explicit RunFeed(About about) : about_(std::move(about)), news_(Nothing()) {}

  void Add(const v1::RunRecordLine& line);

  Json News();
  Json Everything() const;

 private:
  // Points of the whole run, each the mean of `stride` neighbours, the last one of so many as there are.
  struct Curve {
    Json points = Json::array();
    size_t stride = 1;
    size_t last_weight = 0;

    void Add(Json point);
    void Halve();
  };

  static Json Nothing();
  void AddProgress(const v1::ProgressLine& line);
  void GoBack(const v1::RollbackLine& rollback);
  void KeepSample(Json sample);

  const About about_;
  Json start_ = nullptr;
  // What News returns next; below, what it has returned.
  Json news_;
  Curve points_;
  Curve evaluations_;
  Json log_ = Json::array();
  // Of workers: every so many of all the time, and the last ones.
  Json samples_ = Json::array();
  std::deque<Json> recent_;
  size_t stride_ = 1;
  size_t samples_seen_ = 0;
  v1::ProgressLine last_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_PAGE_RUN_FEED_H_
