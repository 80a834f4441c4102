#include "web/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PageTest, DataCannotEndTheElementThatItIsIn) {
  EXPECT_EQ(JsonForScript("[\"</script><!--\"]"), "[\"\\u003c/script>\\u003c!--\"]");
  EXPECT_THAT(PageOf("{\"name\":\"</script>\"}"), HasSubstr("{\"name\":\"\\u003c/script>\"}</script>"));
}

TEST(PageTest, IsWholeAndSmall) {
  const std::string page = PageOf("");
  EXPECT_LT(page.size(), 200000u);
  for (const char* part : {"@STYLE@", "@CHARTS@", "@RUNS@", "@DATA@", "@PAGE@"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

}  // namespace
}  // namespace rubato
