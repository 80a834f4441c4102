#include "cli/report/html_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = "</script><script>alert('\"&')</script>";

Comparison HostileComparison() {
  ComparedRun run;
  run.seed = 7;
  run.summary.error = kHostile;
  run.record.start.emplace();
  run.record.members = {{1.0, kHostile, "evicted", kHostile}};
  run.record.plans = {{.generation = 1, .mode = "SYNC", .members = {}, .reason = "start"},
                      {.t = 3, .generation = 2, .mode = kHostile, .members = {}, .reason = kHostile}};
  Comparison comparison;
  comparison.job = kHostile;
  comparison.config_text = kHostile;
  comparison.slowed = kHostile;
  comparison.target_accuracy = 0.9;
  comparison.modes = {{kHostile, {run, run}}};
  return comparison;
}

TEST(HtmlReportTest, EscapesWhateverComesFromTheRuns) {
  std::string page = HtmlReport(HostileComparison());
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"));
}

TEST(HtmlReportTest, RefersToNothingOutsideItself) {
  std::string page = HtmlReport(HostileComparison());
  for (const char* reference : {"http:", "https:", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(HtmlReportTest, DataIsJsonThatEndsWithItsScriptElement) {
  std::string page = HtmlReport(HostileComparison());
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  size_t begin = page.find(opening) + opening.size();
  nlohmann::json data = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["modes"][0]["name"], kHostile);
  EXPECT_EQ(data["modes"][0]["runs"].size(), 2u);
  EXPECT_EQ(data["modes"][0]["runs"][0]["switches"].size(), 1u);
}

TEST(HtmlReportTest, ThinsOutLongCurvesButKeepsTheirEnd) {
  Comparison comparison = HostileComparison();
  ProgressLine line;
  for (int i = 0; i < 20000; ++i) {
    line.step = i;
    comparison.modes[0].runs[0].record.progress.push_back(line);
  }
  std::string page = HtmlReport(comparison);
  EXPECT_LT(page.size(), 200000u);
  EXPECT_THAT(page, HasSubstr("[0.0,0.0,19999,null,null,0.0]"));
}

TEST(HtmlReportTest, SaysThatDataWasGenerated) {
  Comparison comparison = HostileComparison();
  EXPECT_THAT(HtmlReport(comparison), Not(HasSubstr("were generated")));
  comparison.generated_data = true;
  EXPECT_THAT(HtmlReport(comparison), HasSubstr("were generated"));
}

TEST(HtmlReportTest, WorksWithoutRuns) { EXPECT_THAT(HtmlReport(Comparison()), HasSubstr("</html>")); }

}  // namespace
}  // namespace rubato
