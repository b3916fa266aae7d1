#include "core/table.hpp"

#include <gtest/gtest.h>

#include "thrown.hpp"

namespace lockstep::core {
namespace {

Table sizes_table() {
  return Table{{{.header = "size", .unit = "(B)", .width = 8},
                {.header = "type", .align = Align::left},
                {.header = "algbw", .unit = "(GB/s)"}},
               "#"};
}

TEST(Table, HeaderLinesBeginWithThePrefix) {
  EXPECT_EQ(sizes_table().header(),
            "#    size  type   algbw\n"
            "#     (B)        (GB/s)\n");
}

TEST(Table, RowsStandUnderTheirHeaders) {
  EXPECT_EQ(sizes_table().row({"65536", "f32", "1.25"}), "    65536  f32     1.25\n");
}

TEST(Table, ALongCellWidensItsOwnLineOnly) {
  const Table table = sizes_table();
  EXPECT_EQ(table.row({"8", "bfloat16", "1.25"}), "        8  bfloat16    1.25\n");
  EXPECT_EQ(table.row({"8", "f32", "1.25"}), "        8  f32     1.25\n");
}

TEST(Table, WithoutUnitsOrPrefixTheHeaderIsOneLine) {
  const Table table{{{.header = "name", .align = Align::left}, {.header = "text", .align = Align::left}}};
  EXPECT_EQ(table.header(), "name  text\n");
  EXPECT_EQ(table.row({"a", "b"}), "a     b\n");
  EXPECT_EQ(table.row({"a", ""}), "a\n");
}

TEST(Table, NeedsOneCellPerColumn) {
  EXPECT_TRUE(thrown_by([] { static_cast<void>(sizes_table().row({"8", "f32"})); }));
}

}  // namespace
}  // namespace lockstep::core
