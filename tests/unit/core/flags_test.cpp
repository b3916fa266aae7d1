#include "core/flags.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/text.hpp"
#include "thrown.hpp"

namespace lockstep::core {
namespace {

using support::has;

enum class Order { keyed, torch, blocked, sequential };
constexpr std::array all_orders{Order::keyed, Order::torch, Order::blocked, Order::sequential};
constexpr std::string_view name(Order order) {
  constexpr std::array<std::string_view, 4> names{"keyed", "torch", "blocked", "sequential"};
  return names[static_cast<std::size_t>(order)];
}

// The message when `action` is refused as wrong usage.
template <class Action>
std::string refused(Action action) {
  const auto error = thrown_by(action);
  if (!error) return "";
  EXPECT_EQ(error->code(), ExitCode::usage);
  return error->what();
}

using Words = std::vector<std::string>;

struct Parsed {
  std::string first;
  Words rest{};
  std::string text = "unset";
  std::uint64_t number = 7;
  double share = 0.5;
  bool toggle = false;
  Bytes bytes{};
  Seconds seconds{};
  Order order = Order::keyed;
  bool has_number = false;
};

Parsed parse(const Words& words, std::size_t least_rest = 0) {
  Parsed p;
  Flags flags{"lockstep try FIRST [MORE...]"};
  flags.word("FIRST", p.first);
  flags.words("MORE", p.rest, least_rest);
  flags.text("--text", p.text);
  flags.number("-n,--number", p.number, std::uint64_t{1}, std::uint64_t{100});
  flags.number("--share", p.share, 0.0, 1.0);
  flags.toggle("--toggle", p.toggle);
  flags.bytes("--bytes", p.bytes);
  flags.seconds("--seconds", p.seconds);
  flags.choice("--order", "order", p.order, all_orders);
  flags.parse(words);
  p.has_number = flags.has("--number");
  return p;
}

std::string refusal(const Words& words, std::size_t least_rest = 0) {
  return refused([&] { parse(words, least_rest); });
}

TEST(Flags, WhatIsNotTypedKeepsItsDefault) {
  const Parsed p = parse({"a"});
  EXPECT_EQ(p.first, "a");
  EXPECT_TRUE(p.rest.empty());
  EXPECT_EQ(p.text, "unset");
  EXPECT_EQ(p.number, 7u);
  EXPECT_FALSE(p.toggle);
  EXPECT_FALSE(p.has_number);
}

TEST(Flags, WordsAndFlagsMayStandInAnyOrder) {
  const Parsed p = parse({"--text=b c", "a", "-n", "100", "d", "--toggle", "e", "--share", "0.25", "--bytes", "4K",
                          "--seconds", "500ms", "--order", "blocked"});
  EXPECT_EQ(p.first, "a");
  EXPECT_EQ(p.rest, (Words{"d", "e"}));
  EXPECT_EQ(p.text, "b c");
  EXPECT_EQ(p.number, 100u);
  EXPECT_TRUE(p.has_number);
  EXPECT_EQ(p.share, 0.25);
  EXPECT_TRUE(p.toggle);
  EXPECT_EQ(p.bytes.value, 4096u);
  EXPECT_EQ(p.seconds.value, 0.5);
  EXPECT_EQ(p.order, Order::blocked);
}

TEST(Flags, TheLastOfSeveralCounts) { EXPECT_EQ(parse({"a", "-n", "3", "--number", "5"}).number, 5u); }

TEST(Flags, AnEmptyValueIsNotTheNextWord) {
  for (const Words& words : {Words{"a", "--text="}, Words{"a", "--text=", "b"}})
    EXPECT_NE(refusal(words).find("an empty value (--text)"), std::string::npos) << refusal(words);
  EXPECT_NE(refusal({"a", "--number=", "3"}), "");
}

TEST(Flags, RefusesWithTheFlagAndTheWayOut) {
  EXPECT_TRUE(has(refusal({"a", "--numbr", "3"}), "did you mean '--number'?"));
  EXPECT_TRUE(has(refusal({"a", "--order", "blcoked"}), "did you mean 'blocked'?"));
  EXPECT_TRUE(has(refusal({"a", "--order", "x"}), "keyed, torch, blocked, sequential"));
  EXPECT_TRUE(has(refusal({"a", "--number", "x3"}), "'x3' is not a whole number"));
  EXPECT_TRUE(has(refusal({"a", "--number", "3x"}), "'3x' is not a whole number"));
  EXPECT_TRUE(
      has(refusal({"a", "--number", "-3"}), "-3 is out of range (--number)\n  expected: a number from 1 to 100"));
  EXPECT_TRUE(has(refusal({"a", "--number", "-"}), "'-' is not a whole number"));
  EXPECT_TRUE(has(refusal({"a", "--number", "2.5"}), "'2.5' is not a whole number"));
  EXPECT_TRUE(has(refusal({"a", "--share", "x"}), "'x' is not a number"));
  EXPECT_TRUE(has(refusal({"a", "--number", "101"}), "a number from 1 to 100"));
  EXPECT_TRUE(has(refusal({"a", "--number", "99999999999999999999"}), "out of range"));
  EXPECT_TRUE(has(refusal({"a", "-n", "0"}), "--number"));
  EXPECT_TRUE(has(refusal({"a", "--number"}), "--number needs a value"));
  EXPECT_TRUE(has(refusal({"a", "--text="}), "--text"));
  EXPECT_TRUE(has(refusal({"a", "--bytes", "4X"}), "--bytes"));
}

TEST(Flags, AMissingWordIsNamed) {
  EXPECT_TRUE(has(refusal({}), "FIRST is missing"));
  EXPECT_TRUE(has(refusal({"a", "b"}, 2), "MORE is missing"));
  EXPECT_EQ(parse({"a", "b", "c"}, 2).rest.size(), 2u);
}

TEST(Flags, ASurplusWordIsRefused) {
  Flags flags{"lockstep try FIRST"};
  std::string first;
  flags.word("FIRST", first);
  EXPECT_TRUE(has(refused([&] { flags.parse({"a", "b"}); }), "unexpected argument 'b'"));
}

TEST(Flags, ARequiredFlagIsAskedFor) {
  Flags flags{"lockstep try"};
  std::string out;
  flags.text("--out", out);
  flags.parse({});
  EXPECT_TRUE(has(refused([&] { flags.require("--out", "FOLDER"); }), "--out is missing"));
  flags.parse({"--out", "x"});
  EXPECT_NO_THROW(flags.require("--out", "FOLDER"));
}

TEST(Flags, TheHelpHasEachFlagWithItsDefault) {
  Flags flags{""};
  std::uint64_t number = 7;
  std::string text, other;
  bool toggle = false;
  Bytes bytes{1 << 20};
  Seconds seconds{300};
  Order order = Order::torch;
  flags.heading("What to do");
  flags.number("-n,--number,--count N", number, std::uint64_t{1}, std::uint64_t{100}, "how many");
  flags.text("--text FILE", text, {"where to", "required"});
  flags.text("--unlisted", other);
  flags.toggle("--toggle", toggle, "do it");
  flags.bytes("--bytes S", bytes, "size");
  flags.seconds("--seconds T", seconds, "time");
  flags.note("Between\n");
  flags.choice("--order-of-samples O", "order", order, all_orders, "keyed, torch, blocked, sequential");
  flags.mention("--elsewhere", {"another parser takes it", "none"});
  flags.mention("--hidden", "not for this kind");
  flags.hide("--hidden");
  flags.note("Not for this kind\n", "others");
  flags.hide("others");
  EXPECT_EQ(flags.help(),
            "What to do                                                                            (default)\n"
            "  -n, --number N         how many                                                     (7)\n"
            "      --text FILE        where to                                                     (required)\n"
            "      --toggle           do it\n"
            "      --bytes S          size                                                         (1 MiB)\n"
            "      --seconds T        time                                                         (300s)\n"
            "Between\n"
            "      --order-of-samples O keyed, torch, blocked, sequential                          (torch)\n"
            "      --elsewhere        another parser takes it                                      (none)\n");
  flags.parse({"--text", "a", "--unlisted", "b", "--count", "3", "--order-of-samples", "keyed"});
  EXPECT_EQ(text + other, "ab");
  EXPECT_EQ(number, 3U);
  EXPECT_EQ(order, Order::keyed);
}

TEST(Flags, TheHelpBreaksLongLines) {
  Flags flags{""};
  const std::string words =
      "word word word word word word word word word word word word word word word word word word ";
  flags.mention("--flag", {words + "last line", "something"});
  flags.mention("--other", {words, "a default of some length, for which there is room"});
  std::string expected = "      --flag                " + words;
  expected.back() = '\n';
  expected +=
      "                            last line                                                 (something)\n"
      "      --other               " +
      words;
  expected.back() = '\n';
  expected += std::string(69, ' ') + "(a default of some length, for which there is room)\n";
  EXPECT_EQ(flags.help(28), expected);
}

}  // namespace
}  // namespace lockstep::core
