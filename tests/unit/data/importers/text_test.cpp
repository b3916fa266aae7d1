#include "data/importers/text.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "data/importers/input.hpp"
#include "runtime/interrupt.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

using Floats = std::vector<float>;

class CsvTest : public ImporterTest {
 protected:
  std::unique_ptr<Source> open(const std::string& text, const ImportOptions& options = {}) const {
    return open_csv(write("f.csv", text), options);
  }
};

TEST_F(CsvTest, ReadsNumbersUnderNames) {
  const auto source = open("a,b,target\n1,2.5,0.5\n-3,4e2,1\n");
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::float32, {2}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::float32, {}}));
  EXPECT_TRUE(source->spec().classes.empty());
  const Samples all = read_split(*source);
  EXPECT_EQ(values<float>(all.x), (Floats{1, 2.5F, -3, 400}));
  EXPECT_EQ(values<float>(all.y), (Floats{0.5F, 1}));
  expect_random_access(*source);
}

// But for the lines that name the separator and the column of y.
std::vector<Remark> remarks_on_values(const Source& source) {
  std::vector<Remark> remarks = source.remarks();
  std::erase_if(remarks, [](const Remark& remark) {
    return remark.text.starts_with("y is column ") || remark.text.find(" columns, separated by ") != std::string::npos;
  });
  return remarks;
}

bool says(const Source& source, Remark::Kind kind, const std::string& part) {
  const std::vector<Remark> remarks = source.remarks();
  return std::ranges::any_of(remarks, [&](const Remark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

TEST_F(CsvTest, SaysWhichColumnIsY) {
  const Remark by_commas = assumed("2 columns, separated by commas");
  EXPECT_EQ(open("a,b\n1,0.5\n", {.no_classes = true})->remarks(),
            (std::vector{assumed("y is column 1 (b), the last; --y-column names another"), by_commas}));
  EXPECT_EQ(open("1,0.5\n", {.has_header = false, .no_classes = true})->remarks(),
            (std::vector{assumed("y is column 1, the last; --y-column names another"), by_commas}));
  EXPECT_EQ(open("a,b\n1,0.5\n", {.y_column = "b", .no_classes = true})->remarks(), std::vector{by_commas});
}

TEST_F(CsvTest, DoubtsNamesThatAreNumbers) {
  const auto doubt = [&](const std::string& text, const std::string& y = "") {
    return remarks_on_values(*open(text, {.y_column = y, .no_classes = true}));
  };
  ASSERT_EQ(doubt("1,2\n3,4\n").size(), 1U);
  EXPECT_NE(doubt("1,2\n3,4\n")[0].text.find("line 1 has numbers for x and y and was taken as names"),
            std::string::npos);
  const auto words = remarks_on_values(*open("5.1,3.5,setosa\n4.9,3.0,setosa\n"));
  ASSERT_EQ(words.size(), 2U);  // the other one is of the words
  EXPECT_NE(words[0].text.find("line 1 has numbers for x and was taken as names; --no-header"), std::string::npos);
  EXPECT_TRUE(doubt("label,1,2\n3,4,5\n").empty());
}

TEST_F(CsvTest, TakesWrittenIntegersAsClasses) {
  const auto source = open("1,2,0\n3,4,7\n5,6,300\n", {.has_header = false});
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint16, {}}));
  EXPECT_EQ(source->spec().classes.size(), 301);
  EXPECT_EQ(values<std::uint16_t>(read_split(*source).y), (std::vector<std::uint16_t>{0, 7, 300}));
  EXPECT_EQ(open("a,b\n1,2\n3,4\n")->spec().y.dtype, core::DType::uint8);
  for (const char* number : {"4.0", "-1", "65536", "nan"}) {
    const auto numbers = open("a,b\n1,2\n3," + std::string{number} + "\n");
    EXPECT_EQ(numbers->spec().y.dtype, core::DType::float32) << number;
    EXPECT_EQ(values<float>(read(*numbers, 0, 0, 1).y), (Floats{2})) << number;
    ASSERT_EQ(remarks_on_values(*numbers).size(), 1U) << number;
    EXPECT_NE(remarks_on_values(*numbers)[0].text.find("line 3 has '" + std::string{number} + "', not a whole number"),
              std::string::npos)
        << remarks_on_values(*numbers)[0].text;
  }
}

TEST_F(CsvTest, KeepsNumbersIfToldSo) {
  const auto source = open("a,b\n1,0\n2,1\n", {.no_classes = true});
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::float32, {}}));
  EXPECT_TRUE(source->spec().classes.empty());
  EXPECT_TRUE(remarks_on_values(*source).empty());
}

TEST_F(CsvTest, TakesWordsAsClasses) {
  const auto source = open("a,species\n1,setosa\n2,virginica\n3,\"setosa\"\n4,1.5\n");
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"1.5", "setosa", "virginica"}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{1, 2, 1, 0}));
  expect_random_access(*source);
  EXPECT_EQ(remarks_on_values(*source).size(), 2);
  EXPECT_TRUE(says(*source, Remark::Kind::warning,
                   "y is taken as words, as that of the first row is: 1 of 4 is a number, such as '1.5'"));
  EXPECT_TRUE(says(*source, Remark::Kind::assumed, "3 words taken as classes in sorted order: 1.5, setosa"));
  expect_usage([&] { open("a,b\n1,x\n2,\n"); }, {"an empty label", "f.csv, line 3, column 1 (b)"});
  expect_usage([&] { open("a,b\n1,x\n2,\xe9\n"); }, {"not UTF-8", "line 3"});
  expect_usage([&] { open("a,b\n1,x\033[31m\n"); }, {"control character", "line 2"});
  EXPECT_EQ(open("a,b\n1,L\u2019eau\u00a0douce\n")->spec().classes,
            (std::vector<std::string>{"L\u2019eau\u00a0douce"}));
  expect_usage([&] { open("a,b\n1,x\n", {.no_classes = true}); }, {"'x' is not a number", "line 2"});
  expect_usage([&] { open("a,b\nx,1\n"); }, {"'x' is not a number", "column 0 (a)"});
  expect_usage(
      [&] {
        open(
            "a,b\nGr\xc3\xb6\xc3\x9f"
            "e\033[31m,1\n");
      },
      {"'Gr\xc3\xb6\xc3\x9f"
       "e\\x1b[31m' is not a number"});
}

TEST_F(CsvTest, TakesNamesInOneFormOfUnicode) {
  const auto source = open("a,cafe\xcc\x81\n1,\xc3\xa9\n2,e\xcc\x81\n3,x\n", {.y_column = "caf\xc3\xa9"});
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"x", "\xc3\xa9"}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{1, 1, 0}));
  EXPECT_TRUE(
      says(*source, Remark::Kind::changed, "1 label in another form of Unicode is converted to the composed form"));
  expect_usage([&] { open("\xc3\xa9,b,e\xcc\x81\n1,2,3\n"); }, {"2 columns are called '\xc3\xa9': #0, #2"});
}

TEST_F(CsvTest, TakesTwoQuotesInAQuotedFieldForOne) {
  const auto source = open("a,\"the \"\"y\"\"\"\n1,\"Doe \"\"JD\"\" Jane\"\n2,\"\"\"\"\n3,\"a, b\"\n");
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"\"", "Doe \"JD\" Jane", "a, b"}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{1, 0, 2}));
  EXPECT_NO_THROW(open("a,\"the \"\"y\"\"\"\n1,2\n", {.y_column = "the \"y\""}));
}

TEST_F(CsvTest, KeepsBlanksWithinQuotes) {
  const auto source = open("\" a\",b\n\" 1\",\" cat\"\n2 ,cat\n\"3 \",\"cat \"\n");
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{" cat", "cat", "cat "}));
  EXPECT_EQ(values<float>(read_split(*source).x), (Floats{1, 2, 3})) << "blanks around a number say nothing";
  EXPECT_NO_THROW(open("\" a\",b\n1,2\n", {.y_column = "a"})) << "nor do those around a name";
  expect_usage([&] { open("a,b\n1,x\n2,\"  \"\n"); }, {"an empty label", "line 3"});
}

TEST_F(CsvTest, ALineOfSeparatorsHasEmptyFields) {
  for (const std::string separator : {",", "\t", ";"}) {
    std::string text = "a,b,y\n1,2,0\n,,\n3,4,1\n";
    for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos; ++at) text[at] = separator[0];
    expect_usage([&] { open(text); }, {"'' is not a number", "line 3, column 0 (a)"});
  }
}

TEST_F(CsvTest, RefusesUtf16) {
  const std::string text{"a\0,\0b\0\n\0001\0,\0002\0\n\0", 16};
  expect_usage([&] { open("\xff\xfe" + text); }, {"UTF-16", "f.csv, byte 0", "iconv -f UTF-16 -t UTF-8"});
  expect_usage([&] { open(text); }, {"UTF-16"});
  expect_usage([&] { open("\xfe\xff" + std::string{"\0a", 2}); }, {"UTF-16"});
}

TEST_F(CsvTest, ToleratesHowProgramsWrite) {
  const std::string plain = "a,b,c\n1,2,3.5\n4,5,6.5\n";
  const Samples expected = read_split(*open(plain));
  for (const char* text : {"a,b,c\r\n1,2,3.5\r\n\r\n4,5,6.5",
                           "\xef\xbb\xbf"
                           "a,b,c\n\n  \n1,2,3.5\n4,5,6.5\n\n",
                           "\"a\",\"b,\"\"b\"\"\",\"c\"\n\"1\", 2 , \"3.5\" \n+4,5,65e-1\n",
                           "a;b;c\n1;2;3.5\n4;5;6.5\n", "a\tb\tc\n1\t2\t3.5\n4\t5\t6.5\n"}) {
    EXPECT_EQ(read_split(*open(text)), expected) << text;
  }
  EXPECT_EQ(read_split(*open_csv(write_gzip("f.csv.gz", plain), {})), expected);
}

TEST_F(CsvTest, TakesWhatSpreadsheetsWrite) {
  const auto excel = open("sep=;\r\na;b\r\n1;2.5\r\n3;4.5\r\n");
  EXPECT_EQ(values<float>(read_split(*excel).x), (Floats{1, 3}));
  EXPECT_TRUE(says(*excel, Remark::Kind::note, "line 1 says that ';' separates columns"));
  EXPECT_EQ(values<float>(read_split(*open("sep=,\na;1,b\n1,2.5\n")).x), (Floats{1}));
  const auto of_euros = open("\"price, total\";price, net;y\n3;2;1.5\n");
  EXPECT_EQ(values<float>(read_split(*of_euros).x), (Floats{3, 2})) << "the separator that is there most often";
  expect_usage([&] { open("a;y\n1.234,5;0\n"); }, {"'1.234,5' is not a number", "1000 for 1,000"});
  expect_usage([&] { open("a,b,\n1,2,\n3,4,\n"); },
               {"'' is not a number", "column 2 (no name)", "remove the separator"});
}

TEST_F(CsvTest, DoubtsWhatANumberMayMean) {
  const auto codes = open("zip,a,y\n02134,0,0.5\n10001,0.5,01\n00007,1,1\n");
  EXPECT_TRUE(
      says(*codes, Remark::Kind::warning,
           "2 whole numbers of x begin with a zero, which is lost: if they are codes, leave the column out; the "
           "first is '02134' (line 2, column 0 (zip))"));
  EXPECT_TRUE(says(*codes, Remark::Kind::warning, "1 whole number of y begins with a zero"));
  const auto german = open("a;b;c;y\n1.234;1.234;0.123;0.5\n-12.500;1.5;0.5;0.5\n7;2;0.25;0.5\n");
  EXPECT_TRUE(says(*german, Remark::Kind::warning,
                   "column 0 (a): all 2 points have three digits behind them and are taken as decimal"));
  EXPECT_FALSE(says(*german, Remark::Kind::warning, "column 1"));
  EXPECT_FALSE(says(*german, Remark::Kind::warning, "column 2"));
  EXPECT_FALSE(says(*open("a,y\n1.234,0.5\n2.345,0.5\n"), Remark::Kind::warning, "three digits"));
}

TEST_F(CsvTest, DoubtsWhatTellsTheAnswerOrNothing) {
  const auto leak = open("a,b,y\n0.5,5,0.5\n1.5,6,1.5\n");
  EXPECT_TRUE(says(*leak, Remark::Kind::warning, "column 0 (a) has the value of y in every row"));
  EXPECT_FALSE(says(*leak, Remark::Kind::warning, "column 1 (b) has the value"));
  EXPECT_TRUE(says(*open("a,y\n1,0.5\n2,0.5\n"), Remark::Kind::warning, "y has one value in all rows: 0.5"));
  std::string names = "a,y\n", years = "year,a,y\n";
  for (int i = 0; i < 10; ++i) {
    names += std::to_string(i % 3) + ",doc" + std::to_string(i) + "\n";
    years += std::to_string(1990 + i) + "," + std::to_string(i % 3) + ",0\n";
  }
  EXPECT_TRUE(says(*open(names), Remark::Kind::warning, "each sample has a class of its own"));
  EXPECT_TRUE(says(*open(years), Remark::Kind::warning, "column 0 (year) numbers the rows from 1990 on"));
}

TEST_F(CsvTest, NamesSlipsOfWriters) {
  expect_usage([&] { open("a,y\r1,0\r2,1\r"); }, {"carriage return", "line 1", "tr '\\r' '\\n'"});
  EXPECT_NO_THROW(open("a,y\r\r\n1,0\n"));
  expect_usage([&] { open("a,b,y\n1,2,0,\n"); }, {"4 columns", "line 2", "remove the separator"});
  expect_usage([&] { open("# made by x\na,y\n1,0\n"); }, {"one column", "remove comment lines"});
}

TEST_F(CsvTest, DoubtsWordsAmongNumbersAndColumnsOfOneValue) {
  const auto gaps = open("a,y\n1,NA\n2,3.5\n4,3\n");
  EXPECT_TRUE(says(*gaps, Remark::Kind::warning,
                   "y is taken as words, as that of the first row is: 2 of 3 are numbers, such as '3.5'"));
  EXPECT_TRUE(says(*open("a;y\n1;1,5\n2;-2,5\n"), Remark::Kind::warning, "2 of 2 are numbers, such as '1,5'"));
  const auto constant = open(",a,b,c,y\n0,7,1,2,0.5\n1,7,2,2,0.5\n");
  EXPECT_TRUE(
      says(*constant, Remark::Kind::note, "2 columns of x have one value in all rows, such as column 1 (a): 7"));
  for (const Remark& remark : remarks_on_values(*open("a,y\n1,0.5\n")))
    EXPECT_EQ(remark.text.find("one value"), std::string::npos) << "one row";
}

TEST_F(CsvTest, ChoosesColumns) {
  const std::string text = "a,b,2,d-e\n10,11,12,13.5\n";
  const auto x = [&](const std::string& columns, const std::string& y = "") {
    return values<float>(read_split(*open(text, {.x_columns = columns, .y_column = y})).x);
  };
  EXPECT_EQ(x(""), (Floats{10, 11, 12}));
  EXPECT_EQ(x("", "b"), (Floats{10, 12, 13.5F}));
  EXPECT_EQ(x("", "0"), (Floats{11, 12, 13.5F}));
  EXPECT_EQ(x("0-1,3"), (Floats{10, 11, 13.5F}));
  EXPECT_EQ(x("b,a"), (Floats{11, 10}));
  EXPECT_EQ(x("d-e, a-b"), (Floats{13.5F, 10, 11}));
  EXPECT_NE(remarks_on_values(*open(text, {.x_columns = "0-1,3"})).at(0).text.find("column 3 is y and also in x"),
            std::string::npos);
  EXPECT_EQ(remarks_on_values(*open(text, {.x_columns = "0-1"})).size(), 1U) << "only that y are numbers";
  expect_usage([&] { x("0-4"); }, {"'0-4'", "--x-columns", "0 to 3", "a, b, 2, d-e"});
  expect_usage([&] { x("1-0"); }, {"'1-0'"});
  expect_usage([&] { x("a,"); }, {"no column ''"});
  expect_usage([&] { x("\"a"); }, {"no column '\"a'"});
  expect_usage([&] { x("", "d_e"); }, {"'d_e'", "--y-column", "did you mean 'd-e'?"});
}

// As pandas (to_csv) and R (write.csv) write it.
TEST_F(CsvTest, LeavesOutRowNumbersWithoutAName) {
  struct Table {
    std::string text;
    Floats x;
    std::string says;
  };
  for (const Table& c :
       {Table{",a,b,label\n0,5,6,0\n1,7,8,1\n",
              {5, 6, 7, 8},
              "column 0 (no name): it numbers the 2 rows from 0 on; --x-columns '#0-#2' "},
        Table{"Unnamed: 0,a,label\n0,5,0\n1,7,1\n", {5, 7}, "column 0 (Unnamed: 0): it numbers the 2 rows from 0 on"},
        Table{"\"\",\"a\",\"label\"\n\"1\",5,0\n\"2\",7,1\n\"3\",9,1\n", {5, 7, 9}, "the 3 rows from 1 on"},
        Table{"a,,label\n5,0,0\n7,1,1\n", {5, 7}, "column 1 (no name)"},
        Table{"Unnamed: 0.1,Unnamed: 0,a,y\n0,0,5,0\n1,1,7,1\n", {5, 7}, "column 1 (Unnamed: 0)"}}) {
    const auto source = open(c.text);
    EXPECT_EQ(values<float>(read_split(*source).x), c.x) << c.text;
    expect_random_access(*source);
    EXPECT_TRUE(says(*source, Remark::Kind::left_out, c.says)) << c.text;
  }
  EXPECT_TRUE(says(*open(",a,label\n0,5,0\n"), Remark::Kind::left_out, "it numbers the 1 row from 0 on"));
  const std::string indexed = ",a,label\n0,5,0\n1,7,1\n";
  EXPECT_EQ(values<float>(read_split(*open(indexed, {.x_columns = "0-1"})).x), (Floats{0, 5, 1, 7}));
  EXPECT_EQ(remarks_on_values(*open(indexed, {.x_columns = "0-1"})).size(), 2U)
      << "of the classes, and that it is y in both rows";
  for (const char* shuffled : {",a,label\n1,5,0\n0,7,1\n", ",a,label\n0,5,0\n2,7,1\n", ",a,label\n3,5,0\n4,7,1\n"}) {
    const auto source = open(shuffled);
    EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{2})) << shuffled;
    EXPECT_TRUE(
        says(*source, Remark::Kind::warning, "column 0 (no name) is taken as a feature, though it has no name"));
  }
  expect_usage([&] { open(",label\n0,5\n1,7\n"); }, {"the only column of x numbers the rows", "--x-columns '#0'"});
}

TEST_F(CsvTest, DoubtsNamedColumnsThatNumberTheRows) {
  std::string text = "id,a,y\n";
  for (int i = 1; i <= 12; ++i) text += std::to_string(i) + ",5,0\n";
  const auto source = open(text);
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{2}));
  EXPECT_TRUE(says(*source, Remark::Kind::warning, "column 0 (id) numbers the rows from 1 on"));
  const auto headless = open(text.substr(text.find('\n') + 1), {.has_header = false});
  EXPECT_TRUE(says(*headless, Remark::Kind::warning, "column 0 numbers the rows from 1 on"));
}

TEST_F(CsvTest, TellsColumnsOfOneNameApartByNumberOnly) {
  const std::string text = "label,a,label\n7,1.5,3\n8,2.5,4\n";
  for (const char* y : {"label", "", "2"})
    expect_usage([&] { open(text, {.y_column = y}); },
                 {"2 columns are called 'label': #0, #2", "--x-columns '#0-#1' --y-column '#2'"});
  expect_usage([&] { open(text, {.x_columns = "label", .y_column = "2"}); }, {"called 'label'", "--x-columns"});
  expect_usage([&] { open(text, {.x_columns = "1"}); }, {"called 'label'", "the first line"});
  const auto source = open(text, {.x_columns = "0-1", .y_column = "2", .no_classes = true});
  EXPECT_EQ(values<float>(read_split(*source).x), (Floats{7, 1.5F, 8, 2.5F}));
  EXPECT_EQ(values<float>(read_split(*source).y), (Floats{3, 4}));
  EXPECT_EQ(values<float>(read_split(*open("b,a,b\n7,1,3\n", {.x_columns = "a", .y_column = "0"})).x), (Floats{1}));
}

TEST_F(CsvTest, CountsWholeNumbersThatFloat32DoesNotHold) {
  const auto source = open("id,a,y\n16777216,1.1,0.5\n16777217,2.2,0.5\n-16777219.0,9007199254740993,20000001\n");
  EXPECT_TRUE(
      says(*source, Remark::Kind::changed,
           "3 whole numbers of x are rounded, as float32 does not hold them: '16777217' became 16777216 (line 3, "
           "column 0 (id))"));
  EXPECT_TRUE(
      says(*source, Remark::Kind::changed, "1 whole number of y is rounded, as float32 does not hold it: '20000001'"));
  for (const char* held :
       {"16777216", "-16777218", "33554436", "1e10", "16777217.5", "18446744073709551616", "inf", "nan"})
    EXPECT_FALSE(is_rounded_whole(held, *parse_float(held))) << held;
  for (const char* rounded : {"16777217", "9223372036854775807", "18446744073709551617", "99999999999999999999"})
    EXPECT_TRUE(is_rounded_whole(rounded, *parse_float(rounded))) << rounded;
}

TEST_F(CsvTest, NamesLineAndColumn) {
  expect_usage([&] { open("a,b\n1,2\n\n3,x\n"); }, {"'x' is not a number", "f.csv, line 4, column 1 (b)"});
  expect_usage([&] { open("a;b\n1,5;2\n"); }, {"'1,5' is not a number", "decimal point"});
  expect_usage([&] { open("a,b\n1,\n"); }, {"'' is not a number", "line 2, column 1 (b)", "nan"});
  expect_usage([&] { open("a,b\n1e99,2\n"); }, {"'1e99'", "line 2, column 0 (a)", "float32"});
  expect_usage([&] { open("a,b\n1,2,3\n"); }, {"3 columns", "line 2", "2, as in the first line"});
  expect_usage([&] { open("a,b\n1,\"2\n"); }, {"quote", "line 2"});
  expect_usage([&] { open("a,b\n1,\"2\"3\n"); }, {"quote", "line 2"});
  expect_usage([&] { open("a\n1\n"); }, {"one column", "line 1"});
  expect_usage([&] { open("a,b\n"); }, {"no line after the header"});
  expect_usage([&] { open(""); }, {"no lines"});
  expect_usage([&] { open("a,b\n1,2\n", {.has_header = false}); },
               {"'a'", "line 1, column 0", "leave out --no-header"});
  expect_usage([&] { open(std::string{"a,b\n\0002,1\n", 9}); }, {"'\\x002'"});
}

TEST_F(CsvTest, RemarksOnNumbersTakenAsNames) {
  const auto source = open("1,2\n3,4\n");
  EXPECT_EQ(source->splits()[0].n_samples, 1);
  ASSERT_FALSE(source->remarks().empty());
  EXPECT_NE(source->remarks()[0].text.find("--no-header"), std::string::npos);
}

TEST_F(CsvTest, ReadsMoreThanABuffer) {
  std::string text = "a,b\n";
  for (int i = 0; i < 300000; ++i) text += std::to_string(i) + "," + std::to_string(i % 10) + "\n";
  const auto source = open(text);
  ASSERT_EQ(source->splits()[0].n_samples, 300000);
  const Samples all = read_split(*source);
  const auto x = values<float>(all.x);
  const auto y = values<std::uint8_t>(all.y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], static_cast<float>(i));
    ASSERT_EQ(y[i], i % 10);
  }
}

TEST_F(CsvTest, ASignalEndsTheReading) {
  const std::string file = write("a.csv", "a,y\n1,2\n");
  const auto read_interrupted = [&] {
    runtime::catch_interrupts();
    std::raise(SIGINT);
    try {
      open_csv(file, {});
    } catch (const Interrupted&) {
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(read_interrupted(), testing::ExitedWithCode(0), "");
}

TEST(ParseFloat, TakesWhatProgramsWrite) {
  EXPECT_EQ(parse_float("+1.5e1"), 15.F);
  EXPECT_EQ(parse_float("1e-60"), 0.F);
  EXPECT_EQ(parse_float("-1e-42"), -1e-42F);
  EXPECT_EQ(parse_float("0.1"), 0.1F);
  EXPECT_TRUE(std::isinf(*parse_float("inf")));
  EXPECT_TRUE(std::isnan(*parse_float("nan")));
  for (const char* text : {"", "+", "-", "1e", "1,5", "0x10", "1 2", "+-1", "1e39", "-1e999", "one"}) {
    EXPECT_FALSE(parse_float(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep::data
