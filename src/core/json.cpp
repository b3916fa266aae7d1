#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

/// The way to a value, which is spelled only where something is wrong.
struct Way {
  const Way* up = nullptr;
  std::string_view name{};
  std::size_t item = 0;
  bool is_item = false;

  [[nodiscard]] std::string text() const {
    const std::string before = up != nullptr ? up->text() : "";
    if (is_item) return fmt::format("{}[{}]", before, item);
    return before.empty() || name.empty() ? before + std::string{name} : fmt::format("{}.{}", before, name);
  }
};

struct Checker {
  const std::string& where;
  std::string_view fix;

  [[noreturn]] void refuse(const Way& way, std::string_view says, std::string expected) const {
    refuse_field(where, way.text(), says, std::move(expected), fix);
  }
};

/// " of 1 to 8 bytes"; nothing where there are no limits.
std::string range_text(const JsonRule& rule, std::string_view before, std::string_view unit) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (rule.least == 0 && rule.most == most) return "";
  if ((rule.most == most ? rule.least : rule.most) == 1 && unit.ends_with('s')) unit.remove_suffix(1);
  if (rule.most == most) return fmt::format(" of at least {}{}", rule.least, unit);
  if (rule.least == rule.most) return fmt::format(" of {}{}", rule.least, unit);
  if (rule.least == 0) return fmt::format(" of at most {}{}", rule.most, unit);
  return fmt::format(" {} {} to {}{}", before, rule.least, rule.most, unit);
}

std::string limits_text(const JsonRule& rule) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (rule.low == -infinity && rule.high == infinity) return "";
  if (rule.high == infinity) return fmt::format(" of at least {:g}", rule.low);
  if (rule.low == -infinity) return fmt::format(" of at most {:g}", rule.high);
  return fmt::format(" from {:g} to {:g}", rule.low, rule.high);
}

std::string expected_of(const JsonRule& rule) {
  const auto words = [&]() -> std::string {
    if (!rule.expected.empty()) return std::string{rule.expected};
    switch (rule.kind) {
      case JsonKind::boolean: return "true or false";
      case JsonKind::whole: return fmt::format("a whole number{}", range_text(rule, "from", ""));
      case JsonKind::integer: return fmt::format("an integer{}", limits_text(rule));
      case JsonKind::number: return fmt::format("a number{}", limits_text(rule));
      case JsonKind::text: return fmt::format("a text{}", range_text(rule, "of", " bytes"));
      case JsonKind::list: return fmt::format("a list{}", range_text(rule, "of", " items"));
      case JsonKind::object: return "an object";
      case JsonKind::any: break;
    }
    return "a value";
  };
  return words() + (rule.may_be_null ? ", or null" : "");
}

/// "is -1", "is 'abc'", "is a list of 3 items".
template <class Json>
std::string says_of(const Json& json) {
  constexpr std::size_t longest = 60;
  if (json.is_array()) return fmt::format("is a list of {} item{}", json.size(), json.size() == 1 ? "" : "s");
  if (json.is_object()) return "is an object";
  if (!json.is_string()) return "is " + json.dump();
  const auto& text = json.template get_ref<const std::string&>();
  return text.size() <= longest ? fmt::format("is '{}'", text)
                                : fmt::format("is '{}...', of {} bytes", text.substr(0, longest), text.size());
}

template <class Json>
bool is_of(const Json& json, JsonKind kind) {
  switch (kind) {
    case JsonKind::any: return true;
    case JsonKind::boolean: return json.is_boolean();
    case JsonKind::whole: return json.is_number_unsigned();
    case JsonKind::integer: return json.is_number_integer();
    case JsonKind::number: return json.is_number();
    case JsonKind::text: return json.is_string();
    case JsonKind::list: return json.is_array();
    case JsonKind::object: return json.is_object();
  }
  return false;
}

template <class Json>
bool is_in_range(const Json& json, const JsonRule& rule) {
  const auto is_within = [&](std::uint64_t n) { return n >= rule.least && n <= rule.most; };
  if (rule.kind == JsonKind::whole) return is_within(json.template get<std::uint64_t>());
  if (rule.kind == JsonKind::list) return is_within(json.size());
  if (rule.kind == JsonKind::number || rule.kind == JsonKind::integer) {
    const auto value = json.template get<double>();
    return value >= rule.low && value <= rule.high;
  }
  if (rule.kind != JsonKind::text) return true;
  const auto& text = json.template get_ref<const std::string&>();
  return is_within(text.size()) && (rule.fits == nullptr || rule.fits(text));
}

template <class Json>
void check(const Checker& checker, const Json& json, const Way& way, const JsonRule& rule);

template <class Json>
void check_fields(const Checker& checker, const Json& json, const Way& way, const JsonRule& rule) {
  for (const JsonField& field : rule.fields) {
    const Way below{.up = &way, .name = field.name};
    const auto found = json.find(std::string{field.name});
    if (found != json.end()) {
      check(checker, *found, below, field.rule);
    } else if (field.is_required && !rule.may_lack_fields) {
      checker.refuse(below, "is missing", expected_of(field.rule));
    }
  }
  if (rule.each == nullptr) return;
  const auto is_named = [&](const std::string& name) {
    return std::ranges::any_of(rule.fields, [&](const JsonField& field) { return field.name == name; });
  };
  for (const auto& item : json.items())
    if (!is_named(item.key())) check(checker, item.value(), {.up = &way, .name = item.key()}, *rule.each);
}

template <class Json>
void check(const Checker& checker, const Json& json, const Way& way, const JsonRule& rule) {
  if (json.is_null() && rule.may_be_null) return;
  if (!is_of(json, rule.kind) || !is_in_range(json, rule)) checker.refuse(way, says_of(json), expected_of(rule));
  if (rule.kind == JsonKind::object) check_fields(checker, json, way, rule);
  if (rule.kind != JsonKind::list || rule.each == nullptr) return;
  for (std::size_t i = 0; i < json.size(); ++i)
    check(checker, json[i], {.up = &way, .item = i, .is_item = true}, *rule.each);
}

/// "line 3, column 7" of a byte, which counts from 1.
std::string place_in(std::string_view text, std::size_t byte) {
  if (byte > text.size()) return "its end is missing";
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const auto n_lines = std::ranges::count(before, '\n');
  const std::size_t line_begin = before.rfind('\n');
  const std::size_t column = line_begin == std::string_view::npos ? before.size() : before.size() - line_begin - 1;
  return fmt::format("line {}, column {}", n_lines + 1, column + 1);
}

/// Stops a parser at a value that is nested too deeply, has too many fields, or has a field twice. So nothing that
/// recurses meets such a value.
template <class Json>
class Bounds {
 public:
  Bounds(const std::string& where, const JsonDocument& document) : where_{where}, document_{document} {}

  bool operator()(int depth, typename Json::parse_event_t event, const Json& json) {
    using Event = typename Json::parse_event_t;
    const bool is_begin = event == Event::object_start || event == Event::array_start;
    if (is_begin && depth >= document_.deepest)
      fail("", fmt::format("is nested more than {} deep", document_.deepest), std::string{document_.what});
    if (event == Event::object_start) begun_.emplace_back();
    if (event == Event::object_end) begun_.pop_back();
    if (event == Event::key) take(json.template get_ref<const std::string&>());
    return true;
  }

 private:
  /// An object that has begun.
  struct Begun {
    std::unordered_set<std::string> names{};
    std::string last{};
  };

  void take(const std::string& name) {
    Begun& object = begun_.back();
    object.last = name;
    if (!object.names.insert(name).second) fail(way(), "occurs twice", "each field of an object once");
    if (object.names.size() > document_.most_fields)
      fail("", fmt::format("has an object of more than {} fields", document_.most_fields), std::string{document_.what});
  }

  /// Without the numbers of items.
  [[nodiscard]] std::string way() const {
    std::string text;
    for (const Begun& object : begun_) text += (text.empty() ? "" : ".") + object.last;
    return text;
  }

  [[noreturn]] void fail(std::string_view field, std::string_view says, std::string expected) const {
    refuse_field(where_, field, says, std::move(expected), document_.fix);
  }

  const std::string& where_;
  const JsonDocument& document_;
  std::vector<Begun> begun_{};
};

template <class Json>
Json parse_bounded(std::string_view text, const std::string& where, const JsonDocument& document) {
  const auto fail = [&](const std::string& says) {
    refuse_field(where, "", says, std::string{document.what}, document.fix);
  };
  if (text.empty()) fail("is empty");
  if (text.size() > document.most_bytes)
    fail(fmt::format("has {} bytes, more than {}", text.size(), document.most_bytes));
  Bounds<Json> bounds{where, document};
  try {
    return Json::parse(
        text, [&](int depth, typename Json::parse_event_t event, Json& json) { return bounds(depth, event, json); });
  } catch (const typename Json::parse_error& error) {
    fail(fmt::format("is not JSON: {}", place_in(text, error.byte)));
  } catch (const typename Json::exception&) {
    fail("has a number that is too large");
  }
  return {};
}

}  // namespace

void refuse_field(const std::string& where, std::string_view field, std::string_view says, std::string expected,
                  std::string_view fix) {
  const std::string_view blank = field.empty() ? "" : " ";
  fail_usage({.what = fmt::format("{}: {}{}{}", where, field, blank, says),
              .expected = std::move(expected),
              .fix = std::string{fix}});
}

template <class Json>
void check_json(const Json& json, const std::string& where, std::string_view field, const JsonRule& rule,
                std::string_view fix) {
  check(Checker{where, fix}, json, {.name = field}, rule);
}

template <class Json>
Json parse_json(std::string_view text, const std::string& where, const JsonDocument& document) {
  Json json = parse_bounded<Json>(text, where, document);
  check_json(json, where, "", document.rule, document.fix);
  return json;
}

template nlohmann::json parse_json(std::string_view, const std::string&, const JsonDocument&);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, const JsonDocument&);
template void check_json(const nlohmann::json&, const std::string&, std::string_view, const JsonRule&,
                         std::string_view);
template void check_json(const nlohmann::ordered_json&, const std::string&, std::string_view, const JsonRule&,
                         std::string_view);

bool is_digest(std::string_view text) noexcept {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace lockstep::core
