#include "data/importers/csv_columns.hpp"

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

using Names = std::vector<std::string>;
using Places = std::vector<std::size_t>;

const Names of_pandas{"", "0", "1", "2", "y"};  // to_csv of an array, whose columns have numbers as names

/// Columns of x, then that of y.
Places chosen(const Names& names, const std::string& x, const std::string& y = "") {
  const CsvColumns columns = select_columns({.x_columns = x, .y_column = y}, names, names.size());
  Places places = columns.x;
  places.push_back(columns.y);
  return places;
}

TEST(CsvColumns, APlaceIsOneWhateverColumnsAreCalled) {
  EXPECT_EQ(chosen(of_pandas, "#0-#3"), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(chosen(of_pandas, "#1,#3", "#2"), (Places{1, 3, 2}));
  EXPECT_EQ(chosen({"x", "x", "y"}, "#0-#1", "#2"), (Places{0, 1, 2}));
  EXPECT_EQ(chosen({"a", "#id", "y"}, "#id"), (Places{1, 2})) << "a name like any other";
  EXPECT_EQ(chosen({"a", "#1", "y"}, "#1"), (Places{1, 2}));
  EXPECT_EQ(chosen({"a", "b", "y"}, "0-1"), (Places{0, 1, 2}));
  EXPECT_EQ(chosen({"0", "1", "2"}, "0-1", "2"), (Places{0, 1, 2})) << "names and numbers say the same";
}

struct Ambiguous {
  Names names;
  std::string x;
  std::string y;
  std::initializer_list<const char*> says;
};

TEST(CsvColumns, AWordThatMeansTwoColumnsIsRefused) {
  const Ambiguous table[] = {
      {of_pandas, "0-3", "", {"'0' is the name of column #1, and says column #0", "such as '#1'"}},
      {of_pandas, "2", "", {"'2' is the name of column #3, and says column #2"}},
      {of_pandas, "#0", "1", {"'1' is the name of column #2, and says column #1", "--y-column"}},
      {{"1", "2", "3", "y"}, "0-2", "", {"'2' is the name of column #1, and says column #2"}},
      {{"#1", "a", "y"}, "#1", "", {"'#1' is the name of column #0, and says column #1"}},
      {{"a", "b", "0-1", "y"}, "0-1", "", {"'0-1' is the name of column #2, and also says columns #0 to #1"}},
      {{"0", "0", "1"}, "0", "#2", {"2 columns are called '0': #0, #1", "--x-columns '#0-#1' --y-column '#2'"}},
      {{"a", "b"}, "#2", "", {"no column '#2'", "a place from #0 to #1"}},
      {{"a", "b"}, "#", "", {"no column '#'"}},
  };
  for (const Ambiguous& c : table) expect_usage([&] { chosen(c.names, c.x, c.y); }, c.says);
}

}  // namespace
}  // namespace lockstep::data
