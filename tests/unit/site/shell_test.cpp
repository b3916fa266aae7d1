#include "site/shell.hpp"

#include <gtest/gtest.h>

#include "core/suggest.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

/// "3: a b" for each command, by its line.
std::vector<std::string> commands(std::string_view text) {
  std::vector<std::string> lines;
  for (const Command& command : read_commands(text))
    lines.push_back(std::to_string(command.line) + ": " + core::join(command.words, "|"));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Shell, WordsLoseTheirQuotesAndKeepTheirLines) {
  EXPECT_EQ(commands("a 'b c' \"d $e\"f\\ g # h\n\n  i j"), (Lines{"1: a|b c|d $ef g", "3: i|j"}));
  EXPECT_EQ(commands("srun -n 4 \\\n  ./x --y\nz"), (Lines{"1: srun|-n|4|./x|--y", "3: z"}));
}

TEST(Shell, CommandsEndWhereTheyDo) {
  EXPECT_EQ(commands("a; b && c || d | e & f"), (Lines{"1: a", "1: b", "1: c", "1: d", "1: e", "1: f"}));
  EXPECT_EQ(commands("if [ $a = 1 ]; then b; fi"), (Lines{"1: [|$a|=|1|]", "1: b", "1: fi"}));
  EXPECT_EQ(commands("for ((i = 0; i < 3; ++i)); do a; done"), (Lines{"1: for", "1: a", "1: done"}));
}

TEST(Shell, RedirectionsAndHereDocumentsAreNoWords) {
  EXPECT_EQ(commands("a >b 2>&1 c <d"), (Lines{"1: a|c"}));
  EXPECT_EQ(commands("cat <<EOF >f\nsrun x\nEOF\nb"), (Lines{"1: cat", "4: b"}));
  EXPECT_EQ(commands("cat <<-'END'\n\tx\n\tEND\nb"), (Lines{"1: cat", "4: b"}));
}

TEST(Shell, InputIsKeptAsItIsWritten) {
  const auto input_of_last = [](std::string_view text) { return read_commands(text).back().input; };
  EXPECT_EQ(input_of_last("a <b 2>c"), "b");
  EXPECT_EQ(input_of_last("a <<< \"$b c\""), "$b c");
  EXPECT_EQ(input_of_last("a b | c |& while d"), "a b | c ");
  EXPECT_EQ(input_of_last("x\na b |\n  c"), "a b ");
  EXPECT_EQ(input_of_last("a <b || c"), "");
  EXPECT_EQ(input_of_last("a <b; c\nd"), "");
  EXPECT_EQ(input_of_last("a " + std::string(1000, 'b') + "| c"), std::string(200, 'b'));
  EXPECT_EQ(input_of_last("a <" + std::string(1000, 'b')), std::string(200, 'b'));
  EXPECT_EQ(read_commands("a < <(b c)")[0].input, "<(b c)");
  EXPECT_EQ(commands("a <(b \"c)\") > >(d) e"), (Lines{"1: a|<(b \"c)\")|e", "1: b|c)", "1: d"}));
}

TEST(Shell, ListsAndExpansionsEndWhereTheShellEndsThem) {
  EXPECT_EQ(commands("flags=(\n-b 8 # don't go below\n)\nb"), (Lines{"1: flags=(-b 8)", "4: b"}));
  EXPECT_EQ(commands("msg=$'it\\'s'\nb"), (Lines{"1: msg=it's", "2: b"}));
  EXPECT_EQ(commands("msg=$\"a b\" c"), (Lines{"1: msg=a b|c"}));
  for (const std::string text :
       {"x=$(echo \"a\\\"b)\")", "x=\"$(echo \"a)\")\"", "x=$(a # it's (one\n)", "x=$(cat <<'E'\nit's (\nE\n)",
        "x=\"${a:-don't}\"", "x=${a:-\"}\"}", "x=${#a}", "x=$((16#ff))", "x=$(a $# b)", "x=$(a $'\\')')",
        "x=`a \\`b\\``", "x=${a%\"${b}\"}", "x=$( ((1<<2)) )", "x=$(a <<<'b)')", "x=(a $(b # '\n) \"c)\")"}) {
    Unread unread;
    const auto all = read_commands(text + "\nb", &unread);
    ASSERT_FALSE(all.empty()) << text;
    EXPECT_EQ(all.back().words, std::vector<std::string>{"b"}) << text;
    EXPECT_EQ(unread.open_line, 0) << text;
  }
}

TEST(Shell, WhatNeverClosesIsKnownByItsLine) {
  for (const std::string text : {"'c", "\"c", "$'c", "`c", "$(c", "${c", "$((c", "n=(c", "((c", "\"$(c\""}) {
    Unread unread;
    (void)read_commands("a\n" + text + "\nb\n", &unread);
    EXPECT_EQ(unread.open_line, 2) << text;
  }
}

TEST(Shell, LinesOfHereDocumentsAreKnown) {
  Unread unread;
  EXPECT_EQ(commands("cat <<'END OF IT'|d\nx\nEND OF IT\nb"), (Lines{"1: cat", "1: d", "4: b"}));
  (void)read_commands("cat <<E\nx\nE\nb\nx=$(cat <<\\F\ny\nF\n)\nc\ncat <<G\nz", &unread);
  const std::vector<bool>& is_text = unread.is_here_text;
  EXPECT_EQ(is_text,
            (std::vector<bool>{false, false, true, true, false, false, true, true, false, false, false, true}));
}

TEST(Shell, AFunctionOfOneLineIsCommandsInBraces) {
  EXPECT_EQ(commands("function f { a b; }\nc"), (Lines{"1: function|f", "1: a|b", "2: c"}));
  EXPECT_EQ(commands("f() { a b; }\nc"), (Lines{"1: f", "1: a|b", "2: c"}));
  EXPECT_TRUE(read_commands("function f { a; }")[1].is_in_braces);
}

TEST(Shell, ShiftsAreNoHereDocuments) {
  for (const std::string text : {"n=$((1<<2))", "n=\"$((1<<2))\"", "((n<<2)) || :", "n=$[1<<2]", "n[1<<2]=3",
                                 "for ((i=1; i<1<<2; i++)); do :; done", "let \"n=1<<2\""}) {
    const auto all = read_commands(text + "\nb");
    ASSERT_FALSE(all.empty()) << text;
    EXPECT_EQ(all.back().words, std::vector<std::string>{"b"}) << text;
  }
  EXPECT_EQ(commands("a[ b\nc"), (Lines{"1: a[ b", "2: c"}));
}

TEST(Shell, AHereDocumentWithoutEndIsKnown) {  // bash takes the first for one as well
  EXPECT_TRUE(read_commands("let n=1<<2\nb")[0].is_endless);
  EXPECT_TRUE(read_commands("cat <<E\nb\n")[0].is_endless);
  EXPECT_FALSE(read_commands("cat <<E\nb\nE")[0].is_endless);
}

TEST(Shell, CommandsWithinOthersComeAfterThem) {
  EXPECT_EQ(commands("ip=$(srun hostname -I | cut -f 2)\nb"),
            (Lines{"1: ip=$(srun hostname -I | cut -f 2)", "1: srun|hostname|-I", "1: cut|-f|2", "2: b"}));
  EXPECT_EQ(commands("a `b c`"), (Lines{"1: a|`b c`", "1: b|c"}));
  EXPECT_EQ(commands("a $((1 + 2)) ${b:-c d}"), (Lines{"1: a|$((1 + 2))|${b:-c d}"}));
  EXPECT_EQ(commands("n=(a 'b c')\nd"), (Lines{"1: n=(a b c)", "2: d"}));
  EXPECT_EQ(commands("n=(a $(b c) d)\ne"), (Lines{"1: n=(a $(b c) d)", "1: b|c", "2: e"}));
  EXPECT_EQ(commands("a ${b:-$(c d)} $(( $(e) + 1 ))"), (Lines{"1: a|${b:-$(c d)}|$(( $(e) + 1 ))", "1: c|d", "1: e"}));
  EXPECT_EQ(commands("a $(b \"$(c)\" &)\nd"), (Lines{"1: a|$(b \"$(c)\" &)", "1: b|$(c)", "1: c", "2: d"}));
  EXPECT_EQ(commands("`a # b`\nc"), (Lines{"1: `a # b`", "1: a", "2: c"}));
  EXPECT_EQ(commands("a=$( (b); c )\nd"), (Lines{"1: a=$( (b); c )", "1: b", "1: c", "2: d"}));
}

TEST(Shell, BracketsDeeperThanAnyScriptHasAreNotRead) {
  const auto nested = [](int n) {
    std::string text = "a";
    for (int i = 0; i < n; ++i) text = "b $(" + text + ")";
    Unread unread;
    (void)read_commands("x\n" + text + "\ny\n", &unread);
    return std::pair{unread.full_line, unread.open_line};
  };
  EXPECT_EQ(nested(20), std::pair(0, 0));
  EXPECT_EQ(nested(21), std::pair(2, 0));
}

TEST(Shell, TestsAndLoopsAreKnown) {
  const auto all = read_commands("if $a; then b; fi\n[[ $c ]]\nwhile [ $d ]; do e; done");
  ASSERT_EQ(all.size(), 7U);
  EXPECT_TRUE(all[0].is_condition);
  EXPECT_FALSE(all[1].is_condition);
  EXPECT_TRUE(all[3].is_condition);
  EXPECT_TRUE(all[4].is_loop);
}

TEST(Shell, WhatIsNotEndedEndsWithTheText) {
  for (const std::string_view text : {"'a", "\"a $(b", "$(", "`", "${", "a <<", "a <<E\nb", "\\", "n=((((", "(", "a >"})
    EXPECT_LE(read_commands(text).size(), 3U) << text;
  std::string deep;
  for (int i = 0; i < 20000; ++i) deep += "$(a=(";
  EXPECT_GE(read_commands(deep).size(), 1U);
}

TEST(Shell, NamesOfAssignments) {
  EXPECT_EQ(assigned_name("A_1=b"), "A_1");
  EXPECT_EQ(assigned_name("A+=b"), "A");
  EXPECT_EQ(assigned_name("1A=b"), "");
  EXPECT_EQ(assigned_name("=b"), "");
}

}  // namespace
}  // namespace lockstep::site
