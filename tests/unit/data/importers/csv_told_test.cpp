// What an import of a CSV file says of separators and of columns that number the rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

class CsvTold : public ImporterTest {
 protected:
  std::unique_ptr<Source> open(const std::string& text, const ImportOptions& options = {}) const {
    return open_csv(write("f.csv", text), options);
  }
  std::vector<Remark> told(const std::string& text, const ImportOptions& options = {}) const {
    return open(text, options)->remarks();
  }
};

bool has_part(const std::vector<Remark>& remarks, Remark::Kind kind, const std::string& part) {
  return std::ranges::any_of(remarks, [&](const Remark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

TEST_F(CsvTold, TheSeparatorIsNamed) {
  struct Row {
    std::string text;
    const char* says;
  };
  for (const Row& c : {Row{"a,b,y\n1,2,0.5\n", "3 columns, separated by commas"},
                       Row{"a;b\n1;0.5\n", "2 columns, separated by semicolons"},
                       Row{"a\tb\n1\t0.5\n", "2 columns, separated by tabs"},
                       Row{"sep=;\na,1;b\n1;0.5\n", "2 columns, separated by semicolons"},
                       Row{"\"a;c;d\",b\n1,0.5\n", "2 columns, separated by commas"}})
    EXPECT_TRUE(has_part(told(c.text), Remark::Kind::assumed, c.says)) << c.text;
}

TEST_F(CsvTold, ARefusalOfColumnsNamesTheSeparatorAndTheLikelyCause) {
  struct Row {
    std::string text;
    std::initializer_list<const char*> says;
  };
  for (const Row& c :
       {Row{"a;b,c,y\n1;2;3\n",
            {"1 column, separated by commas", "line 2", "3, as in the first line",
             "the first line has commas, this one semicolons: write one of them throughout"}},
        Row{"a;b;y\n1,2,3\n", {"line 2", "the first line has semicolons, this one commas"}},
        Row{"sep=;\na;b;y\n1;2;3\n1,2,3\n", {"line 4", "the first line has semicolons, this one commas"}},
        Row{"a,1;b,2;y\n1;2;3\n", {"1 column, separated by commas", "line 2", "such as sep=;"}},
        Row{"a;b\n1;2\n\"3,4\"\n", {"1 column, separated by semicolons", "correct the line"}},
        Row{"a;b\n1;2\n3\n", {"1 column, separated by semicolons", "line 3", "if other than semicolons"}},
        Row{"a\tb\n1\t2\n3\t4\t5\n", {"3 columns, separated by tabs", "line 3", "correct the line"}},
        Row{"a,b\nrow1,1,2\n",
            {"3 columns, separated by commas", "2, as in", "R's write.table", "an empty name (\"\")"}},
        Row{"a,b\n1,2,\n", {"3 columns, separated by commas", "remove the separator"}},
        Row{"a|b|y\n1|2|3\n", {"one column", "commas, semicolons or tabs", "commas for the '|'"}},
        Row{"a b y\n1 2 3\n", {"one column", "commas for the blanks"}},
        Row{"sep=;\na,b,y\n1,2,3\n", {"one column", "line 2", "x and y, separated by semicolons"}}})
    expect_usage([&] { open(c.text); }, c.says);
}

TEST_F(CsvTold, AFirstColumnCalledIndexThatNumbersTheRowsIsLeftOut) {
  const std::string says = "it numbers the 2 rows from 0 on; --x-columns '#0-#1' keeps it";
  for (const std::string name : {"index", "Index", "\"index\""}) {
    const auto source = open(name + ",a,y\n0,5,0.5\n1,7,1.5\n");
    EXPECT_EQ(values<float>(read_split(*source).x), (std::vector<float>{5, 7})) << name;
    EXPECT_TRUE(has_part(source->remarks(), Remark::Kind::left_out, says)) << name;
  }
  struct Row {
    std::string text;
    bool is_doubted;
  };
  for (const Row& c : {Row{"index,a,y\n1,5,0.5\n2,7,1.5\n", true}, Row{"a,index,y\n5,0,0.5\n7,1,1.5\n", true},
                       Row{"index,a,y\n1,5,0.5\n0,7,1.5\n", false}, Row{"index,a,y\n0,5,0.5\n2,7,1.5\n", false},
                       Row{"indexed,a,y\n0,5,0.5\n1,7,1.5\n", false}}) {
    const auto source = open(c.text);
    EXPECT_EQ(source->spec().x.shape, std::vector<std::uint64_t>{2}) << c.text;
    EXPECT_EQ(has_part(source->remarks(), Remark::Kind::warning, "numbers the rows from"), c.is_doubted) << c.text;
  }
  EXPECT_EQ(open("index,a,y\n0,5,0.5\n1,7,1.5\n", {.x_columns = "#0-#1"})->spec().x.shape,
            std::vector<std::uint64_t>{2});
}

TEST_F(CsvTold, AnIndexInTheLastPlaceIsNotY) {
  for (const std::string name : {"index", "", "Unnamed: 2"}) {
    const std::string text = "a,b," + name + "\n5,0.5,0\n7,1.5,1\n";
    expect_usage([&] { open(text); }, {"the last, is an index, not y", "the 2 rows from 0 on", "f.csv",
                                       "--y-column NAME", "--y-column '#2' takes it anyway"});
    EXPECT_TRUE(has_part(told(text, {.y_column = "#2"}), Remark::Kind::warning, "numbers the rows from 0 on"));
    EXPECT_EQ(open(text, {.y_column = "b"})->spec().x.shape, (std::vector<std::uint64_t>{name == "index" ? 2U : 1U}));
  }
  expect_usage([&] { open("a,b,index,\n5,0.5,0,\n7,1.5,1,\n"); }, {"column 3 (no name)", "remove the separator"});
  expect_usage([&] { open("a,b,index\n5,0.5,0,\n7,1.5,1,\n"); }, {"4 columns", "remove the separator"});
  EXPECT_NO_THROW(open("a,b,index\n5,0.5,1\n7,1.5,0\n")) << "not in order";
  EXPECT_NO_THROW(open("a,b,\n5,0.5,0\n")) << "one row";
  std::string rows = "a,y\n";
  for (int i = 0; i < 10; ++i) rows += "5," + std::to_string(i) + "\n";
  EXPECT_TRUE(
      has_part(told(rows, {.no_classes = true}), Remark::Kind::warning, "y, column 1 (y), numbers the rows from 0 on"));
  EXPECT_TRUE(has_part(told(rows), Remark::Kind::warning, "each sample has a class of its own"));
}

}  // namespace
}  // namespace lockstep::data
