// JSON documents that come from files: bounded in size and depth, with the fields that a table names.
// Invariant: what is returned has all required fields, each once, of the type and in the range that the table says;
// messages are ours, not the JSON library's.
// Used by whatever reads JSON: checkpoints, sets, results, the status of a run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::core {

/// `whole` counts from 0; `integer` may be negative.
enum class JsonKind { any, boolean, whole, integer, number, text, list, object };

struct JsonField;

/// A table of them, which outlives this.
class JsonFields {
 public:
  constexpr JsonFields() = default;
  template <std::size_t n>
  constexpr JsonFields(const std::array<JsonField, n>& table) : first_{table.data()}, n_{n} {}

  [[nodiscard]] constexpr const JsonField* begin() const noexcept { return first_; }
  [[nodiscard]] constexpr const JsonField* end() const noexcept;

 private:
  const JsonField* first_ = nullptr;
  std::size_t n_ = 0;
};

/// What a value may be.
struct JsonRule {
  JsonKind kind = JsonKind::any;
  std::uint64_t least = 0;  ///< whole number, or bytes of a text, or items of a list
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  double low = -std::numeric_limits<double>::infinity();  ///< number or integer
  double high = std::numeric_limits<double>::infinity();
  bool may_be_null = false;
  bool may_lack_fields = false;              ///< of an object: none of its fields is required
  JsonFields fields{};                       ///< of an object, which may have others as well
  const JsonRule* each = nullptr;            ///< of the items of a list, of the other fields of an object
  bool (*fits)(std::string_view) = nullptr;  ///< of a text: whether it is one
  std::string_view expected{};               ///< in place of what the rule says by itself
};

struct JsonField {
  std::string_view name;
  JsonRule rule{};
  bool is_required = true;
};

constexpr const JsonField* JsonFields::end() const noexcept { return first_ + n_; }

/// A kind of document.
struct JsonDocument {
  std::string_view what;  ///< "an index of a checkpoint"
  JsonRule rule{};
  std::string_view fix{};
  std::size_t most_bytes = std::size_t{256} << 20;
  int deepest = 64;                  ///< lists and objects in one another
  std::size_t most_fields = 10'000;  ///< of one object
};

/// `Json` is nlohmann::json or nlohmann::ordered_json. Throws core::Error (usage): "WHERE: files[2].bytes is -1". A
/// field that occurs twice is refused, as programs differ in which of the two they take.
template <class Json>
[[nodiscard]] Json parse_json(std::string_view text, const std::string& where, const JsonDocument& document);

/// The same for a value that was read before, at `field` of the document; "" is all of it.
template <class Json>
void check_json(const Json& json, const std::string& where, std::string_view field, const JsonRule& rule,
                std::string_view fix);

/// Throws core::Error (usage) for a field that contradicts another one. `says`: "is 7".
[[noreturn]] void refuse_field(const std::string& where, std::string_view field, std::string_view says,
                               std::string expected, std::string_view fix);

// Rules that many documents have.
inline constexpr JsonRule json_boolean{.kind = JsonKind::boolean};
inline constexpr JsonRule json_number{.kind = JsonKind::number};
inline constexpr JsonRule json_text{.kind = JsonKind::text};
inline constexpr JsonRule json_whole{.kind = JsonKind::whole};

/// 32 hexadecimal digits in lower case.
[[nodiscard]] bool is_digest(std::string_view text) noexcept;
inline constexpr JsonRule json_digest{
    .kind = JsonKind::text, .fits = is_digest, .expected = "a digest: 32 hexadecimal digits"};

}  // namespace lockstep::core
