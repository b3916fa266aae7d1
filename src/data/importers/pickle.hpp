// What a Python pickle holds, read without running anything: numbers, texts, lists, tuples, dictionaries and NumPy
// arrays of bytes, in the binary opcodes of protocols 1 and 2, which are what CIFAR's version for Python is written in.
// Invariant: nothing that the file names is called; lengths are compared with the file before they are used; memory
// grows with the number of values, never with the length of a text or an array.
// Used by the importer of CIFAR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/importers/input.hpp"

namespace lockstep::data {

struct PickleValue {
  enum class Kind : std::uint8_t { none, number, text, list, tuple, dictionary, global, dtype, array };

  Kind kind = Kind::none;
  std::int64_t number = 0;             ///< of a number; 0 or 1 for False or True
  std::uint64_t offset = 0;            ///< of a text or of an array's data, in the input
  std::uint64_t bytes = 0;             ///< of these
  std::vector<std::uint32_t> items{};  ///< numbers of values; of a dictionary, keys and values in turn
  std::vector<std::uint64_t> shape{};  ///< of an array; their product is `bytes`
  bool is_by_columns = false;          ///< of an array: the first index runs fastest
};

class Pickle {
 public:
  /// `input` is looked into again for texts. core::Error (usage) naming file and byte for whatever is damaged, or
  /// anything else than is said above.
  explicit Pickle(const Input& input);

  /// A value of the outermost dictionary. core::Error (usage) if there is none, or it is not of `kind`.
  [[nodiscard]] const PickleValue& at(std::string_view key, PickleValue::Kind kind) const;
  [[nodiscard]] const PickleValue& value(std::uint32_t number) const { return values_.at(number); }
  /// core::Error (usage) if it is longer than 4 KiB.
  [[nodiscard]] std::string text(const PickleValue& value) const;

 private:
  const Input& input_;
  std::vector<PickleValue> values_{};
  std::uint32_t root_ = 0;
};

}  // namespace lockstep::data
