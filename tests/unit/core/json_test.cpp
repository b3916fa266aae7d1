#include "core/json.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonRule extent{.kind = JsonKind::whole, .least = 1, .most = 100};
constexpr std::array tensor_fields{JsonField{"name", {.kind = JsonKind::text, .least = 1, .most = 8}},
                                   JsonField{"shape", {.kind = JsonKind::list, .least = 1, .most = 3, .each = &extent}},
                                   JsonField{"scale", {.kind = JsonKind::number, .may_be_null = true}, false},
                                   JsonField{"bias", {.kind = JsonKind::number, .low = -1, .high = 2.5}, false},
                                   JsonField{"shift", {.kind = JsonKind::integer, .low = -3}, false},
                                   JsonField{"digest", json_digest, false},
                                   JsonField{"is_new", json_boolean, false}};
constexpr JsonRule tensor{.kind = JsonKind::object, .fields = tensor_fields};
constexpr std::array fields{JsonField{"count", json_whole},
                            JsonField{"tensors", {.kind = JsonKind::list, .most = 2, .each = &tensor}},
                            JsonField{"recipe", {.kind = JsonKind::object, .each = &json_number}, false}};
constexpr JsonDocument document{
    .what = "a list of tensors", .rule = {.kind = JsonKind::object, .fields = fields}, .fix = "write it again"};

std::string complaint_about(std::string_view text, const JsonDocument& kind = document) {
  const auto error = complaint_of([&] { static_cast<void>(parse_json<Json>(text, "f.json", kind)); });
  EXPECT_TRUE(!error || error->code() == ExitCode::usage);
  return error ? error->what() : "";
}

/// A document with one tensor, whose text follows its name.
std::string with(const std::string& rest) {
  return R"({"count": 18446744073709551615, "tensors": [{"name": "a", "shape": [1, 100]}, {"name": "b", )" + rest +
         "}]}";
}

TEST(Json, WhatFitsItsTableComesBack) {
  const std::string text =
      with(R"("shape": [1], "scale": null, "bias": -1, "shift": -3, "digest": "0123456789abcdef0123456789abcdef", )"
           R"("is_new": true, "more": [])");
  const Json json = parse_json<Json>(text, "f.json", document);
  EXPECT_EQ(json.at("tensors").at(1).at("shape"), Json({1}));
  EXPECT_EQ(parse_json<nlohmann::json>(text, "f.json", document).at("count"), ~std::uint64_t{0});
  EXPECT_EQ(complaint_about(R"({"count": 0, "tensors": [], "recipe": {"lr": 1, "batch": 2.5}})"), "");
}

TEST(Json, WhatDoesNotIsNamedByItsField) {
  const std::pair<std::string, std::string> table[] = {
      {with(R"("shape": [7, -1])"), "f.json: tensors[1].shape[1] is -1\n  expected: a whole number from 1 to 100"},
      {with(R"("shape": [101])"), "tensors[1].shape[0] is 101"},
      {with(R"("shape": [1.0])"), "tensors[1].shape[0] is 1.0"},
      {with(R"("shape": [1e99])"), "tensors[1].shape[0] is 1e+99"},
      {with(R"("shape": [])"), "tensors[1].shape is a list of 0 items\n  expected: a list of 1 to 3 items"},
      {with(R"("shape": {"a": 1})"), "tensors[1].shape is an object"},
      {with(R"("shap": [1])"), "tensors[1].shape is missing\n  expected: a list of 1 to 3 items"},
      {with(R"("shape": [1], "scale": "a")"), "tensors[1].scale is 'a'\n  expected: a number, or null"},
      {with(R"("shape": [1], "bias": 2.75)"), "tensors[1].bias is 2.75\n  expected: a number from -1 to 2.5"},
      {with(R"("shape": [1], "bias": -2)"), "tensors[1].bias is -2\n  expected: a number from -1 to 2.5"},
      {with(R"("shape": [1], "shift": -4)"), "tensors[1].shift is -4\n  expected: an integer of at least -3"},
      {with(R"("shape": [1], "shift": 0.5)"), "tensors[1].shift is 0.5\n  expected: an integer of at least -3"},
      {with(R"("shape": [1], "digest": "0123")"), "tensors[1].digest is '0123'\n  expected: a digest: 32 hex"},
      {with(R"("shape": [1], "is_new": 0)"), "tensors[1].is_new is 0\n  expected: true or false"},
      {R"({"count": -1, "tensors": []})", "count is -1\n  expected: a whole number\n  fix"},
      {R"({"count": 18446744073709551616, "tensors": []})", "count is 1.8446744073709552e+19"},
      {R"({"count": null, "tensors": []})", "count is null"},
      {R"({"count": 1, "tensors": [1]})", "tensors[0] is 1\n  expected: an object"},
      {R"({"count": 1, "tensors": [{"name": ""}]})", "tensors[0].name is ''\n  expected: a text of 1 to 8 bytes"},
      {R"({"count": 1, "tensors": [], "recipe": {"lr": {}}})", "recipe.lr is an object\n  expected: a number"},
      {"[]", "f.json: is a list of 0 items\n  expected: an object\n  fix: write it again"},
  };
  for (const auto& [text, words] : table) {
    const std::string complaint = complaint_about(text);
    EXPECT_NE(complaint.find(words), std::string::npos) << text << " : " << complaint;
  }
}

// The library's own words would be "[json.exception.parse_error.101] ...".
TEST(Json, WhatIsNoneIsNamedByItsPlace) {
  const std::pair<std::string, std::string> table[] = {
      {"", "f.json: is empty\n  expected: a list of tensors\n  fix: write it again"},
      {"{", "f.json: is not JSON: its end is missing"},
      {"{\n  \"count\": 1,\n  tensors\n}", "f.json: is not JSON: line 3, column 4"},
      {"\xff", "f.json: is not JSON: line 1, column 1"},
      {R"({"count": 1e999})", "f.json: has a number that is too large"},
  };
  for (const auto& [text, words] : table) {
    const std::string complaint = complaint_about(text);
    EXPECT_NE(complaint.find(words), std::string::npos) << text << " : " << complaint;
    EXPECT_EQ(complaint.find("json.exception"), std::string::npos) << complaint;
  }
}

TEST(Json, AFieldOccursOnce) {
  const std::pair<std::string, std::string> table[] = {
      {R"({"count": 1, "tensors": [], "count": 1})",
       "f.json: count occurs twice\n  expected: each field of an object once\n  fix: write it again"},
      {R"({"count": 1, "tensors": [], "co\u0075nt": 2})", "f.json: count occurs twice"},
      {with(R"("shape": [1], "name": "c")"), "f.json: tensors.name occurs twice"},
      {R"({"count": 1, "tensors": [], "recipe": {"lr": 1, "batch": 2, "lr": 3}})", "f.json: recipe.lr occurs twice"},
      {R"({"count": 1, "tensors": [], "more": {"a": {"b": 1}, "c": [{"b": {}, "b": {}}]}})",
       "f.json: more.c.b occurs twice"},
  };
  for (const auto& [text, words] : table) {
    const std::string complaint = complaint_about(text);
    EXPECT_NE(complaint.find(words), std::string::npos) << text << " : " << complaint;
  }
  EXPECT_EQ(complaint_about(R"({"count": 1, "tensors": [], "recipe": {"count": 1, "tensors": 2}})"), "");
}

TEST(Json, NothingIsNestedDeeplyOrTooLarge) {
  const auto nested = [](std::size_t n) {
    return R"({"count": 1, "tensors": [], "more": )" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_EQ(complaint_about(nested(63)), "");
  EXPECT_NE(complaint_about(nested(64)).find("f.json: is nested more than 64 deep"), std::string::npos);
  EXPECT_NE(complaint_about(nested(200'000)).find("is nested more than 64 deep"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_NE(complaint_about(objects).find("is nested more than 64 deep"), std::string::npos);

  JsonDocument small = document;
  small.most_fields = 3;
  small.most_bytes = 100;
  EXPECT_EQ(complaint_about(R"({"count": 1, "tensors": [], "more": {}})", small), "");
  EXPECT_NE(complaint_about(R"({"count": 1, "tensors": [], "more": {}, "most": {}})", small).find("more than 3 fields"),
            std::string::npos);
  EXPECT_NE(complaint_about(nested(60), small).find("bytes, more than 100"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::core
